use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Artifact, BlobHash, Call, CallHash, CallResult, Cause, HookReport, Input, ItemId, LoopLimits, Mode, Outcome,
    Position, RefusedAddress, Reply, Resolution, RuleId, Usage, Wake,
};

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
    Started {
        cause: Cause,
        context: Value,
    },
    /// The step's `if` was false.
    StepSkipped {
        step: u32,
    },
    /// A step's arguments were rendered, once; resume never renders again.
    Rendered {
        step: u32,
        call: Call,
        /// Where values from events and earlier results went.
        holes: Vec<Hole>,
    },
    /// A step's templates could not be rendered.
    RenderFailed {
        step: u32,
        message: String,
    },
    /// Which call stands at a position, where no `Rendered` says so.
    Named {
        position: Position,
        /// As given, which need not be a tool's name.
        tool: String,
        hash: CallHash,
    },
    /// Policy let the call run. `rule` names what decided.
    Allowed {
        position: Position,
        rule: String,
        by_rule: Option<RuleId>,
    },
    /// Policy, or the last check before execution, refused the call.
    Refused {
        position: Position,
        rule: String,
    },
    /// A hook was asked or told, about a call or about the session.
    Hooked {
        position: Option<Position>,
        report: HookReport,
    },
    /// The URL guard refused an address that the call would have reached.
    AddressRefused {
        position: Position,
        address: RefusedAddress,
    },
    /// The call waits for a person.
    Parked {
        position: Position,
        item: ItemId,
    },
    /// A person answered, or nobody did in time; written with the item's resolution.
    Answered {
        position: Position,
        item: ItemId,
        answered: Answered,
    },
    /// The answer edited the arguments; what runs is this call.
    Edited {
        position: Position,
        call: Call,
    },
    /// The answer no longer fits what it was given for (a bound file changed): the call is judged anew.
    Voided {
        position: Position,
        item: ItemId,
        why: String,
    },
    /// The call is about to take effect: the last commit before exec or connect. `repeatable`: it has no
    /// side effect, so that after a crash it may simply run again.
    Intended {
        position: Position,
        hash: CallHash,
        repeatable: bool,
        intent: Intent,
    },
    /// The call ended with this result.
    Done {
        position: Position,
        result: CallResult,
        took_ms: u64,
    },
    /// owd stopped the call in the middle.
    Stopped {
        position: Position,
    },
    /// What the tool could find out about a call whose end was not journaled.
    Reconciled {
        position: Position,
        found: Reconciled,
    },
    /// The run stood still (stop, crash, kill switch) and goes on.
    Resumed,

    // --- of an agent's session alone ---
    /// A message entered the history. `number`: its place in the session's queue of inputs; none: owd's own.
    Input {
        number: Option<u64>,
        input: Input,
    },
    /// A model call is about to be made: `reserved` counts against the budget until its reply is known.
    Asked {
        /// `provider:model`.
        model: String,
        purpose: Purpose,
        reserved: Usage,
        /// What is about to go out, unless another model takes over: a request that was cut off is known by this alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<Sent>,
    },
    /// The model answered. `sent`: what it was sent.
    Replied {
        reply: Reply,
        sent: Option<Sent>,
    },
    /// A model call failed for good, after retries and failover. `partial`: the best text so far.
    ModelFailed {
        kind: ModelFailure,
        message: String,
        partial: Option<String>,
        sent: Option<Sent>,
    },
    /// The call was let through; it has not begun. Calls without side effects of one reply begin together.
    Admitted {
        position: Position,
        rule: String,
        by_rule: Option<RuleId>,
        repeatable: bool,
    },
    /// The outgoing history begins with this text instead of all before the message with this index.
    Compacted {
        until: u32,
        summary: String,
        how: Compaction,
    },
    /// The person wants the outgoing history shortened before the next model call.
    CompactionWanted,
    /// No summary could be had.
    CompactionFailed {
        message: String,
    },
    /// A loop detector spoke. `stop`: the turn ends with one last call without tools.
    LoopFound {
        detector: String,
        evidence: String,
        stop: bool,
    },
    /// With how many calls the loop detectors bear from here on, as the configuration had it.
    LoopLimitsSet {
        limits: LoopLimits,
    },
    /// A budget is used up; the session waits for a person to raise it.
    BudgetReached {
        what: String,
    },
    /// A person raised the budget: the limits are multiplied by `times` from here on.
    BudgetRaised {
        times: u32,
    },
    /// The person interrupted the turn.
    TurnInterrupted {
        by: String,
        partial: Option<String>,
    },
    /// A turn of a chat ended; the session waits for the next input.
    TurnEnded {
        outcome: TurnOutcome,
    },
    /// For people only: a model switch, a warning, a marker.
    Noticed {
        text: String,
    },
    /// The person, or an approved plan, changed how far the session may go.
    ModeSet {
        mode: Mode,
    },
    ModelSet {
        model: String,
    },
    /// A directory that the person granted to this session.
    RootGranted {
        path: PathBuf,
        writable: bool,
    },
    /// The session sleeps until this instant, or until one of these happens, then hears `note`.
    Slept {
        until: Option<Timestamp>,
        on: Vec<Wake>,
        note: String,
    },
    /// A fact of the sub-agent that works for the call at `position`. Its own calls have positions in the session as well.
    Delegated {
        position: Position,
        /// `fact` is the tag.
        #[serde(rename = "of")]
        fact: Box<Fact>,
    },
    /// The last fact.
    Ended {
        outcome: Outcome,
    },
}

impl Fact {
    /// The fact itself, whether the session's or that of a sub-agent.
    #[must_use]
    pub fn bare(&self) -> &Self {
        match self {
            Self::Delegated { fact, .. } => fact.bare(),
            fact => fact,
        }
    }

    /// The position of the call that the fact itself is about.
    #[must_use]
    pub fn call(&self) -> Option<Position> {
        match self.bare() {
            Self::Rendered { call, .. } => Some(call.position),
            Self::Hooked { position, .. } => *position,
            Self::Named { position, .. }
            | Self::Allowed { position, .. }
            | Self::Refused { position, .. }
            | Self::AddressRefused { position, .. }
            | Self::Parked { position, .. }
            | Self::Answered { position, .. }
            | Self::Edited { position, .. }
            | Self::Voided { position, .. }
            | Self::Intended { position, .. }
            | Self::Done { position, .. }
            | Self::Stopped { position }
            | Self::Reconciled { position, .. }
            | Self::Admitted { position, .. } => Some(*position),
            _ => None,
        }
    }

    /// What the fact says was made.
    #[must_use]
    pub fn artifacts(&self) -> &[Artifact] {
        match self {
            Self::Done { result, .. } | Self::Reconciled { found: Reconciled::Happened { result }, .. } => {
                &result.artifacts
            }
            _ => &[],
        }
    }
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

/// The body of a request to a provider, byte for byte, as its difference from the session's request before it: that
/// one's first `head` bytes, `middle`, and that one's last `tail` bytes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sent {
    /// Of the whole body.
    pub hash: BlobHash,
    pub head: u64,
    pub tail: u64,
    pub middle: SentMiddle,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SentMiddle {
    Text(String),
    /// A long one: the whole body is in a content-addressed file, and the next request begins anew.
    File(BlobHash),
}

/// What a model call is for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Turn,
    /// The last one, without tools.
    Final,
    /// A summary for compaction.
    Summary,
}

/// How the outgoing history was shortened.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compaction {
    Summary,
    /// Without a summary: the mechanically extracted state only.
    Trim,
}

/// Why a model call failed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelFailure {
    /// No key, a wrong or an expired one, or no access to this model.
    Auth,
    Quota,
    /// The request is longer than the model's window.
    Overflow,
    /// The vendor or the model refused.
    Refusal,
    /// The request is wrong; not tried again.
    BadRequest,
    /// 429 for longer than owd waits.
    RateLimit,
    /// 5xx, broken streams, silence: retries are used up.
    Unavailable,
    /// No network.
    Unreachable,
    /// What came was not an answer.
    Garbage,
    /// A reply of more bytes or calls than owd takes.
    TooLarge,
}

/// How a turn of a chat ended.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum TurnOutcome {
    Completed,
    Interrupted,
    Failed { failure: crate::Failure, message: String },
}
