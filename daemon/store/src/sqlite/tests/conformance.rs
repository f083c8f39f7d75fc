use std::sync::Arc;

use tempfile::TempDir;

use crate::conformance::Place;
use crate::{SqliteStore, Store};

/// A data directory of its own for each rule.
struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }
}

impl Place for Directory {
    async fn open(&self) -> Arc<dyn Store> {
        SqliteStore::open(&self.0.path().join("data")).expect("opens")
    }
}

crate::store_conformance!(Directory::new());
