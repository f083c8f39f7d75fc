use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `POST /v1/sessions`: a chat with an agent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// `provider:model`; absent: the configured default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `plan`, `ask`, `edit`, `auto`; absent: `ask`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Absolute paths of the folders that file tools may work in; calls happen in the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Absent: the beginning of what is said first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Added to the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Where its questions go; absent: `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<String>,
}

/// A chat with an agent.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SessionView {
    pub id: String,
    pub title: Option<String>,
    /// `idle`, `queued`, `running`, `parked`, `interrupted`, `cancelled`; for a task's run also how it ended.
    pub state: String,
    /// What it waits for.
    pub message: Option<String>,
    /// The Inbox items that its turn waits for.
    pub items: Vec<String>,
    /// Messages that the agent has not heard yet.
    pub waiting: u32,
    /// `plan`, `ask`, `edit`, `auto`.
    pub mode: String,
    /// `provider:model`; absent: the configured default.
    pub model: Option<String>,
    pub roots: Vec<String>,
    /// Where its questions go.
    #[serde(default)]
    pub inbox: String,
    pub created_at: String,
    /// When something was last said, asked or done.
    pub active_at: String,
    /// Facts in its journal.
    pub length: u32,
    /// Tokens so far. Only where one session is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
    /// What people allowed it beyond single calls. Only where one session is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<GrantView>,
    /// The task whose run it is: it can be read, and nothing can be said in it. Absent for a chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// What a person allowed a session for good.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct GrantView {
    /// `tool`, `command`, `folder` (to read), `writable-folder`.
    pub kind: String,
    /// The tool's name, the command, the folder's path.
    pub what: String,
}

/// Tokens of model calls, as the providers counted them.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct UsageView {
    /// All of the prompts, cached parts included.
    pub input: u64,
    pub cached: u64,
    pub output: u64,
    /// Model calls.
    pub calls: u64,
}

/// `POST /v1/sessions/{id}/messages`: durable once answered.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    /// The same key twice in a session is one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A file that goes with a message, kept as it comes.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    /// A name without a folder.
    pub name: String,
    /// `application/pdf`, `image/png`, `text/plain` …
    pub media_type: String,
    pub base64: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SentMessage {
    /// Its place in the session's queue; grows from 1.
    pub number: u64,
    /// False: one with this key had come before.
    pub new: bool,
    pub session: SessionView,
}

/// `POST /v1/sessions/{id}/settings`: what is given is set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSettings {
    /// `plan`, `ask`, `edit`, `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `provider:model`, for the next model call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// One entry of a session's history, for people: the data of a `message` event whose `id` is `seq`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct MessageView {
    /// The fact in the journal that it is made from.
    pub seq: u32,
    pub at: String,
    /// `user`, `assistant`, `call` (its result), `asked`, `answered`, `notice`, `turn-ended`.
    pub kind: String,
    pub text: String,
    /// User: a person's name, `task`, `event <kind>`, `wake` or `owd`. Answered, turn ended: who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Assistant: the calls that it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallUse>,
    /// `provider:model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
    /// Call, asked, answered: which of the session's calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Call: it failed or did not run.
    #[serde(default)]
    pub is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Call: the whole text of what was cut: field name and hash, for `/v1/runs/{id}/output/{hash}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<(String, String)>,
    /// Asked, answered: the Inbox item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Turn ended: `completed`, `interrupted`, `failed`. Answered: the item's state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Turn ended: as a run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AttachmentView {
    pub name: String,
    pub media_type: String,
    pub bytes: u64,
    pub hash: String,
}

/// A call that the model asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct CallUse {
    pub position: u32,
    pub tool: String,
    /// An object; a text where the model wrote no JSON.
    pub arguments: Value,
}

/// `GET /v1/sessions/{id}/export`: all of it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SessionExport {
    pub session: SessionView,
    pub messages: Vec<MessageView>,
}
