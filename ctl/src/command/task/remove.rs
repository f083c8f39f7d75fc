use serde_json::json;

use crate::ask;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;

/// Delete a task; its records stay
#[derive(Debug, clap::Args)]
#[command(after_help = "Open runs of the task are cancelled and its open items withdrawn. To keep the definition:
  owctl task export NAME > NAME.toml")]
pub(crate) struct Remove {
    /// The task's name
    name: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Remove {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        context.with_daemon(async |owd| {
            let task = owd.task(&self.name).await?;
            let question =
                format!("Delete the task {}, cancel its runs and withdraw its items?", escape::line(&task.name));
            if !self.yes && !context.out.is_json() && ask::can_ask() && !ask::yes(&question) {
                return Err(Failure::failed("not_confirmed", "nothing was changed"));
            }
            Ok(owd.delete_task(&task.name).await?)
        })?;
        context.out.give(&json!({ "deleted": self.name }), |_| {
            format!("{} is deleted; its records stay (owctl run list --task {0}).", escape::line(&self.name))
        });
        Ok(())
    }
}
