use crate::command::follow;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{json_line, write};
use crate::reference::Reference;

/// Watch a run until it has ended, or all runs
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What its commands print is shown as it comes, the newest where there is much; all of it is in their results.\nThe exit code is 0 if the run succeeded, else 1. Without a run it goes on until Ctrl-C."
)]
pub(crate) struct Watch {
    /// The run's id, or a unique beginning of it
    run: Option<Reference>,
}

impl Watch {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        context.with_daemon(async |owd| {
            let mut stream = owd.stream(None, Some("run")).await?;
            if let Some(run) = &self.run {
                let id = owd.run(run.as_str()).await?.run.id;
                return follow::to_the_end(owd, stream, &id, context).await;
            }
            loop {
                let event = follow::next(&mut stream, context).await?;
                if context.out.is_json() {
                    json_line(&event);
                } else {
                    write(&follow::event_in_words(&event, context.clock(), context.out.paint));
                }
            }
        })
    }
}
