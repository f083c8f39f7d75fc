use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ow_model::BlobHash;
use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::blobs::{read_file, write_file};
use super::care::file_bytes;
use super::connection::{MIGRATIONS, check_header, keep_copy, open_writer};
use super::directory::{DataDirectory, STORE_FILE, beside, private_file, private_folder, sync_folder};
use super::fault::located;
use super::life::{WAS_RESTORED, epoch, set_meta};
use super::memory::Shared;
use super::stream;
use super::view::View;
use crate::{BackupReport, RestoreReport, StoreError};

const MANIFEST: &str = "manifest.json";
const BLOBS: &str = "blobs";
/// How far a restored store's stream begins past the backup's, so that no position means two events.
const STREAM_GAP: u64 = 1 << 32;

/// What a backup holds. Of keys and secrets it would hold the names only; the store keeps none.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Manifest {
    format: u32,
    epoch: u64,
    stream_head: u64,
    blobs: u64,
    secrets: Vec<String>,
}

/// Counts a backup in progress for as long as it lives.
struct InProgress(Arc<Shared>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.backups.fetch_sub(1, Ordering::Release);
    }
}

/// Writes a backup of the running store beside its readers and its writer.
pub(crate) fn backup(file: &Path, blobs: &Path, shared: Arc<Shared>, into: &Path) -> Result<BackupReport, StoreError> {
    let failed = |source| StoreError::Write { path: into.into(), source };
    if into.symlink_metadata().is_ok() {
        return Err(StoreError::BackupExists { into: into.into() });
    }
    shared.backups.fetch_add(1, Ordering::Acquire);
    let in_progress = InProgress(shared);
    let partial = sibling(into, "partial").map_err(failed)?;
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(failed)?;
    }
    private_folder(&partial).map_err(failed)?;
    let copy = partial.join(STORE_FILE);
    // A connection of its own: the copy must not hold back readers.
    let db = open_writer(file)?;
    keep_copy(&db, file, &copy)?;
    drop(db);
    let copied = open_copy(&copy)?;
    let view = View::new(&copied);
    let mut bytes = file_bytes(&copy);
    let mut count = 0;
    for hash in blob_hashes(&view)? {
        // One that nothing refers to may be gone; the hash in the file's name proves what is copied.
        if let Some(content) = read_file(blobs, hash)? {
            write_file(&partial.join(BLOBS), hash, &content)?;
            bytes += content.len() as u64;
            count += 1;
        }
    }
    let manifest = Manifest {
        format: known(),
        epoch: epoch(&view)?,
        stream_head: stream::head(&view)?,
        blobs: count,
        secrets: vec![],
    };
    drop(copied);
    write_manifest(&partial, &manifest).map_err(failed)?;
    sync_folder(&partial).map_err(failed)?;
    fs::rename(&partial, into).map_err(failed)?;
    into.parent().map_or(Ok(()), sync_folder).map_err(failed)?;
    drop(in_progress);
    Ok(BackupReport { into: into.into(), bytes, blobs: count })
}

/// Puts a backup in the place of a data directory's store.
///
/// Needs the directory's lock, so no owd may run on it. The old store is kept beside the new one, under
/// `kept`. The next life of owd finds a new epoch: what was open is asked about or ended as unknown, slots since
/// the backup are recorded as missed, and nothing that may have been done already is done again by itself.
pub fn restore(from: &Path, dir: &Path) -> Result<RestoreReport, StoreError> {
    let directory = DataDirectory::lock(dir)?;
    let failed = |source| StoreError::Directory { dir: dir.into(), source };
    let (store, restored) = (directory.store(), directory.restored_store());
    let source = from.join(STORE_FILE);
    check_header(&source, known())?;
    let manifest = read_manifest(from)?;
    for leftover in [restored.clone(), beside(&restored, "-wal"), beside(&restored, "-shm")] {
        match fs::remove_file(&leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    copy_private(&source, &restored).map_err(failed)?;
    let blobs = prepare(&restored, from, &directory, &manifest)?;
    // From here to the last rename the store's place is empty; `restored` tells the next start why.
    let kept = if store.exists() || beside(&store, "-wal").exists() {
        let kept = unused_folder(dir).map_err(failed)?;
        for suffix in ["", "-wal", "-shm"] {
            let old = beside(&store, suffix);
            if old.exists() {
                fs::rename(&old, beside(&kept.join(STORE_FILE), suffix)).map_err(failed)?;
            }
        }
        sync_folder(&kept).map_err(failed)?;
        Some(kept)
    } else {
        None
    };
    fs::rename(&restored, &store).map_err(failed)?;
    sync_folder(dir).map_err(failed)?;
    Ok(RestoreReport { kept, blobs, epoch: manifest.epoch + 1 })
}

/// Checks a copied store as a whole, brings back its content files and marks the new epoch.
fn prepare(copy: &Path, from: &Path, directory: &DataDirectory, manifest: &Manifest) -> Result<u64, StoreError> {
    let sql = |error| located(&error, copy);
    let db = open_copy(copy)?;
    let verdict: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sql)?;
    if verdict != "ok" {
        return Err(StoreError::Damaged { file: from.join(STORE_FILE), why: verdict });
    }
    let view = View::new(&db);
    let mut blobs = 0;
    for hash in blob_hashes(&view)? {
        if let Some(content) = read_file(&from.join(BLOBS), hash)? {
            write_file(&directory.blobs(), hash, &content)?;
            blobs += 1;
        }
    }
    db.execute_batch("BEGIN IMMEDIATE").map_err(sql)?;
    set_meta(&view, "epoch", &(epoch(&view)?.max(manifest.epoch) + 1).to_string())?;
    set_meta(&view, WAS_RESTORED, "1")?;
    view.change(
        "INSERT INTO stream (position, at, kind, target, payload)
         SELECT coalesce(max(position), 0) + ?1, coalesce(max(at), 0), 'owd.restored', 'owd', '{}' FROM stream",
        params![STREAM_GAP.cast_signed()],
    )?;
    // Whoever watched the store that this one replaces has to look at everything anew.
    view.change("DELETE FROM stream WHERE position < (SELECT max(position) FROM stream)", [])?;
    db.execute_batch("COMMIT").map_err(sql)?;
    db.close().map_err(|(_, error)| sql(error))?;
    fs::File::open(copy)
        .and_then(|file| file.sync_all())
        .map_err(|source| StoreError::Write { path: copy.into(), source })?;
    Ok(blobs)
}

/// Opens a copy that nobody else has, without a log beside it.
fn open_copy(file: &Path) -> Result<rusqlite::Connection, StoreError> {
    let opened = || -> rusqlite::Result<rusqlite::Connection> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = rusqlite::Connection::open_with_flags(file, flags)?;
        db.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        db.execute_batch("PRAGMA synchronous = FULL")?;
        Ok(db)
    };
    opened().map_err(|error| located(&error, file))
}

fn blob_hashes(view: &View<'_>) -> Result<Vec<BlobHash>, StoreError> {
    let names: Vec<String> = view.column("SELECT hash FROM blobs ORDER BY hash", [])?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut file = private_file(&folder.join(MANIFEST))?;
    let text = serde_json::to_string_pretty(manifest).map_err(io::Error::other)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn read_manifest(from: &Path) -> Result<Manifest, StoreError> {
    let path = from.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(|source| StoreError::Directory { dir: from.into(), source })?;
    serde_json::from_str(&text).map_err(|error| StoreError::Damaged { file: path, why: error.to_string() })
}

fn copy_private(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = private_file(to)?;
    io::copy(&mut fs::File::open(from)?, &mut target)?;
    target.sync_all()
}

/// `name.suffix` beside `path`, which need not exist.
fn sibling(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a folder's name"))?;
    let mut name = name.to_owned();
    name.push(".");
    name.push(suffix);
    Ok(path.with_file_name(name))
}

fn unused_folder(dir: &Path) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let folder = dir.join(format!("before-restore-{number}"));
        if !folder.exists() {
            private_folder(&folder)?;
            return Ok(folder);
        }
        number += 1;
    }
}

fn known() -> u32 {
    u32::try_from(MIGRATIONS.len()).expect("formats are few")
}
