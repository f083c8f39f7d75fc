use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::directory::{DataDirectory, beside, private_file, sync_folder};
use super::fault::located;
use super::log::{self, MOST_ROOM};
use crate::StoreError;

/// One migration a format; only ever added to.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
    include_str!("schema/9.sql"),
];

/// "owd1": tells owd's store from any other SQLite file.
const APPLICATION_ID: i32 = 0x6f77_6431;

const HEADER_LENGTH: usize = 100;
const WRITER_CACHE_KIB: i32 = 1024;
const READER_CACHE_KIB: i32 = 512;
/// Above the number of different statements, so that none is prepared twice.
const STATEMENTS: usize = 256;

/// Opens the directory's store for writing, makes it if there is none, and brings it to the present format.
///
/// What exists is never replaced: a file that cannot be read is an error and stays as it is.
pub(crate) fn open_store(directory: &DataDirectory, migrations: &[&str]) -> Result<Connection, StoreError> {
    let file = directory.store();
    let exists = file.try_exists().map_err(|source| StoreError::Directory { dir: directory.path().into(), source })?;
    if exists {
        check_header(&file, known(migrations))?;
    } else {
        refuse_leftovers(directory)?;
        create(directory, migrations)?;
    }
    let db = open_writer(&file)?;
    migrate(&db, &file, migrations)?;
    Ok(db)
}

pub(crate) fn open_writer(file: &Path) -> Result<Connection, StoreError> {
    let opened = || -> rusqlite::Result<Connection> {
        let db = open(file)?;
        // Busy only while another connection of this process recovers or checkpoints.
        let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        debug_assert_eq!(mode, "wal", "a local file can always have a write-ahead log");
        // The writer checkpoints by itself, after it has answered: see `writer`.
        db.execute_batch(&format!(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -{WRITER_CACHE_KIB};
             PRAGMA journal_size_limit = {MOST_ROOM}; PRAGMA cell_size_check = ON;"
        ))?;
        Ok(db)
    };
    opened().map_err(|error| located(&error, file))
}

pub(crate) fn open_reader(file: &Path) -> Result<Connection, StoreError> {
    let opened = || -> rusqlite::Result<Connection> {
        let db = open(file)?;
        db.execute_batch(&format!(
            "PRAGMA query_only = ON; PRAGMA cache_size = -{READER_CACHE_KIB}; PRAGMA cell_size_check = ON;"
        ))?;
        Ok(db)
    };
    opened().map_err(|error| located(&error, file))
}

/// Opens a file that exists; SQLite must never make one here.
fn open(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // Whoever fails to open a store, or writes nothing to it, leaves its log as it is.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;")?;
    Ok(db)
}

/// Judges a store by its first bytes, before SQLite touches it or anything beside it.
pub(crate) fn check_header(file: &Path, known: u32) -> Result<(), StoreError> {
    let damaged = |why: &str| StoreError::Damaged { file: file.into(), why: why.into() };
    let mut header = [0; HEADER_LENGTH];
    let read = File::open(file).and_then(|mut opened| opened.read_exact(&mut header));
    match read {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(damaged("it is cut off; restore a backup, or move the file away to begin anew"));
        }
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
            return Err(damaged("it is a folder; restore a backup, or move it away to begin anew"));
        }
        Err(source) => {
            return Err(StoreError::Directory { dir: file.parent().unwrap_or(file).into(), source });
        }
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(damaged("its first bytes are not those of a store"));
    }
    if number(68) != APPLICATION_ID.cast_unsigned() {
        return Err(damaged("it is a SQLite file, but not owd's"));
    }
    let found = number(60);
    if found > known {
        return Err(StoreError::Newer { file: file.into(), found, known });
    }
    Ok(())
}

/// Without its main file, a log or a half restored store still tells that there was one.
fn refuse_leftovers(directory: &DataDirectory) -> Result<(), StoreError> {
    let file = directory.store();
    let why = if directory.restored_store().exists() {
        "a restore was interrupted; run it again"
    } else if log::tells(&file) {
        "it is missing, but its log `-wal` is there; restore a backup, or move the log away to begin anew"
    } else {
        return Ok(());
    };
    Err(StoreError::Damaged { file, why: why.into() })
}

/// Makes a store under another name and moves it into place, so that no crash leaves half of one.
fn create(directory: &DataDirectory, migrations: &[&str]) -> Result<(), StoreError> {
    let (file, new) = (directory.store(), directory.new_store());
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { file: new.clone() },
        _ => StoreError::Directory { dir: directory.path().into(), source },
    };
    for leftover in [new.clone(), beside(&new, "-journal")] {
        match fs::remove_file(&leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    drop(private_file(&new).map_err(failed)?);
    let built = || -> rusqlite::Result<()> {
        let db = open(&new)?;
        let steps = migrations.concat();
        db.execute_batch(&format!(
            "PRAGMA synchronous = FULL; BEGIN EXCLUSIVE; {steps}
             PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {}; COMMIT;",
            known(migrations)
        ))?;
        db.close().map_err(|(_, error)| error)
    };
    built().map_err(|error| located(&error, &new))?;
    fs::rename(&new, &file).map_err(failed)?;
    sync_folder(directory.path()).map_err(failed)
}

/// Runs the migrations that the store lacks, each in one transaction after a copy of the store was kept.
fn migrate(db: &Connection, file: &Path, migrations: &[&str]) -> Result<(), StoreError> {
    let sql = |error| located(&error, file);
    let found: u32 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sql)?;
    // Reads the heads of all tables: a schema that cannot be parsed shows here.
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(sql)?;
    let known = known(migrations);
    if found > known {
        return Err(StoreError::Newer { file: file.into(), found, known });
    }
    for (format, step) in (1_u32..).zip(migrations).skip(found as usize) {
        let copy = beside(file, &format!(".format-{}", format - 1));
        keep_copy(db, file, &copy)?;
        db.execute_batch(&format!("BEGIN EXCLUSIVE; {step} PRAGMA user_version = {format}; COMMIT;")).map_err(sql)?;
    }
    if found < known {
        // The header of the main file must say the new format to an older owd that reads only that.
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(sql)?;
    }
    Ok(())
}

/// Writes a copy of the running store, private and durable. One from an earlier, broken off try is replaced.
pub(crate) fn keep_copy(db: &Connection, file: &Path, copy: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Write { path: copy.into(), source };
    match fs::remove_file(copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    // SQLite takes an empty file as the place to write to, and leaves its mode alone.
    let kept = private_file(copy).map_err(failed)?;
    let target = copy
        .to_str()
        .ok_or_else(|| failed(io::Error::new(io::ErrorKind::InvalidFilename, "the folder's name is not UTF-8")))?;
    db.execute("VACUUM INTO ?1", [target]).map_err(|error| located(&error, file))?;
    kept.sync_all().map_err(failed)?;
    copy.parent().map_or(Ok(()), sync_folder).map_err(failed)
}

fn known(migrations: &[&str]) -> u32 {
    u32::try_from(migrations.len()).expect("formats are few")
}
