use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Call, CallHash, CallResult, Cause, ItemId, Outcome, Position, Resolution, RuleId};

/// A fact with its place in the session's journal, as read back.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedFact {
    /// 0, 1, 2 … without gaps.
    pub seq: u32,
    pub at: Timestamp,
    pub fact: Fact,
}

/// One fact of a session. The journal is append-only; the state of a turn is its fold.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "fact")]
pub enum Fact {
    /// The first fact: what templates may read as `slot`, `run` and `event`, fixed for good.
    Started { cause: Cause, context: Value },
    /// The step's `if` was false.
    StepSkipped { step: u32 },
    /// A step's arguments were rendered, once; resume never renders again.
    Rendered {
        step: u32,
        call: Call,
        /// Where values from events and earlier results went.
        holes: Vec<Hole>,
    },
    /// A step's templates could not be rendered.
    RenderFailed { step: u32, message: String },
    /// Policy let the call run. `rule` names what decided.
    Allowed { position: Position, rule: String, by_rule: Option<RuleId> },
    /// Policy, or the last check before execution, refused the call.
    Refused { position: Position, rule: String },
    /// The call waits for a person.
    Parked { position: Position, item: ItemId },
    /// A person answered, or nobody did in time; written with the item's resolution.
    Answered { position: Position, item: ItemId, answered: Answered },
    /// The answer edited the arguments; what runs is this call.
    Edited { position: Position, call: Call },
    /// The answer no longer fits what it was given for (a bound file changed): the call is judged anew.
    Voided { position: Position, item: ItemId, why: String },
    /// The call is about to take effect: the last commit before exec or connect. `repeatable`: it has no
    /// side effect, so that after a crash it may simply run again.
    Intended { position: Position, hash: CallHash, repeatable: bool, intent: Intent },
    /// The call ended with this result.
    Done { position: Position, result: CallResult, took_ms: u64 },
    /// owd stopped the call in the middle.
    Stopped { position: Position },
    /// What the tool could find out about a call whose end was not journaled.
    Reconciled { position: Position, found: Reconciled },
    /// The run stood still (stop, crash, kill switch) and goes on.
    Resumed,
    /// The last fact.
    Ended { outcome: Outcome },
}

/// A place in a rendered call that a value from an event or an earlier result filled.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Hole {
    /// As written in the template: `event.path`, `steps.disks.stdout`.
    pub name: String,
    /// JSON pointer of the string in the arguments that it is a part of.
    pub at: String,
}

/// How an item that a call waited for ended.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum Answered {
    Resolved(Resolution),
    Expired,
    Withdrawn { why: String },
}

/// What must be known after a crash to find out whether the call took effect.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Intent {
    /// The helper that was told to run it.
    pub helper_pid: Option<u32>,
    /// Clock ticks after boot at which the helper began: tells a reused pid.
    pub helper_start: Option<u64>,
    pub boot_id: Option<String>,
    /// What the tool noted for `reconcile` (for a write: the hash before and the hash to be).
    pub note: Value,
}

/// The answer of a tool's `reconcile`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "found")]
pub enum Reconciled {
    /// It took effect; this is its result.
    Happened {
        result: CallResult,
    },
    /// It did not take effect; running it is safe.
    DidNotHappen,
    Unknown {
        why: String,
    },
}
