use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ow_client::Client;
use ow_protocol::{PageQuery, TaskView};
use serde_json::json;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::write;

/// Print a task's definition as TOML, or write all of them into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl task export reports > reports.toml
  owctl task export --all ~/owd-tasks")]
pub(crate) struct Export {
    /// The task's name
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// Every task, a file each; the folder is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    all: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long, requires = "all")]
    force: bool,
}

impl Export {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        if let Some(folder) = &self.all {
            return self.all(folder, context);
        }
        let name = self.name.as_ref().expect("clap requires it without --all");
        let task = context.with_daemon(async |owd| Ok(owd.task(name).await?))?;
        let definition = task.definition.unwrap_or_default();
        if context.out.is_json() {
            context.out.json(&json!({ "name": task.name, "definition": definition }));
        } else {
            // As it is, not as it is shown: it goes into a file.
            write(&definition);
        }
        Ok(())
    }

    fn all(&self, folder: &Path, context: &Context) -> Result<(), Failure> {
        fs::create_dir_all(folder).map_err(|why| Failure::io(format!("cannot make {}", folder.display()), &why))?;
        let tasks = context.with_daemon(async |owd| all_tasks(owd).await)?;
        let mut files = vec![];
        for task in tasks {
            let file = folder.join(format!("{}.toml", task.name));
            self.write(&file, task.definition.as_deref().unwrap_or_default())?;
            files.push(file.display().to_string());
        }
        context.out.give(&json!({ "into": folder.display().to_string(), "files": files }), |_| {
            format!("{} tasks written into {}", files.len(), folder.display())
        });
        Ok(())
    }

    fn write(&self, file: &Path, text: &str) -> Result<(), Failure> {
        let mut options = OpenOptions::new();
        options.write(true);
        if self.force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        let written = options.open(file).and_then(|mut open| open.write_all(text.as_bytes()));
        written.map_err(|why| {
            let failure = Failure::io(format!("cannot write {}", file.display()), &why);
            match why.kind() {
                ErrorKind::AlreadyExists => failure.hint("choose an empty folder, or add --force to replace files"),
                _ => failure,
            }
        })
    }
}

/// Every task with its definition.
async fn all_tasks(owd: &mut Client) -> Result<Vec<TaskView>, Failure> {
    let mut query = PageQuery { limit: Some(500), ..PageQuery::default() };
    let mut tasks = vec![];
    loop {
        let page = owd.tasks(&query).await?;
        for task in page.rows {
            tasks.push(owd.task(&task.name).await?);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(tasks),
        }
    }
}
