use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlobHash, Person, Position};

/// Something that is said to an agent: by a person, its task, an event or owd itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Input {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    pub source: Source,
}

/// Who speaks in a message of role user.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "source")]
pub enum Source {
    Person {
        person: Person,
    },
    /// The task's goal, with the slot and the events it runs for.
    Task,
    /// What a trigger brought: outside content.
    Event {
        kind: String,
    },
    /// A wake-up that the session had asked for.
    Wake {
        note: String,
    },
    /// A nudge, a checkpoint, a correction.
    Owd {
        why: Why,
    },
}

/// Why owd itself speaks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The check at 60 % of the iterations.
    Checkpoint,
    /// A loop detector's nudge.
    Loop,
    /// The last call, without tools, after a detector or the iteration limit has stopped the turn.
    Stop,
    /// A call was written as text.
    CallAsText,
    /// An empty reply after tool calls.
    Empty,
    /// The reply was cut by the token limit and is to be continued.
    Continue,
    /// What a Stop hook or a pre-hook has to say.
    Hook,
}

/// A file that came with an input, kept as it came. What a provider gets of it is decided at each call.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Attachment {
    pub name: String,
    /// `application/pdf`, `image/png`, `text/plain` …
    pub media_type: String,
    pub bytes: u64,
    pub hash: BlobHash,
}

/// A model's whole reply, as the provider assembled it from its stream. Nothing is repaired in it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reply {
    pub text: String,
    /// Never sent to a provider as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReplyCall>,
    pub finish: Finish,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// `provider:model` that answered.
    pub model: String,
    /// What only this provider understands (signatures, encrypted thoughts); sent back to it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<Value>,
}

impl Reply {
    /// Calls of one reply that get positions and results. A reply with more of them is not run at all.
    pub const MOST_CALLS: usize = 200;
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReplyCall {
    /// As given: may be missing, or used before. owd's own id is made from the call's position.
    pub id: Option<String>,
    pub name: String,
    /// JSON text as streamed; may be cut or broken.
    pub arguments: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    Stop,
    ToolCalls,
    /// Cut by the token limit.
    Length,
    /// The vendor's filter or the model refused.
    Refusal,
}

/// Tokens of one model call, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Usage {
    /// All of the prompt, cached parts included.
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

impl Usage {
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input + self.output
    }
}

/// One entry of a session's canonical history: OpenAI-shaped, with what never goes to a provider beside it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub enum Message {
    User {
        input: Input,
        at: Timestamp,
    },
    Assistant {
        text: String,
        /// Each has exactly one `Tool` entry after it, in order, before the next `User` or `Assistant`.
        calls: Vec<ToolUse>,
        reasoning: Option<String>,
        usage: Option<Usage>,
        model: String,
        private: Option<Value>,
        at: Timestamp,
    },
    Tool {
        position: Position,
        /// What the model is shown, bounded; outside content already framed.
        text: String,
        is_error: bool,
        outside: bool,
        /// Pictures that the tool returned.
        images: Vec<Attachment>,
        at: Timestamp,
    },
    /// Shown to people, never sent.
    Notice {
        text: String,
        at: Timestamp,
    },
}

/// A call in an assistant message, with ids that are unique in the session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolUse {
    pub position: Position,
    pub name: String,
    /// An object; for arguments that could not be read an object that says so in few words.
    pub args: Value,
}

impl ToolUse {
    /// The id that goes to providers: `call_<position>`.
    #[must_use]
    pub fn id(position: Position) -> String {
        format!("call_{position}")
    }
}
