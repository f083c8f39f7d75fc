use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One page of a list. `next` is the cursor for the page after it; absent on the last.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Page<T> {
    pub rows: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The query of every list. Filters that a list does not know are refused.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// 1 to 500; 50 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Runs, items: only those of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Runs: one word of a run's state. Items: `pending` or `all`. Tasks: `paused`, `active`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Items: only those of this run. An id or a unique prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Tasks: the name contains this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
