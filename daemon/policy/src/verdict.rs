use ow_model::{Category, RuleId, RuleTarget};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What policy says to a call. `rule` is a short, stable text that names what decided.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a call must not run without its verdict"]
pub enum Verdict {
    Allow {
        rule: String,
        /// The standing rule that was used, to be counted.
        by_rule: Option<RuleId>,
    },
    Deny {
        rule: String,
        /// What was wrong and what to do instead.
        why: String,
    },
    Ask {
        rule: String,
        why: String,
        category: Category,
        /// The exact rule that "for this task" would store; none where no rule may cover the call.
        rule_offer: Option<RuleTarget>,
    },
}

impl Verdict {
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Allow { .. } => "allow",
            Self::Deny { .. } => "deny",
            Self::Ask { .. } => "ask",
        }
    }

    #[must_use]
    pub fn rule(&self) -> &str {
        match self {
            Self::Allow { rule, .. } | Self::Deny { rule, .. } | Self::Ask { rule, .. } => rule,
        }
    }
}

/// Why an answered call may not run after all.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    #[error("the answer does not allow the call")]
    NotAllowed,
    #[error("what runs is not what was answered: the arguments differ")]
    OtherArguments,
    /// What the person saw is no longer what would run; asking again shows the new state.
    #[error("changed since it was shown: {0}")]
    Changed(String),
    #[error("{rule}: {why}")]
    Denied { rule: String, why: String },
}

/// A verdict in words, as `owctl explain` prints it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Explained {
    /// `allow`, `ask` or `deny`.
    pub verdict: String,
    pub rule: String,
    pub why: String,
}
