use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::Timestamp;
use ow_model::TaskName;

use crate::Schedule;

/// A slot that will come, if nothing changes.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Forecast<'a> {
    /// The instant with the task's jitter.
    pub due: Timestamp,
    pub task: &'a TaskName,
    pub instant: Timestamp,
}

/// Returns every slot of these tasks that is due in `(from, until]`, in the order of due times and then of names.
///
/// Lazy: each step computes one more instant of one task.
pub fn forecast<'a>(
    tasks: impl Iterator<Item = (&'a TaskName, &'a Schedule)>,
    from: Timestamp,
    until: Timestamp,
) -> impl Iterator<Item = Forecast<'a>> {
    let mut schedules = Vec::new();
    let mut next = BinaryHeap::new();
    for (task, schedule) in tasks {
        let after = from.checked_sub(schedule.jitter()).unwrap_or(Timestamp::MIN);
        if let Some(instant) = schedule.next_after(after) {
            let slot = Forecast { due: schedule.due(instant), task, instant };
            next.push(Reverse((slot, schedules.len())));
            schedules.push(schedule);
        }
    }
    std::iter::from_fn(move || {
        let Reverse((slot, index)) = next.pop()?;
        let schedule: &Schedule = schedules[index];
        if let Some(instant) = schedule.next_after(slot.instant) {
            next.push(Reverse((Forecast { due: schedule.due(instant), task: slot.task, instant }, index)));
        }
        Some(slot)
    })
    .take_while(move |slot| slot.due <= until)
}
