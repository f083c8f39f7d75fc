//! Opens folders and files by the path that was judged.
//!
//! That path has no links in it, so none may be met: one that is there now was put there after the
//! judgement, and the call is refused.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A name in a folder that is held open.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) folder: Folder,
    pub(super) name: OsString,
}

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Missing {
    Refuse,
    /// Folders below a root are made.
    Create,
}

impl Spot {
    /// Opens the folder that holds `path`, which is absolute and leads through no link.
    pub(super) fn open(path: &Path, roots: &[PathBuf], missing: Missing) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(ErrorKind::IsADirectory, "the path names no file"));
        };
        Ok(Self { folder: Folder::open(parent, roots, missing)?, name: name.to_owned() })
    }

    /// Opens a regular file for reading.
    pub(super) fn file(&self) -> io::Result<File> {
        self.folder.file(&self.name)
    }

    /// What stands here itself, not what it may link to; none: nothing.
    pub(super) fn stat(&self) -> io::Result<Option<rustix::fs::Stat>> {
        match rustix::fs::statat(&self.folder.0, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Folder {
    /// Opens a folder from the handle of the root that holds it, else from `/`.
    pub(super) fn open(path: &Path, roots: &[PathBuf], missing: Missing) -> io::Result<Self> {
        let root = roots.iter().filter(|root| path.starts_with(root)).max_by_key(|root| root.components().count());
        let (base, rest) = match root {
            Some(root) => (root.as_path(), path.strip_prefix(root).unwrap_or(path)),
            None => (Path::new("/"), path.strip_prefix("/").unwrap_or(path)),
        };
        let missing = if root.is_some() { missing } else { Missing::Refuse };
        let base = match rustix::fs::open(base, folder_flags(), Mode::empty()) {
            Ok(base) => Self(base),
            // A root that is not there yet is made where its own folder stands.
            Err(Errno::NOENT) if missing == Missing::Create => {
                std::fs::create_dir_all(base)?;
                Self(rustix::fs::open(base, folder_flags(), Mode::empty()).map_err(swapped)?)
            }
            Err(error) => return Err(swapped(error)),
        };
        if rest.as_os_str().is_empty() {
            return Ok(base);
        }
        match base.beneath(rest) {
            Ok(folder) => Ok(folder),
            Err(Errno::NOENT) if missing == Missing::Create => base.walk(rest, missing),
            // An old kernel, or a filter that does not know the call.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => base.walk(rest, missing),
            Err(error) => Err(swapped(error)),
        }
    }

    #[cfg(target_os = "linux")]
    fn beneath(&self, path: &Path) -> Result<Self, Errno> {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(&self.0, path, folder_flags(), Mode::empty(), resolve).map(Self)
    }

    #[cfg(not(target_os = "linux"))]
    fn beneath(&self, _path: &Path) -> Result<Self, Errno> {
        Err(Errno::NOSYS)
    }

    /// Goes down one component at a time, through folders only.
    fn walk(&self, path: &Path, missing: Missing) -> io::Result<Self> {
        let mut here = Self(self.0.try_clone()?);
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(io::Error::new(ErrorKind::InvalidInput, "the path was not resolved"));
            };
            here = match here.folder(name) {
                Err(error) if error.kind() == ErrorKind::NotFound && missing == Missing::Create => {
                    match rustix::fs::mkdirat(&here.0, name, Mode::from_raw_mode(0o777)) {
                        // Another may have made it in between.
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    here.sync()?;
                    here.folder(name)?
                }
                opened => opened?,
            };
        }
        Ok(here)
    }

    /// Opens a folder in this one; a link is none.
    pub(super) fn folder(&self, name: &OsStr) -> io::Result<Self> {
        rustix::fs::openat(&self.0, name, folder_flags(), Mode::empty()).map(Self).map_err(swapped)
    }

    /// Opens a regular file in this folder for reading.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NXIO) => return Err(not_regular()),
            Err(error) => return Err(swapped(error)),
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(ErrorKind::IsADirectory));
        }
        if metadata.is_file() { Ok(file) } else { Err(not_regular()) }
    }

    /// Names and kinds of what is in this folder, in no order.
    pub(super) fn entries(&self, most: usize) -> io::Result<(Vec<Entry>, bool)> {
        let mut entries = vec![];
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if entries.len() >= most {
                return Ok((entries, true));
            }
            let name = <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name).to_owned();
            // It may be gone by now.
            let Ok(stat) = rustix::fs::statat(&self.0, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            entries.push(Entry { name, stat });
        }
        Ok((entries, false))
    }

    /// Removes an unfinished file; that it stays is no worse than a crash at this point.
    pub(super) fn tidy(&self, name: &OsStr) {
        let _stays = rustix::fs::unlinkat(&self.0, name, AtFlags::empty());
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One name in a folder.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) stat: rustix::fs::Stat,
}

impl Entry {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW
}

fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

fn swapped(error: Errno) -> io::Error {
    if error == Errno::LOOP || error == Errno::XDEV {
        return io::Error::other(SWAPPED);
    }
    error.into()
}

/// What a person is told when a link stands where none was.
pub(super) const SWAPPED: &str = "a link stands where none was when the path was judged";
