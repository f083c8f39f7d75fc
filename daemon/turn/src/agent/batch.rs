use jiff::Timestamp;
use ow_model::{Attachment, BlobHash, Call, CallErrorKind, Intent, ItemId, Position, Resolution, Risk, ToolUse, Usage};
use serde::Serialize;
use serde_json::Value;

use super::setup::ToolKind;
use crate::{Doubt, Permission};

/// A reply with calls, while not all of them have results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Batch {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) model: String,
    pub(super) private: Option<Value>,
    pub(super) at: Timestamp,
    pub(super) calls: Vec<OpenCall>,
}

/// One call of a reply.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OpenCall {
    pub(super) position: Position,
    /// As the model wrote it.
    pub(super) name: String,
    /// The arguments as history shows them: as the model wrote them, where they could be read.
    pub(super) wrote: Value,
    /// What runs. None where the call cannot: no such tool, unreadable arguments.
    pub(super) call: Option<Call>,
    pub(super) kind: ToolKind,
    pub(super) risk: Risk,
    /// What the turn itself says of the call, which then is not judged.
    pub(super) ruling: Option<Ruling>,
    /// A person changed the arguments.
    pub(super) edited: bool,
    /// The journal says which call it is.
    pub(super) named: bool,
    pub(super) state: CallState,
}

/// A result that needs no run.
#[derive(Clone, Debug, Serialize)]
pub(super) enum Ruling {
    Error { kind: CallErrorKind, text: String },
    Noted { text: String },
}

#[derive(Clone, Debug, Serialize)]
pub(super) enum CallState {
    Wanted(Permission),
    Admitted {
        permission: Permission,
        repeatable: bool,
    },
    Parked(ItemId),
    /// The answer to a question of the turn's own.
    Heard(Resolution),
    Intended {
        /// By what it was let through, and may be again if it did not happen.
        permission: Permission,
        intent: Intent,
        repeatable: bool,
        /// owd stopped it itself: known to be incomplete.
        stopped: bool,
    },
    Uncertain(Doubt),
    Asleep,
    Settled(Settled),
}

/// A call's result as it will stand in the history.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Settled {
    pub(super) text: String,
    pub(super) images: Vec<Attachment>,
    pub(super) error: Option<CallErrorKind>,
    pub(super) outside: bool,
    /// What the detectors compare: the same for the same result, whatever stands around it.
    pub(super) result: BlobHash,
    pub(super) by: SettledBy,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(super) enum SettledBy {
    /// It ran, or was tried.
    Run,
    /// It was sent twice in one reply.
    Duplicate,
    /// The call is unusable.
    Ruling,
    /// Policy or a person said no.
    No,
    /// The turn was interrupted.
    Interrupt,
}

impl Batch {
    pub(super) fn call(&self, position: Position) -> Option<&OpenCall> {
        self.calls.iter().find(|open| open.position == position)
    }

    pub(super) fn call_mut(&mut self, position: Position) -> Option<&mut OpenCall> {
        self.calls.iter_mut().find(|open| open.position == position)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &OpenCall> {
        self.calls.iter().filter(|open| !open.is_settled())
    }
}

impl OpenCall {
    pub(super) const fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled(_))
    }

    pub(super) fn as_use(&self) -> ToolUse {
        ToolUse { position: self.position, name: self.name.clone(), args: self.wrote.clone() }
    }

    /// The tool with its URL or path: where what it returns comes from.
    pub(super) fn source(&self) -> String {
        let args = self.call.as_ref().map_or(&self.wrote, |call| &call.args);
        match ["url", "path"].iter().find_map(|key| args.get(*key)?.as_str()) {
            Some(place) => format!("{} {place}", self.name),
            None => self.name.clone(),
        }
    }
}
