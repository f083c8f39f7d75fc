use ow_model::{TaskId, TaskName};
use rusqlite::params;

use super::view::{Source, View};
use super::writer::Tx;
use crate::{SeenFile, StoreError};

const SEEN: Source = Source { table: "watch_seen", key: 0 };

pub(crate) fn file_tasks(view: &View<'_>) -> Result<Vec<TaskName>, StoreError> {
    let names: Vec<String> = view.column(
        "SELECT name FROM tasks WHERE source = 'file' AND file_gone = 0 AND state <> 'deleted' ORDER BY name",
        [],
    )?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

pub(crate) fn seen(view: &View<'_>, task: TaskId, watch: &str) -> Result<Option<Vec<SeenFile>>, StoreError> {
    let looked = "SELECT 1 FROM watch_seen WHERE task = ?1 AND watch = ?2 LIMIT 1";
    if !view.exists(looked, params![task.0, watch])? {
        return Ok(None);
    }
    let files = view.rows(
        SEEN,
        "SELECT path, inode, size, modified FROM watch_seen
         WHERE task = ?1 AND watch = ?2 AND size IS NOT NULL ORDER BY path",
        params![task.0, watch],
        |record| {
            Ok(SeenFile {
                path: record.bytes(0)?,
                inode: record.int(1)?.cast_unsigned(),
                size: record.number(2)?,
                modified: record.int(3)?,
            })
        },
    )?;
    Ok(Some(files))
}

pub(crate) fn note(
    tx: &Tx<'_>,
    task: TaskId,
    watch: &str,
    seen: &[SeenFile],
    gone: &[Vec<u8>],
) -> Result<(), StoreError> {
    // A watched file itself has the empty path; then its own row says that the watch has looked.
    tx.change("INSERT OR IGNORE INTO watch_seen (task, watch, path) VALUES (?1, ?2, x'')", params![task.0, watch])?;
    for path in gone {
        tx.change(
            "UPDATE watch_seen SET inode = NULL, size = NULL, modified = NULL
             WHERE task = ?1 AND watch = ?2 AND path = ?3 AND path = x''",
            params![task.0, watch, path],
        )?;
        tx.change(
            "DELETE FROM watch_seen WHERE task = ?1 AND watch = ?2 AND path = ?3 AND path <> x''",
            params![task.0, watch, path],
        )?;
    }
    for file in seen {
        let SeenFile { path, inode, size, modified } = file;
        tx.change(
            "INSERT OR REPLACE INTO watch_seen (task, watch, path, inode, size, modified)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![task.0, watch, path, inode.cast_signed(), size.cast_signed(), modified],
        )?;
    }
    Ok(())
}
