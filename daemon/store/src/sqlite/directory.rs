use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::StoreError;

pub(crate) const STORE_FILE: &str = "owd.db";
const LOCK_FILE: &str = "owd.lock";
const BLOB_FOLDER: &str = "blobs";
/// A store that is being made; never one that holds anything.
const NEW_FILE: &str = "owd.db.new";
/// A restored store that is about to take its place.
const RESTORED_FILE: &str = "owd.db.restored";

const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Who only asks for the [`holder`] has the lock for a moment; it is waited out.
const LOCK_TRIES: u32 = 5;
/// Right after a kill, a child that has not come to its exec yet may still have its dead parent's lock. On a busy
/// machine that takes longer, and nobody else can be meant.
const LOCK_TRIES_AFTER_DEATH: u32 = 500;

/// A data directory that this process alone uses, for as long as this value lives.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    /// Holds the lock; the system lets go of it when the process dies, however it dies.
    _lock: File,
}

impl DataDirectory {
    /// Makes the directory if it is missing, private whatever the umask, and locks it.
    pub(crate) fn lock(path: &Path) -> Result<Self, StoreError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { file: path.into() },
            _ => StoreError::Directory { dir: path.into(), source },
        };
        if !path.is_dir() {
            private_folder(path).map_err(failed)?;
        }
        let lock_path = path.join(LOCK_FILE);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(failed)?;
        let mut tries = 0;
        while let Err(error) = lock.try_lock() {
            match error {
                TryLockError::Error(source) => return Err(failed(source)),
                TryLockError::WouldBlock if tries < LOCK_TRIES => {}
                TryLockError::WouldBlock => {
                    let holder = written_pid(&mut lock).map_err(failed)?;
                    if tries >= LOCK_TRIES_AFTER_DEATH || !holder.is_some_and(is_dead) {
                        return Err(StoreError::InUse { dir: path.into(), pid: holder.unwrap_or(0) });
                    }
                }
            }
            tries += 1;
            thread::sleep(LOCK_PAUSE);
        }
        lock.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
        lock.rewind().map_err(failed)?;
        // Of one width, so that it replaces whatever pid stood there: to cut the file first costs the file system more.
        lock.write_all(format!("{:<10}\n", std::process::id()).as_bytes()).map_err(failed)?;
        let directory = Self { path: path.into(), _lock: lock };
        // Somebody else's folder (a home, /tmp) keeps its mode; what is owd's own is private.
        if directory.store().exists() {
            fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path.join(STORE_FILE)
    }

    pub(crate) fn new_store(&self) -> PathBuf {
        self.path.join(NEW_FILE)
    }

    pub(crate) fn restored_store(&self) -> PathBuf {
        self.path.join(RESTORED_FILE)
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.path.join(BLOB_FOLDER)
    }
}

/// The pid of the owd that uses a data directory now; none: nobody does.
pub fn holder(dir: &Path) -> io::Result<Option<u32>> {
    let mut lock = match File::open(dir.join(LOCK_FILE)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => written_pid(&mut lock),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn written_pid(lock: &mut File) -> io::Result<Option<u32>> {
    let mut holder = String::new();
    lock.rewind()?;
    lock.read_to_string(&mut holder)?;
    Ok(holder.trim().parse().ok())
}

/// Whether a process has ended; no where the system does not tell.
fn is_dead(pid: u32) -> bool {
    let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else {
        return Path::new("/proc/self/stat").exists();
    };
    let stat = String::from_utf8_lossy(&stat);
    // It ends while its parent has not taken note, and while its last threads are on their way out.
    let state = stat.rsplit_once(") ").and_then(|(_, fields)| fields.chars().next());
    matches!(state, Some('Z' | 'X'))
}

/// Makes a folder, and its missing parents, that only its owner may enter.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        private_folder(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return if path.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) };
        }
        Err(error) => return Err(error),
    }
    // The umask may have taken bits from the owner too.
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Makes a new file that only its owner may read; refuses one that exists.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Makes names in this folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// The name of a SQLite side file: `-wal`, `-shm`.
pub(crate) fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
