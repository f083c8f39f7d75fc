//! Puts new content in a file's place, whole or not at all, and on disk before it says so.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ow_model::{BlobHash, CallError, CallErrorKind, CallResult, Reconciled};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::folder::{Folder, Missing, Spot};
use crate::helper::work::{Judged, Work};
use crate::limits::FILE_LIMIT;
use crate::world::{self, failed, io_failed};
use crate::{Place, start_ticks};

/// Unfinished content stands beside its target under this beginning, then the writer's pid.
const UNFINISHED: &str = ".owd-";

/// What a write journals before it starts.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Note {
    path: PathBuf,
    /// None: the file did not exist.
    before: Option<BlobHash>,
    after: BlobHash,
    bytes: u64,
}

impl Note {
    pub(super) fn of(path: &Path, before: Option<BlobHash>, content: &[u8]) -> Value {
        let note = Self { path: path.into(), before, after: BlobHash::of(content), bytes: content.len() as u64 };
        serde_json::to_value(note).unwrap_or_default()
    }
}

/// The content that a write stands on; none: the file does not exist.
pub(super) fn current(spot: &Spot, path: &Path) -> Result<Option<Vec<u8>>, CallError> {
    let failed = |error| io_failed("read", path, &error);
    let file = match spot.file() {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let length = file.metadata().map_err(failed)?.len();
    if length > FILE_LIMIT {
        let message = format!("`{}` is {length} bytes long; at most {FILE_LIMIT} are edited", path.display());
        return Err(CallError { kind: CallErrorKind::Limit, message });
    }
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Refuses a write whose file is no longer what it was when the call was judged.
pub(super) fn check_base(work: &Work, path: &Path, now: Option<BlobHash>) -> Result<(), CallError> {
    let Judged::Paths { base: Some((_, base)), .. } = &work.judged else { return Ok(()) };
    if *base == now {
        return Ok(());
    }
    Err(CallError {
        kind: CallErrorKind::Refused,
        message: format!("`{}` changed after this call was judged; nothing was written", path.display()),
    })
}

/// The hash of what stands here, without a bound on its length.
pub(super) fn hash_at(spot: &Spot) -> io::Result<Option<BlobHash>> {
    match spot.file() {
        Ok(file) => world::hash_of(&file).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the content of a write comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    Own,
    /// Drawn from outside: the file is marked, and who reads it has read outside text.
    Outside,
}

impl Origin {
    pub(super) const fn of(place: &Place) -> Self {
        if place.outside { Self::Outside } else { Self::Own }
    }

    /// Of an edit, which keeps the rest of what stands there.
    pub(super) fn of_edit(place: &Place, spot: &Spot) -> Self {
        if spot.file().is_ok_and(|file| world::is_marked(&file)) { Self::Outside } else { Self::of(place) }
    }
}

/// Writes beside the target, syncs, renames over it and syncs the folder. The target's mode is kept.
pub(super) fn replace(spot: &Spot, path: &Path, content: &[u8], origin: Origin) -> Result<CallResult, CallError> {
    let old = spot.file().and_then(|file| file.metadata());
    let old = match old {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(io_failed("write", path, &error)),
    };
    let unfinished = unfinished_name(&spot.name);
    write_beside(&spot.folder, &unfinished, content, old.as_ref(), origin)
        .and_then(|()| Ok(rustix::fs::renameat(&spot.folder, &unfinished, &spot.folder, &spot.name)?))
        .inspect_err(|_| spot.folder.tidy(&unfinished))
        .and_then(|()| spot.folder.sync())
        .map_err(|error| io_failed("write", path, &error))?;
    Ok(written(path, content.len() as u64, BlobHash::of(content)))
}

fn write_beside(
    folder: &Folder,
    name: &OsString,
    content: &[u8],
    old: Option<&std::fs::Metadata>,
    origin: Origin,
) -> io::Result<()> {
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode));
    let file = match create() {
        // Left by a writer that had this pid and died.
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
            create()?
        }
        other => other?,
    };
    let mut file = File::from(file);
    if let Some(old) = old {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            // Only root may give files away; for others the mode is what can be kept.
            drop(std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid())));
        }
        rustix::fs::fchmod(
            &file,
            Mode::from_raw_mode(rustix::fs::RawMode::try_from(old.mode() & 0o7777).unwrap_or(0o600)),
        )?;
    }
    if origin == Origin::Outside {
        world::mark_outside(&file);
    }
    file.write_all(content)?;
    file.sync_all()
}

/// A name that is short enough whatever the target's is, and says whose it is.
fn unfinished_name(target: &std::ffi::OsStr) -> OsString {
    format!("{UNFINISHED}{}-{}", std::process::id(), name_hash(target)).into()
}

fn name_hash(target: &std::ffi::OsStr) -> String {
    use std::os::unix::ffi::OsStrExt;
    blake3::hash(target.as_bytes()).to_hex().as_str()[..16].to_owned()
}

pub(super) fn written(path: &Path, bytes: u64, hash: BlobHash) -> CallResult {
    let mut result = CallResult::ok(json!({ "path": path, "bytes": bytes, "hash": hash }));
    result.artifacts = super::artifact(path, bytes, hash);
    result
}

/// Finds out by hashes whether a write took effect, and removes what it may have left beside its target.
pub(super) fn reconcile(note: &Value, place: &Place) -> Reconciled {
    let Ok(note) = serde_json::from_value::<Note>(note.clone()) else {
        return Reconciled::Unknown { why: "nothing was noted before it started".into() };
    };
    let path = &note.path;
    let now = match Spot::open(path, &world::roots(place), Missing::Refuse) {
        Ok(spot) => {
            remove_unfinished(&spot);
            hash_at(&spot)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    match now {
        Ok(Some(now)) if now == note.after => Reconciled::Happened { result: written(path, note.bytes, note.after) },
        Ok(now) if now == note.before => Reconciled::DidNotHappen,
        Ok(_) => Reconciled::Unknown {
            why: format!("`{}` holds neither what was there before nor what was to be written", path.display()),
        },
        Err(error) => Reconciled::Unknown { why: io_failed("read", path, &error).message },
    }
}

/// Removes what writers that no longer live left for this target.
fn remove_unfinished(spot: &Spot) {
    const LOOKED_AT: usize = 100_000;
    let Ok((entries, _)) = spot.folder.entries(LOOKED_AT) else { return };
    let ending = format!("-{}", name_hash(&spot.name));
    for entry in entries {
        let name = entry.name.to_string_lossy();
        let pid = name.strip_prefix(UNFINISHED).and_then(|rest| rest.strip_suffix(&ending));
        if pid.and_then(|pid| pid.parse().ok()).is_some_and(|pid| start_ticks(pid).is_none()) {
            spot.folder.tidy(&entry.name);
        }
    }
}

/// Opens the place of a write as it was judged.
pub(super) fn target(path: &Path, place: &Place, missing: Missing) -> Result<Spot, CallError> {
    let spot = Spot::open(path, &world::roots(place), missing).map_err(|error| match error.kind() {
        ErrorKind::NotFound => failed(format!(
            "cannot write `{}`: its folder does not exist, and folders are made inside the roots only",
            path.display()
        )),
        _ => io_failed("write", path, &error),
    })?;
    Ok(spot)
}
