use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;

/// Let work start again after `pause --all`
#[derive(Debug, clap::Args)]
#[command(after_help = "For one task: owctl task resume NAME")]
pub(crate) struct Resume {
    /// Yes, all tasks
    #[arg(long, required = true)]
    all: bool,
}

impl Resume {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        debug_assert!(self.all, "clap requires it");
        context.with_daemon(async |owd| Ok(owd.resume_all().await?))?;
        context.out.give(&json!({ "paused": false }), |_| "Work starts again.".into());
        Ok(())
    }
}
