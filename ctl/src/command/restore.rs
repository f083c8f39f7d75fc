use std::path::PathBuf;

use serde_json::json;

use crate::ask;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{tell, write};
use crate::{escape, program};

/// Put a backup in the place of the store; owd must not be running
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  systemctl --user stop owd && owctl restore ~/backups/owd-2026-03-08 && systemctl --user start owd

The store that is there now is kept beside it. Runs that were open in the backup are interrupted with unknown
outcome, open items are asked again under new ids, and slots since the backup are recorded as missed.")]
pub(crate) struct Restore {
    /// A folder that `owctl backup` made
    #[arg(value_name = "DIR")]
    from: PathBuf,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Restore {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        if !self.from.is_dir() {
            return Err(Failure::usage(format!("`{}` is not a folder", self.from.display()))
                .hint("name a folder that `owctl backup` made"));
        }
        let paths = context.paths()?;
        if !self.yes {
            let question = format!("Replace the store in {} by this backup?", paths.data_dir.display());
            if !ask::can_ask() {
                return Err(Failure::usage("nobody can be asked here").hint("add --yes to replace the store"));
            }
            if !ask::yes(&escape::line(&question)) {
                return Err(Failure::failed("not_confirmed", "nothing was changed"));
            }
        }
        let done = program::run_owd(context, ["restore".as_ref(), self.from.as_os_str()])?;
        let said = String::from_utf8_lossy(&done.stdout);
        let complained = String::from_utf8_lossy(&done.stderr);
        if !done.status.success() {
            let message = complained.trim().trim_start_matches("owd: ");
            return Err(Failure::failed("restore", message).hint("stop owd first if it runs; nothing was changed"));
        }
        if context.out.is_json() {
            context.out.json(&json!({ "restored": self.from.display().to_string(), "said": said.trim() }));
        } else {
            write(&escape::block(&said));
            if !complained.trim().is_empty() {
                tell(&escape::block(&complained));
            }
        }
        Ok(())
    }
}
