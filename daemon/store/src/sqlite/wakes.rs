//! What sleeping sessions wait for.

use jiff::Timestamp;
use ow_model::{EventType, Input, SessionId, Wake};
use rusqlite::params;
use serde_json::{Value, json};

use super::runs::run_at;
use super::sessions;
use super::view::{Source, View};
use super::writer::Tx;
use crate::StoreError;

const WAKES: Source = Source { table: "wakes", key: 0 };

pub(crate) fn wait(tx: &mut Tx<'_>, run: i64, on: &[Wake]) -> Result<(), StoreError> {
    for what in on {
        tx.change("INSERT OR IGNORE INTO wakes (what, run) VALUES (?1, ?2)", params![what.to_string(), run])?;
    }
    Ok(())
}

/// The session is awake.
pub(crate) fn forget(tx: &mut Tx<'_>, run: i64) -> Result<(), StoreError> {
    tx.change("DELETE FROM wakes WHERE run = ?1", [run])?;
    Ok(())
}

/// Wakes those who wait for such an event, in the transaction that tells of it. Nobody waits for what he does himself.
pub(crate) fn on_event(
    tx: &mut Tx<'_>,
    kind: EventType,
    target: &str,
    payload: &Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    let what = Wake::Event(kind.to_string()).to_string();
    let waiting: Vec<i64> = tx.column("SELECT run FROM wakes WHERE what = ?1", [what])?;
    for order in waiting {
        let Some(row) = run_at(tx, order)? else { continue };
        if target.split_once(':').is_some_and(|(_, id)| id == row.run.id.to_string()) {
            continue;
        }
        // First of all: what is told of the waking must not wake it again.
        forget(tx, order)?;
        let text = json!({ "type": kind.word(), "target": target, "payload": payload }).to_string();
        let input = Input { text, attachments: vec![], source: ow_model::Source::Event { kind: kind.to_string() } };
        sessions::put(tx, &row, &input, None, now)?;
    }
    Ok(())
}

/// The sessions that sleep until a background job ends, with its id.
pub(crate) fn jobs_awaited(view: &View<'_>) -> Result<Vec<(SessionId, String)>, StoreError> {
    let found = view.rows(
        WAKES,
        "SELECT w.what, r.id FROM wakes w JOIN runs r ON r.ord = w.run WHERE w.what >= 'job ' AND w.what < 'job!'",
        [],
        |record| Ok((record.parsed::<Wake>(0)?, record.parsed(1)?)),
    )?;
    let job = |(what, session)| match what {
        Wake::Job(job) => Some((session, job)),
        Wake::Event(_) => None,
    };
    Ok(found.into_iter().filter_map(job).collect())
}
