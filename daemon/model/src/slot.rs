use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{EventKey, RunId, TaskId};

/// One due occasion of a task, or a counted range of them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotKey {
    /// A schedule's instant, without jitter.
    Instant(Timestamp),
    /// `count` instants in `[from, until]`; computed, never enumerated.
    Range {
        from: Timestamp,
        until: Timestamp,
        count: u64,
    },
    Event(EventKey),
    /// A run by hand. The run itself is the occasion.
    Manual(RunId),
}

impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instant(at) => write!(f, "{at}"),
            Self::Range { from, until, count } => write!(f, "{from}..{until} ({count})"),
            Self::Event(key) => write!(f, "{key}"),
            Self::Manual(run) => write!(f, "manual:{run}"),
        }
    }
}

/// The one record of what became of a slot.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SlotRecord {
    pub task: TaskId,
    pub key: SlotKey,
    pub disposition: Disposition,
    pub recorded_at: Timestamp,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum Disposition {
    Fired {
        run: RunId,
    },
    /// Not run by the task's own rules: `overlap`, `held by <item>`, `paused`, `paused: all`, `queue full`, `loop`.
    Skipped {
        why: String,
    },
    /// owd was down or too late. `folded_into` is the catch-up run that stands for it.
    Missed {
        why: String,
        folded_into: Option<RunId>,
    },
    /// A newer run took its place.
    Superseded {
        by: Option<RunId>,
        why: String,
    },
    /// The clock was set back before it could fire.
    Voided {
        why: String,
    },
}
