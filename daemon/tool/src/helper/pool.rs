//! Helpers at hand: the start of a process must not stand between an answer and its call.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client::Helper;
use super::process::{self, is_below};
use super::wire::{self, FromHelper};
use crate::shell;

/// Without work for so long, the spare helper goes.
const IDLE: Duration = Duration::from_secs(10);
const START_LIMIT: Duration = Duration::from_secs(20);

/// Starts helpers and keeps at most one spare, for as long as there is work.
#[derive(Clone)]
pub struct Helpers {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    program: PathBuf,
    args: Vec<OsString>,
    spare: Mutex<Option<Spare>>,
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
        let shared = Shared {
            program,
            args,
            spare: Mutex::default(),
            live: Mutex::default(),
            closed: CancellationToken::new(),
            tracker: TaskTracker::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A helper that waits for its job: the spare one, or a fresh one.
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
        Shared::start(&self.shared).await
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

    /// Ends the spare helper and waits until all that ran here has been taken note of.
    pub async fn close(&self) {
        self.shared.closed.cancel();
        drop(self.shared.take_spare());
        self.shared.tracker.close();
        self.shared.tracker.wait().await;
    }
}

impl Shared {
    pub(super) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    pub(super) fn forget(&self, pid: u32) {
        lock(&self.live).remove(&pid);
    }

    /// Starts a spare in the background and drops it when nobody took it for a while.
    pub(super) fn refill(shared: &Arc<Self>) {
        if shared.closed.is_cancelled() || lock(&shared.spare).is_some() {
            return;
        }
        let own = Arc::clone(shared);
        shared.tracker.spawn(async move {
            // The next call will start its own and report what is wrong.
            let Ok(helper) = Self::start(&own).await else { return };
            let taken = CancellationToken::new();
            {
                let mut spare = lock(&own.spare);
                if spare.is_some() || own.closed.is_cancelled() {
                    return;
                }
                *spare = Some(Spare { helper, taken: taken.clone() });
            }
            let idle = tokio::select! {
                () = taken.cancelled() => return,
                () = own.closed.cancelled() => true,
                () = tokio::time::sleep(IDLE) => true,
            };
            debug_assert!(idle);
            let mut spare = lock(&own.spare);
            // Another spare may stand there by now.
            if !taken.is_cancelled() {
                drop(spare.take());
            }
        });
    }

    fn take_spare(&self) -> Option<Helper> {
        let Spare { helper, taken } = lock(&self.spare).take()?;
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
