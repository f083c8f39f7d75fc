use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of the audit: what one commit says of a call, or of what calls may do from then on.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AuditEntryView {
    pub seq: u64,
    pub at: String,
    pub task: Option<String>,
    pub run: Option<String>,
    /// The call's place in its session.
    pub position: Option<u32>,
    pub tool: Option<String>,
    /// The call's hash.
    pub call: Option<String>,
    pub decided: Vec<AuditDecisionView>,
    /// `begun`, `done`, `failed`, `stopped`, `happened`, `did-not-happen`, `unknown`.
    pub effect: Option<String>,
    /// Why it failed, in a word.
    pub error: Option<String>,
    pub took_ms: Option<u64>,
    pub hooks: Vec<AuditHookView>,
    /// Only where the configuration says `arguments = true` in `[audit]`; redacted.
    pub arguments: Option<Value>,
    /// Over this entry and the hash before it.
    pub hash: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AuditDecisionView {
    /// `allow`, `refuse`, `ask`, `answer`, `expire`, `withdraw`, `edit`, `void`, `add-rule`, `remove-rule`, `restore`.
    pub what: String,
    /// What decided, or which standing rule it is about.
    pub rule: Option<String>,
    pub item: Option<String>,
    /// Of a person: `once`, `for-task`, `deny` and so on.
    pub answer: Option<String>,
    pub by: Option<String>,
    pub surface: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AuditHookView {
    pub event: String,
    pub command: String,
    /// `pass`, `deny`, `ask`, `warn`.
    pub said: String,
    pub why: Option<String>,
    pub exit: Option<i32>,
    pub took_ms: u64,
}

/// Whether the audit is what was written.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AuditCheckView {
    pub intact: bool,
    /// Those that are in order, from the first on.
    pub entries: u64,
    /// The newest entry's hash. Kept elsewhere, it later tells of a chain that was written anew as a whole.
    pub head: Option<String>,
    /// Where it is broken first.
    pub broken_at: Option<u64>,
    pub why: Option<String>,
}
