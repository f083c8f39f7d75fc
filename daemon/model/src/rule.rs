use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{BlobHash, CallHash, RuleId, TaskName, ToolName};

/// A standing permission that a person gave.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rule {
    pub id: RuleId,
    pub scope: RuleScope,
    pub target: RuleTarget,
    /// Also covers a session that holds outside content.
    pub covers_outside: bool,
    pub created_at: Timestamp,
    pub created_by: String,
    pub expires_at: Option<Timestamp>,
    /// How often it may still be used; none: without limit.
    pub uses_left: Option<u32>,
    pub used: u64,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleScope {
    Task(TaskName),
    Everywhere,
}

/// What exactly a rule permits.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "target")]
pub enum RuleTarget {
    /// One step of the task, by the hash of its unrendered text and its resolved program.
    Step {
        step: u32,
        text: BlobHash,
        /// The program's resolved path and content; none for tools that start none.
        program: Option<(PathBuf, BlobHash)>,
        /// The same of every other program that the step's text names: those of a line's parts, and those behind
        /// `env`, `timeout` and the like.
        #[serde(default)]
        parts: Vec<(PathBuf, BlobHash)>,
        /// The holes that the person accepted, by name: `event.path`, `steps.disks.stdout`.
        holes: Vec<String>,
    },
    /// Exactly this call.
    Call { hash: CallHash },
    /// A shell command whose argv is exactly this, in this folder.
    Argv { argv: Vec<String>, cwd: Option<PathBuf> },
    /// A write by this tool to exactly this path, whatever the content.
    Path { tool: ToolName, path: PathBuf },
    /// `http_request` with this method to this origin (`https://host:port`).
    Origin { method: String, origin: String },
}
