use super::view;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::write;
use crate::reference::Reference;

/// Print the path of a file that a run made
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  less \"$(owctl run open 4k7 1)\"")]
pub(crate) struct Open {
    /// The run's id, or a unique beginning of it
    run: Reference,
    /// Which of the things that it made, as `run show` numbers them
    #[arg(value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    number: u32,
}

impl Open {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let run = context.with_daemon(async |owd| Ok(owd.run(self.run.as_str()).await?))?;
        let Some(artifact) = run.artifacts.iter().find(|artifact| artifact.number == self.number) else {
            let made = run.artifacts.iter().map(view::artifact).collect();
            return Err(Failure::new(
                Exit::NotFound,
                "not_found",
                format!("the run made nothing with number {}", self.number),
            )
            .details(made)
            .hint(format!("see what it made: owctl run show {}", run.run.id)));
        };
        if artifact.kind != "file" {
            return Err(Failure::usage(format!("number {} is no file but a {}", artifact.number, artifact.kind))
                .hint(format!("see what it made: owctl run show {}", run.run.id)));
        }
        if context.out.is_json() {
            context.out.json(artifact);
        } else if context.out.width.is_some() {
            write(&escape::line(&artifact.name));
        } else {
            // A script must get the path as it is.
            write(&artifact.name);
        }
        Ok(())
    }
}
