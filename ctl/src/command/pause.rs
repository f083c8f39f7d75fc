use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;

/// The kill switch: nothing starts, running calls are stopped, items stay
#[derive(Debug, clap::Args)]
#[command(after_help = "For one task: owctl task pause NAME")]
pub(crate) struct Pause {
    /// Yes, all tasks
    #[arg(long, required = true)]
    all: bool,
}

impl Pause {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        debug_assert!(self.all, "clap requires it");
        context.with_daemon(async |owd| Ok(owd.pause_all().await?))?;
        context.out.give(&json!({ "paused": true }), |_| {
            "Everything is paused: nothing starts until `owctl resume --all`. Items stay and may be answered.".into()
        });
        Ok(())
    }
}
