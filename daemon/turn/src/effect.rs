use ow_model::{Call, Fact, Hole, Intent, ItemId, Outcome, Position, Resolution};
use serde::Serialize;

/// The one thing that must be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the first fact, [`Fact::Started`], with the context of this run.
    Start,
    /// Append this fact; nothing in the world changes.
    Record(Fact),
    /// Have the call judged. If it is cleared: journal `Allowed` and `Intended`, run it, journal `Done`.
    /// If it must ask: park. If not: journal `Refused`.
    Admit { step: u32, call: Call, holes: Vec<Hole>, permission: Permission },
    /// `Intended` has no end in the journal: find out whether the call took effect, journal `Reconciled`.
    Reconcile { call: Call, intent: Intent, repeatable: bool },
    /// Nobody can tell whether the call took effect: park it and ask; it holds back nothing.
    AskUncertain { step: u32, call: Call, doubt: Doubt },
    /// Parked: nothing to do until an answer is in the journal.
    Wait { position: Position, item: ItemId },
    /// End the run.
    End(Outcome),
}

/// By what a call may run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Permission {
    /// Policy decides alone.
    Policy,
    /// A person answered this item; policy judges again what no answer can settle.
    Answer { item: ItemId, resolution: Resolution },
}

/// Why nobody can tell what became of a call.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub enum Doubt {
    /// owd died while it ran; what the tool could find out.
    Crashed { why: String },
    /// owd stopped it in the middle.
    Stopped,
}
