use crate::command::status::warnings;
use crate::context::Context;
use crate::failure::Failure;

/// Have owd read its configuration and task files again
#[derive(Debug, clap::Args)]
pub(crate) struct Reload {}

impl Reload {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let status = context.with_daemon(async |owd| Ok(owd.reload().await?))?;
        context.out.give(&status, |status| {
            format!("Configuration and task files are read again.\n{}", warnings(status, context.out.paint))
        });
        Ok(())
    }
}
