use jiff::Timestamp;
use ow_model::EventType;
use rusqlite::params;
use serde_json::Value;

use super::view::{Source, View, micros, unsigned};
use super::wakes;
use super::writer::Tx;
use crate::{StoreError, StreamEvent};

/// Tells watchers, in the transaction of the fact that they are told of.
pub(crate) fn tell(
    tx: &mut Tx<'_>,
    kind: EventType,
    target: &str,
    payload: &Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    let position = tx.insert(
        "INSERT INTO stream (at, kind, target, payload) VALUES (?1, ?2, ?3, ?4)",
        params![micros(now), kind.word(), target, payload.to_string()],
    )?;
    tx.group.stream_head = Some(unsigned(position));
    wakes::on_event(tx, kind, target, payload, now)
}

pub(crate) fn head(view: &View<'_>) -> Result<u64, StoreError> {
    view.count("SELECT max(position) FROM stream", [])
}

pub(crate) fn stream(view: &View<'_>, after: u64, limit: usize) -> Result<Option<Vec<StreamEvent>>, StoreError> {
    let oldest = view.count("SELECT min(position) FROM stream", [])?;
    // Past the head: a position of a store that has since been replaced by a backup.
    if after + 1 < oldest || after > head(view)? {
        return Ok(None);
    }
    let source = Source { table: "stream", key: 0 };
    let events = view.rows(
        source,
        "SELECT position, at, kind, target, payload FROM stream WHERE position > ?1 ORDER BY position LIMIT ?2",
        params![after.cast_signed(), limit.cast_signed()],
        |record| {
            Ok(StreamEvent {
                position: record.number(0)?,
                at: record.time(1)?,
                kind: record.text(2)?,
                target: record.text(3)?,
                payload: record.json(4)?,
            })
        },
    )?;
    Ok(Some(events))
}
