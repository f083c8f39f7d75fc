//! The write-ahead log's file. Its room is kept, from one life to the next.
//!
//! A flush of what lies within a file's present length costs the disk one write. One that makes the file longer costs
//! the file system a commit of its own as well, which waits for whatever else is being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tracing::debug;

use super::directory::beside;

/// What `PRAGMA journal_size_limit` leaves of a log that was begun anew.
pub(crate) const MOST_ROOM: u64 = 8 * 1024 * 1024;
const LEAST_ROOM: u64 = 128 * 1024;
/// Without its header SQLite takes a log for an empty one.
const HEADER_LENGTH: usize = 32;

#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// As long as the file was made, or was found.
    room: u64,
}

impl Log {
    pub(crate) fn of(store: &Path) -> Self {
        let path = beside(store, "-wal");
        let room = fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, room }
    }

    /// Makes room for as much again once the log has outgrown what it had. Only the writer may call it, between two
    /// commits. Nothing depends on it.
    pub(crate) fn keep_ahead(&mut self) {
        let Ok(length) = fs::metadata(&self.path).map(|file| file.len()) else { return };
        if length <= self.room {
            return;
        }
        self.room = length;
        let wanted = (length * 2).clamp(LEAST_ROOM, MOST_ROOM);
        if length < wanted {
            match fill(&self.path, length, wanted) {
                Ok(()) => self.room = wanted,
                Err(error) => debug!(%error, "no room was made ahead in the store's log"),
            }
        }
    }

    /// Has the file outlive the last connection, which removes it.
    pub(crate) fn hold(&self) {
        let held = || match fs::hard_link(&self.path, self.held()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(self.held())?;
                fs::hard_link(&self.path, self.held())
            }
            done => done,
        };
        if let Err(error) = held() {
            debug!(%error, "the room of the store's log is not kept");
        }
    }

    /// After the last connection: puts the file back, emptied. One that was not removed still tells of something.
    pub(crate) fn put_back(&self) {
        let emptied = || {
            if self.path.try_exists()? {
                return fs::remove_file(self.held());
            }
            OpenOptions::new().write(true).open(self.held())?.write_all(&[0; HEADER_LENGTH])?;
            fs::rename(self.held(), &self.path)
        };
        match emptied() {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                debug!(%error, "the room of the store's log is not kept");
            }
            _ => {}
        }
    }

    fn held(&self) -> PathBuf {
        self.path.with_extension("db-wal.room")
    }
}

/// Whether a store's log tells of anything; one that is missing or was emptied does not.
pub(crate) fn tells(store: &Path) -> bool {
    let mut header = vec![];
    let read =
        File::open(beside(store, "-wal")).and_then(|file| file.take(HEADER_LENGTH as u64).read_to_end(&mut header));
    match read {
        Ok(_) => header.iter().any(|byte| *byte != 0),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

fn fill(path: &Path, from: u64, to: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.seek(SeekFrom::Start(from))?;
    io::copy(&mut io::repeat(0).take(to - from), &mut file)?;
    file.sync_data()
}
