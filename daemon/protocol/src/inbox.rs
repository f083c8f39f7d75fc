use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An Inbox item.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ItemView {
    pub id: String,
    /// `[ow:<id>]`
    pub token: String,
    /// `approval`, `question`, `plan`, `directory`, `budget`, `notification`.
    pub kind: String,
    pub title: String,
    pub task: Option<String>,
    pub run: Option<String>,
    /// `pending`, `approved`, `denied`, `answered`, `acknowledged`, `expired`, `withdrawn`.
    pub state: String,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub reminded: u32,
    /// How many schedule slots it has held back so far.
    pub holds_back: u64,
    /// Whose people may answer.
    #[serde(default)]
    pub inbox: String,
    /// Inboxes that it came to since, by escalation or delegation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalView>,
    /// One to four.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectoryView>,
    /// A notification's or a plan's text, or which budget is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ResolutionView>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ApprovalView {
    pub tool: String,
    pub arguments: Value,
    pub reason: String,
    /// `write-local`, `exec`, `external`, `read`, `unknown-outcome`, `stopped`.
    pub category: String,
    /// `<run>/<position>`.
    pub call_id: String,
    pub hash: String,
    pub working_directory: Option<String>,
    /// What the answer is bound to.
    pub bound_files: Vec<BoundFileView>,
    /// What it is not bound to, in words.
    pub unbound: Option<String>,
    pub diff: Option<String>,
    /// The exact rule that "for this task" would store.
    pub rule_offer: Option<crate::RuleTargetView>,
    /// Whether all further calls of the tool may be allowed for the session.
    #[serde(default)]
    pub tool_offer: bool,
    /// Whether this very command may be allowed for the session; its argv.
    #[serde(default)]
    pub command_offer: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct BoundFileView {
    pub path: String,
    pub hash: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct QuestionView {
    /// A short label, for answers to several questions at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    pub text: String,
    pub options: Vec<String>,
    /// More than one option may be chosen.
    pub multi: bool,
}

/// A folder that an agent asks to work in.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DirectoryView {
    pub path: String,
    pub writable: bool,
    pub reason: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ResolutionView {
    pub answer: AnswerView,
    pub by: String,
    /// `socket`, `web`, `mail`, `slack`; `owd` for an expiry or a withdrawal.
    pub surface: String,
    pub at: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AnswerView {
    /// `approve`, `approve-for-task`, `approve-tool`, `approve-command`, `edit`, `deny`, `answer`, `acknowledge`, `expired`, `withdrawn`.
    pub kind: String,
    /// A denial's reason, an answer's text, why it was withdrawn.
    pub text: Option<String>,
}

/// `POST /v1/items/{id}/answer`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AnswerRequest {
    /// Allow this one call, or acknowledge a notification.
    Approve,
    /// Allow, and store the item's rule offer.
    ApproveForTask,
    /// Allow, and every call of this tool in this session.
    ApproveTool,
    /// Allow, and every call with exactly this argv in this session.
    ApproveCommand,
    /// Allow with these arguments instead.
    Edit {
        arguments: Value,
    },
    Deny {
        #[serde(default)]
        reason: Option<String>,
    },
    /// Answers a question.
    Answer {
        text: String,
    },
    Acknowledge,
}

/// A notice of an item, on its way to where its inbox is bound.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DeliveryView {
    /// `asked`, `reminded`, `escalated`, `delegated`, `settled`, `reply`.
    pub what: String,
    /// `mail:ada@example.org`, `slack:C0123`, `desktop`; of `ntfy:https://ntfy.sh/…` and `webhook:…` only the server.
    pub binding: String,
    /// `waiting`, `taken`, `sent`, `failed`, `dropped`.
    pub state: String,
    pub created_at: String,
    pub due_at: String,
    pub attempts: u32,
    pub done_at: Option<String>,
    /// Of the last attempt that failed.
    pub error: Option<String>,
}

/// `POST /v1/items/{id}/delegate`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DelegateRequest {
    pub inbox: String,
}

/// What came of a test notice.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TriedBinding {
    pub binding: String,
    /// Why it did not arrive; none: the other side took it.
    pub fault: Option<String>,
}
