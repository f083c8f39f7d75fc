//! The machine that decides what a run does next: a fold of its journal, then one effect.
//!
//! [`StepsTurn`] runs a task made of steps. It is pure: `apply` folds a fact, `next` names the one effect
//! that must be performed or recorded now. The engine performs it and appends the fact that came of it;
//! replaying the journal gives the same state. It reads no clock, asks no policy and runs no tool.
//!
//! ```
//! # use ow_turn::StepsTurn;
//! # fn resume(spec: ow_model::TaskSpec, journal: &[ow_model::RecordedFact]) -> StepsTurn {
//! journal.iter().fold(StepsTurn::new(spec), |turn, recorded| turn.apply(&recorded.fact))
//! # }
//! ```

mod agent;
mod context;
mod effect;
mod steps;

pub use agent::{
    AgentEffect, AgentSetup, AgentTurn, Outgoing, Prices, Progress, Sleep, Spent, ToolDecl, ToolKind, arguments_of,
    framed,
};
pub use context::{RunContext, RunFolder, context};
pub use effect::{Doubt, Effect, Permission};
pub use steps::StepsTurn;
