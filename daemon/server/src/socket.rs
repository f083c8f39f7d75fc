//! The socket file: private from its first instant, never taken from a living owner.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Who may connect to the socket file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SocketAccess {
    /// 0600: the user who runs owd.
    Owner,
    /// 0660: also the group of the socket's folder; for a system unit.
    Group,
}

impl SocketAccess {
    const fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Group => 0o660,
        }
    }
}

/// Why owd cannot listen.
#[derive(Debug, Error)]
pub enum BindError {
    #[error("another process listens on {}", path.display())]
    Live { path: PathBuf },
    #[error("{} is in the way: it is not a socket", path.display())]
    NotASocket { path: PathBuf },
    #[error("the socket's path {} is too long: {length} bytes, at most {limit} are possible", path.display())]
    PathTooLong { path: PathBuf, length: usize, limit: usize },
    #[error("cannot listen on {}", path.display())]
    Failed {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// What fits into a socket address: `sun_path` without its closing zero.
const PATH_LIMIT: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Binds and listens on `path`, replacing the file of an owner that is gone.
///
/// The socket is born in a private folder beside its place, gets its mode there, and is then moved: no umask
/// and no instant leaves it open to others.
pub fn bind(path: &Path, access: SocketAccess) -> Result<(UnixListener, SocketFile), BindError> {
    let listener = listen(path, access)?;
    let identity = FileIdentity::of(path).map_err(|source| BindError::Failed { path: path.into(), source })?;
    Ok((listener, SocketFile { path: path.into(), identity }))
}

/// The file of a socket that was bound here.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: FileIdentity,
}

impl SocketFile {
    /// Removes the file if it is still the one that was bound.
    pub fn remove(&self) -> io::Result<()> {
        match FileIdentity::of(&self.path) {
            Ok(found) if found == self.identity => fs::remove_file(&self.path),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn listen(path: &Path, access: SocketAccess) -> Result<UnixListener, BindError> {
    let failed = |source| BindError::Failed { path: path.into(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let nursery = folder.join(format!(".{:x}", std::process::id()));
    let newborn = nursery.join("s");
    let length = path.as_os_str().len().max(newborn.as_os_str().len());
    if length > PATH_LIMIT {
        return Err(BindError::PathTooLong { path: path.into(), length, limit: PATH_LIMIT });
    }
    check_place(path)?;

    clear(&nursery, &newborn).map_err(failed)?;
    DirBuilder::new().mode(0o700).create(&nursery).map_err(failed)?;
    let listener = (|| {
        // A umask that takes the owner's own bits would lock us out.
        fs::set_permissions(&nursery, Permissions::from_mode(0o700))?;
        let listener = UnixListener::bind(&newborn)?;
        fs::set_permissions(&newborn, Permissions::from_mode(access.mode()))?;
        fs::rename(&newborn, path)?;
        Ok(listener)
    })();
    let cleared = clear(&nursery, &newborn);
    let listener = listener.map_err(failed)?;
    cleared.map_err(failed)?;
    Ok(listener)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// Refuses a place that a living owner or something other than a socket holds.
fn check_place(path: &Path) -> Result<(), BindError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(BindError::Failed { path: path.into(), source }),
        Ok(found) if !found.file_type().is_socket() => Err(BindError::NotASocket { path: path.into() }),
        Ok(_) => match UnixStream::connect(path) {
            // Only a refusal says that nobody listens; a full queue or a lack of rights says the opposite.
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
            Ok(connected) if is_orphaned(&connected) => Ok(()),
            Ok(_) | Err(_) => Err(BindError::Live { path: path.into() }),
        },
    }
}

/// Whether the process that began to listen has ended. Right after it was killed, a child of it that had not come
/// to its exec yet still holds the listening socket.
#[cfg(target_os = "linux")]
fn is_orphaned(connected: &UnixStream) -> bool {
    use rustix::io::Errno;
    use rustix::net::sockopt::socket_peercred;
    use rustix::process::test_kill_process;

    socket_peercred(connected).is_ok_and(|owner| test_kill_process(owner.pid) == Err(Errno::SRCH))
}

#[cfg(not(target_os = "linux"))]
const fn is_orphaned(_: &UnixStream) -> bool {
    false
}

/// Removes what an owd with our pid may have left when it was killed at the wrong instant.
fn clear(nursery: &Path, newborn: &Path) -> io::Result<()> {
    for removed in [fs::remove_file(newborn), fs::remove_dir(nursery)] {
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it exists").permissions().mode() & 0o7777
    }

    #[test]
    fn the_socket_has_its_mode_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for (access, expected) in [(SocketAccess::Owner, 0o600), (SocketAccess::Group, 0o660)] {
            let path = folder.path().join(format!("{access:?}.sock"));
            let (listener, _) = bind(&path, access).expect("binds");
            assert_eq!(mode(&path), expected);
            UnixStream::connect(&path).expect("is reachable where it was moved to");
            drop(listener);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 2);
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("owd.sock");
        drop(UnixListener::bind(&path).expect("binds"));
        let live = bind(&path, SocketAccess::Owner).expect("nobody listens there");
        assert!(matches!(bind(&path, SocketAccess::Owner), Err(BindError::Live { .. })));
        UnixStream::connect(&path).expect("the first listener is still there");
        drop(live);
    }

    /// The path at which a process of this test is to listen.
    #[cfg(target_os = "linux")]
    const LISTEN_ON: &str = "OW_TEST_LISTEN_ON";

    #[cfg(target_os = "linux")]
    #[expect(clippy::zombie_processes, reason = "the owner ends before its child: that is the case")]
    #[test]
    fn a_socket_that_only_a_child_of_its_killed_owner_still_holds_is_replaced() {
        use std::os::fd::OwnedFd;
        use std::process::{Command, Stdio};

        if let Some(path) = std::env::var_os(LISTEN_ON) {
            // This is the owner: it leaves its socket to a child that lives as long as the pipe, and ends.
            let listener = UnixListener::bind(path).expect("binds");
            Command::new("cat").stdout(OwnedFd::from(listener)).spawn().expect("a child");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("owd.sock");
        let mut owner = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "socket::tests::a_socket_that_only_a_child_of_its_killed_owner_still_holds_is_replaced"])
            .env(LISTEN_ON, &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("this test, again");
        let child_lives_until_dropped = owner.stdin.take();
        assert!(owner.wait().expect("it ends").success());
        UnixStream::connect(&path).expect("the child still holds it");
        bind(&path, SocketAccess::Owner).expect("its owner is gone");
        drop(child_lives_until_dropped);
    }

    #[test]
    fn what_is_not_a_socket_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("owd.sock");
        fs::write(&path, "precious").expect("written");
        assert!(matches!(bind(&path, SocketAccess::Owner), Err(BindError::NotASocket { .. })));
        assert_eq!(fs::read_to_string(&path).expect("readable"), "precious");
    }

    #[test]
    fn a_path_that_fits_no_address_is_named() {
        let path = Path::new("/tmp").join("x".repeat(120));
        assert!(matches!(bind(&path, SocketAccess::Owner), Err(BindError::PathTooLong { .. })));
    }

    #[test]
    fn only_the_own_socket_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("owd.sock");
        let (listener, first) = bind(&path, SocketAccess::Owner).expect("binds");
        drop(listener);
        let (_listener, second) = bind(&path, SocketAccess::Owner).expect("replaces the stale one");
        first.remove().expect("leaves it");
        assert!(path.exists());
        second.remove().expect("removes it");
        assert!(!path.exists());
    }
}
