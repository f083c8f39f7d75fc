use jiff::Timestamp;
use ow_model::{Cause, Disposition, EventId, ItemId, RunId, SlotKey, TaskSpec, WaitingEvent};

use crate::Schedule;

/// All that decides what a task's due slots and waiting events become.
#[derive(Clone, Debug)]
pub struct PlanInput<'a> {
    pub spec: &'a TaskSpec,
    pub schedule: &'a Schedule,
    pub now: Timestamp,
    /// Since when owd has been awake without a gap: its start, or the last resume from suspend.
    pub awake_since: Timestamp,
    /// Every slot up to and including this instant has its record.
    pub accounted_until: Timestamp,
    /// Instants after `accounted_until` that have fired already: the clock was set back. Sorted.
    pub fired_ahead: &'a [Timestamp],
    pub gate: Gate,
    /// The task's open runs, oldest first.
    pub active: &'a [ActiveRun],
    /// Accepted events that no run has, oldest first.
    pub waiting: &'a [WaitingEvent],
}

/// Whether the task may start runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Gate {
    Open,
    /// Slots are recorded as skipped for this reason (`paused`, `paused: all`, …); events wait.
    Closed {
        why: String,
    },
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ActiveRun {
    pub run: RunId,
    pub state: ActiveState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ActiveState {
    /// Waits for a worker (also a retry that waits for its time).
    Queued,
    /// Running, or interrupted and about to go on.
    Running,
    /// `holds`: parked on its own question; false: on an unknown outcome or a budget, which holds nothing.
    Parked { item: ItemId, holds: bool },
}

/// What must be written, in one transaction.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    pub runs: Vec<PlannedRun>,
    pub records: Vec<(SlotKey, Disposition)>,
    /// Open runs to cancel, with the reason (`overlap: cancel-previous`, `superseded by <run>`).
    pub cancel: Vec<(RunId, String)>,
    /// Slots that an item's parked run held back, to be added to the item.
    pub held_back: Vec<(ItemId, u64)>,
    /// Waiting events that are refused for good, with the reason (`loop`, `too many waiting`).
    pub refused: Vec<(EventId, String)>,
    /// The new high-water mark; never below the old one.
    pub accounted_until: Option<Timestamp>,
    /// When the task must be looked at next, if nothing else happens; none: only an event or an edit.
    pub wake_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlannedRun {
    pub id: RunId,
    pub cause: Cause,
    pub scheduled_for: Timestamp,
    /// The events it is given, oldest first.
    pub events: Vec<EventId>,
    pub depth: u32,
}
