use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// When a person's own program is asked or told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookEvent {
    /// Before a call that policy and person let through; the only one at which a hook can refuse.
    PreToolUse,
    PostToolUse,
    SessionStart,
    /// The session ends, or a chat's turn does.
    Stop,
}

impl HookEvent {
    pub const ALL: [Self; 4] = [Self::PreToolUse, Self::PostToolUse, Self::SessionStart, Self::Stop];

    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::PreToolUse => "pre-tool-use",
            Self::PostToolUse => "post-tool-use",
            Self::SessionStart => "session-start",
            Self::Stop => "stop",
        }
    }

    /// Whether it is about a call, so that a matcher can choose among tools.
    #[must_use]
    pub const fn is_about_a_call(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PostToolUse)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What one hook said, for the journal.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookReport {
    pub event: HookEvent,
    /// As the configuration names it.
    pub command: PathBuf,
    pub said: HookSaid,
    /// Its exit status; none: it did not end by itself, or never began.
    pub exit: Option<i32>,
    pub took_ms: u64,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "said")]
pub enum HookSaid {
    Pass,
    /// The call must not run.
    Deny {
        why: String,
    },
    /// A person must be asked.
    Ask {
        why: String,
    },
    /// Something is wrong with the hook, or it complained; the session goes on.
    Warn {
        why: String,
    },
}

impl HookSaid {
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Deny { .. } => "deny",
            Self::Ask { .. } => "ask",
            Self::Warn { .. } => "warn",
        }
    }

    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Pass => None,
            Self::Deny { why } | Self::Ask { why } | Self::Warn { why } => Some(why),
        }
    }
}
