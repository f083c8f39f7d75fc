use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;

use super::support::{Directory, contents};
use crate::conformance::retention;
use crate::conformance::support::{noon, page, save, spec};
use crate::sqlite::connection::MIGRATIONS;
use crate::{SqliteStore, Store, StoreError};

#[test]
fn a_second_owd_is_told_who_holds_the_directory() {
    let place = Directory::new();
    let store = place.store();
    let second = SqliteStore::open(&place.data());
    assert!(matches!(second, Err(StoreError::InUse { pid, .. }) if pid == std::process::id()), "{second:?}");
    drop(store);
    // What the dead holder left in the file is no lock.
    fs::write(place.data().join("owd.lock"), "1\n").expect("written");
    place.store();
}

#[cfg(target_os = "linux")]
#[test]
fn a_lock_that_a_child_of_its_dead_holder_has_for_a_moment_longer_is_waited_for() {
    let place = Directory::new();
    fs::create_dir_all(place.data()).expect("made");
    let lock = fs::File::create(place.data().join("owd.lock")).expect("made");
    lock.lock().expect("free");
    let mut dead = Command::new("true").spawn().expect("a process");
    dead.wait().expect("it ends");
    writeln!(&lock, "{}", dead.id()).expect("written");
    // Longer than a living holder is waited for.
    let mut child = Command::new("sleep").arg("0.3").stdin(lock).spawn().expect("a child that keeps the lock");
    place.store();
    child.wait().expect("it ends");
}

#[tokio::test]
async fn a_schema_that_lacks_a_table_or_a_column_is_named_as_damage() {
    for harm in ["DROP TABLE rules", "ALTER TABLE rules RENAME COLUMN rule TO rules"] {
        let place = Directory::new();
        drop(place.store());
        place.raw().execute_batch(harm).expect("harmed");
        let found = match SqliteStore::open(&place.data()) {
            Err(found) => found,
            Ok(store) => store.rules(None, noon()).await.expect_err(harm),
        };
        assert!(matches!(&found, StoreError::Damaged { file, .. } if *file == place.file()), "{harm}: {found:?}");
    }
}

#[tokio::test]
async fn what_owd_keeps_is_private() {
    let place = Directory::new();
    let store = place.store();
    store.put_blob(b"x").await.expect("kept");
    let mode = |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&place.data()), 0o700);
    for name in ["owd.db", "owd.db-wal", "owd.db-shm", "owd.lock"] {
        assert_eq!(mode(&place.data().join(name)), 0o600, "{name}");
    }
    let hash = ow_model::BlobHash::of(b"x").to_string();
    let shelf = place.data().join("blobs").join(&hash[..2]);
    assert_eq!((mode(&shelf), mode(&shelf.join(&hash))), (0o700, 0o600));
    drop(store);
    // A mode that was loosened by hand is tightened again.
    fs::set_permissions(place.data(), fs::Permissions::from_mode(0o755)).expect("changed");
    drop(place.store());
    assert_eq!(mode(&place.data()), 0o700);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_kept_as_it_is() {
    let place = Directory::new();
    let store: std::sync::Arc<dyn Store> = place.store();
    for number in 0..200 {
        save(&store, &spec(&format!("job-{number}"), vec![]), noon()).await;
    }
    drop(store);
    let whole = fs::read(place.file()).expect("readable");
    assert!(whole.len() > 40_000, "of some size: {}", whole.len());
    let mut odd = whole.clone();
    odd[..16].copy_from_slice(b"something else!!");
    let mut foreign = whole.clone();
    foreign[68..72].copy_from_slice(&[0; 4]);
    let mut schema = whole.clone();
    schema[100..4096].fill(0xff);
    for (what, bytes) in [
        ("empty", vec![]),
        ("a few bytes", whole[..50].to_vec()),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("another file", odd),
        ("another program's", foreign),
        ("a torn first page", schema),
    ] {
        fs::write(place.file(), &bytes).expect("written");
        let before = contents(&place.data());
        let opened = SqliteStore::open(&place.data());
        assert!(matches!(opened, Err(StoreError::Damaged { .. })), "{what}: {opened:?}");
        let after = contents(&place.data());
        let kept = before.iter().all(|(path, bytes)| after.iter().any(|(found, now)| found == path && now == bytes));
        assert!(kept, "{what}: the old file is kept");
    }
    fs::write(place.file(), &whole).expect("written");
    assert_eq!(place.store().stats().await.expect("read").tasks, 200);
}

#[test]
fn a_store_without_its_main_file_is_not_begun_anew() {
    let place = Directory::new();
    drop(place.store());
    fs::remove_file(place.file()).expect("removed");
    fs::write(place.data().join("owd.db-wal"), b"frames").expect("written");
    let opened = SqliteStore::open(&place.data());
    assert!(matches!(opened, Err(StoreError::Damaged { .. })), "{opened:?}");
    assert!(!place.file().exists());
}

/// A flush within a file's present length is what makes a commit cheap.
#[tokio::test]
async fn the_logs_room_is_kept_from_life_to_life_and_tells_nothing() {
    let place = Directory::new();
    let log = || fs::read(place.data().join("owd.db-wal")).expect("a log");
    let store: std::sync::Arc<dyn Store> = place.store();
    save(&store, &spec("one", vec![]), noon()).await;
    drop(store);
    let kept = log();
    assert!(kept.len() >= 128 * 1024 && kept[..32] == [0; 32], "emptied, {} bytes long", kept.len());
    let store: std::sync::Arc<dyn Store> = place.store();
    save(&store, &spec("two", vec![]), noon()).await;
    assert_eq!(log().len(), kept.len(), "a commit has room");
    drop(store);
    assert_eq!(log().len(), kept.len());
    assert_eq!(fs::read_dir(place.data()).expect("a folder").count(), 3, "nothing is left beside store, log and lock");
    // Without its store, an emptied log is no sign of one that was lost.
    fs::remove_file(place.file()).expect("removed");
    assert_eq!(place.store().stats().await.expect("read").tasks, 0);
}

#[test]
fn a_torn_log_costs_only_what_was_never_answered() {
    let place = Directory::new();
    drop(place.store());
    fs::write(place.data().join("owd.db-wal"), [0x5a; 5000]).expect("written");
    drop(place.store());
}

/// What a start reads first may be sound, and what it reads then may not.
#[tokio::test]
async fn a_start_that_meets_damage_leaves_store_and_log_as_they_were() {
    for damaged in ["stream", "meta", "runs_open"] {
        let place = Directory::new();
        let store: Arc<dyn Store> = place.store();
        store.begin_life("1", noon()).await.expect("begun");
        save(&store, &spec("one", vec![]), noon()).await;
        drop(store);
        let log = place.data().join("owd.db-wal");
        let emptied = fs::read(&log).expect("a log");
        let root: u32 = place
            .raw()
            .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [damaged], |row| row.get(0))
            .expect("it is there");
        let mut bytes = fs::read(place.file()).expect("read");
        let at = usize::try_from((root - 1) * 4096).expect("small");
        bytes[at..at + 64].fill(0xff);
        fs::write(place.file(), &bytes).expect("written");
        fs::write(log, emptied).expect("written");
        // The index of the log is made anew by whoever opens it.
        let files = || {
            let all = contents(&place.data()).into_iter();
            all.filter(|(path, _)| !path.to_string_lossy().ends_with("-shm")).collect::<Vec<_>>()
        };
        let before = files();
        let refused = match SqliteStore::open(&place.data()) {
            Err(error) => error,
            Ok(store) => store.begin_life("2", noon()).await.expect_err("it cannot be read"),
        };
        assert!(matches!(refused, StoreError::Damaged { .. }), "{damaged}: {refused:?}");
        assert!(files() == before, "{damaged}: something has changed");
    }
}

#[test]
fn a_newer_store_is_refused_untouched() {
    let place = Directory::new();
    drop(place.store());
    place.raw().execute_batch("PRAGMA user_version = 99").expect("written");
    let before = contents(&place.data());
    let opened = SqliteStore::open(&place.data());
    let formats = u32::try_from(MIGRATIONS.len()).expect("few");
    assert!(matches!(opened, Err(StoreError::Newer { found: 99, known, .. }) if known == formats), "{opened:?}");
    assert_eq!(contents(&place.data()), before);
}

#[test]
fn a_migration_keeps_a_copy_first() {
    let place = Directory::new();
    drop(place.store());
    let known = u32::try_from(MIGRATIONS.len()).expect("few");
    let next = [MIGRATIONS, &["CREATE TABLE later (x INTEGER) STRICT;"]].concat();
    drop(SqliteStore::open_with(&place.data(), &next).expect("migrated"));
    let version = |file: &std::path::Path| -> u32 {
        let db = rusqlite::Connection::open(file).expect("opens");
        db.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("read")
    };
    assert_eq!(version(&place.file()), known + 1);
    let copy = place.data().join(format!("owd.db.format-{known}"));
    assert_eq!(version(&copy), known);
    assert_eq!(fs::metadata(&copy).expect("there").permissions().mode() & 0o777, 0o600);
    let older = SqliteStore::open(&place.data());
    assert!(
        matches!(older, Err(StoreError::Newer { found, known: reads, .. }) if (found, reads) == (known + 1, known)),
        "{older:?}"
    );
    // A migration that fails changes nothing.
    let broken = [next.as_slice(), &["CREATE TABLE later (x INTEGER) STRICT;"]].concat();
    assert!(SqliteStore::open_with(&place.data(), &broken).is_err());
    assert_eq!(version(&place.file()), known + 1);
}

#[tokio::test]
async fn a_store_of_the_first_format_goes_on() {
    let place = Directory::new();
    drop(SqliteStore::open_with(&place.data(), &MIGRATIONS[..1]).expect("made"));
    place
        .raw()
        .execute_batch(
            "INSERT INTO runs (id, task, task_name, revision, cause, scheduled_for, created_at, state, needs_network,
                 beside, counts_parked, depth, attempt)
             VALUES ('0123456789abcdef', 1, 'old', 1, '{\"kind\":\"schedule\"}', 0, 0, 'running', 0, 1, 1, 0, 1)",
        )
        .expect("written");
    let store: Arc<dyn Store> = place.store();
    assert_eq!(store.begin_life("new", noon()).await.expect("begun").interrupted, 1);
    let runs = store.runs(&crate::RunFilter::default(), &page(9)).await.expect("read").rows;
    assert_eq!(runs[0].state.word(), "queued");
}

#[test]
fn an_unwritable_place_is_named() {
    let place = Directory::new();
    fs::write(place.beside("file"), b"").expect("written");
    let opened = SqliteStore::open(&place.beside("file").join("data"));
    assert!(matches!(opened, Err(StoreError::Directory { .. })), "{opened:?}");
}

#[tokio::test]
async fn a_content_file_whose_row_never_came_is_swept() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    save(&store, &spec("job", vec![]), noon()).await;
    let kept = store.put_blob(b"kept").await.expect("kept");
    let shelf = place.data().join("blobs/ab");
    std::fs::create_dir_all(&shelf).expect("made");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let stray = |name: &str, age: Option<std::time::SystemTime>| {
        let path = shelf.join(name);
        let file = std::fs::File::create(&path).expect("written");
        if let Some(age) = age {
            file.set_modified(age).expect("aged");
        }
        path
    };
    let lost = stray(&format!("ab{}", "0".repeat(62)), Some(old));
    let half = stray(".new-1-2", Some(old));
    let fresh = stray(&format!("ab{}", "1".repeat(62)), None);
    let foreign = stray("notes.txt", Some(old));
    for path in walk(&place.data().join("blobs")).filter(|path| path.ends_with(kept.to_string())) {
        std::fs::File::options().append(true).open(path).and_then(|file| file.set_modified(old)).expect("aged");
    }
    while store.retain(&retention(), noon()).await.expect("retained") {}
    assert!(!lost.exists() && !half.exists(), "nobody will ever name them");
    assert!(fresh.exists() && foreign.exists());
    assert!(store.blob(kept).await.expect("read").is_some(), "a row keeps its file, however old");
}

fn walk(folder: &std::path::Path) -> impl Iterator<Item = std::path::PathBuf> {
    let shelves = std::fs::read_dir(folder).expect("there").flatten().map(|entry| entry.path());
    shelves.flat_map(|shelf| std::fs::read_dir(shelf).expect("there").flatten().map(|entry| entry.path()))
}
