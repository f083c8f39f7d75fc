//! Files that hold what somebody outside sent.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::world;

/// Keeps bytes as `folder/name`, marked as outside content, in place of what is there; `name` is a file's name and no path.
/// May block.
///
/// # Errors
///
/// It cannot be written.
pub fn keep_outside(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    fs::create_dir_all(folder)?;
    let (path, new) = (folder.join(name), folder.join(format!(".new-{name}")));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Whatever stands there is not written through.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(&new, flags, Mode::RUSR | Mode::WUSR)?);
    world::mark_outside(&file);
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_marked_and_no_link_leads_it_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let (within, other) = (folder.path().join("attachments"), folder.path().join("other"));
        fs::write(&other, "mine").expect("a file");
        fs::create_dir(&within).expect("a folder");
        std::os::unix::fs::symlink(&other, within.join("1-a.txt")).expect("a link");
        std::os::unix::fs::symlink(&other, within.join(".new-1-a.txt")).expect("a link");
        let kept = keep_outside(&within, "1-a.txt", b"theirs").expect("kept");
        assert_eq!(fs::read(&kept).expect("read"), b"theirs");
        assert_eq!(fs::read(&other).expect("read"), b"mine");
        let file = File::open(&kept).expect("opens");
        // A file system without attributes keeps no mark.
        if rustix::fs::fsetxattr(&file, "user.owd.test", b"1", rustix::fs::XattrFlags::empty()).is_ok() {
            assert!(world::is_marked(&file));
        }
        for name in ["../x", "", ".bashrc", "a/b", "a\0b"] {
            assert!(keep_outside(&within, name, b"x").is_err(), "{name:?}");
        }
    }
}
