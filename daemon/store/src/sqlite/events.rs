use jiff::Timestamp;
use ow_model::{
    Disposition, EventId, EventKey, EventPayload, NewEvent, RunId, SlotKey, TaskId, TaskName, WaitingEvent,
};
use rusqlite::params;

use super::blobs;
use super::intake;
use super::slots::{self, record_slot};
use super::tasks::{self, Head};
use super::view::{Source, View, json, micros};
use super::writer::Tx;
use crate::{Accepted, EventFate, Offer, Offered, StoreError, TaskError};

const EVENTS: Source = Source { table: "events", key: 0 };

pub(crate) fn accept_events(tx: &mut Tx<'_>, events: &[NewEvent], now: Timestamp) -> Result<Vec<Accepted>, TaskError> {
    let mut last: Option<(&TaskName, TaskId)> = None;
    let mut accepted = Vec::with_capacity(events.len());
    for event in events {
        let task = match last {
            Some((name, task)) if *name == event.task => task,
            _ => tasks::known(tx, &event.task)?.id,
        };
        last = Some((&event.task, task));
        accepted.push(accept(tx, task, event, now)?);
    }
    Ok(accepted)
}

/// Accepts one event and has its task looked at.
///
/// The slot record of a key outlives the event itself and makes it known as well.
pub(crate) fn accept(tx: &Tx<'_>, task: TaskId, event: &NewEvent, now: Timestamp) -> Result<Accepted, StoreError> {
    let added = tx.change(
        "INSERT OR IGNORE INTO events (task, key, payload, depth, received_at, state)
         SELECT ?1, ?2, ?3, ?4, ?5, 0
         WHERE NOT EXISTS (SELECT 1 FROM slots WHERE task = ?1 AND kind = 2 AND key = ?2)",
        params![task.0, event.key.0, json(&event.payload), event.depth, micros(now)],
    )?;
    if added == 0 {
        return Ok(Accepted::Duplicate);
    }
    let payload = json(&event.payload);
    if blobs::names_any(&payload) {
        let ids: Vec<i64> =
            tx.column("SELECT id FROM events WHERE task = ?1 AND key = ?2", params![task.0, event.key.0])?;
        for id in ids {
            blobs::refer(tx, blobs::owner_of_event(id), &payload)?;
        }
    }
    tx.change(
        "UPDATE tasks SET waiting = waiting + 1,
             wake_at = CASE state WHEN 'active' THEN min(coalesce(wake_at, ?2), ?2) ELSE wake_at END
         WHERE id = ?1",
        params![task.0, micros(now)],
    )?;
    Ok(Accepted::New)
}

/// Whose rows of the intake say what events of a task had in them that no other may have.
const TWINS: &str = "twin:";
const REPEATED: &str = "what its sender signed, with the time, was delivered before, under another id";
/// What the record of an event begins with that its task did not want.
const UNWANTED: &str = "not wanted: ";

pub(crate) fn offer(tx: &mut Tx<'_>, offers: &[Offer], now: Timestamp) -> Result<Vec<Offered>, StoreError> {
    let mut offered = Vec::with_capacity(offers.len());
    for Offer { event, unwanted, twin } in offers {
        let Some(head) = tasks::live(tx, &event.task)? else { continue };
        offered.push(match (fate(tx, head.id, &event.key)?, unwanted) {
            (None, None) => match twin {
                Some(twin) if !intake::note(tx, &format!("{TWINS}{}", head.id.0), twin, now)? => {
                    let disposition = Disposition::Skipped { why: REPEATED.into() };
                    record_slot(tx, &head, &SlotKey::Event(event.key.clone()), &disposition, now)?;
                    Offered::Repeated
                }
                _ => taken(accept(tx, head.id, event, now)?),
            },
            (Some(EventFate::Recorded(Disposition::Skipped { why })), None) if why.starts_with(UNWANTED) => {
                tx.change(
                    "DELETE FROM slots WHERE task = ?1 AND kind = 2 AND key = ?2",
                    params![head.id.0, event.key.0],
                )?;
                taken(accept(tx, head.id, event, now)?)
            }
            (None, Some(why)) => {
                let why = format!("{UNWANTED}{why}");
                record_slot(tx, &head, &SlotKey::Event(event.key.clone()), &Disposition::Skipped { why }, now)?;
                Offered::Unwanted
            }
            (Some(_), _) => Offered::Known,
        });
    }
    Ok(offered)
}

const fn taken(accepted: Accepted) -> Offered {
    match accepted {
        Accepted::New => Offered::New,
        Accepted::Duplicate => Offered::Known,
    }
}

pub(crate) fn fate(view: &View<'_>, task: TaskId, key: &EventKey) -> Result<Option<EventFate>, StoreError> {
    if let Some(disposition) = slots::of_event(view, task, key)? {
        return Ok(Some(EventFate::Recorded(disposition)));
    }
    let sql = "SELECT id FROM events WHERE task = ?1 AND key = ?2";
    let waits = view.row(EVENTS, sql, params![task.0, key.0], |record| record.int(0))?;
    Ok(waits.map(|_| EventFate::Waiting))
}

pub(crate) fn waiting(view: &View<'_>, head: &Head) -> Result<Vec<WaitingEvent>, StoreError> {
    view.rows(
        EVENTS,
        "SELECT id, key, depth, received_at FROM events WHERE task = ?1 AND state = 0 ORDER BY id",
        [head.id.0],
        |record| {
            Ok(WaitingEvent {
                id: EventId(record.int(0)?),
                key: EventKey(record.text(1)?),
                depth: record.number(2)?,
                received_at: record.time(3)?,
            })
        },
    )
}

/// Gives an account of what still waits when its task goes.
pub(crate) fn refuse_waiting(tx: &mut Tx<'_>, head: &Head, why: &str, now: Timestamp) -> Result<(), StoreError> {
    settle_waiting(tx, head, &Disposition::Skipped { why: why.into() }, now)?;
    Ok(())
}

/// Records of what waited in a backup that it may have run since. Returns how many there were.
pub(crate) fn miss_waiting(tx: &mut Tx<'_>, head: &Head, why: &str, now: Timestamp) -> Result<usize, StoreError> {
    settle_waiting(tx, head, &Disposition::Missed { why: why.into(), folded_into: None }, now)
}

fn settle_waiting(
    tx: &mut Tx<'_>,
    head: &Head,
    disposition: &Disposition,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let waiting = waiting(tx, head)?;
    let count = waiting.len();
    for event in waiting {
        record_slot(tx, head, &SlotKey::Event(event.key), disposition, now)?;
        tx.change("UPDATE events SET state = 2 WHERE id = ?1", [event.id.0])?;
    }
    tx.change("UPDATE tasks SET waiting = 0 WHERE id = ?1", [head.id.0])?;
    Ok(count)
}

/// Keeps what a person gave to a run by hand as its event; it never waits for another run.
pub(crate) fn keep_payload(
    tx: &Tx<'_>,
    task: TaskId,
    run: RunId,
    payload: &EventPayload,
    now: Timestamp,
) -> Result<EventId, StoreError> {
    let id = tx.insert(
        "INSERT INTO events (task, key, payload, depth, received_at, state) VALUES (?1, ?2, ?3, 0, ?4, 1)",
        params![task.0, format!("manual:{run}"), json(payload), micros(now)],
    )?;
    Ok(EventId(id))
}

pub(crate) fn run_events(view: &View<'_>, run: RunId) -> Result<Vec<NewEvent>, StoreError> {
    view.rows(
        EVENTS,
        "SELECT e.id, r.task_name, e.key, e.payload, e.depth
         FROM runs r JOIN run_events g ON g.run = r.ord JOIN events e ON e.id = g.event
         WHERE r.id = ?1 ORDER BY e.id",
        [run.to_string()],
        |record| {
            Ok(NewEvent {
                task: record.parsed(1)?,
                key: EventKey(record.text(2)?),
                payload: record.json(3)?,
                depth: record.number(4)?,
            })
        },
    )
}
