use crate::context::Context;
use crate::escape;
use crate::failure::Failure;

/// Pause a task: its slots are skipped, its events wait
#[derive(Debug, clap::Args)]
#[command(after_help = "For everything at once: owctl pause --all")]
pub(crate) struct Pause {
    /// The task's name
    name: String,
}

/// Let a paused task go on
#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// The task's name
    name: String,
}

impl Pause {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let task = context.with_daemon(async |owd| {
            owd.pause_task(&self.name).await?;
            Ok(owd.task(&self.name).await?)
        })?;
        context.out.give(&task, |task| {
            format!(
                "{} is paused until `owctl task resume {0}`: its slots are skipped and its events wait. What runs goes \
                 on, and `owctl task run {0}` runs it by hand.",
                escape::line(&task.name)
            )
        });
        Ok(())
    }
}

impl Resume {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let task = context.with_daemon(async |owd| {
            owd.resume_task(&self.name).await?;
            Ok(owd.task(&self.name).await?)
        })?;
        context.out.give(&task, |task| {
            let next = context.clock().when_or(task.next_due.as_deref(), "nothing is scheduled");
            format!("{} goes on; next: {next}", escape::line(&task.name))
        });
        Ok(())
    }
}
