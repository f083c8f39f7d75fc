use jiff::Timestamp;
use ow_model::SlotKey;

use crate::Schedule;
use crate::every::TICK;

/// A run of `count` neighbouring instants, from the first to the last, none of which has a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stretch {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) count: u64,
}

impl Stretch {
    pub(crate) fn one(instant: Timestamp) -> Self {
        Self { from: instant, until: instant, count: 1 }
    }

    /// The instants of `(after, until]`, if there are any.
    pub(crate) fn of(schedule: &Schedule, after: Timestamp, until: Timestamp) -> Option<Self> {
        let from = schedule.next_after(after).filter(|from| *from <= until)?;
        match schedule.count(from, until) {
            0 => Some(Self::one(from)),
            more => {
                let last = schedule.newest(from, until, 1).pop().expect("some were counted");
                Some(Self { from, until: last, count: more + 1 })
            }
        }
    }

    pub(crate) fn key(&self) -> SlotKey {
        match self.count {
            1 => SlotKey::Instant(self.from),
            count => SlotKey::Range { from: self.from, until: self.until, count },
        }
    }
}

/// Returns the instants of `(after, until]` as stretches, oldest first, with those left out that have fired already.
///
/// `fired` is sorted. No stretch spans a fired instant, so that each instant is covered by one record alone.
pub(crate) fn stretches(schedule: &Schedule, after: Timestamp, until: Timestamp, fired: &[Timestamp]) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut after = after;
    let first = fired.partition_point(|fired| *fired <= after);
    for fired in fired[first..].iter().take_while(|fired| **fired <= until) {
        found.extend(Stretch::of(schedule, after, fired.checked_sub(TICK).unwrap_or(*fired)));
        after = *fired;
    }
    found.extend(Stretch::of(schedule, after, until));
    found
}

/// Returns the first instant later than `after` that has not fired already.
pub(crate) fn next_unfired(schedule: &Schedule, after: Timestamp, fired: &[Timestamp]) -> Option<Timestamp> {
    let mut after = after;
    loop {
        let next = schedule.next_after(after)?;
        if fired.binary_search(&next).is_err() {
            return Some(next);
        }
        after = next;
    }
}
