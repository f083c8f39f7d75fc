use super::view;
use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

/// Cancel a run; what it was doing is stopped
#[derive(Debug, clap::Args)]
pub(crate) struct Cancel {
    /// The run's id, or a unique beginning of it
    run: Reference,
}

impl Cancel {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let run = context.with_daemon(async |owd| Ok(owd.cancel_run(self.run.as_str()).await?))?;
        context.out.give(&run, |run| view::one_line(run, context.clock(), context.out.paint));
        Ok(())
    }
}
