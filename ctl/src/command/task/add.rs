use std::path::PathBuf;

use ow_model::TaskName;
use ow_protocol::SaveTask;

use super::definition::{Definition, saved_in_words};
use crate::context::Context;
use crate::failure::Failure;

/// Add a task, kept in owd's store
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl task add reports.toml
  owctl task add --name nightly-backup - < backup.toml

To keep a task as a file instead, put it into the folder tasks.d beside the configuration; owd sees it there.")]
pub(crate) struct Add {
    /// A task file, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The task's name; the file's name if not given
    #[arg(long, value_name = "NAME")]
    name: Option<TaskName>,
}

impl Add {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let definition = Definition::read(&self.file)?;
        let name = definition.named(self.name.as_ref())?;
        let request = SaveTask { definition: definition.text, must_be_new: true, expect_revision: None };
        let saved = context.with_daemon(async |owd| Ok(owd.save_task(name.as_str(), &request).await?));
        let saved = saved.map_err(|failure| failure.too_large_is(&self.file))?;
        context.out.give(&saved, |saved| saved_in_words(saved, context.clock()));
        Ok(())
    }
}
