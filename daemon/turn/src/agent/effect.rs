use jiff::Timestamp;
use ow_model::{Call, Fact, Intent, ItemId, ItemKind, Outcome, Position, Purpose, Usage, Wake};

use crate::{Doubt, Permission};

/// The one thing that must be done next in an agent's session.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one exists at a time, and it is moved once")]
pub enum AgentEffect {
    /// Write the first fact, [`Fact::Started`], unless it is there, and the goal as the first inputs, in one transaction.
    Start,
    /// Append these in order; nothing in the world changes.
    Record(Vec<Fact>),
    /// Ask a model: journal `Asked`, then `Replied` or `ModelFailed`.
    CallModel {
        purpose: Purpose,
        /// Counts against the budget until the reply is known.
        reserved: Usage,
        with_tools: bool,
        /// Stands at the end of the last message, in this request alone.
        tail: Option<String>,
        max_output: Option<u32>,
        /// For a summary: the whole of what the summariser is told; nothing else is sent.
        instruction: Option<String>,
    },
    /// Have calls of one reply judged, one by one in order: `Admitted`, `Refused`, or `Done` with an error. Those that
    /// ask are parked together.
    Admit { calls: Vec<(Call, Permission)> },
    /// Run admitted calls; more than one only where none has a side effect.
    Execute { calls: Vec<(Call, Permission)> },
    /// `Intended` has no end in the journal: find out whether the call took effect, journal `Reconciled`.
    Reconcile { call: Call, intent: Intent, repeatable: bool },
    /// Nobody can tell whether the call took effect: park it and ask.
    AskUncertain { call: Call, doubt: Doubt },
    /// Park on this item; its answer is the call's result. The path of a folder is as the model wrote it.
    Ask { position: Position, kind: ItemKind },
    /// Park until a person raises the budget, or not.
    AskBudget { position: Position, text: String },
    /// Journal `Slept`: the session goes on at `until`, or when it hears an input.
    Sleep { position: Position, until: Option<Timestamp>, on: Vec<Wake>, note: String },
    /// A person opened this folder: see where it leads and whether it may be, journal `RootGranted`, and `Done` with what
    /// the model is told.
    Grant { position: Position, path: String, writable: bool, by: String },
    /// Run a sub-agent and record `Done` with its report.
    Delegate { call: Call, goal: String },
    /// Parked: nothing to do until the answers are in the journal.
    Wait { items: Vec<(Position, ItemId)> },
    /// A chat between two turns: nothing to do until an input.
    AwaitInput,
    /// End the run.
    End(Outcome),
}
