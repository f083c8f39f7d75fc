//! Finds a folder's repository without git, which would follow whatever a repository says of where it lies.

use std::fs;
use std::path::{Path, PathBuf};

use ow_model::CallError;
use ow_policy::ResolvedPath;

use crate::Place;
use crate::world::{self, failed, io_failed};

/// Stores of objects that a repository may borrow from.
const ALTERNATES: usize = 16;

/// All that is read of a repository: the folder, the top of its working tree, its own files, those that it shares
/// with other working trees, and where it borrows objects.
pub(super) fn paths(folder: ResolvedPath, place: &Place) -> Result<Vec<ResolvedPath>, CallError> {
    let roots = world::roots(place);
    let root = roots.iter().find(|root| folder.resolved.starts_with(root));
    let within = |at: &&Path| root.is_none_or(|root| at.starts_with(root));
    let Some(top) =
        folder.resolved.ancestors().take_while(within).find(|at| at.join(".git").symlink_metadata().is_ok())
    else {
        let where_to = root.map(|root| format!(" up to `{}`", root.display())).unwrap_or_default();
        return Err(failed(format!("`{}` is in no git repository{where_to}", folder.resolved.display())));
    };
    let resolved = |path: &Path| world::resolved(&path.to_string_lossy(), place);
    let top = resolved(top)?;
    let own = resolved(&own_folder(&top.resolved)?)?;
    let shared = match named_in(&own.resolved.join("commondir"), "")? {
        Some(folder) => resolved(&own.resolved.join(folder))?,
        None => own.clone(),
    };
    let objects = shared.resolved.join("objects");
    let mut paths = vec![folder, top, own, shared];
    // Of these the objects are read, and they may borrow in turn.
    let mut ahead = vec![objects];
    while let Some(objects) = ahead.pop() {
        let text = match fs::read_to_string(objects.join("info/alternates")) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(io_failed("read", &objects.join("info/alternates"), &error)),
        };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let store = resolved(&objects.join(line))?;
            if paths.iter().any(|known| known.resolved == store.resolved) {
                continue;
            }
            if paths.len() >= 4 + ALTERNATES {
                return Err(failed(format!("the repository borrows from more than {ALTERNATES} others")));
            }
            ahead.push(store.resolved.clone());
            paths.push(store);
        }
    }
    Ok(paths)
}

/// `.git`, or where it points.
fn own_folder(top: &Path) -> Result<PathBuf, CallError> {
    let at = top.join(".git");
    let metadata = fs::metadata(&at).map_err(|error| io_failed("read", &at, &error))?;
    if metadata.is_dir() {
        return Ok(at);
    }
    match named_in(&at, "gitdir: ")? {
        Some(folder) => Ok(top.join(folder)),
        None => Err(failed(format!("`{}` names no repository", at.display()))),
    }
}

/// The path that a small file names behind `begin`; none where there is no such file.
fn named_in(file: &Path, begin: &str) -> Result<Option<PathBuf>, CallError> {
    match fs::read_to_string(file) {
        Ok(text) => {
            Ok(text.lines().next().and_then(|line| line.strip_prefix(begin)).map(|path| PathBuf::from(path.trim())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_failed("read", file, &error)),
    }
}
