use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ow_schedule::watch::Fingerprint;

fn fingerprint(metadata: &Metadata) -> Fingerprint {
    let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    Fingerprint { device: metadata.dev(), inode: metadata.ino(), size: metadata.len(), mtime_ns }
}

/// What stands at a path. Links lead to what they name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    File(Fingerprint),
    Folder,
    /// Nothing, or a thing that is no file: a socket, a pipe, a link to nowhere.
    Nothing,
}

pub(crate) fn entry(path: &Path) -> Entry {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Entry::File(fingerprint(&metadata)),
        Ok(metadata) if metadata.is_dir() => Entry::Folder,
        Ok(_) | Err(_) => Entry::Nothing,
    }
}

/// What became of a path since an instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Since {
    /// Nothing.
    Same,
    /// Its file was there before and has been written.
    Written,
    /// A file came: it was made, or renamed to here. Also if that cannot be told from being written.
    New,
}

/// Says what became of a path since `instant`, by times that unlike that of its content nobody can set. Of a link, the
/// later of its own and that of what it names.
pub(crate) fn since(path: &Path, instant: Timestamp) -> Since {
    let changed_at = |metadata: &Metadata| {
        let nanosecond = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
        Timestamp::from_nanosecond(nanosecond).ok()
    };
    let (own, named) = (fs::symlink_metadata(path).ok(), fs::metadata(path).ok());
    let changed = own.as_ref().and_then(changed_at).max(named.as_ref().and_then(changed_at));
    if changed.is_some_and(|at| at < instant) {
        return Since::Same;
    }
    // A rename sets no time of the content; what was made before and written since was here all along.
    let is_before = |time: io::Result<std::time::SystemTime>| {
        time.ok().and_then(|time| Timestamp::try_from(time).ok()).map(|time| time < instant)
    };
    let written = |metadata: &Metadata| {
        !metadata.is_symlink()
            && is_before(metadata.created()) == Some(true)
            && is_before(metadata.modified()) == Some(false)
    };
    if own.as_ref().is_some_and(written) { Since::Written } else { Since::New }
}

/// What is in a folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// By path below the folder.
    pub(crate) files: BTreeMap<PathBuf, Fingerprint>,
    /// Folders below that could not be read: what is in them is not known.
    pub(crate) unreadable: Vec<(PathBuf, io::ErrorKind)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Depth {
    Folder,
    Tree,
}

/// Lists what is below `root`, telling `enter` of each folder before it is read. Folders that are links are not
/// entered: they may lead in a circle.
pub(crate) fn list(root: &Path, depth: Depth, mut enter: impl FnMut(&Path)) -> Listing {
    let mut listing = Listing::default();
    let mut left = vec![PathBuf::new()];
    while let Some(folder) = left.pop() {
        enter(&folder);
        let children = match fs::read_dir(root.join(&folder)) {
            Ok(children) => children,
            // One that vanished meanwhile holds nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                listing.unreadable.push((folder, error.kind()));
                continue;
            }
        };
        for child in children.flatten() {
            let below = folder.join(child.file_name());
            if child.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth == Depth::Tree {
                    left.push(below);
                }
            } else if let Entry::File(found) = entry(&child.path()) {
                listing.files.insert(below, found);
            }
        }
    }
    listing
}

/// The nearest folder at or above `path` that exists.
pub(crate) fn nearest_folder(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|above| above.is_dir()).map(Path::to_path_buf)
}
