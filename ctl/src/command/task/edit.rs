use std::fs::OpenOptions;
use std::path::PathBuf;

use ow_client::{Client, ClientError};
use ow_protocol::{ErrorCode, SaveTask, SavedTask, TaskView, WarningView};
use serde_json::json;

use super::definition::saved_in_words;
use crate::ask;
use crate::context::Context;
use crate::editor::{self, Draft};
use crate::escape;
use crate::failure::Failure;
use crate::output::{Out, tell};

/// Edit a task's definition in your editor
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The editor is $VISUAL or $EDITOR. A definition with errors changes nothing; the editor opens again.
A task that is kept as a file in tasks.d is edited there."
)]
pub(crate) struct Edit {
    /// The task's name
    name: String,
}

impl Edit {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        context.with_daemon(async |owd| {
            let task = owd.task(&self.name).await?;
            if task.source == "file" {
                return edit_file(owd, &task, context.out).await;
            }
            match edit_stored(owd, &task, context.out).await? {
                Some(saved) => context.out.give(&saved, |saved| saved_in_words(saved, context.clock())),
                None => context
                    .out
                    .give(&json!({ "name": task.name, "change": "unchanged" }), |_| "Nothing was changed.".into()),
            }
            Ok(())
        })
    }
}

/// None if the person left the text as it was.
async fn edit_stored(owd: &mut Client, task: &TaskView, out: Out) -> Result<Option<SavedTask>, Failure> {
    let before = task.definition.clone().unwrap_or_default();
    let draft = Draft::new(&before, ".toml")?;
    loop {
        let text = draft.edit()?;
        if text == before {
            return Ok(None);
        }
        let request = SaveTask { definition: text, must_be_new: false, expect_revision: Some(task.revision) };
        let error = match owd.save_task(&task.name, &request).await {
            Ok(saved) => return Ok(Some(saved)),
            Err(error) => error,
        };
        let can_mend = matches!(&error, ClientError::Http(body) if body.code == ErrorCode::Invalid);
        let failure = Failure::from(error);
        if can_mend && offers_again(&failure, out) {
            continue;
        }
        let kept = draft.keep();
        return Err(failure.hint(format!("your text is kept in {}", kept.display())));
    }
}

/// Shows what is wrong and asks whether to go back into the editor.
fn offers_again(failure: &Failure, out: Out) -> bool {
    if out.is_json() || !ask::can_ask() {
        return false;
    }
    // The exit code is for the end; here only the words count.
    let _exit = out.fail(failure);
    ask::yes("Open the editor again?")
}

async fn edit_file(owd: &mut Client, task: &TaskView, out: Out) -> Result<(), Failure> {
    let status = owd.status().await?;
    let path: PathBuf = [&status.config_dir, "tasks.d", &format!("{}.toml", task.name)].iter().collect();
    if let Err(why) = OpenOptions::new().append(true).open(&path) {
        return Err(Failure::failed(
            "task_file",
            format!("{} is a task file, and {}: {why}", task.name, path.display()),
        )
        .hint("edit that file as its owner; owd sees the change by itself"));
    }
    loop {
        editor::open(&path)?;
        let status = owd.reload().await?;
        let faults: Vec<&WarningView> = status
            .warnings
            .iter()
            .filter(|warning| warning.kind == "task_file" && is_about(warning, &task.name))
            .collect();
        if faults.is_empty() {
            let now = owd.task(&task.name).await?;
            let answer = json!({ "name": now.name, "revision": now.revision, "file": path.display().to_string() });
            out.give(&answer, |_| format!("{} is read again (revision {}).", escape::line(&now.name), now.revision));
            return Ok(());
        }
        let details = faults.iter().map(|fault| fault.message.clone()).collect();
        let failure = Failure::usage(format!("{} has errors and changes nothing yet", path.display()))
            .details(details)
            .hint(format!("correct it: owctl task edit {}", task.name));
        if !offers_again(&failure, out) {
            return Err(failure);
        }
        tell("");
    }
}

fn is_about(warning: &WarningView, task: &str) -> bool {
    let file = std::path::Path::new(&warning.about);
    warning.about == task || file.file_stem().is_some_and(|stem| stem == task)
}
