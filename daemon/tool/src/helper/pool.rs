//! Helpers at hand: the start of a process must not stand between an answer and its call.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::Helper;
use super::process::{self, is_below};
use super::wire::{self, FromHelper};
use crate::{Background, shell};

/// Without work for so long, a spare helper goes.
const IDLE: Duration = Duration::from_secs(10);
const START_LIMIT: Duration = Duration::from_secs(20);
/// Helpers for each processor with which calls of a moment are served as fast as can be.
const ENOUGH: usize = 4;
/// For so long a call waits for one of those before yet another is started.
const MOMENT: Duration = Duration::from_millis(5);

/// Starts helpers, hands them on from call to call, and keeps as many spare ones as the machine has processors for as
/// long as there is work.
///
/// A call that finds none at hand gets the first that is free: one that another call is done with, or a fresh one.
/// No more of these are started at once than the machine has processors, and past some for each processor only after a
/// moment: many calls at once, each of a moment, then share a few helpers, where as many starts would hold up each
/// other. However many hang, another one is started.
#[derive(Clone)]
pub struct Helpers {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    program: PathBuf,
    args: Vec<OsString>,
    processors: usize,
    /// The one that had work last stands last.
    spare: Mutex<Vec<Spare>>,
    /// Calls without a helper, in the order in which they came. While there are any, no helper is spare.
    waiting: Mutex<VecDeque<oneshot::Sender<io::Result<Helper>>>>,
    starts: Semaphore,
    pub(super) background: Background,
    /// Those that live, with their start.
    live: Mutex<HashMap<u32, Option<u64>>>,
    closed: CancellationToken,
    tracker: TaskTracker,
}

struct Spare {
    helper: Helper,
    /// Cancelled when the spare is taken.
    taken: CancellationToken,
}

impl Helpers {
    /// Helpers are started as `program args…`, with nothing of the environment in which a key could stand.
    #[must_use]
    pub fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let shared = Shared {
            program,
            args,
            processors,
            spare: Mutex::default(),
            waiting: Mutex::default(),
            starts: Semaphore::new(processors),
            background: Background::default(),
            live: Mutex::default(),
            closed: CancellationToken::new(),
            tracker: TaskTracker::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A helper that waits for its job: the spare one, or the first that is free.
    ///
    /// # Errors
    ///
    /// If no process could be started.
    pub async fn ready(&self) -> io::Result<Helper> {
        while let Some(mut helper) = self.shared.take_spare() {
            if helper.is_alive() {
                return Ok(helper);
            }
        }
        let (give, given) = oneshot::channel();
        lock(&self.shared.waiting).push_back(give);
        Shared::start_for_waiting(&self.shared);
        given.await.unwrap_or_else(|_| Err(io::Error::other("owd stops")))
    }

    /// The commands that go on while their session does something else.
    #[must_use]
    pub fn background(&self) -> &Background {
        &self.shared.background
    }

    /// Starts a spare helper if there is none: work is about to come.
    pub fn warm(&self) {
        Shared::refill(&self.shared);
    }

    /// Whether the process descends from a helper of ours, so that it must not answer owd's questions.
    ///
    /// Blocks for as long as it takes to read some files of the kernel.
    #[must_use]
    pub fn started(&self, pid: u32) -> bool {
        let live: Vec<u32> = lock(&self.shared.live).keys().copied().collect();
        live.into_iter().any(|helper| is_below(pid, helper)) || super::leftover::is_marked(pid)
    }

    /// Ends the spare helpers and waits until all that ran here has been taken note of.
    pub async fn close(&self) {
        self.shared.closed.cancel();
        while let Some(helper) = self.shared.take_spare() {
            drop(helper);
        }
        lock(&self.shared.waiting).clear();
        self.shared.tracker.close();
        self.shared.tracker.wait().await;
    }
}

impl Shared {
    /// Cancelled when owd stops, or by the caller before.
    pub(super) fn stop(&self) -> CancellationToken {
        self.closed.child_token()
    }

    pub(super) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    pub(super) fn forget(&self, pid: u32) {
        lock(&self.live).remove(&pid);
    }

    /// Starts a helper in the background for the call that waits longest by then.
    fn start_for_waiting(shared: &Arc<Self>) {
        let own = Arc::clone(shared);
        shared.tracker.spawn(async move {
            let Ok(_place) = own.starts.acquire().await else { return };
            // Others may have become free meanwhile.
            if own.nobody_waits() {
                return;
            }
            if lock(&own.live).len() >= own.processors * ENOUGH {
                sleep(MOMENT).await;
                if own.nobody_waits() {
                    return;
                }
            }
            match Self::start(&own).await {
                Ok(helper) => Self::offer(&own, helper),
                Err(error) => {
                    if let Some(call) = lock(&own.waiting).pop_front() {
                        // A call that no longer waits needs no error.
                        drop(call.send(Err(error)));
                    }
                }
            }
        });
    }

    fn nobody_waits(&self) -> bool {
        lock(&self.waiting).iter().all(oneshot::Sender::is_closed)
    }

    /// Starts a spare in the background.
    fn refill(shared: &Arc<Self>) {
        if shared.closed.is_cancelled() || !lock(&shared.spare).is_empty() {
            return;
        }
        let own = Arc::clone(shared);
        shared.tracker.spawn(async move {
            // If it fails, the next call starts its own and reports what is wrong.
            if let Ok(helper) = Self::start(&own).await {
                Self::offer(&own, helper);
            }
        });
    }

    /// Gives a helper without work to the call that waits longest; where none waits it becomes a spare one, and goes
    /// when nobody took it for a while.
    pub(super) fn offer(shared: &Arc<Self>, helper: Helper) {
        let mut helper = helper;
        while let Some(call) = { lock(&shared.waiting).pop_front() } {
            // A call that no longer waits gives it back.
            let Err(Ok(back)) = call.send(Ok(helper)) else { return };
            helper = back;
        }
        let taken = CancellationToken::new();
        {
            let mut spare = lock(&shared.spare);
            if spare.len() >= shared.processors || shared.closed.is_cancelled() {
                return;
            }
            spare.push(Spare { helper, taken: taken.clone() });
        }
        let own = Arc::clone(shared);
        shared.tracker.spawn(async move {
            tokio::select! {
                () = taken.cancelled() => return,
                () = own.closed.cancelled() => {}
                () = sleep(IDLE) => {}
            }
            // Dropped after the lock: that takes a look at the pool.
            let gone = own.take_spare_if(|spare| spare.taken == taken);
            drop(gone);
        });
    }

    fn take_spare(&self) -> Option<Helper> {
        self.take_spare_if(|_| true)
    }

    /// The last spare helper of which this is true.
    fn take_spare_if(&self, wanted: impl Fn(&Spare) -> bool) -> Option<Helper> {
        let mut spare = lock(&self.spare);
        let at = spare.iter().rposition(wanted)?;
        let Spare { helper, taken } = spare.remove(at);
        taken.cancel();
        Some(helper)
    }

    async fn start(shared: &Arc<Self>) -> io::Result<Helper> {
        let mut command = Command::new(&shared.program);
        command.args(&shared.args).env_clear().envs(shell::allowed()).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let lost = || io::Error::other("a helper ended before it began");
        let pid = child.id().ok_or_else(lost)?;
        let start = process::start_ticks(pid);
        lock(&shared.live).insert(pid, start);
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Err(lost()) };
        let mut helper = Helper::new(child, pid, start, input, output, Arc::clone(shared));
        match timeout(START_LIMIT, wire::read(helper.output())).await {
            Ok(Ok(Some(FromHelper::Ready))) => Ok(helper),
            Ok(Ok(_)) => Err(lost()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "a helper did not begin in time")),
        }
    }
}

/// The data behind these locks is a value that each holder leaves whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
