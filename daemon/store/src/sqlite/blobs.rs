use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use ow_model::BlobHash;
use rusqlite::params;

use super::directory::{private_file, private_folder, sync_folder};
use super::view::{View, micros, signed};
use super::writer::Tx;
use crate::StoreError;

const HEX_DIGITS: usize = 64;

/// Tells the temporary files of concurrent writers apart.
static WRITES: AtomicU64 = AtomicU64::new(0);

pub(crate) fn path_of(folder: &Path, hash: BlobHash) -> PathBuf {
    let name = hash.to_string();
    folder.join(&name[..2]).join(&name)
}

/// Writes bytes to their file: temporary file, sync, rename, sync of the folder. One that is there already is kept.
pub(crate) fn write_file(folder: &Path, hash: BlobHash, bytes: &[u8]) -> Result<(), StoreError> {
    let path = path_of(folder, hash);
    let shelf = path.parent().expect("a content file stands in a folder of its hash");
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { file: path.clone() },
        _ => StoreError::Write { path: path.clone(), source },
    };
    if fs::metadata(&path).is_ok_and(|kept| kept.len() == bytes.len() as u64) {
        // Whoever wrote it may have died between rename and sync.
        return sync_folder(shelf).map_err(failed);
    }
    private_folder(shelf).map_err(failed)?;
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = shelf.join(format!(".new-{}-{number}", std::process::id()));
    let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, &path));
    if let Err(error) = written {
        // Best effort: what is left over is never read.
        drop(fs::remove_file(&temporary));
        return Err(failed(error));
    }
    sync_folder(shelf).map_err(failed)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private_file(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Reads bytes back. None: they are gone, or no longer what they were.
pub(crate) fn read_file(folder: &Path, hash: BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
    let path = path_of(folder, hash);
    match fs::read(&path) {
        Ok(bytes) if BlobHash::of(&bytes) == hash => Ok(Some(bytes)),
        Ok(_) => Err(StoreError::Damaged { file: path, why: "its content does not have the hash of its name".into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::Failed { what: format!("cannot read {}: {error}", path.display()) }),
    }
}

/// Adds the row of a written file. False: the file was removed since; write it again.
pub(crate) fn add(tx: &Tx<'_>, hash: BlobHash, bytes: u64) -> Result<bool, StoreError> {
    let path = path_of(&tx.memory.blobs, hash);
    if !path.exists() || tx.group.unlink.contains(&path) {
        return Ok(false);
    }
    tx.change(
        "INSERT INTO blobs (hash, bytes, added_at) VALUES (?1, ?2, ?3) ON CONFLICT (hash) DO UPDATE SET added_at = ?3",
        params![hash.to_string(), signed(bytes), micros(tx.memory.latest)],
    )?;
    Ok(true)
}

/// Notes which kept bytes a fact of a run names.
pub(crate) fn refer(view: &View<'_>, run: i64, fact: &str) -> Result<(), StoreError> {
    for hash in hashes(fact) {
        if view.exists("SELECT 1 FROM blobs WHERE hash = ?1", [hash])? {
            view.change("INSERT OR IGNORE INTO blob_refs (run, hash) VALUES (?1, ?2)", params![run, hash])?;
            view.change("UPDATE blobs SET referenced = 1 WHERE hash = ?1", [hash])?;
        }
    }
    Ok(())
}

/// Whether a text may name kept bytes.
pub(crate) fn names_any(text: &str) -> bool {
    hashes(text).next().is_some()
}

/// By which an event refers, among the runs.
pub(crate) const fn owner_of_event(event: i64) -> i64 {
    -event
}

/// Takes back what a run referred to.
pub(crate) fn release(view: &View<'_>, run: i64) -> Result<(), StoreError> {
    let hashes: Vec<String> = view.column("DELETE FROM blob_refs WHERE run = ?1 RETURNING hash", [run])?;
    for hash in hashes {
        view.change(
            "UPDATE blobs SET referenced = EXISTS (SELECT 1 FROM blob_refs WHERE hash = ?1) WHERE hash = ?1",
            [hash],
        )?;
    }
    Ok(())
}

/// Removes files that nothing refers to and that were added before `before`; returns how many.
pub(crate) fn remove_loose(tx: &mut Tx<'_>, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    if tx.memory.shared.backups.load(Ordering::Acquire) > 0 {
        return Ok(0);
    }
    let loose: Vec<String> = tx.column(
        "DELETE FROM blobs WHERE hash IN
             (SELECT hash FROM blobs WHERE referenced = 0 AND added_at < ?1 ORDER BY added_at LIMIT ?2)
         RETURNING hash",
        params![micros(before), limit.cast_signed()],
    )?;
    for hash in loose.iter().filter_map(|hash| hash.parse().ok()) {
        let path = path_of(&tx.memory.blobs, hash);
        tx.group.unlink.push(path);
    }
    Ok(loose.len())
}

/// How many folders the content files are spread over.
pub(crate) const SHELVES: u16 = 256;

/// Files of one shelf that were last written before `before`: most have their row, but whoever wrote one may have died
/// before its row came, or before it had its name.
pub(crate) fn old_files(folder: &Path, shelf: u16, before: Timestamp) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder.join(format!("{shelf:02x}"))) else { return vec![] };
    let is_old = |entry: &fs::DirEntry| {
        let written = entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|found| found.modified().ok());
        written.and_then(|at| Timestamp::try_from(at).ok()).is_some_and(|at| at < before)
    };
    entries.flatten().filter(is_old).map(|entry| entry.path()).collect()
}

/// Removes those of the files that have no row.
pub(crate) fn remove_strays(tx: &mut Tx<'_>, files: Vec<PathBuf>) -> Result<(), StoreError> {
    if tx.memory.shared.backups.load(Ordering::Acquire) > 0 {
        return Ok(());
    }
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let is_content = name.len() == HEX_DIGITS && name.parse::<BlobHash>().is_ok();
        if is_content && tx.exists("SELECT 1 FROM blobs WHERE hash = ?1", [name.as_str()])? {
            continue;
        }
        // What is neither content nor the beginning of some is not ours.
        if is_content || name.starts_with(".new-") {
            tx.group.unlink.push(file);
        }
    }
    Ok(())
}

/// The runs of 64 hexadecimal digits in a text.
fn hashes(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !matches!(letter, '0'..='9' | 'a'..='f')).filter(|part| part.len() == HEX_DIGITS)
}
