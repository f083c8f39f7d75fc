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

/// When a file last changed or came to its path, which unlike the time of its content nobody can set. Of a link, the
/// later of its own and that of what it names.
pub(crate) fn changed_at(path: &Path) -> Option<Timestamp> {
    let of = |metadata: Metadata| {
        let nanosecond = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
        Timestamp::from_nanosecond(nanosecond).ok()
    };
    fs::symlink_metadata(path).ok().and_then(of).max(fs::metadata(path).ok().and_then(of))
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
