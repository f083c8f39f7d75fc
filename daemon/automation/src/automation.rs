use std::sync::Arc;

use ow_model::RunId;
use ow_store::StoreError;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::info;

use crate::handle::{Handle, Shared};
use crate::network;
use crate::parts::Parts;
use crate::retention::compare_zones;
use crate::task_files::TaskFiles;
use crate::timer::Timer;
use crate::watch::{OpenWatcher, Watcher, open_system_watcher};
use crate::workers::Workers;

/// Requests to read the task files again that may wait.
const RELOADS: usize = 8;

/// What of the machine a test replaces.
pub(crate) struct Surroundings {
    pub(crate) open_watcher: OpenWatcher,
    pub(crate) network: fn() -> bool,
}

/// Automation at work, from its start to its drain. Dropped without one it drains all the same, and nobody waits.
#[derive(Debug)]
pub struct Automation {
    handle: Handle,
    tasks: TaskTracker,
    stop: DropGuard,
}

impl Automation {
    /// Opens a life in the store, loads the task files and begins to claim, hand out and watch.
    ///
    /// When this returns, the tasks are those of the files. A broken file is a warning, no error.
    pub async fn start(parts: Parts) -> Result<Self, StoreError> {
        let surroundings = Surroundings { open_watcher: Arc::new(open_system_watcher), network: network::is_up };
        Self::start_in(parts, surroundings).await
    }

    pub(crate) async fn start_in(parts: Parts, surroundings: Surroundings) -> Result<Self, StoreError> {
        let Surroundings { open_watcher, network } = surroundings;
        let Parts { store, clock, performer, settings, check } = parts;
        let (reload, reloads) = mpsc::channel(RELOADS);
        let shared = Arc::new(Shared::new(store, clock, settings, network, reload));
        let started = shared.clock.now();
        // 80 random bits name a life as well as a run.
        let life = RunId::random().to_string();
        let start = shared.store.begin_life(&life, started).await?;
        info!(interrupted = start.interrupted, last_seen = ?start.last_seen, "automation starts");
        compare_zones(&shared).await;
        if start.paused_all {
            shared.running.halt();
        }
        // From here on the store calls a run ready also if all that it waits for is the network; the timer looks.
        drop(shared.store.take_runs(0, 0, true, started).await?);
        let mut files = TaskFiles::new(Arc::clone(&shared), check);
        files.load().await;
        // What starts with owd is told by the files as they are now.
        shared.store.fire_startup(&life, shared.clock.now()).await?;

        let (stop, tasks, changed) = (CancellationToken::new(), TaskTracker::new(), Arc::new(Notify::new()));
        let workers = Workers::new(Arc::clone(&shared), performer);
        let timer = Timer::new(Arc::clone(&shared), workers, started, stop.clone());
        let watcher = Watcher::new(Arc::clone(&shared), open_watcher, Arc::clone(&changed), stop.clone());
        tasks.spawn(timer.run());
        tasks.spawn(watcher.run());
        tasks.spawn(files.run(changed, reloads, stop.clone()));
        tasks.close();
        Ok(Self { handle: Handle { shared }, tasks, stop: stop.drop_guard() })
    }

    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops: nothing new starts; what runs gets the grace period, the rest is interrupted and goes on at the next
    /// start. When this returns, all of it is durable, but for runs that did not stop, which the log names.
    pub async fn drain(self) {
        drop(self.stop);
        self.tasks.wait().await;
    }
}
