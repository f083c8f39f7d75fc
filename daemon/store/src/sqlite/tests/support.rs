use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::conformance::Place;
use crate::{SqliteStore, Store};

/// A data directory of its own for each test.
pub(super) struct Directory(TempDir);

impl Directory {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(super) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn store(&self) -> Arc<SqliteStore> {
        SqliteStore::open(&self.data()).expect("opens")
    }

    /// Looks at the closed store's file as it is.
    pub(super) fn raw(&self) -> Connection {
        Connection::open(self.file()).expect("opens")
    }

    pub(super) fn file(&self) -> PathBuf {
        self.data().join("owd.db")
    }
}

impl Place for Directory {
    async fn open(&self) -> Arc<dyn Store> {
        self.store()
    }
}

/// The bytes of all files of a folder, by name.
pub(super) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file() && path.extension().is_none_or(|end| end != "lock"))
        .map(|path| (path.clone(), std::fs::read(&path).expect("readable")))
        .collect();
    files.sort();
    files
}
