//! Task files: TOML in, a checked [`TaskSpec`] or all that is wrong with it out.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ow_model::{InboxName, Span, ToolName, WebhookName, ZoneName};
use serde_json::Value;

mod agent;
mod args;
mod fields;
mod folder;
mod read;
mod trigger;
mod write;

pub(crate) use agent::{model_name, model_names};
pub(crate) use fields::{absolute_path, folders, http_hosts, zone};
pub use folder::{TASK_FILE_LIMIT, TaskFile, is_task_file, load_tasks, read_task_file};
pub use read::{parse_edited_task, parse_task};
pub use write::{step_text, to_toml};

/// What a task has that does not say otherwise.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TaskDefaults {
    pub timezone: ZoneName,
    /// What `~` stands for. Absolute.
    pub home: PathBuf,
    pub timeout: Span,
    pub call_timeout: Span,
    pub expiry: Span,
    pub reminder: Span,
    /// The inboxes that there are.
    pub inboxes: BTreeSet<InboxName>,
    /// The webhooks that the configuration names.
    pub webhooks: Vec<WebhookName>,
    /// The folders that are read beside the mailbox.
    pub mail_folders: Vec<String>,
}

/// Knows the tools that steps may name. The tools live elsewhere; whoever has them passes this in.
pub trait ToolChecker {
    /// The names of all tools.
    fn known(&self) -> Vec<ToolName>;

    /// Whether arguments fit the tool's schema; the error says what does not, in a few words.
    ///
    /// Templates are not rendered yet. A string that is one template and nothing else may become a value of any
    /// type; any other string with templates becomes a string.
    fn check(&self, tool: &ToolName, args: &Value) -> Result<(), String>;
}

#[cfg(test)]
mod tests;
