use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{BlobHash, Call, CallHash, InboxName, ItemId, RuleTarget, RunId, TaskName, ToolName};

/// One request for a person, pending until it is resolved once.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Item {
    pub id: ItemId,
    /// Grows in the order of creation; the cursor of lists.
    pub order: i64,
    pub task: Option<TaskName>,
    pub run: Option<RunId>,
    pub title: String,
    pub kind: ItemKind,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// When the next reminder is due.
    pub remind_at: Option<Timestamp>,
    pub reminded: u32,
    pub state: ItemState,
    /// How many schedule slots it has held back so far.
    pub holds_back: u64,
    /// Where it is told of, and whose people may answer.
    #[serde(default)]
    pub inbox: InboxName,
    /// Inboxes that it came to since, by escalation or delegation; their people may answer too.
    #[serde(default)]
    pub also: Vec<InboxName>,
}

impl Item {
    /// Whether it is told in a message of its own. What is shorter may be told beside others, and every surface has room to
    /// show that much whole beside others.
    #[must_use]
    pub fn stands_alone(&self) -> bool {
        /// Bytes of what it asks, as JSON.
        const BESIDE_OTHERS: usize = 1_500;
        serde_json::to_vec(&self.kind).map_or(true, |kind| kind.len() > BESIDE_OTHERS)
    }

    /// All inboxes that it is in.
    pub fn inboxes(&self) -> impl Iterator<Item = &InboxName> {
        std::iter::once(&self.inbox).chain(&self.also)
    }
}

/// What an "always" may cover for the rest of a session.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SessionOffer {
    /// Always this tool.
    pub tool: Option<ToolName>,
    /// Always this command: its exact argv.
    pub command: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[expect(clippy::large_enum_variant, reason = "nearly every item is an approval")]
pub enum ItemKind {
    /// May this call run?
    Approval {
        call: Call,
        hash: CallHash,
        category: Category,
        /// Why policy asks, with the rule that decided.
        reason: String,
        binding: Binding,
        /// The exact rule that "for this task" would store; none where no rule may cover it.
        rule_offer: Option<RuleTarget>,
        #[serde(default)]
        session_offer: SessionOffer,
        /// For a write: the difference that it would make, as shown.
        diff: Option<String>,
    },
    /// One to four questions.
    Question { questions: Vec<Question> },
    /// A plan to be approved; approving it sets the session's mode.
    Plan { text: String },
    /// A folder that an agent asks to work in.
    Directory { path: PathBuf, writable: bool, reason: String },
    /// A budget is used up; approving doubles it.
    Budget { text: String },
    /// Tells; any answer acknowledges it.
    Notification { text: String },
}

impl ItemKind {
    /// Whether the run that waits for it holds its task's slot. One that waits for money, or for a word on what became of
    /// a call, is not in the way of the next.
    #[must_use]
    pub const fn holds_slot(&self) -> bool {
        match self {
            Self::Approval { category, .. } => !matches!(category, Category::UnknownOutcome | Category::Stopped),
            Self::Question { .. } | Self::Plan { .. } | Self::Directory { .. } => true,
            Self::Budget { .. } | Self::Notification { .. } => false,
        }
    }
}

/// One question, with the options to choose from; none: free text.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Question {
    /// A short label, for answers to several questions at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    pub text: String,
    pub options: Vec<String>,
    /// More than one option may be chosen.
    #[serde(default)]
    pub multi: bool,
}

/// Why an approval is asked for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    WriteLocal,
    Exec,
    External,
    /// A read that needs consent: a secret, or a path outside the roots.
    Read,
    /// owd died while it ran; nobody knows whether it took effect. Approving runs it again.
    UnknownOutcome,
    /// owd stopped it in the middle. Approving runs it again.
    Stopped,
}

/// What an approval is bound to; checked again right before execution.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Binding {
    pub working_directory: Option<PathBuf>,
    /// The program, resolved, and every argument that is a regular file.
    pub files: Vec<BoundFile>,
    /// The content on which a shown diff stands; none: the file did not exist.
    pub base: Option<(PathBuf, Option<BlobHash>)>,
    /// What is not bound, in words (files that these read in turn).
    pub unbound: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BoundFile {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    pub hash: BlobHash,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum ItemState {
    Pending,
    Resolved(Resolution),
    Expired {
        at: Timestamp,
    },
    /// Its question is moot: the run was cancelled, superseded, or asked again.
    Withdrawn {
        at: Timestamp,
        why: String,
    },
}

impl ItemState {
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Resolved(resolution) => resolution.answer.word(),
            Self::Expired { .. } => "expired",
            Self::Withdrawn { .. } => "withdrawn",
        }
    }
}

/// How, by whom, from where and when an item was resolved.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Resolution {
    pub answer: Answer,
    pub by: AnswerBy,
    pub at: Timestamp,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AnswerBy {
    pub person: Person,
    pub surface: Surface,
}

/// A person's name as the configuration knows it.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Person(pub String);

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// The Unix socket: the peer's uid is the proof.
    Socket,
    /// TCP with the key.
    Web,
    Mail,
    Slack,
}

impl Surface {
    /// What a person calls it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Socket => "owctl",
            Self::Web => "the web page",
            Self::Mail => "mail",
            Self::Slack => "Slack",
        }
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum Answer {
    /// Allow this one call.
    Once,
    /// Allow, and store the item's rule offer for its task.
    ForTask,
    /// Allow, and every call of this tool in this session.
    AlwaysTool,
    /// Allow, and every call with exactly this argv in this session.
    AlwaysCommand,
    Deny {
        reason: Option<String>,
    },
    Edited {
        args: serde_json::Value,
    },
    /// The answer to a question.
    Text {
        text: String,
    },
    /// Seen, for a notification.
    Acknowledge,
}

impl Answer {
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Once | Self::ForTask | Self::AlwaysTool | Self::AlwaysCommand | Self::Edited { .. } => "approved",
            Self::Deny { .. } => "denied",
            Self::Text { .. } => "answered",
            Self::Acknowledge => "acknowledged",
        }
    }

    /// Which answer it is, the ways to allow told apart.
    #[must_use]
    pub const fn kind_word(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::ForTask => "for-task",
            Self::AlwaysTool => "always-tool",
            Self::AlwaysCommand => "always-command",
            Self::Edited { .. } => "edited",
            Self::Deny { .. } => "deny",
            Self::Text { .. } => "text",
            Self::Acknowledge => "acknowledge",
        }
    }

    #[must_use]
    pub const fn allows(&self) -> bool {
        matches!(self, Self::Once | Self::ForTask | Self::AlwaysTool | Self::AlwaysCommand | Self::Edited { .. })
    }
}
