use jiff::Timestamp;
use rusqlite::params;
use serde_json::Value;

use super::view::{Source, View, json, micros};
use super::writer::Tx;
use crate::{Accepted, StoreError, TakenIn};

const INTAKE: Source = Source { table: "intake", key: 0 };

pub(crate) fn take_in(
    tx: &Tx<'_>,
    source: &str,
    key: &str,
    payload: &Value,
    now: Timestamp,
) -> Result<Accepted, StoreError> {
    let added = tx.change(
        "INSERT OR IGNORE INTO intake (source, key, payload, received_at) VALUES (?1, ?2, ?3, ?4)",
        params![source, key, json(payload), micros(now)],
    )?;
    Ok(if added == 0 { Accepted::Duplicate } else { Accepted::New })
}

/// Notes a key that needs no work; false: it was noted before.
pub(crate) fn note(tx: &Tx<'_>, source: &str, key: &str, now: Timestamp) -> Result<bool, StoreError> {
    let added = tx.change(
        "INSERT OR IGNORE INTO intake (source, key, payload, received_at) VALUES (?1, ?2, NULL, ?3)",
        params![source, key, micros(now)],
    )?;
    Ok(added > 0)
}

pub(crate) fn waiting(view: &View<'_>, source: &str, limit: usize) -> Result<Vec<TakenIn>, StoreError> {
    view.rows(
        INTAKE,
        "SELECT id, key, payload, received_at FROM intake
         WHERE source = ?1 AND payload IS NOT NULL ORDER BY id LIMIT ?2",
        params![source, limit.cast_signed()],
        |record| {
            Ok(TakenIn {
                id: record.int(0)?,
                key: record.text(1)?,
                payload: record.json(2)?,
                received_at: record.time(3)?,
            })
        },
    )
}

pub(crate) fn done(tx: &Tx<'_>, id: i64) -> Result<(), StoreError> {
    tx.change("UPDATE intake SET payload = NULL WHERE id = ?1", [id])?;
    Ok(())
}

/// What waited in a backup has been worked off since, or is too old for it.
pub(crate) fn settle_restored(tx: &Tx<'_>) -> Result<(), StoreError> {
    tx.change("UPDATE intake SET payload = NULL WHERE payload IS NOT NULL", [])?;
    Ok(())
}

/// Forgets keys of what was worked off long ago.
pub(crate) fn forget(tx: &Tx<'_>, before: Timestamp, step: usize) -> Result<usize, StoreError> {
    tx.change(
        "DELETE FROM intake WHERE id IN
             (SELECT id FROM intake WHERE payload IS NULL AND received_at < ?1 ORDER BY received_at LIMIT ?2)",
        params![micros(before), step.cast_signed()],
    )
}
