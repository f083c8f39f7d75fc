use jiff::Timestamp;
use ow_model::{Disposition, SlotKey};

use crate::Schedule;
use crate::stretch::{Stretch, stretches};

/// What becomes of a slot's record when the wall clock is set back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Rewind {
    /// It stands: the slot was not later than the new time, or it fired.
    Keep,
    /// The record is voided; its instants come again.
    Void,
    /// A range that spans the new time: the first part stands, the second is voided.
    Split { keep: SlotKey, void: SlotKey },
}

/// Says what setting the clock back to `now` does to a record: what had fired stays, what else is later is voided.
///
/// Slots that a catch-up run stood for have had their run: if there are such records later than the new time, take the
/// end of the last one for `now`. Afterwards the task's mark is the earlier of the old one and `now`, and what fired
/// later than that is `fired_ahead` of each plan until the mark has passed it. Nothing is due at once, so nothing
/// bursts. `schedule` is that of the revision that made the record.
#[must_use]
pub fn rewind(schedule: &Schedule, key: &SlotKey, disposition: &Disposition, now: Timestamp) -> Rewind {
    match (key, disposition) {
        (SlotKey::Event(_) | SlotKey::Manual(_), _) | (_, Disposition::Fired { .. } | Disposition::Voided { .. }) => {
            Rewind::Keep
        }
        (SlotKey::Instant(at), _) => {
            if *at > now {
                Rewind::Void
            } else {
                Rewind::Keep
            }
        }
        (SlotKey::Range { until, .. }, _) if *until <= now => Rewind::Keep,
        (SlotKey::Range { from, .. }, _) if *from > now => Rewind::Void,
        (SlotKey::Range { from, until, count }, _) => {
            let before = from.checked_sub(crate::every::TICK).unwrap_or(*from);
            match (Stretch::of(schedule, before, now), Stretch::of(schedule, now, *until)) {
                (Some(keep), Some(void)) if keep.count + void.count == *count => {
                    Rewind::Split { keep: keep.key(), void: void.key() }
                }
                // The definition or the zone has changed since: nothing of it is counted twice.
                _ => Rewind::Keep,
            }
        }
    }
}

/// Records the slots of a definition that ends at `now`, by an edit or a deletion, before their jittered time came.
///
/// Ask for a plan by the old definition first: it accounts for all that is due. These are the rest up to `now`; the
/// new definition begins from `now`.
#[must_use]
pub fn close(
    schedule: &Schedule,
    accounted_until: Timestamp,
    fired_ahead: &[Timestamp],
    why: &str,
    now: Timestamp,
) -> Vec<(SlotKey, Disposition)> {
    stretches(schedule, accounted_until, now, fired_ahead)
        .into_iter()
        .map(|stretch| (stretch.key(), Disposition::Superseded { by: None, why: why.into() }))
        .collect()
}
