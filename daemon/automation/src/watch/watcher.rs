use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ow_model::{EventType, TaskState};
use ow_schedule::watch::{Fingerprint, Hint};
use ow_store::{PageRequest, StoreError, TaskError, TaskFilter};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::event::text;
use super::folders::{Hinted, Hints, Noticed, OpenWatcher};
use super::ground::{Ground, Place, Standing, Survey};
use super::look::{Depth, Entry, Since, entry, since};
use super::target::{Target, TargetKey, targets};
use super::watching::{Delivery, Watching, seen_file};
use crate::handle::Shared;
use crate::warnings::{Warning, WarningKind};

/// How often a path is looked at where the system's watcher cannot serve.
const POLL: Duration = Duration::from_secs(2);
/// A store that refuses is asked again after this.
const RETRY: Duration = Duration::from_secs(2);
/// A file that is being written hints at itself all the time; looking this seldom is soon enough.
const BREATH: Duration = Duration::from_millis(20);
/// A file is stamped with the system's last tick, which may lie this far back.
const TICK: SignedDuration = SignedDuration::from_millis(10);
/// Stands for the time of a content that nobody saw.
const BEFORE_IT_WAS_WRITTEN: i64 = i64::MIN;
/// Events accepted in one transaction.
const BATCH: usize = 256;
/// Tasks and stream events read at a time.
const PAGE: usize = 256;

/// All watches of all tasks, and that of the folder of task files.
pub(crate) struct Watcher {
    shared: Arc<Shared>,
    stop: CancellationToken,
    hints: Arc<Hints>,
    /// None only while a blocking look has it.
    ground: Option<Ground>,
    posts: BTreeMap<User, Post>,
    /// Told when something happened in the folder of task files.
    task_files: Arc<Notify>,
    /// The position in the store's stream up to which tasks are known.
    position: u64,
    stale: Option<Instant>,
    /// Settle times are measured on a clock that nobody sets: wall time at the start, and what has passed since.
    started: (Timestamp, Instant),
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum User {
    TaskFiles,
    Task(TargetKey),
}

/// A path that is watched for someone.
struct Post {
    root: PathBuf,
    depth: Depth,
    /// None: not surveyed yet.
    standing: Option<Standing>,
    folders: HashMap<PathBuf, Place>,
    poll_at: Option<Instant>,
    warning: Option<Warning>,
    /// None for the folder of task files.
    watching: Option<Watching>,
    delivery: Delivery,
    deliver_at: Option<Instant>,
}

impl Post {
    fn new(root: PathBuf, depth: Depth, watching: Option<Watching>) -> Self {
        Self {
            root,
            depth,
            standing: None,
            folders: HashMap::new(),
            poll_at: None,
            warning: None,
            watching,
            delivery: Delivery::default(),
            deliver_at: None,
        }
    }
}

/// Where to look, and how what is to be found there came.
#[derive(Debug, Default)]
struct Looks {
    surveys: BTreeSet<User>,
    glances: Vec<(User, PathBuf, Noticed)>,
}

impl Watcher {
    pub(crate) fn new(
        shared: Arc<Shared>,
        open: OpenWatcher,
        task_files: Arc<Notify>,
        stop: CancellationToken,
    ) -> Self {
        let hints = Arc::new(Hints::default());
        let ground = Some(Ground::new(open, Arc::clone(&hints)));
        let started = (shared.clock.now(), Instant::now());
        let position = *shared.store.stream_head().borrow();
        let tasks_dir = shared.settings.tasks_dir.clone();
        let posts = BTreeMap::from([(User::TaskFiles, Post::new(tasks_dir, Depth::Folder, None))]);
        Self { shared, stop, hints, ground, posts, task_files, position, stale: Some(Instant::now()), started }
    }

    /// Runs until `stop` is cancelled. What is under way then is dropped, a look at a disk that does not answer
    /// among it: what has not been accepted is found at the next start.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.work()).await;
    }

    async fn work(&mut self) {
        self.survey(BTreeSet::from([User::TaskFiles])).await;
        loop {
            self.do_due().await;
            let woken = tokio::select! {
                biased;
                () = self.shared.watch_hint.notified() => Woken::TasksChanged,
                () = self.hints.changed() => Woken::Hint,
                () = sleep_until_or_for_ever(self.wake_at()) => Woken::Time,
            };
            match woken {
                Woken::TasksChanged => self.read_stream().await,
                Woken::Hint => {
                    self.follow_hints().await;
                    tokio::time::sleep(BREATH).await;
                }
                Woken::Time => {}
            }
        }
    }

    fn now(&self) -> Timestamp {
        let (at, instant) = self.started;
        at + SignedDuration::try_from(instant.elapsed()).unwrap_or(SignedDuration::MAX)
    }

    fn wake_at(&self) -> Option<Instant> {
        let (at, instant) = self.started;
        let as_instant = |wake: Timestamp| instant + Duration::try_from(wake.duration_since(at)).unwrap_or_default();
        let of_post = |post: &Post| {
            let settles = post.watching.as_ref().and_then(Watching::next_wake).map(as_instant);
            [settles, post.poll_at, post.deliver_at].into_iter().flatten().min()
        };
        self.posts.values().filter_map(of_post).chain(self.stale).min()
    }

    async fn do_due(&mut self) {
        let now = Instant::now();
        if self.stale.is_some_and(|at| at <= now) {
            self.stale = match self.refresh().await {
                Ok(()) => None,
                Err(error) => {
                    warn!(%error, "watched tasks cannot be read; tried again");
                    Some(now + RETRY)
                }
            };
        }
        let polls = self.posts.iter().filter(|(_, post)| post.poll_at.is_some_and(|at| at <= now));
        self.survey(polls.map(|(user, _)| user.clone()).collect()).await;
        self.settle().await;
        self.deliver().await;
    }

    // --- which watches there are ---

    /// Looks whether the store's stream tells of tasks that were saved or deleted.
    async fn read_stream(&mut self) {
        loop {
            // Most hints are about runs and events; these need no look into the store.
            if self.position == *self.shared.store.stream_head().borrow() {
                return;
            }
            match self.shared.store.stream(self.position, PAGE).await {
                Ok(Some(events)) => {
                    let Some(last) = events.last() else { return };
                    self.position = last.position;
                    if events.iter().any(|event| {
                        matches!(EventType::of(&event.kind), Some(EventType::TaskSaved | EventType::TaskDeleted))
                    }) {
                        self.stale = Some(Instant::now());
                    }
                }
                // Pruned, or not to be read: better once too often.
                Ok(None) => {
                    self.position = *self.shared.store.stream_head().borrow();
                    self.stale = Some(Instant::now());
                    return;
                }
                Err(_) => {
                    self.stale = Some(Instant::now() + RETRY);
                    return;
                }
            }
        }
    }

    /// Makes the watches those of the tasks as they are.
    async fn refresh(&mut self) -> Result<(), StoreError> {
        let mut wanted: BTreeMap<TargetKey, (Target, Timestamp)> = BTreeMap::new();
        let filter = TaskFilter { with_watch: true, ..TaskFilter::default() };
        let mut page = PageRequest { after: None, limit: PAGE };
        loop {
            let found = self.shared.store.tasks(&filter, &page).await?;
            let live = found.rows.iter().filter(|row| !matches!(row.state, TaskState::Deleted { .. }));
            for row in live {
                wanted.extend(targets(row).into_iter().map(|(key, target)| (key, (target, row.updated_at))));
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        self.posts.retain(|user, post| match user {
            User::TaskFiles => true,
            User::Task(key) => wanted
                .get(key)
                .is_some_and(|(target, _)| post.watching.as_ref().is_some_and(|own| own.target == *target)),
        });
        let mut new = BTreeSet::new();
        for (key, (target, defined_at)) in wanted {
            let user = User::Task(key);
            if !self.posts.contains_key(&user) {
                self.begin(&user, target, defined_at).await?;
                new.insert(user);
            }
        }
        self.survey(new).await;
        self.let_go();
        self.show_warnings();
        Ok(())
    }

    /// Begins a watch with what it has seen in earlier lives. One that never looked takes as seen what was there when
    /// it was defined, and not what came before this look.
    async fn begin(&mut self, user: &User, target: Target, defined_at: Timestamp) -> Result<(), StoreError> {
        let User::Task(key) = user else { return Ok(()) };
        let earlier = self.shared.store.watch_seen(key.task, &key.watch).await?;
        let known: Vec<(PathBuf, Fingerprint)> = if let Some(files) = earlier {
            files.into_iter().map(known).collect()
        } else {
            let survey = self.look_at(&target.root, target.depth()).await;
            let there = survey.files.into_iter().filter(|(below, _)| target.means(below));
            let there: Vec<(PathBuf, Fingerprint)> = there.collect();
            let root = target.root.clone();
            let there = self.on_ground(move |_| as_it_was(defined_at, &root, there)).await;
            let seen: Vec<_> = there.iter().map(|(below, found)| seen_file(below, found)).collect();
            self.shared.store.note_watch_seen(key.task, &key.watch, &seen, &[]).await?;
            there
        };
        info!(task = %target.task, root = %target.root.display(), known = known.len(), "watching");
        let (root, depth) = (target.root.clone(), target.depth());
        self.posts.insert(user.clone(), Post::new(root, depth, Some(Watching::new(target, known))));
        Ok(())
    }

    // --- looking ---

    async fn look_at(&mut self, root: &Path, depth: Depth) -> Survey {
        let root = root.to_path_buf();
        self.on_ground(move |ground| ground.survey(&root, depth)).await
    }

    /// Does what may block beside the runtime.
    async fn on_ground<T: Send + 'static>(&mut self, work: impl FnOnce(&mut Ground) -> T + Send + 'static) -> T {
        let mut ground = self.ground.take().expect("it comes back from each look");
        let done = spawn_blocking(move || {
            let result = work(&mut ground);
            (ground, result)
        });
        let (ground, result) = done.await.expect("looking at a path does not panic");
        self.ground = Some(ground);
        result
    }

    async fn survey(&mut self, users: BTreeSet<User>) {
        for user in &users {
            let Some(post) = self.posts.get(user) else { continue };
            let (root, depth) = (post.root.clone(), post.depth);
            let survey = self.look_at(&root, depth).await;
            self.take_in(user, survey);
        }
        if !users.is_empty() {
            self.let_go();
            self.show_warnings();
        }
    }

    fn take_in(&mut self, user: &User, survey: Survey) {
        let now = self.now();
        let Some(post) = self.posts.get_mut(user) else { return };
        match &mut post.watching {
            Some(watching) => {
                watching.observe_all(&survey, |below| self.hints.waits(&path_of(&post.root, below)), now);
            }
            None => self.task_files.notify_one(),
        }
        post.poll_at = survey.trouble.is_some().then(|| Instant::now() + POLL);
        post.warning = warning(post, &survey);
        post.standing = Some(survey.standing);
        post.folders = survey.folders;
    }

    /// Lets go of folders that nobody watches any more.
    fn let_go(&mut self) {
        let used: BTreeSet<PathBuf> = self.posts.values().flat_map(|post| post.folders.keys().cloned()).collect();
        if let Some(ground) = &mut self.ground {
            ground.keep_only(&used);
        }
    }

    fn show_warnings(&self) {
        let mut warnings: BTreeMap<String, Warning> = BTreeMap::new();
        for warning in self.posts.values().filter_map(|post| post.warning.clone()) {
            warnings.entry(warning.about.clone()).or_insert(warning);
        }
        self.shared.warnings.replace(WarningKind::Watch, warnings.into_values().collect());
    }

    // --- hints ---

    async fn follow_hints(&mut self) {
        let paths = match self.hints.take() {
            Hinted::Everywhere => {
                self.survey(self.posts.keys().cloned().collect()).await;
                return;
            }
            Hinted::Paths(paths) => paths,
        };
        let mut looks = Looks::default();
        for (path, noticed) in &paths {
            self.follow(path, noticed, &mut looks).await;
        }
        let Looks { surveys, glances } = looks;
        self.glance(glances, &surveys).await;
        self.survey(surveys).await;
    }

    async fn follow(&mut self, path: &Path, noticed: &Noticed, looks: &mut Looks) {
        // Something happened to a watched folder itself, or to one above it: it went, moved, or came anew. The
        // system's watcher drops what it had at such a path, and maybe what was put there since; so all of it is
        // watched again.
        let touched = self.ground.as_ref().map(|ground| ground.watched_at(path)).unwrap_or_default();
        if !touched.is_empty() {
            let lost = touched.clone();
            self.on_ground(move |ground| ground.lose(&lost)).await;
        }
        let folder = path.parent();
        for (user, post) in &self.posts {
            if touched.iter().any(|lost| post.folders.contains_key(lost)) {
                looks.surveys.insert(user.clone());
            }
            let (Some(place), Some(name)) = (folder.and_then(|folder| post.folders.get(folder)), path.file_name())
            else {
                continue;
            };
            match place {
                Place::Above(next) if next == name => match post.standing {
                    Some(Standing::File) => {
                        looks.glances.push((user.clone(), PathBuf::new(), noticed.clone()));
                    }
                    Some(Standing::Folder | Standing::Missing) | None => drop(looks.surveys.insert(user.clone())),
                },
                Place::Above(_) => {}
                Place::Below(below) => looks.glances.push((user.clone(), below.join(name), noticed.clone())),
            }
        }
    }

    /// Looks at single paths. A folder that came or went is a survey's work.
    async fn glance(&mut self, glances: Vec<(User, PathBuf, Noticed)>, surveyed: &BTreeSet<User>) {
        let mut wanted = vec![];
        for (user, below, noticed) in glances.into_iter().filter(|(user, ..)| !surveyed.contains(user)) {
            let Some(post) = self.posts.get(&user) else { continue };
            match &post.watching {
                Some(_) => wanted.push((path_of(&post.root, &below), user, below, noticed)),
                None => self.task_files.notify_one(),
            }
        }
        if wanted.is_empty() {
            return;
        }
        let found = self.on_ground(|_| {
            let look =
                |(path, user, below, noticed): (PathBuf, User, PathBuf, Noticed)| (entry(&path), user, below, noticed);
            wanted.into_iter().map(look).collect::<Vec<_>>()
        });
        let found = found.await;
        let now = self.now();
        let mut surveys = BTreeSet::new();
        for (entry, user, below, Noticed { hint, arrived }) in found {
            let Some(post) = self.posts.get_mut(&user) else { continue };
            let Some(watching) = &mut post.watching else { continue };
            for file in arrived {
                watching.observe(&below, Some(file), Hint::MovedHere, now);
            }
            match entry {
                // A later rename is told first; then this is looked at again.
                _ if self.hints.waits(&path_of(&post.root, &below)) => {}
                Entry::File(file) => watching.observe(&below, Some(file), hint, now),
                Entry::Folder if post.depth == Depth::Tree || post.standing != Some(Standing::Folder) => {
                    surveys.insert(user);
                }
                Entry::Folder => {}
                Entry::Nothing if below.as_os_str().is_empty() => {
                    watching.observe(&below, None, hint, now);
                    surveys.insert(user);
                }
                Entry::Nothing => {
                    for gone in watching.below(&below) {
                        watching.observe(&gone, None, hint, now);
                    }
                }
            }
        }
        self.survey(surveys).await;
    }

    // --- what has settled ---

    async fn settle(&mut self) {
        let users: Vec<User> = self.posts.keys().cloned().collect();
        for user in users {
            let now = self.now();
            let Some(post) = self.posts.get(&user) else { continue };
            let Some(watching) = &post.watching else { continue };
            if watching.next_wake().is_none_or(|at| at > now) {
                continue;
            }
            let due = watching.due(now);
            let root = post.root.clone();
            let mut found = self.on_ground(move |_| look_again(&root, due)).await;
            let Some(post) = self.posts.get_mut(&user) else { continue };
            found.retain(|below, _| !self.hints.waits(&path_of(&post.root, below)));
            if let Some(watching) = &mut post.watching {
                let delivery = watching.settle(&found, now);
                if !delivery.is_empty() {
                    post.delivery.append(delivery);
                    post.deliver_at = Some(Instant::now());
                }
            }
        }
    }

    /// Has the store accept what settled; what was seen is noted only after that.
    async fn deliver(&mut self) {
        let now = Instant::now();
        let due = self.posts.iter().filter(|(_, post)| post.deliver_at.is_some_and(|at| at <= now));
        let users: Vec<User> = due.map(|(user, _)| user.clone()).collect();
        for user in users {
            let User::Task(key) = &user else { continue };
            let Some(post) = self.posts.get_mut(&user) else { continue };
            let delivery = std::mem::take(&mut post.delivery);
            post.deliver_at = None;
            match accept(&self.shared, key, &delivery).await {
                Ok(()) => {}
                Err(TaskError::Store(error)) => {
                    warn!(%error, "file events were not accepted; tried again");
                    let post = self.posts.get_mut(&user).expect("found just above");
                    post.delivery = delivery;
                    post.deliver_at = Some(Instant::now() + RETRY);
                }
                Err(error) => {
                    debug!(%error, "a watched task is gone");
                    self.stale = Some(Instant::now());
                }
            }
        }
    }
}

async fn accept(shared: &Shared, key: &TargetKey, delivery: &Delivery) -> Result<(), TaskError> {
    let Delivery { events, seen, gone } = delivery;
    for batch in events.chunks(BATCH) {
        shared.store.accept_events(batch, shared.clock.now()).await?;
        shared.timer_hint.notify_one();
    }
    shared.store.note_watch_seen(key.task, &key.watch, seen, gone).await?;
    Ok(())
}

enum Woken {
    TasksChanged,
    Hint,
    Time,
}

async fn sleep_until_or_for_ever(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn path_of(root: &Path, below: &Path) -> PathBuf {
    // Joining an empty path would end the root with a slash, which no file has.
    if below.as_os_str().is_empty() { root.to_path_buf() } else { root.join(below) }
}

/// Leaves out what came since, and makes what was written since differ from what is found.
fn as_it_was(instant: Timestamp, root: &Path, mut there: Vec<(PathBuf, Fingerprint)>) -> Vec<(PathBuf, Fingerprint)> {
    let instant = instant.checked_sub(TICK).unwrap_or(Timestamp::MIN);
    there.retain_mut(|(below, found)| match since(&path_of(root, below), instant) {
        Since::Same => true,
        Since::Written => {
            found.mtime_ns = BEFORE_IT_WAS_WRITTEN;
            true
        }
        Since::New => false,
    });
    there
}

fn look_again(root: &Path, due: Vec<PathBuf>) -> HashMap<PathBuf, Option<Fingerprint>> {
    let found = |below: &Path| match entry(&path_of(root, below)) {
        Entry::File(file) => Some(file),
        Entry::Folder | Entry::Nothing => None,
    };
    due.into_iter().map(|below| (below.clone(), found(&below))).collect()
}

fn known(file: ow_store::SeenFile) -> (PathBuf, Fingerprint) {
    let ow_store::SeenFile { path, inode, size, modified } = file;
    (PathBuf::from(OsStr::from_bytes(&path)), Fingerprint { device: 0, inode, size, mtime_ns: modified })
}

/// What a person should know about a path: that it is polled, that it is not there, that it cannot be read.
fn warning(post: &Post, survey: &Survey) -> Option<Warning> {
    let root = text(post.root.as_os_str());
    let warning = |message: String, hint: &str| Warning {
        kind: WarningKind::Watch,
        about: root.clone(),
        message,
        hint: Some(hint.into()),
    };
    if let Some((folder, why)) = &survey.trouble {
        let folder = text(folder.as_os_str());
        return Some(warning(format!("`{folder}` is looked at every two seconds: {why}"), why.hint()));
    }
    if let Some((folder, why)) = survey.unreadable.first() {
        let folder = text(path_of(&post.root, folder).as_os_str());
        let hint = "check that the folder can be read by the account that owd runs under";
        return Some(warning(format!("`{folder}` cannot be read: {why}"), hint));
    }
    // A machine without task files is well.
    let watching = post.watching.as_ref()?;
    (survey.standing == Standing::Missing).then(|| {
        let task = &watching.target.task;
        warning(
            format!("task `{task}` watches `{root}`, which is not there; it fires once that appears"),
            "make the folder, or correct `path` in the task",
        )
    })
}
