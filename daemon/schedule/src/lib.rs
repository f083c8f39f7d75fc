//! When tasks run: cron, zones, slots, catch-up, overlap and forecast. Pure: the present is an argument.
//!
//! Reads no clock and does no I/O; the zone database that jiff carries is the one exception.

mod plan;

pub use plan::{ActiveRun, ActiveState, Gate, Plan, PlanInput, PlannedRun};

/// The schedule triggers of one task revision, compiled: one ordered stream of instants.
#[derive(Clone, Debug)]
pub struct Schedule;
