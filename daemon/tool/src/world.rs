//! Looks at the file system without changing it: where paths lead, which program a name means, what files hold.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::{env, fs};

use ow_model::{BlobHash, BoundFile, CallError, CallErrorKind};
use ow_policy::ResolvedPath;
use ow_policy::path::{LinkAt, Links, PathRefusal, resolve};
use rustix::fs::{Mode, OFlags};

use crate::Place;

/// Where programs are looked for when the environment does not say.
pub(crate) const SANE_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Of a larger argument only identity, size and times are bound: reading it whole would hold up every call.
const BOUND_WHOLE: u64 = 256 * 1024 * 1024;
const CACHED_HASHES: usize = 1024;

/// The links of the real file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSystem;

impl Links for FileSystem {
    fn read_link(&self, path: &Path) -> LinkAt {
        match fs::read_link(path) {
            Ok(target) => LinkAt::Link(target),
            Err(error) => match error.kind() {
                ErrorKind::InvalidInput => LinkAt::NotALink,
                // Nothing can stand at a name that is too long; opening it says so.
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => LinkAt::Missing,
                _ => LinkAt::Unreadable,
            },
        }
    }
}

/// Follows a path that belongs to no call to where it leads; `~` is `home`.
///
/// # Errors
///
/// Why it cannot be followed.
pub fn leads_to(path: &Path, home: &Path) -> Result<ResolvedPath, PathRefusal> {
    resolve(path, home, home, &FileSystem)
}

/// Follows a path of a call to where it leads.
pub(crate) fn resolved(asked: &str, place: &Place) -> Result<ResolvedPath, CallError> {
    let path = resolve(Path::new(asked), &place.cwd, &place.home, &FileSystem)
        .map_err(|refusal| failed(refusal.to_string()))?;
    readable_name(&path.resolved)?;
    Ok(path)
}

/// Follows a path but for its last component, which is a thing by itself even where it is a link.
pub(crate) fn resolved_entry(asked: &str, place: &Place) -> Result<ResolvedPath, CallError> {
    let path = Path::new(asked);
    let Some(name) = path.file_name() else {
        return Err(failed(format!("`{asked}` does not end in the name of a file or folder")));
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder =
        resolve(folder, &place.cwd, &place.home, &FileSystem).map_err(|refusal| failed(refusal.to_string()))?;
    readable_name(&folder.resolved)?;
    Ok(ResolvedPath {
        asked: path.to_owned(),
        lexical: folder.lexical.join(name),
        resolved: folder.resolved.join(name),
    })
}

/// The folder a call's `cwd` means, which must be there.
pub(crate) fn working_directory(asked: Option<&str>, place: &Place) -> Result<PathBuf, CallError> {
    let path = resolved(asked.unwrap_or("."), place)?.resolved;
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => Ok(path),
        Ok(_) => Err(failed(format!("working directory `{}` is not a folder", path.display()))),
        Err(error) => Err(io_failed("enter", &path, &error)),
    }
}

/// What a path leads to must have a name that an answer, a record and a page can repeat.
pub(crate) fn readable_name(path: &Path) -> Result<(), CallError> {
    if path.to_str().is_some() {
        return Ok(());
    }
    Err(failed(format!("`{}` has a name that is not valid UTF-8; rename it to use it here", path.display())))
}

/// The roots of a place with links followed; a root that is not there stays as it is written.
pub(crate) fn roots(place: &Place) -> Vec<PathBuf> {
    let folder = (!place.run_folder.as_os_str().is_empty()).then_some(&place.run_folder);
    let real = |root: &PathBuf| fs::canonicalize(root).unwrap_or_else(|_| root.clone());
    place.roots.iter().chain(folder).map(real).collect()
}

/// The file that would run for a program's name, links followed.
pub(crate) fn program(name: &str, cwd: &Path) -> Option<PathBuf> {
    program_on(name, cwd, None)
}

/// The file that would run for a program's name on owd's own search path.
#[must_use]
pub fn program_in_path(name: &str) -> Option<PathBuf> {
    program(name, Path::new("/"))
}

/// The same on a search path that a call sets itself.
pub(crate) fn program_on(name: &str, cwd: &Path, path: Option<&str>) -> Option<PathBuf> {
    if name.contains('/') {
        return executable(&cwd.join(name));
    }
    let path = path.map_or_else(search_path, OsString::from);
    // A relative entry would mean another program in every folder.
    env::split_paths(&path).filter(|folder| folder.is_absolute()).find_map(|folder| executable(&folder.join(name)))
}

pub(crate) fn search_path() -> OsString {
    env::var_os("PATH").filter(|path| !path.is_empty()).unwrap_or_else(|| OsString::from(SANE_PATH))
}

fn executable(path: &Path) -> Option<PathBuf> {
    let metadata = fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then(|| fs::canonicalize(path).ok()).flatten()
}

/// Identity and content of a regular file; none for anything else.
pub(crate) fn bound_file(path: &Path) -> io::Result<Option<BoundFile>> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let metadata = file.metadata()?;
    let hash = if metadata.len() > BOUND_WHOLE { hash_of_times(&metadata) } else { hash_of(&file)? };
    Ok(Some(BoundFile { path: path.into(), device: metadata.dev(), inode: metadata.ino(), hash }))
}

/// The hash of a file's content; none where there is no file.
pub(crate) fn content_hash(path: &Path) -> io::Result<Option<BlobHash>> {
    match open_regular(path) {
        Ok(Some(file)) => hash_of(&file).map(Some),
        Ok(None) => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a regular file without following a link and without waiting for the other end of a pipe.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // A link, a socket, a device without a driver: whatever it is, it is no regular file.
        Err(rustix::io::Errno::LOOP | rustix::io::Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

type Version = (u64, u64, u64, (i64, i64), (i64, i64));

/// Hashes of files that did not change for a while, so that a large program is not read for each call.
static HASHES: LazyLock<Mutex<HashMap<Version, BlobHash>>> = LazyLock::new(Mutex::default);

/// The hash of all that an open file holds.
pub(crate) fn hash_of(file: &File) -> io::Result<BlobHash> {
    let metadata = file.metadata()?;
    let version = version(&metadata);
    if let Some(hash) = HASHES.lock().unwrap_or_else(PoisonError::into_inner).get(&version) {
        return Ok(*hash);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    let hash = BlobHash::from_bytes(*hasher.finalize().as_bytes());
    if self::version(&file.metadata()?) == version && is_settled(&metadata) {
        let mut known = HASHES.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CACHED_HASHES {
            known.clear();
        }
        known.insert(version, hash);
    }
    Ok(hash)
}

fn version(metadata: &fs::Metadata) -> Version {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.len(),
        (metadata.mtime(), metadata.mtime_nsec()),
        (metadata.ctime(), metadata.ctime_nsec()),
    )
}

/// Two changes within one tick of the file system's clock leave the same times, so a fresh file's times
/// tell nothing yet. Nobody but the kernel sets the time of the last status change.
fn is_settled(metadata: &fs::Metadata) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec.saturating_sub(metadata.ctime()) > 2
}

fn hash_of_times(metadata: &fs::Metadata) -> BlobHash {
    BlobHash::of(format!("times {:?}", version(metadata)).as_bytes())
}

/// The mark of a file whose content was drawn from outside. It stays with the file when it is renamed; what other
/// programs copy or write does not carry it, nor does a file system without such attributes.
const OUTSIDE: &str = "user.owd.outside";

/// Whether what a file holds is outside content: somebody else's, or drawn from outside by a session.
pub(crate) fn is_outside(file: &File, metadata: &fs::Metadata) -> bool {
    is_strangers(metadata) || is_marked(file)
}

pub(crate) fn is_marked(file: &File) -> bool {
    rustix::fs::fgetxattr(file, OUTSIDE, &mut [0_u8; 8]).is_ok()
}

/// Marks a file as drawn from outside, where the file system can.
pub(crate) fn mark_outside(file: &File) {
    if let Err(error) = rustix::fs::fsetxattr(file, OUTSIDE, b"1", rustix::fs::XattrFlags::empty()) {
        tracing::debug!(%error, "a file could not be marked as drawn from outside");
    }
}

/// Whether a file belongs to somebody else than owd's user and the system.
fn is_strangers(metadata: &fs::Metadata) -> bool {
    let owner = metadata.uid();
    owner != 0 && owner != rustix::process::geteuid().as_raw()
}

pub(crate) fn failed(message: impl Into<String>) -> CallError {
    CallError { kind: CallErrorKind::Failed, message: message.into() }
}

pub(crate) fn io_failed(verb: &str, path: &Path, error: &io::Error) -> CallError {
    failed(format!("cannot {verb} `{}`: {}", path.display(), reason(error)))
}

/// What the system says, in words and without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "it does not exist".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk is full".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::NotADirectory => "a part of the path is not a folder".into(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    }
}

/// A name as text: bytes that are no UTF-8 are written `\xNN`. Says whether any were.
pub(crate) fn shown_name(name: &OsStr) -> (String, bool) {
    let mut text = String::new();
    let mut escaped = false;
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            escaped = true;
            // Writing to a string cannot fail.
            let _infallible = write!(text, "\\x{byte:02x}");
        }
    }
    (text, escaped)
}
