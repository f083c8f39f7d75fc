use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ItemId, RunId, TaskId, TaskName};

/// One execution of a task at one revision.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Run {
    pub id: RunId,
    /// Grows in the order of creation; the cursor of lists.
    pub order: i64,
    pub task: TaskId,
    pub task_name: TaskName,
    pub revision: u32,
    pub cause: Cause,
    /// The slot's instant, or when the event came.
    pub scheduled_for: Timestamp,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub state: RunState,
    /// How many causes stand before it; past 8 it is refused as a loop.
    pub depth: u32,
    /// 1 for the first try.
    pub attempt: u32,
    pub retry_of: Option<RunId>,
    /// Running time so far in milliseconds: without time parked or down.
    pub ran_for_ms: u64,
}

/// Why a run exists.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Cause {
    Schedule,
    /// Stands for `count` slots missed in `[from, until]`.
    CatchUp {
        from: Timestamp,
        until: Timestamp,
        count: u64,
    },
    /// The keys of the events that it was given are in its slot records.
    Event {
        count: u32,
    },
    Manual {
        by: String,
    },
    Retry {
        of: RunId,
        /// Who asked for it; none: the task's own `retry`.
        #[serde(default)]
        by: Option<String>,
    },
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum RunState {
    /// Waits for a worker, not before `not_before`. `answered`: goes first, a person waits for it.
    Queued {
        not_before: Option<Timestamp>,
        answered: bool,
    },
    Running,
    /// Waits for a person at no cost. `holds`: it counts as running for the task's overlap.
    Parked {
        items: Vec<ItemId>,
        holds: bool,
    },
    /// Was stopped in the middle; goes on at the next start.
    Interrupted,
    /// A chat between two turns: waits for a message at no cost.
    Idle,
    Ended(EndedRun),
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct EndedRun {
    pub outcome: Outcome,
}

/// How a run ended. Failure is never recorded as success.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    Succeeded,
    Failed {
        failure: Failure,
        message: String,
    },
    /// A person or a rule said no to a call that the run needed.
    Refused {
        message: String,
    },
    /// Nobody answered in time.
    Expired {
        item: ItemId,
    },
    Cancelled {
        why: String,
    },
    /// Its slot was too late when a worker came to it.
    Missed {
        why: String,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// A step failed.
    Step,
    /// The run took longer than its timeout.
    Timeout,
    /// A call's outcome is unknown and a person said to give up.
    Unknown,
    /// A template could not be rendered.
    Template,
    /// Nothing could be reached; does not count toward auto-pause.
    Unreachable,
    /// The model could not be asked: key, quota, refusal, a provider that stays down; the message says which.
    /// Outages and quotas do not count toward auto-pause.
    Model(crate::ModelFailure),
    /// The agent reached its iteration limit.
    Iterations,
    /// A loop detector stopped the agent.
    Loop,
    /// The agent ended without an answer: empty or unusable replies.
    NoAnswer,
    /// Its budget was reached and a person did not raise it.
    Budget,
    /// A fault in owd or its store.
    Internal,
}

impl Outcome {
    /// One word: `succeeded`, `failed`, `refused`, `expired`, `cancelled`, `missed`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Refused { .. } => "refused",
            Self::Expired { .. } => "expired",
            Self::Cancelled { .. } => "cancelled",
            Self::Missed { .. } => "missed",
        }
    }
}

impl RunState {
    /// One word: `queued`, `running`, `parked`, `interrupted`, `idle`, or the outcome's.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Running => "running",
            Self::Parked { .. } => "parked",
            Self::Interrupted => "interrupted",
            Self::Idle => "idle",
            Self::Ended(ended) => ended.outcome.word(),
        }
    }

    #[must_use]
    pub const fn is_open(&self) -> bool {
        !matches!(self, Self::Ended(_))
    }
}
