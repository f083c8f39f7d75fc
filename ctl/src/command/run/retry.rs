use super::view;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::reference::Reference;

/// Run the task of an ended run again, with the same events
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// The run's id, or a unique beginning of it
    run: Reference,
}

impl Retry {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let run = context.with_daemon(async |owd| Ok(owd.retry_run(self.run.as_str()).await?))?;
        context.out.give(&run, |run| view::one_line(run, context.clock(), context.out.paint));
        context.out.note(&format!("Watch it: owctl run watch {}", escape::line(&run.id)));
        Ok(())
    }
}
