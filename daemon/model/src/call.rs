use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{BlobHash, ToolName};

/// What a tool may do. Declared by the tool; decides both what may run side by side and who is asked.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// No side effect: may be repeated and run beside others.
    Read,
    WriteLocal,
    Exec,
    External,
}

impl Risk {
    /// Whether a call of this risk may be run a second time without harm.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        matches!(self, Self::Read)
    }
}

/// A call's place in its session, counted from 0. With the session it identifies the call for good.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Position(pub u32);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// BLAKE3 over tool and canonical arguments of a rendered call: what an answer is bound to.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct CallHash(pub BlobHash);

impl fmt::Display for CallHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A tool call, rendered: exactly what is journaled, hashed, judged, shown and run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Call {
    pub position: Position,
    pub tool: ToolName,
    /// An object. Secrets are named in it, never held.
    pub args: Value,
}

impl Call {
    /// The call's hash. `serde_json` keeps object keys sorted, so equal arguments hash alike.
    #[must_use]
    pub fn hash(&self) -> CallHash {
        CallHash::of(self.tool.as_str(), &self.args)
    }
}

impl CallHash {
    /// The hash of a call as it is named, which need not be a tool's name.
    #[must_use]
    pub fn of(name: &str, args: &Value) -> Self {
        Self(BlobHash::of(format!("{name}\n{args}").as_bytes()))
    }
}

/// What a call left behind.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CallResult {
    /// An object, bounded and redacted: what later steps read. For shell: `stdout`, `stderr`, `status`.
    pub output: Value,
    /// The whole text of what `output` had to cut, by field name.
    pub kept: Vec<(String, BlobHash)>,
    pub artifacts: Vec<Artifact>,
    /// The output holds text from outside (a fetched page, a stranger's file).
    pub outside: bool,
    pub error: Option<CallError>,
}

impl CallResult {
    #[must_use]
    pub fn ok(output: Value) -> Self {
        Self { output, kept: vec![], artifacts: vec![], outside: false, error: None }
    }

    #[must_use]
    pub fn failed(kind: CallErrorKind, message: impl Into<String>) -> Self {
        let error = CallError { kind, message: message.into() };
        Self {
            output: Value::Object(serde_json::Map::new()),
            kept: vec![],
            artifacts: vec![],
            outside: false,
            error: Some(error),
        }
    }
}

/// Why a call did not do what it was asked.
#[derive(Clone, Debug, Deserialize, Eq, Error, PartialEq, Serialize)]
#[error("{message}")]
pub struct CallError {
    pub kind: CallErrorKind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallErrorKind {
    /// The arguments do not fit the tool.
    BadArguments,
    /// The tool ran and failed (a status other than 0, no such file).
    Failed,
    TimedOut,
    /// A limit on output, processes or size was reached.
    Limit,
    /// Policy, or what was bound to the answer, refused it right before execution.
    Refused,
    /// A person said no, or nobody answered in time.
    Denied,
    /// owd stopped it; how far it came is not known.
    Stopped,
    /// Nothing could be reached (no network, a name that does not resolve).
    Unreachable,
    /// The answer was lost, and it may have taken effect. No call ends like this that has one: what became of it is
    /// found out, or a person is asked.
    Lost,
}

/// An address that the URL guard refused to reach.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RefusedAddress {
    /// Without fragment, and cut where it is long.
    pub url: String,
    /// 0: the call's own URL; 1 and on: that redirect's goal.
    pub hop: u32,
    pub why: String,
}

impl RefusedAddress {
    /// Under this name a result's output tells of one.
    pub const FIELD: &str = "refused";

    /// The refusal that ended a call, if one did.
    #[must_use]
    pub fn of(result: &CallResult) -> Option<Self> {
        result.error.as_ref().filter(|error| error.kind == CallErrorKind::Refused)?;
        serde_json::from_value(result.output.get(Self::FIELD)?.clone()).ok()
    }
}

impl std::fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.hop {
            0 => write!(f, "{} is refused: {}", self.url, self.why),
            hop => write!(f, "redirect {hop}, to {}, is refused: {}", self.url, self.why),
        }
    }
}

/// Something a run made: a written file or a delivered message.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Artifact {
    File { path: PathBuf, bytes: u64, hash: BlobHash },
    Message { to: String, id: String },
}
