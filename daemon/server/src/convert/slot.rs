use ow_model::{Disposition, RunId, SlotKey, SlotRecord};
use ow_protocol::SlotView;

use super::instant;

/// `run_state`: the state of the run that the record names.
pub(crate) fn slot_view(record: &SlotRecord, run_state: Option<String>) -> SlotView {
    let SlotRecord { task: _, key, disposition, recorded_at } = record;
    let (kind, key, until, count) = match key {
        SlotKey::Instant(at) => ("instant", instant(*at), None, 1),
        SlotKey::Range { from, until, count } => ("range", instant(*from), Some(instant(*until)), *count),
        SlotKey::Event(key) => ("event", key.to_string(), None, 1),
        SlotKey::Manual(run) => ("manual", run.to_string(), None, 1),
    };
    let (word, why, run) = self::disposition(disposition);
    SlotView {
        kind: kind.into(),
        key,
        until,
        count,
        disposition: word.into(),
        why: why.cloned(),
        run: run.map(ToString::to_string),
        run_state,
        recorded_at: instant(*recorded_at),
    }
}

/// Its word, why, and the run that it names.
pub(crate) const fn disposition(disposition: &Disposition) -> (&'static str, Option<&String>, Option<&RunId>) {
    match disposition {
        Disposition::Fired { run } => ("fired", None, Some(run)),
        Disposition::Skipped { why } => ("skipped", Some(why), None),
        Disposition::Missed { why, folded_into } => ("missed", Some(why), folded_into.as_ref()),
        Disposition::Superseded { by, why } => ("superseded", Some(why), by.as_ref()),
        Disposition::Voided { why } => ("voided", Some(why), None),
    }
}
