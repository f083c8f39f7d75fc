use std::path::PathBuf;

use ow_model::{BlobHash, Call, CallError, Reconciled, Risk, ToolName};
use ow_policy::{Facts, OwnTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool is called, takes and may do.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    pub name: ToolName,
    pub summary: &'static str,
    /// JSON Schema of the arguments.
    pub schema: Value,
    pub risk: Risk,
    /// Its results are outside content.
    pub outside: bool,
    /// It acts on a screen, step by step.
    pub gui: bool,
    pub source: ToolSource,
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolSource {
    Builtin,
}

impl ToolSpec {
    /// The spec of a tool of owd's own, with what [`OWN_TOOLS`](ow_policy::OWN_TOOLS) says of it.
    ///
    /// # Panics
    ///
    /// If there is no such tool: a new one is first entered there.
    #[must_use]
    pub fn own(name: &str, schema: Value) -> Self {
        let OwnTool { name, summary, risk, outside, performed: _ } =
            *OwnTool::named(name).unwrap_or_else(|| panic!("`{name}` stands among owd's own tools"));
        Self {
            name: name.parse().expect("the table holds tool names"),
            summary,
            schema,
            risk,
            outside,
            gui: false,
            source: ToolSource::Builtin,
        }
    }
}

/// Where a call runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Place {
    /// Absolute; relative paths begin here.
    pub cwd: PathBuf,
    /// Folders that file tools may work in: absolute.
    pub roots: Vec<PathBuf>,
    pub home: PathBuf,
    /// The run's own folder; a root as well.
    pub run_folder: PathBuf,
    /// What the session knows is drawn from outside, and so is what it writes.
    pub outside: bool,
}

/// A kind of call. Everything here is without effects; what runs a call is [`Runner`](crate::Runner).
///
/// All methods but `spec` and `check` look at the file system and may block.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Checks names and types of arguments.
    ///
    /// # Errors
    ///
    /// A sentence that names the argument, what it holds and what would be right.
    fn check(&self, args: &Value) -> Result<(), String>;

    /// Finds out what policy must know about the call: the program, the files, where paths lead.
    ///
    /// # Errors
    ///
    /// The result that the call would end with: its arguments do not fit, or a path leads nowhere.
    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError>;

    /// For a write: what would change, bounded, for a person to read.
    fn diff(&self, call: &Call, place: &Place) -> Option<String> {
        let _ = (call, place);
        None
    }

    /// The content on which a shown difference stands; in it none: the file does not exist.
    fn base(&self, call: &Call, place: &Place) -> Option<(PathBuf, Option<BlobHash>)> {
        let _ = (call, place);
        None
    }

    /// What `reconcile` will need, journaled before the call starts.
    fn note(&self, call: &Call, place: &Place) -> Value {
        let _ = (call, place);
        Value::Null
    }

    /// Finds out whether a call took effect whose end was not journaled. Nothing of it lives any more.
    fn reconcile(&self, call: &Call, note: &Value, place: &Place) -> Reconciled {
        let _ = (note, place);
        Reconciled::Unknown { why: format!("{} cannot tell whether it took effect", call.tool) }
    }
}
