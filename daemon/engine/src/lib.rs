//! The shell of the turn: performs effects, journals them, resumes after a stop.

mod preview;
mod stop;

pub use preview::{AllowableStep, PlannedStep, PlannedVerdict};
pub use stop::{Stop, StopReason};
