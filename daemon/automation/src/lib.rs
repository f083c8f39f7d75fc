//! The shell of `schedule`: sleeps until something is due, claims it and hands runs to workers.
//!
//! One timer serves all tasks, at start, after a suspend and on an ordinary tick alike: it asks the store what is
//! due and never waits for work. Watched folders and task files each have a task of their own, which turn what they
//! notice into facts in the store and wake the timer; deliveries at webhooks are offered to the tasks that name them. The tools `task_*` act on the same store. It does not know how a run is performed ([`Performer`]), and
//! decides nothing about slots: the store asks the pure core in the transaction that records them.

mod parts;

mod automation;
mod handle;

mod network;
mod retention;
mod running;
mod timer;
mod workers;

mod arrival;
mod delivery;
mod task_files;
mod task_tools;
mod warnings;
mod watch;

pub use arrival::{Arrival, Sender, Wanted};
pub use automation::Automation;
pub use delivery::{Delivered, Delivery, Posted};
pub use handle::Handle;
pub use parts::{Check, Parts, Performer, Settings, Written};
pub use task_tools::{OpenTaskTools, TaskTools, register_task_tools};
pub use warnings::{Warning, WarningKind};

#[cfg(test)]
mod tests;
