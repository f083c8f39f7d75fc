use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A run as lists give it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct RunView {
    pub id: String,
    pub task: String,
    pub revision: u32,
    pub cause: CauseView,
    /// `queued`, `running`, `parked`, `interrupted`, `idle` (it sleeps), `succeeded`, `failed`, `refused`, `expired`, `cancelled`, `missed`.
    pub state: String,
    /// Why it ended so, or what it waits for.
    pub message: Option<String>,
    /// For a failure: `step`, `timeout`, `unknown`, `template`, `unreachable`, `internal`, `iterations`, `loop`, `no-answer`,
    /// `budget`, `model-…`.
    pub failure: Option<String>,
    /// The items that it waits for.
    pub items: Vec<String>,
    pub scheduled_for: String,
    pub created_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub attempt: u32,
    pub retry_of: Option<String>,
    pub ran_for_ms: u64,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct CauseView {
    /// `schedule`, `catch-up`, `event`, `manual`, `retry`.
    pub kind: String,
    /// In words: `4 slots missed from … to …`.
    pub text: String,
    /// Catch-up: how many slots it stands for. Event: how many events it was given.
    pub count: Option<u64>,
}

/// A run with all that happened in it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct RunDetail {
    #[serde(flatten)]
    pub run: RunView,
    /// What its agent said last: its report, or the best so far of a run that ended otherwise. A long one is cut, which it
    /// says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    pub calls: Vec<CallView>,
    pub artifacts: Vec<ArtifactView>,
    pub events: Vec<Value>,
    pub facts: Vec<FactView>,
}

/// One call of a run, folded from its facts.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct CallView {
    /// The call's id: `<run>/<position>`.
    pub id: String,
    pub position: u32,
    /// The step that it is; absent for a call that an agent made.
    pub step: Option<u32>,
    /// The position of the call whose sub-agent made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent_of: Option<u32>,
    pub tool: String,
    pub arguments: Value,
    /// `waiting`, `parked`, `running`, `done`, `failed`, `refused`, `stopped`, `unknown`.
    pub state: String,
    /// The rule that let it run or refused it.
    pub rule: Option<String>,
    pub item: Option<String>,
    pub output: Option<Value>,
    pub error: Option<String>,
    /// The whole text of what `output` had to cut: field name and hash, for `…/output/{hash}`.
    pub kept: Vec<(String, String)>,
    pub took_ms: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ArtifactView {
    /// 1, 2, 3 … as `run open RUN N` takes it.
    pub number: u32,
    /// `file` or `message`.
    pub kind: String,
    /// The file's path, or the message's receiver.
    pub name: String,
    pub bytes: Option<u64>,
    pub hash: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct FactView {
    pub seq: u32,
    pub at: String,
    /// The journal's word for it: `started`, `rendered`, `allowed`, `parked`, `answered`, `intended`, `done` …
    pub fact: String,
    /// In words.
    pub text: String,
}

/// A request that went to a model.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SentView {
    /// Counted from 1, in the order of the journal, for `…/sent/{number}`.
    pub number: u32,
    /// When what came of it was on record; when it was made, if nothing is.
    pub at: String,
    /// `provider:model` that was asked; another may have taken over.
    pub model: String,
    /// `turn`, `final` (without tools) or `summary`.
    pub purpose: String,
    /// The position of the call for which a sub-agent sent it.
    pub sub_agent_of: Option<u32>,
    /// Whether a reply is on record; otherwise it failed, was cut off, or is under way.
    pub answered: bool,
    /// SHA-256 of the body.
    pub hash: String,
}
