//! Files that a call takes along to somebody else.

use std::io::Read;

use ow_model::{BlobHash, BoundFile, CallError, CallErrorKind};
use ow_policy::Action;

use crate::{Place, world};

/// Finds the files that a call means to take along, and binds it to what they hold now.
///
/// # Errors
///
/// Which one is no file that can be read.
pub fn enclosed(asked: &[&str], place: &Place) -> Result<Action, CallError> {
    let (mut paths, mut files) = (vec![], vec![]);
    for asked in asked {
        let path = world::resolved(asked, place)?;
        let found = world::bound_file(&path.resolved);
        let file = found.map_err(|error| world::io_failed("read", &path.resolved, &error))?;
        let Some(file) = file else {
            return Err(world::failed(format!("`{}` is not a regular file", path.resolved.display())));
        };
        paths.push(path);
        files.push(file);
    }
    Ok(Action::Enclosed { paths, files })
}

/// What an enclosed file holds: that which was judged, or nothing. May block.
///
/// # Errors
///
/// It is gone, has changed since, or is longer than `most` bytes.
pub fn read_enclosed(file: &BoundFile, most: u64) -> Result<Vec<u8>, CallError> {
    let path = &file.path;
    let failed = |error: std::io::Error| world::io_failed("read", path, &error);
    let changed = || CallError {
        kind: CallErrorKind::Refused,
        message: format!("`{}` is no longer the file that was judged", path.display()),
    };
    let opened = world::open_regular(path).map_err(failed)?.ok_or_else(changed)?;
    let mut bytes = vec![];
    opened.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        let message = format!("`{}` is longer than the {most} bytes that may still go", path.display());
        return Err(CallError { kind: CallErrorKind::Limit, message });
    }
    // A link may lead elsewhere by now; by the content it cannot.
    if BlobHash::of(&bytes) == file.hash { Ok(bytes) } else { Err(changed()) }
}
