use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ow_schedule::watch::Fingerprint;

use super::folders::{FolderWatcher, Hints, OpenWatcher, Unwatchable};
use super::look::{Depth, Entry, entry, list, nearest_folder};

/// The folders that are watched, each once, whoever asks for it. All of it may block: disks can be slow.
pub(crate) struct Ground {
    open: OpenWatcher,
    hints: Arc<Hints>,
    /// None until there is something to watch.
    watcher: Option<Box<dyn FolderWatcher>>,
    watched: BTreeSet<PathBuf>,
}

/// What was found at a watched path, with the folders from which hints about it come.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) standing: Standing,
    /// By path below the watched one; empty for a watched file itself.
    pub(crate) files: BTreeMap<PathBuf, Fingerprint>,
    pub(crate) unreadable: Vec<(PathBuf, io::ErrorKind)>,
    /// By their real paths: a folder that is reached by two names is watched once.
    pub(crate) folders: HashMap<PathBuf, Place>,
    /// Why this must be polled.
    pub(crate) trouble: Option<(PathBuf, Unwatchable)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    Folder,
    File,
    Missing,
}

/// Where a watched folder lies to the path that was asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// At this path below it; empty: it is that itself.
    Below(PathBuf),
    /// Above it; only this name in it matters.
    Above(OsString),
}

impl Survey {
    fn new(standing: Standing) -> Self {
        Self { standing, files: BTreeMap::new(), unreadable: vec![], folders: HashMap::new(), trouble: None }
    }
}

impl Ground {
    pub(crate) fn new(open: OpenWatcher, hints: Arc<Hints>) -> Self {
        Self { open, hints, watcher: None, watched: BTreeSet::new() }
    }

    /// Watches a path and looks at it, in this order: what changes in between is hinted at.
    pub(crate) fn survey(&mut self, root: &Path, depth: Depth) -> Survey {
        /// A path that changes faster than it can be watched is polled.
        const TRIES: u32 = 16;

        for _ in 0..TRIES {
            if let Some(survey) = self.try_survey(root, depth) {
                return survey;
            }
        }
        let trouble = Some((root.to_path_buf(), Unwatchable::Failed(io::ErrorKind::Interrupted)));
        Survey { trouble, ..Survey::new(Standing::Missing) }
    }

    /// None: what was watched is no longer what had to be.
    fn try_survey(&mut self, root: &Path, depth: Depth) -> Option<Survey> {
        if entry(root) == Entry::Folder {
            let mut survey = Survey::new(Standing::Folder);
            let listing = list(root, depth, |below| {
                self.enter(&root.join(below), Place::Below(below.to_path_buf()), &mut survey);
            });
            survey.files = listing.files;
            survey.unreadable = listing.unreadable;
            return Some(survey);
        }
        // A file is watched through its folder, as its own watch would end with the first atomic save; what is not
        // there, through the folder in which its path would go on.
        let mut survey = Survey::new(Standing::Missing);
        let above = root.parent().and_then(nearest_folder);
        if let Some(above) = &above {
            let next = root.strip_prefix(above).ok().and_then(|rest| rest.iter().next()).unwrap_or(OsStr::new(""));
            self.enter(above, Place::Above(next.to_os_string()), &mut survey);
        }
        match entry(root) {
            Entry::Folder => return None,
            Entry::File(found) => {
                survey.standing = Standing::File;
                survey.files.insert(PathBuf::new(), found);
            }
            Entry::Nothing => {}
        }
        (root.parent().and_then(nearest_folder) == above).then_some(survey)
    }

    fn enter(&mut self, folder: &Path, place: Place, survey: &mut Survey) {
        let watched = folder.canonicalize().map_err(|error| gone_or_failed(&error)).and_then(|real| {
            self.watch(&real)?;
            Ok(real)
        });
        match watched {
            Ok(real) => {
                survey.folders.insert(real, place);
            }
            // A folder that vanished below the watched one takes its files with it.
            Err(Unwatchable::Gone) if matches!(&place, Place::Below(below) if !below.as_os_str().is_empty()) => {}
            Err(why) => {
                survey.trouble.get_or_insert((folder.to_path_buf(), why));
            }
        }
    }

    fn watch(&mut self, real: &Path) -> Result<(), Unwatchable> {
        if self.watched.contains(real) {
            return Ok(());
        }
        if self.watcher.is_none() {
            self.watcher = Some((self.open)(Arc::clone(&self.hints))?);
        }
        self.watcher.as_mut().expect("opened just above").watch(real)?;
        self.watched.insert(real.to_path_buf());
        Ok(())
    }

    /// The watched folders at and below a path.
    pub(crate) fn watched_at(&self, path: &Path) -> Vec<PathBuf> {
        let from = self.watched.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        from.take_while(|folder| folder.starts_with(path)).cloned().collect()
    }

    pub(crate) fn lose(&mut self, folders: &[PathBuf]) {
        for folder in folders {
            if self.watched.remove(folder)
                && let Some(watcher) = &mut self.watcher
            {
                watcher.unwatch(folder);
            }
        }
    }

    /// Lets go of all folders but these.
    pub(crate) fn keep_only(&mut self, used: &BTreeSet<PathBuf>) {
        let unused: Vec<PathBuf> = self.watched.difference(used).cloned().collect();
        self.lose(&unused);
    }
}

fn gone_or_failed(error: &io::Error) -> Unwatchable {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unwatchable::Gone,
        other => Unwatchable::Failed(other),
    }
}
