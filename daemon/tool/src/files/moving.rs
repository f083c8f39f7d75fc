use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ow_model::{BlobHash, Call, CallError, CallResult, Reconciled, Risk};
use ow_policy::{Action, Facts, PathOp};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::folder::{Missing, Spot};
use super::replace::hash_at;
use crate::args::{self, Arg, Kind, Need};
use crate::capture::Finished;
use crate::helper::work::{Judged, Work};
use crate::world::{self, failed, io_failed};
use crate::{Place, Tool, ToolSpec};

const ARGS: &[Arg] = &[
    Arg { name: "from", kind: Kind::Name, need: Need::Required, about: "the file or folder to move" },
    Arg {
        name: "to",
        kind: Kind::Name,
        need: Need::Required,
        about: "its new path; with a `/` at the end, the folder that it goes into",
    },
];

#[derive(Debug, Deserialize)]
struct MoveArgs {
    from: String,
    to: String,
}

/// What a move journals before it starts.
#[derive(Debug, Deserialize, Serialize)]
struct Note {
    from: PathBuf,
    to: PathBuf,
    device: u64,
    inode: u64,
    /// None: a folder.
    content: Option<BlobHash>,
}

pub(crate) struct MoveFile {
    spec: ToolSpec,
}

impl MoveFile {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("move_file", ARGS) }
    }
}

impl Tool for MoveFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("move_file", ARGS, value)
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(super::bad)?;
        let args: MoveArgs = args::read(&call.args)?;
        let from = world::resolved_entry(&args.from, place)?;
        let to = world::resolved_entry(&target_of(&args), place)?;
        if to.resolved.starts_with(&from.resolved) && to.resolved != from.resolved {
            return Err(failed(format!("cannot move `{}` into itself", from.resolved.display())));
        }
        let action = Action::Paths { op: PathOp::Write, paths: vec![from, to], base: None };
        Ok(Facts { risk: Risk::WriteLocal, action })
    }

    fn note(&self, call: &Call, place: &Place) -> Value {
        let note = || {
            let args: MoveArgs = args::read(&call.args).ok()?;
            let from = world::resolved_entry(&args.from, place).ok()?.resolved;
            let to = world::resolved_entry(&target_of(&args), place).ok()?.resolved;
            let metadata = std::fs::symlink_metadata(&from).ok()?;
            let content = if metadata.is_file() { world::content_hash(&from).ok()? } else { None };
            serde_json::to_value(Note { from, to, device: metadata.dev(), inode: metadata.ino(), content }).ok()
        };
        note().unwrap_or_default()
    }

    fn reconcile(&self, _call: &Call, note: &Value, place: &Place) -> Reconciled {
        let Ok(note) = serde_json::from_value::<Note>(note.clone()) else {
            return Reconciled::Unknown { why: "nothing was noted before it started".into() };
        };
        reconcile(&note, place)
    }
}

/// Where it goes, with its name.
fn target_of(args: &MoveArgs) -> String {
    let name = Path::new(&args.from).file_name().map(|name| name.to_string_lossy().into_owned());
    match name {
        Some(name) if args.to.ends_with('/') => format!("{}{name}", args.to),
        _ => args.to.clone(),
    }
}

pub(crate) fn move_file(work: &Work) -> Result<Finished, CallError> {
    let Judged::Paths { paths, .. } = &work.judged else { return Err(failed("the paths were not judged")) };
    let [from, to] = paths.as_slice() else { return Err(failed("the paths were not judged as two")) };
    let roots = world::roots(&work.place);
    let source = Spot::open(from, &roots, Missing::Refuse).map_err(|error| io_failed("move", from, &error))?;
    let kind = match source.stat() {
        Ok(Some(stat)) => FileType::from_raw_mode(stat.st_mode),
        Ok(None) => return Err(failed(format!("cannot move `{}`: it does not exist", from.display()))),
        Err(error) => return Err(io_failed("move", from, &error)),
    };
    let target = Spot::open(to, &roots, Missing::Create).map_err(|error| io_failed("move to", to, &error))?;
    rename(&source, &target, kind).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => {
            failed(format!("`{}` exists already and is never replaced; nothing was moved", to.display()))
        }
        _ => failed(format!("cannot move `{}` to `{}`: {}", from.display(), to.display(), world::reason(&error))),
    })?;
    let bytes = target.stat().ok().flatten().map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
    Ok(moved(from, to, bytes, hash_at(&target).ok().flatten().filter(|_| kind == FileType::RegularFile)).into())
}

fn moved(from: &Path, to: &Path, bytes: u64, hash: Option<BlobHash>) -> CallResult {
    let mut result = CallResult::ok(json!({ "from": from, "path": to }));
    if let Some(hash) = hash {
        result.artifacts = super::artifact(to, bytes, hash);
    }
    result
}

fn rename(source: &Spot, target: &Spot, kind: FileType) -> io::Result<()> {
    match rustix::fs::renameat_with(&source.folder, &source.name, &target.folder, &target.name, RenameFlags::NOREPLACE)
    {
        Ok(()) => {}
        Err(Errno::XDEV) if kind == FileType::RegularFile => copy(source, target)?,
        Err(Errno::XDEV) => return Err(io::Error::other("only files can be moved to another file system")),
        // Some network file systems know no such rename; a second name never replaces either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if kind == FileType::RegularFile => {
            rustix::fs::linkat(&source.folder, &source.name, &target.folder, &target.name, AtFlags::empty())?;
            target.folder.sync()?;
            rustix::fs::unlinkat(&source.folder, &source.name, AtFlags::empty())?;
        }
        Err(error) => return Err(error.into()),
    }
    target.folder.sync()?;
    source.folder.sync()
}

/// Copies to another file system, whole or not at all, then removes the source.
fn copy(source: &Spot, target: &Spot) -> io::Result<()> {
    let mut from = source.file()?;
    let metadata = from.metadata()?;
    let unfinished: OsString = format!(".owd-{}-move", std::process::id()).into();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = rustix::fs::openat(&target.folder, &unfinished, flags, Mode::from_raw_mode(0o600))?;
    let copied = (|| {
        let mut to = File::from(to);
        io::copy(&mut from, &mut to)?;
        to.set_permissions(metadata.permissions())?;
        if world::is_marked(&from) {
            world::mark_outside(&to);
        }
        if let Ok(modified) = metadata.modified() {
            to.set_modified(modified)?;
        }
        to.sync_all()?;
        let again = from.metadata()?;
        if (again.len(), again.mtime(), again.mtime_nsec()) != (metadata.len(), metadata.mtime(), metadata.mtime_nsec())
        {
            return Err(io::Error::other("it changed while it was copied"));
        }
        Ok(rustix::fs::renameat_with(
            &target.folder,
            &unfinished,
            &target.folder,
            &target.name,
            RenameFlags::NOREPLACE,
        )?)
    })();
    copied.inspect_err(|_| target.folder.tidy(&unfinished))?;
    target.folder.sync()?;
    Ok(rustix::fs::unlinkat(&source.folder, &source.name, AtFlags::empty())?)
}

/// Device and inode. Their types differ between systems.
#[cfg_attr(target_os = "linux", expect(clippy::useless_conversion, reason = "not so elsewhere"))]
fn identity(stat: &rustix::fs::Stat) -> Option<(u64, u64)> {
    Some((u64::try_from(stat.st_dev).ok()?, u64::try_from(stat.st_ino).ok()?))
}

fn reconcile(note: &Note, place: &Place) -> Reconciled {
    let roots = world::roots(place);
    let look = |path: &Path| match Spot::open(path, &roots, Missing::Refuse) {
        Ok(spot) => Ok(spot.stat()?.map(|stat| (spot, stat))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let (source, target) = match (look(&note.from), look(&note.to)) {
        (Ok(source), Ok(target)) => (source, target),
        (Err(error), _) | (_, Err(error)) => {
            return Reconciled::Unknown { why: io_failed("look at", &note.from, &error).message };
        }
    };
    let is_it = |stat: &rustix::fs::Stat| identity(stat) == Some((note.device, note.inode));
    let source_is_it = source.as_ref().is_some_and(|(_, stat)| is_it(stat));
    match (source, target) {
        (Some(_), None) if source_is_it => Reconciled::DidNotHappen,
        (None, Some((spot, stat))) => {
            let hash = hash_at(&spot).ok().flatten();
            if is_it(&stat) || (note.content.is_some() && hash == note.content) {
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                return Reconciled::Happened { result: moved(&note.from, &note.to, bytes, note.content.and(hash)) };
            }
            Reconciled::Unknown { why: format!("`{}` is another file than the one to be moved", note.to.display()) }
        }
        (Some(_), Some((_, stat))) if source_is_it && !is_it(&stat) => Reconciled::Unknown {
            why: format!("`{}` is still there, and something stands at `{}`", note.from.display(), note.to.display()),
        },
        _ => Reconciled::Unknown {
            why: format!("neither `{}` nor `{}` is what was to be moved", note.from.display(), note.to.display()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A second file system is not at hand everywhere; the copy itself does not know that there is one.
    #[test]
    fn a_copy_keeps_mode_and_time_and_never_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(folder.path()).unwrap();
        let (from, to) = (folder.join("a"), folder.join("b"));
        fs::write(&from, "content").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o640)).unwrap();
        let modified = fs::metadata(&from).unwrap().modified().unwrap();
        let spot = |path: &Path| Spot::open(path, std::slice::from_ref(&folder), Missing::Refuse).unwrap();
        copy(&spot(&from), &spot(&to)).unwrap();
        let metadata = fs::metadata(&to).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.modified().unwrap()), (0o640, modified));
        assert_eq!(fs::read_to_string(&to).unwrap(), "content");
        assert!(!from.exists());
        fs::write(&from, "second").unwrap();
        let error = copy(&spot(&from), &spot(&to)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&to).unwrap(), "content");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing unfinished is left");
    }
}
