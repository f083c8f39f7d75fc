use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AnswerBy, BlobHash, CallErrorKind, CallHash, HookReport, ItemId, Position, Rule, RuleId, RunId, TaskName};

/// One entry of the audit, as read back.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// 1, 2, 3 … without gaps.
    pub seq: u64,
    pub at: Timestamp,
    pub audited: Audited,
    /// Over this entry and the hash of the one before.
    pub hash: BlobHash,
}

/// What one commit says of a call, or of what calls may do from then on. Holds no arguments in clear unless the
/// configuration asks for them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Audited {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// As the call names it, which need not be a tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallHash>,
    /// In the order in which it was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<Decided>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<AuditEffect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookReport>,
    /// Redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// A decision, with what it rests on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Decided {
    Allow {
        rule: String,
        by_rule: Option<RuleId>,
    },
    Refuse {
        rule: String,
    },
    /// A person is asked.
    Ask {
        item: ItemId,
    },
    /// A person answered. `answer`: a word of [`crate::Answer::kind_word`].
    Answer {
        item: ItemId,
        answer: String,
        by: AnswerBy,
    },
    /// Nobody answered in time, which is a no.
    Expire {
        item: ItemId,
    },
    Withdraw {
        item: ItemId,
    },
    /// What runs is what the answer wrote.
    Edit,
    /// The answer no longer fits what it was given for.
    Void {
        item: ItemId,
    },
    /// A standing rule, as it was made.
    AddRule {
        rule: Box<Rule>,
    },
    RemoveRule {
        rule: RuleId,
    },
    /// The store was replaced by a backup: what happened since is not in here.
    Restore {
        epoch: u64,
    },
}

impl Decided {
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Allow { .. } => "allow",
            Self::Refuse { .. } => "refuse",
            Self::Ask { .. } => "ask",
            Self::Answer { .. } => "answer",
            Self::Expire { .. } => "expire",
            Self::Withdraw { .. } => "withdraw",
            Self::Edit => "edit",
            Self::Void { .. } => "void",
            Self::AddRule { .. } => "add-rule",
            Self::RemoveRule { .. } => "remove-rule",
            Self::Restore { .. } => "restore",
        }
    }
}

/// How far a call is known to have come.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "effect")]
pub enum AuditEffect {
    /// It was about to take effect when this was written.
    Begun,
    Done,
    Failed {
        error: CallErrorKind,
    },
    /// owd stopped it in the middle.
    Stopped,
    /// Found out after a crash.
    Happened,
    DidNotHappen,
    /// Nobody can tell.
    Unknown,
}

impl AuditEffect {
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
            Self::Happened => "happened",
            Self::DidNotHappen => "did-not-happen",
            Self::Unknown => "unknown",
        }
    }
}
