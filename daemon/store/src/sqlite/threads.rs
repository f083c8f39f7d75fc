use jiff::Timestamp;
use ow_model::{Input, ItemId, RunState, SessionId};
use rusqlite::params;

use super::runs::run_row;
use super::sessions;
use super::view::{Broken, Record, Source, View, micros};
use super::writer::Tx;
use crate::{NewSession, StoreError, ThreadRow, ThreadSaid};

const THREADS: Source = Source { table: "threads", key: 0 };
const OUTBOX: Source = Source { table: "outbox", key: 0 };
const ROW: &str = "SELECT name, session, told FROM threads";

pub(crate) fn say(
    tx: &mut Tx<'_>,
    name: &str,
    new: &NewSession,
    input: &Input,
    key: &str,
    now: Timestamp,
) -> Result<ThreadSaid, StoreError> {
    let known = thread(tx, name)?.map(|thread| run_row(tx, thread.session)).transpose()?.flatten();
    let known = known.filter(|row| row.run.ended_at.is_none());
    let begun = known.is_none();
    let row = if let Some(row) = known {
        row
    } else {
        let session = sessions::create(tx, new, now)?;
        tx.change(
            "INSERT OR REPLACE INTO threads (name, session, said_at) VALUES (?1, ?2, ?3)",
            params![name, session.to_string(), micros(now)],
        )?;
        run_row(tx, session)?.ok_or_else(|| StoreError::Unknown { kind: "session", id: session.to_string() })?
    };
    let said = sessions::put(tx, &row, input, Some(key), now)?;
    tx.change("UPDATE threads SET open = 1, said_at = ?2 WHERE name = ?1", params![name, micros(now)])?;
    Ok(ThreadSaid { session: row.run.id, begun, new: said.new })
}

pub(crate) fn thread(view: &View<'_>, name: &str) -> Result<Option<ThreadRow>, StoreError> {
    view.row(THREADS, &format!("{ROW} WHERE name = ?1"), [name], row_of)
}

pub(crate) fn open(view: &View<'_>, kind: &str) -> Result<Vec<ThreadRow>, StoreError> {
    let sql = format!("{ROW} WHERE open = 1 AND substr(name, 1, length(?1)) = ?1 ORDER BY name");
    view.rows(THREADS, &sql, [kind], row_of)
}

pub(crate) fn note(tx: &Tx<'_>, name: &str, session: SessionId, told: u32, open: bool) -> Result<(), StoreError> {
    // Something may have been said, or may have come of it, since who tells has looked.
    let goes_on = match run_row(tx, session)? {
        Some(row) if row.run.ended_at.is_none() => {
            let waits =
                tx.value::<i64>("SELECT 1 FROM inputs WHERE run = ?1 AND input IS NOT NULL LIMIT 1", [row.run.order])?;
            !matches!(row.run.state, RunState::Idle) || waits.is_some() || row.next_seq > told
        }
        Some(row) => row.next_seq > told,
        None => false,
    };
    // Another session may have the thread by now.
    tx.change(
        "UPDATE threads SET told = ?3, open = ?4 WHERE name = ?1 AND session = ?2",
        params![name, session.to_string(), told, open || goes_on],
    )?;
    Ok(())
}

/// What channels called the messages that told of an item.
pub(crate) fn told_as(view: &View<'_>, item: ItemId) -> Result<Vec<String>, StoreError> {
    view.rows(
        OUTBOX,
        "SELECT DISTINCT 0, reference FROM outbox WHERE item = ?1 AND reference IS NOT NULL",
        [item.to_string()],
        |record| record.text(1),
    )
}

/// Forgets the threads of sessions that retention has removed.
pub(crate) fn forget(tx: &Tx<'_>, before: Timestamp, step: usize) -> Result<usize, StoreError> {
    tx.change(
        "DELETE FROM threads WHERE name IN (SELECT name FROM threads WHERE open = 0 AND said_at < ?1
             AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = threads.session) LIMIT ?2)",
        params![micros(before), step.cast_signed()],
    )
}

fn row_of(record: &Record<'_>) -> Result<ThreadRow, Broken> {
    Ok(ThreadRow { name: record.text(0)?, session: record.parsed(1)?, told: record.number(2)? })
}
