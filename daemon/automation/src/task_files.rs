use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ow_config::{is_task_file, read_task_file};
use ow_model::{PauseReason, TaskName, TaskSource, TaskSpec};
use ow_store::{SaveChange, StoreError, TaskError};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::handle::Shared;
use crate::parts::{Check, Written};
use crate::warnings::{Warning, WarningKind};

/// Files are read when the folder has been quiet for this long, so that a half-written one is not.
const QUIET: Duration = Duration::from_millis(200);
/// In a folder that is never quiet they are read after this.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the store did not take is read again after this, then after twice as long, and so on.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// The folder of task files and what was last made of each.
pub(crate) struct TaskFiles {
    shared: Arc<Shared>,
    check: Check,
    /// By the names of the files.
    known: BTreeMap<PathBuf, Known>,
    /// Why the folder could not be read.
    folder_fault: Option<String>,
    /// When the store has failed a load: how long to wait for the next try.
    retry: Option<Duration>,
}

/// A file as it was read.
struct Known {
    stamp: Stamp,
    /// All that is wrong with it, a line each; empty: its task stands.
    faults: Vec<String>,
    hint: &'static str,
}

const CORRECT_IT: &str = "correct the file; what was loaded from it before goes on";
const COMES_AGAIN: &str = "owd tries again by itself; `owctl doctor` checks the disk";

impl Known {
    fn faulty(stamp: Stamp, faults: Vec<String>, hint: &'static str) -> Self {
        // A file's name may hold line ends.
        Self {
            stamp,
            faults: faults.into_iter().map(|fault| fault.replace(char::is_control, "\u{fffd}")).collect(),
            hint,
        }
    }
}

/// Tells whether a file may have changed, without reading it. None: it is read again at the next occasion.
type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

#[expect(clippy::unnecessary_wraps, reason = "a stamp is none where the file must be read again")]
fn stamp(metadata: &Metadata) -> Stamp {
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    Some((metadata.dev(), metadata.ino(), metadata.len(), modified, changed))
}

/// A file that may be new.
struct Fresh {
    path: PathBuf,
    stamp: Stamp,
    name: Result<TaskName, String>,
    text: Result<String, String>,
}

/// Whether the store took all that the folder has for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Taken {
    Wholly,
    /// It failed in between.
    Partly,
}

/// What is in the folder.
struct Listed {
    /// Every task file that is there, by path, with the name of its task where it has one.
    present: BTreeMap<PathBuf, Option<TaskName>>,
    fresh: Vec<Fresh>,
}

impl TaskFiles {
    pub(crate) fn new(shared: Arc<Shared>, check: Check) -> Self {
        Self { shared, check, known: BTreeMap::new(), folder_fault: None, retry: None }
    }

    /// Reads the files again when the folder changes or someone asks, until `stop` is cancelled. What is under way
    /// then is dropped: each file is one fact, and the next start reads them all.
    pub(crate) async fn run(
        mut self,
        changed: Arc<Notify>,
        asked: mpsc::Receiver<oneshot::Sender<Vec<String>>>,
        stop: CancellationToken,
    ) {
        stop.run_until_cancelled(self.follow(&changed, asked)).await;
    }

    async fn follow(&mut self, changed: &Notify, mut asked: mpsc::Receiver<oneshot::Sender<Vec<String>>>) {
        loop {
            let retry = self.retry;
            let comes_again = async move {
                match retry {
                    Some(wait) => sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            let answer = tokio::select! {
                answer = asked.recv() => match answer {
                    Some(answer) => Some(answer),
                    None => break,
                },
                () = changed.notified() => None,
                () = comes_again => None,
            };
            if answer.is_none() {
                let patience = Instant::now() + PATIENCE;
                while timeout_at(patience.min(Instant::now() + QUIET), changed.notified()).await.is_ok() {}
            }
            if answer.is_some() {
                // What a file leaves out comes from the configuration, which may be another one now.
                self.known.values_mut().for_each(|known| known.stamp = None);
            }
            self.load().await;
            self.shared.timer_hint.notify_one();
            self.shared.watch_hint.notify_one();
            if let Some(answer) = answer {
                // Who asked may have gone.
                drop(answer.send(self.faults()));
            }
        }
    }

    /// All that is wrong with the files, a line each.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.folder_fault.iter().chain(self.known.values().flat_map(|known| &known.faults)).cloned().collect()
    }

    /// Brings the store's tasks to what the files say. A file that is broken changes nothing: its task goes on as
    /// it was. A file that is gone pauses its task.
    pub(crate) async fn load(&mut self) {
        let folder = self.shared.settings.tasks_dir.clone();
        let stamps: BTreeMap<PathBuf, Stamp> =
            self.known.iter().map(|(path, known)| (path.clone(), known.stamp)).collect();
        let listed = spawn_blocking(move || list(&folder, &stamps)).await.expect("reading a folder does not panic");
        match listed {
            Ok(listed) => {
                self.folder_fault = None;
                let failed_before = self.retry.take();
                if self.take_in(listed).await == Taken::Partly {
                    self.retry = Some(failed_before.map_or(FIRST_RETRY, |wait| (wait * 2).min(LONGEST_RETRY)));
                }
            }
            Err(error) => {
                // Files that cannot be seen may all be there: nothing is paused.
                let folder = self.shared.settings.tasks_dir.display().to_string();
                self.folder_fault = Some(format!(
                    "{folder}: cannot be read: {error}; check that the account that owd runs under may read it"
                ));
            }
        }
        self.show_warnings();
    }

    async fn take_in(&mut self, listed: Listed) -> Taken {
        let Listed { present, fresh } = listed;
        self.known.retain(|path, _| present.contains_key(path));
        let mut left = vec![];
        for Fresh { path, stamp, name, text } in fresh {
            let checked = match (name, text) {
                (Ok(name), Ok(text)) => self.checked(&name, &text, &path).await.map(|spec| (spec, text)),
                (Err(fault), _) | (_, Err(fault)) => Err(vec![fault]),
            };
            match checked {
                Ok((spec, text)) => left.push((path, stamp, spec, text)),
                Err(faults) => drop(self.known.insert(path, Known::faulty(stamp, faults, CORRECT_IT))),
            }
        }
        let saved = self.save_all(left).await;
        let paused = self.pause_gone(&present).await;
        if let Err(error) = &paused {
            warn!(error = error as &dyn std::error::Error, "tasks whose files are gone were not paused; trying again");
        }
        if paused.is_err() { Taken::Partly } else { saved }
    }

    /// Checks a definition. An `at` that has fired since its task was saved is past, and no fault.
    async fn checked(&self, name: &TaskName, text: &str, path: &Path) -> Result<TaskSpec, Vec<String>> {
        let written = Written { name, text, file: Some(path), before: None };
        let faults = match (self.check)(&written, self.shared.clock.now()) {
            Ok(spec) => return Ok(spec),
            Err(faults) => faults,
        };
        let Some(saved) = self.shared.store.task(name).await.ok().flatten() else { return Err(faults) };
        (self.check)(&Written { before: Some(&saved.spec), ..written }, self.shared.clock.now())
    }

    /// Saves what was read. One that is refused may stand once another has been saved: an `after` that was turned
    /// round makes no circle in the end.
    async fn save_all(&mut self, mut left: Vec<(PathBuf, Stamp, TaskSpec, String)>) -> Taken {
        loop {
            let before = left.len();
            let mut refused = vec![];
            for (path, stamp, spec, text) in left {
                match self.save(&spec, &text).await {
                    Ok(()) => drop(self.known.insert(path, Known { stamp, faults: vec![], hint: "" })),
                    Err(error) => refused.push((path, stamp, spec, text, error)),
                }
            }
            let progress = refused.len() < before;
            if !progress || refused.is_empty() {
                let failed = refused.iter().any(|(.., error)| matches!(error, TaskError::Store(_)));
                for (path, stamp, _, _, error) in refused {
                    self.refuse(path, stamp, &error);
                }
                return if failed { Taken::Partly } else { Taken::Wholly };
            }
            left = refused.into_iter().map(|(path, stamp, spec, text, _)| (path, stamp, spec, text)).collect();
        }
    }

    fn refuse(&mut self, path: PathBuf, stamp: Stamp, error: &TaskError) {
        let known = match error {
            // A store that failed says nothing about the file: it is read again at the next occasion.
            TaskError::Store(_) => Known::faulty(None, vec![format!("{}: {error}", path.display())], COMES_AGAIN),
            TaskError::Circle { .. } => {
                let fault = format!("{}: {error}; take one of these `after` triggers out", path.display());
                Known::faulty(stamp, vec![fault], CORRECT_IT)
            }
            _ => Known::faulty(stamp, vec![format!("{}: {error}; {CORRECT_IT}", path.display())], CORRECT_IT),
        };
        self.known.insert(path, known);
    }

    async fn save(&mut self, spec: &TaskSpec, text: &str) -> Result<(), TaskError> {
        let now = self.shared.clock.now();
        let saved = self.shared.store.save_task(spec, TaskSource::File, text, None, now).await?;
        match saved.change {
            SaveChange::Created => info!(task = %spec.name, "task was made from its file"),
            SaveChange::Revised => info!(task = %spec.name, revision = saved.revision, "task was revised by its file"),
            SaveChange::Unchanged => {}
        }
        Ok(())
    }

    async fn pause_gone(&self, present: &BTreeMap<PathBuf, Option<TaskName>>) -> Result<(), StoreError> {
        let names: Vec<&TaskName> = present.values().flatten().collect();
        for name in self.shared.store.file_tasks().await? {
            if names.contains(&&name) {
                continue;
            }
            match self.shared.store.pause_task(&name, PauseReason::FileGone, self.shared.clock.now()).await {
                Ok(()) => info!(task = %name, "task is paused: its file is gone"),
                Err(TaskError::Store(error)) => return Err(error),
                Err(error) => warn!(task = %name, %error, "a task whose file is gone was not paused"),
            }
        }
        Ok(())
    }

    fn show_warnings(&self) {
        let mut warnings = vec![];
        if let Some(message) = &self.folder_fault {
            let about = self.shared.settings.tasks_dir.display().to_string();
            warnings.push(Warning { kind: WarningKind::TaskFile, about, message: message.clone(), hint: None });
        }
        for (path, known) in self.known.iter().filter(|(_, known)| !known.faults.is_empty()) {
            warnings.push(Warning {
                kind: WarningKind::TaskFile,
                about: path.display().to_string(),
                message: known.faults.join("\n"),
                hint: Some(known.hint.into()),
            });
        }
        self.shared.warnings.replace(WarningKind::TaskFile, warnings);
    }
}

/// Lists the task files of a folder and reads those that may have changed. A folder that is not there has none.
fn list(folder: &Path, stamps: &BTreeMap<PathBuf, Stamp>) -> io::Result<Listed> {
    let mut listed = Listed { present: BTreeMap::new(), fresh: vec![] };
    let children = match fs::read_dir(folder) {
        Ok(children) => children,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
        Err(error) => return Err(error),
    };
    for child in children {
        let path = child?.path();
        if !is_task_file(&path) {
            continue;
        }
        // A link that leads nowhere is a file that is broken, not one that is gone.
        let stamp = fs::metadata(&path).ok().as_ref().and_then(stamp);
        let name: Result<TaskName, _> = path.file_stem().unwrap_or_default().to_string_lossy().parse();
        listed.present.insert(path.clone(), name.as_ref().ok().cloned());
        if stamp.is_some() && stamps.get(&path) == Some(&stamp) {
            continue;
        }
        let name = name.map_err(|error: ow_model::NameError| {
            format!("{}: {error}; rename the file: its name is the task's name", path.display())
        });
        let text = read_task_file(&path).map_err(|fault| fault.to_string());
        listed.fresh.push(Fresh { path, stamp, name, text });
    }
    listed.fresh.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(listed)
}
