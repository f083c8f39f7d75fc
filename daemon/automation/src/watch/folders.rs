use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ow_schedule::watch::{Fingerprint, Hint};
use thiserror::Error;
use tokio::sync::Notify;

/// Watches folders, each by itself and not what is below it, and says where to look.
pub(crate) trait FolderWatcher: Send {
    /// Watching a folder that is watched already is no error.
    fn watch(&mut self, folder: &Path) -> Result<(), Unwatchable>;
    fn unwatch(&mut self, folder: &Path);
}

/// Makes a watcher that leaves what it notices in the hints.
pub(crate) type OpenWatcher = Arc<dyn Fn(Arc<Hints>) -> Result<Box<dyn FolderWatcher>, Unwatchable> + Send + Sync>;

/// Why the system's watcher cannot serve a folder.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub(crate) enum Unwatchable {
    #[error("the system's limit on watched folders is reached")]
    Limit,
    #[error("the system's limit on watchers is reached")]
    Instances,
    #[error("it lies on {kind}, which does not tell of changes made elsewhere")]
    Remote { kind: &'static str },
    #[error("it is not there")]
    Gone,
    #[error("the system says: {0}")]
    Failed(io::ErrorKind),
}

impl Unwatchable {
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Limit => "raise it: `sysctl fs.inotify.max_user_watches=524288`",
            Self::Instances => "raise it: `sysctl fs.inotify.max_user_instances=1024`",
            Self::Remote { .. } => "owd looks every two seconds; a local folder would be noticed at once",
            Self::Gone => "make the folder, or correct `path` in the task",
            Self::Failed(_) => "check that the folder can be read by the account that owd runs under",
        }
    }
}

/// Where something may have changed. Merges what comes faster than it is looked at; forgets nothing.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    kept: Mutex<Kept>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    paths: BTreeMap<PathBuf, Noticed>,
    everywhere: bool,
    /// Where the system's watcher is just looking what was renamed to there.
    looking: Option<PathBuf>,
}

/// What was noticed at a path since the last look.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Noticed {
    pub(crate) hint: Hint,
    /// The complete files that were renamed to it, as they were seen right then; by the time of the look, all but the
    /// last may be replaced.
    pub(crate) arrived: Vec<Fingerprint>,
}

/// More paths than this at once, and everything is looked at instead.
const PATHS: usize = 10_000;

/// More files than this that come to one path between two looks are not kept apart.
const ARRIVALS: usize = 64;

/// What was hinted at since the last look.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Hinted {
    Paths(BTreeMap<PathBuf, Noticed>),
    Everywhere,
}

impl Hints {
    pub(crate) fn at(&self, path: PathBuf, hint: Hint) {
        self.notice(path, hint, None);
    }

    /// A file was renamed to this path; `look` says what is there right now.
    pub(crate) fn moved(&self, path: PathBuf, look: impl FnOnce(&Path) -> Option<Fingerprint>) {
        self.kept().looking = Some(path.clone());
        let found = look(&path);
        self.notice(path, Hint::MovedHere, found);
    }

    /// Says whether something was noticed at this path that has not been taken yet. What a look finds there may be newer
    /// than that; it is not news before it.
    pub(crate) fn waits(&self, path: &Path) -> bool {
        let kept = self.kept();
        kept.looking.as_deref() == Some(path) || kept.paths.contains_key(path)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notice(&self, path: PathBuf, hint: Hint, arrived: Option<Fingerprint>) {
        let mut kept = self.kept();
        if kept.looking.as_ref() == Some(&path) {
            kept.looking = None;
        }
        if kept.paths.len() >= PATHS {
            kept.everywhere = true;
        }
        if !kept.everywhere {
            let noticed = kept.paths.entry(path).or_insert(Noticed { hint, arrived: vec![] });
            // A file that was moved here and then touched came complete all the same; a write says that it did not.
            if noticed.hint == Hint::Seen || hint == Hint::MovedHere || hint == Hint::Written {
                noticed.hint = hint;
            }
            if noticed.arrived.len() < ARRIVALS {
                noticed.arrived.extend(arrived);
            }
        }
        drop(kept);
        self.changed.notify_one();
    }

    pub(crate) fn everywhere(&self) {
        self.kept().everywhere = true;
        self.changed.notify_one();
    }

    /// Waits until there is something to look at.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn take(&self) -> Hinted {
        let mut kept = self.kept();
        let paths = std::mem::take(&mut kept.paths);
        if std::mem::take(&mut kept.everywhere) { Hinted::Everywhere } else { Hinted::Paths(paths) }
    }
}
