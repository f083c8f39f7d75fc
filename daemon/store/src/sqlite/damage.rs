use rusqlite::params;
use tracing::error;

use super::items;
use super::view::{Broken, Source, View, micros};
use super::writer::Tx;
use crate::{Damage, StoreError};

/// Keeps broken rows aside and takes them out of what is due, so that they stop nothing else.
pub(crate) fn set_aside(tx: &mut Tx<'_>, broken: &[Broken]) -> Result<(), StoreError> {
    for Broken { table, key, why, record } in broken {
        let added = tx.change(
            "INSERT OR IGNORE INTO damage (source, key, why, record, found_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![table, key, why, record, micros(tx.memory.latest)],
        )?;
        if added > 0 {
            error!(table, key, why, "a record cannot be read and was set aside");
        }
        match *table {
            "tasks" => {
                tx.change("UPDATE tasks SET wake_at = NULL WHERE id = ?1", [key])?;
            }
            "revisions" => {
                tx.change(
                    "UPDATE tasks SET wake_at = NULL
                     WHERE (id, revision) IN (SELECT task, revision FROM revisions WHERE id = ?1)",
                    [key],
                )?;
            }
            "runs" => {
                tx.change("UPDATE runs SET state = 'damaged' WHERE id = ?1", [key])?;
            }
            "items" => items::give_up(tx, key)?,
            "events" => {
                tx.change("UPDATE events SET state = 3 WHERE id = ?1", [key])?;
            }
            "rules" => {
                // A permission that cannot be read is none.
                tx.change("DELETE FROM rules WHERE id = ?1", [key])?;
            }
            "outbox" => {
                tx.change("UPDATE outbox SET state = 'damaged' WHERE id = ?1", [key])?;
            }
            "stream" => {
                tx.change("DELETE FROM stream WHERE position = ?1", [key])?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Tables that are looked over after each start: without them nothing is due, and they stay small.
const LOOKED_OVER: [&str; 2] = ["tasks", "revisions"];
/// Of what is wrong with a table, so much is told.
const TOLD: usize = 3;

/// Looks over the tables of the tasks as SQLite can: whether they and their indexes say the same. A byte that the disk
/// has changed may take a task out of an index, and so out of all that is read, without any read failing. What is
/// wrong is reported, and the indexes are made anew from the rows.
pub(crate) fn look_over(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    for table in LOOKED_OVER {
        let faults = faults_of(tx, table);
        if faults.is_empty() {
            continue;
        }
        // Where the rows themselves cannot be read, this fails, and what can be read goes on being read.
        let is_mended = tx.change(&format!("REINDEX {table}"), []).is_ok() && faults_of(tx, table).is_empty();
        let end = if is_mended { "; its indexes were made anew" } else { "; restore a backup" };
        let why = format!("{}{end}", faults[..faults.len().min(TOLD)].join("; "));
        set_aside(tx, &[Broken { table, key: "as a whole".into(), why, record: String::new() }])?;
    }
    Ok(())
}

/// Whether there is nothing for [`look_over`] to mend or to tell.
pub(crate) fn seems_sound(view: &View<'_>) -> bool {
    LOOKED_OVER.iter().all(|table| faults_of(view, table).is_empty())
}

/// What SQLite finds wrong with a table and its indexes.
fn faults_of(view: &View<'_>, table: &str) -> Vec<String> {
    match view.column::<String>(&format!("PRAGMA integrity_check({table})"), []) {
        Ok(said) => said.into_iter().filter(|line| line != "ok").collect(),
        Err(error) => vec![error.to_string()],
    }
}

pub(crate) fn damage(view: &View<'_>) -> Result<Vec<Damage>, StoreError> {
    let source = Source { table: "damage", key: 0 };
    view.rows(source, "SELECT id, source, key, why, found_at FROM damage ORDER BY id", [], |record| {
        Ok(Damage { table: record.text(1)?, key: record.text(2)?, why: record.text(3)?, found_at: record.time(4)? })
    })
}
