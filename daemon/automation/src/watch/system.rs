use std::io;
use std::path::Path;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};
use ow_schedule::watch::Hint;
use tracing::warn;

use super::folders::{FolderWatcher, Hints, Unwatchable};
use super::look::{Entry, entry};

/// Opens the system's watcher: one for all folders, with a thread that sleeps until the kernel wakes it.
pub(crate) fn open_system_watcher(hints: Arc<Hints>) -> Result<Box<dyn FolderWatcher>, Unwatchable> {
    let tell = move |event: notify::Result<Event>| match event {
        Ok(event) => tell(&hints, event),
        Err(error) => {
            warn!(%error, "the system's watcher lost track; all watched folders are looked at");
            hints.everywhere();
        }
    };
    let config = Config::default().with_follow_symlinks(false);
    let watcher = RecommendedWatcher::new(tell, config).map_err(|error| unwatchable(&error, Unwatchable::Instances))?;
    Ok(Box::new(SystemWatcher(watcher)))
}

struct SystemWatcher(RecommendedWatcher);

impl FolderWatcher for SystemWatcher {
    fn watch(&mut self, folder: &Path) -> Result<(), Unwatchable> {
        if let Some(kind) = remote_kind(folder) {
            return Err(Unwatchable::Remote { kind });
        }
        let watched = self.0.watch(folder, RecursiveMode::NonRecursive);
        watched.map_err(|error| unwatchable(&error, Unwatchable::Limit))
    }

    fn unwatch(&mut self, folder: &Path) {
        // The kernel has dropped the watch of a folder that is gone; the error says only that.
        drop(self.0.unwatch(folder));
    }
}

fn tell(hints: &Hints, event: Event) {
    if event.need_rescan() {
        hints.everywhere();
        return;
    }
    let hint = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) | EventKind::Modify(ModifyKind::Data(_)) => {
            Hint::Written
        }
        // Looking is an access as well.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
        EventKind::Create(CreateKind::File) => Hint::Created,
        EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Hint::MovedHere,
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Any | EventKind::Other => {
            Hint::Seen
        }
    };
    for path in event.paths {
        match hint {
            // A save by rename may be replaced by the next before anybody looks; so this is looked at here and now.
            Hint::MovedHere => {
                hints.moved(path, |path| match entry(path) {
                    Entry::File(found) => Some(found),
                    Entry::Folder | Entry::Nothing => None,
                });
            }
            Hint::Seen | Hint::Created | Hint::Written => hints.at(path, hint),
        }
    }
}

fn unwatchable(error: &notify::Error, out_of_space: Unwatchable) -> Unwatchable {
    match &error.kind {
        notify::ErrorKind::MaxFilesWatch => Unwatchable::Limit,
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => Unwatchable::Gone,
        notify::ErrorKind::Io(error) => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => Unwatchable::Instances,
            Some(rustix::io::Errno::NOSPC) => out_of_space,
            _ if error.kind() == io::ErrorKind::NotFound => Unwatchable::Gone,
            _ => Unwatchable::Failed(error.kind()),
        },
        notify::ErrorKind::Generic(_) | notify::ErrorKind::InvalidConfig(_) => {
            Unwatchable::Failed(io::ErrorKind::Other)
        }
    }
}

/// File systems whose files change without this machine's kernel knowing.
#[cfg(target_os = "linux")]
fn remote_kind(folder: &Path) -> Option<&'static str> {
    let magic = rustix::fs::statfs(folder).ok()?.f_type;
    // As in the kernel's `magic.h` and the modules' own sources; the low 32 bits tell.
    Some(match u32::try_from(magic & 0xffff_ffff).ok()? {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "an SMB share",
        0x6573_5546 => "a FUSE file system",
        0x0102_1997 => "a 9p share",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7461_636f => "OCFS2",
        0x0bd0_0bd0 => "Lustre",
        0x786f_4256 => "a VirtualBox shared folder",
        0xbacb_acbc => "a VMware shared folder",
        _ => return None,
    })
}

#[cfg(not(target_os = "linux"))]
fn remote_kind(_folder: &Path) -> Option<&'static str> {
    None
}
