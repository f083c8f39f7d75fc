use jiff::Timestamp;
use ow_model::{Disposition, EventKey, EventType, SlotKey, SlotRecord, TaskId};
use rusqlite::params;
use serde_json::json;

use super::stream::tell;
use super::tasks::Head;
use super::view::{Broken, Record, Source, View, json, micros, signed};
use super::writer::Tx;
use crate::StoreError;

const SLOTS: Source = Source { table: "slots", key: 0 };
const INSTANT: i64 = 0;
const RANGE: i64 = 1;
const EVENT: i64 = 2;
const MANUAL: i64 = 3;
/// What was taken back after the clock was set back: a note beside the records, itself no record of a slot.
const VOIDED: i64 = 4;

/// Writes the one record of a slot. A second one for the same slot breaks a unique index and is refused.
pub(crate) fn record_slot(
    tx: &mut Tx<'_>,
    head: &Head,
    key: &SlotKey,
    disposition: &Disposition,
    now: Timestamp,
) -> Result<(), StoreError> {
    let kind = match key {
        SlotKey::Instant(_) => INSTANT,
        SlotKey::Range { .. } => RANGE,
        SlotKey::Event(_) => EVENT,
        SlotKey::Manual(_) => MANUAL,
    };
    write(tx, head, kind, key, disposition, now)?;
    let told = match disposition {
        Disposition::Skipped { .. } => Some(EventType::SlotSkipped),
        Disposition::Missed { .. } => Some(EventType::SlotMissed),
        Disposition::Fired { .. } | Disposition::Superseded { .. } | Disposition::Voided { .. } => None,
    };
    if let Some(kind) = told {
        tell(tx, kind, &format!("task:{}", head.name), &json!({ "slot": key, "disposition": disposition }), now)?;
    }
    Ok(())
}

/// Notes what was taken back; the slots themselves will get their records again.
pub(crate) fn voided_note(
    tx: &Tx<'_>,
    head: &Head,
    key: &SlotKey,
    why: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    write(tx, head, VOIDED, key, &Disposition::Voided { why: why.into() }, now)
}

/// Turns a record into a note that it was taken back.
pub(crate) fn void(tx: &Tx<'_>, id: i64, why: &str) -> Result<(), StoreError> {
    tx.change(
        "UPDATE slots SET kind = ?2, disposition = ?3 WHERE id = ?1",
        params![id, VOIDED, json(&Disposition::Voided { why: why.into() })],
    )?;
    Ok(())
}

/// Takes back the end of a range.
pub(crate) fn shorten(tx: &Tx<'_>, id: i64, key: &SlotKey) -> Result<(), StoreError> {
    let (from, until, count) = match key {
        SlotKey::Instant(at) => (*at, *at, 1),
        SlotKey::Range { from, until, count } => (*from, *until, *count),
        SlotKey::Event(_) | SlotKey::Manual(_) => return Ok(()),
    };
    tx.change(
        "UPDATE slots SET starts = ?2, ends = ?3, count = ?4 WHERE id = ?1",
        params![id, micros(from), micros(until), signed(count)],
    )?;
    Ok(())
}

/// What became of an event.
pub(crate) fn of_event(view: &View<'_>, task: TaskId, key: &EventKey) -> Result<Option<Disposition>, StoreError> {
    view.row(
        SLOTS,
        "SELECT id, disposition FROM slots WHERE task = ?1 AND kind = 2 AND key = ?2",
        params![task.0, key.0],
        |record| record.json(1),
    )
}

/// The records of a schedule that reach past an instant.
pub(crate) fn past(view: &View<'_>, task: TaskId, now: Timestamp) -> Result<Vec<(i64, SlotRecord)>, StoreError> {
    view.rows(
        SLOTS,
        "SELECT id, task, kind, starts, ends, key, count, disposition, recorded_at FROM slots
             WHERE task = ?1 AND kind = 0 AND starts > ?2
         UNION ALL
         SELECT id, task, kind, starts, ends, key, count, disposition, recorded_at FROM slots
             WHERE task = ?1 AND kind = 1 AND ends > ?2",
        params![task.0, micros(now)],
        |record| Ok((record.int(0)?, record_of(record)?)),
    )
}

/// The last instant of a schedule's slot or range; of another occasion, the given one.
pub(crate) fn end_of(key: &SlotKey, other: Timestamp) -> Timestamp {
    match key {
        SlotKey::Instant(at) => *at,
        SlotKey::Range { until, .. } => *until,
        SlotKey::Event(_) | SlotKey::Manual(_) => other,
    }
}

pub(crate) fn in_words(disposition: &Disposition) -> String {
    match disposition {
        Disposition::Fired { run } => format!("fired as {run}"),
        Disposition::Skipped { why } => format!("skipped ({why})"),
        Disposition::Missed { why, .. } => format!("missed ({why})"),
        Disposition::Superseded { why, .. } => format!("superseded ({why})"),
        Disposition::Voided { why } => format!("voided ({why})"),
    }
}

fn write(
    tx: &Tx<'_>,
    head: &Head,
    kind: i64,
    key: &SlotKey,
    disposition: &Disposition,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (starts, ends, text, count) = match key {
        SlotKey::Instant(at) => (*at, *at, None, 1),
        SlotKey::Range { from, until, count } => (*from, *until, None, *count),
        SlotKey::Event(key) => (now, now, Some(key.0.clone()), 1),
        SlotKey::Manual(run) => (now, now, Some(run.to_string()), 1),
    };
    tx.change(
        "INSERT INTO slots (task, kind, starts, ends, key, count, fired, disposition, recorded_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            head.id.0,
            kind,
            micros(starts),
            micros(ends),
            text,
            signed(count),
            matches!(disposition, Disposition::Fired { .. }),
            json(disposition),
            micros(now)
        ],
    )?;
    Ok(())
}

/// Says of a slot that had fired that its run was never begun.
pub(crate) fn missed_after_all(
    tx: &Tx<'_>,
    task: TaskId,
    scheduled_for: Timestamp,
    run: ow_model::RunId,
    why: &str,
) -> Result<(), StoreError> {
    tx.change(
        "UPDATE slots SET disposition = ?4
         WHERE task = ?1 AND kind = 0 AND starts = ?2 AND disposition = ?3",
        params![
            task.0,
            micros(scheduled_for),
            json(&Disposition::Fired { run }),
            json(&Disposition::Missed { why: why.into(), folded_into: None })
        ],
    )?;
    Ok(())
}

/// Ranges are few and do not overlap each other, so each kind has an index of its own.
pub(crate) fn slots(
    view: &View<'_>,
    task: TaskId,
    from: Timestamp,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<SlotRecord>, StoreError> {
    view.rows(
        SLOTS,
        "SELECT * FROM (
             SELECT * FROM (SELECT id, task, kind, starts, ends, key, count, disposition, recorded_at FROM slots
                 WHERE task = ?1 AND kind = 0 AND starts BETWEEN ?2 AND ?3 ORDER BY starts LIMIT ?4)
             UNION ALL
             SELECT * FROM (SELECT id, task, kind, starts, ends, key, count, disposition, recorded_at FROM slots
                 WHERE task = ?1 AND kind = 1 AND ends >= ?2 AND starts <= ?3 ORDER BY ends LIMIT ?4)
             UNION ALL
             SELECT * FROM (SELECT id, task, kind, starts, ends, key, count, disposition, recorded_at FROM slots
                 WHERE task = ?1 AND kind >= 2 AND starts <= ?3 AND ends >= ?2 ORDER BY starts LIMIT ?4)
         ) ORDER BY starts, id LIMIT ?4",
        params![task.0, micros(from), micros(until), limit.cast_signed()],
        record_of,
    )
}

fn record_of(record: &Record<'_>) -> Result<SlotRecord, Broken> {
    let key = match record.int(2)? {
        INSTANT => SlotKey::Instant(record.time(3)?),
        VOIDED if record.int(3)? == record.int(4)? => SlotKey::Instant(record.time(3)?),
        RANGE | VOIDED => SlotKey::Range { from: record.time(3)?, until: record.time(4)?, count: record.number(6)? },
        EVENT => SlotKey::Event(EventKey(record.text(5)?)),
        MANUAL => SlotKey::Manual(record.parsed(5)?),
        other => return Err(record.broken(2, &format!("{other} is no kind of slot"))),
    };
    Ok(SlotRecord { task: TaskId(record.int(1)?), key, disposition: record.json(7)?, recorded_at: record.time(8)? })
}
