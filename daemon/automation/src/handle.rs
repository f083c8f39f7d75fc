use std::sync::Arc;

use ow_clock::Clock;
use ow_model::RunId;
use ow_store::{Store, StoreError};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::arrival::{self, Arrival, Sender, Wanted};
use crate::delivery::{self, Delivered, Delivery, Posted};
use crate::parts::Settings;
use crate::running::Running;
use crate::warnings::{Warning, Warnings};

/// How the rest of owd reaches automation.
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

/// What timer, watches, task files and handles have in common.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    /// Whether there is a network.
    pub(crate) network: fn() -> bool,
    pub(crate) running: Running,
    pub(crate) warnings: Warnings,
    /// Something may be due.
    pub(crate) timer_hint: Notify,
    /// A task may have been saved or deleted.
    pub(crate) watch_hint: Notify,
    /// Asks for the task files to be read again; the answer is what is wrong with them.
    pub(crate) reload: mpsc::Sender<oneshot::Sender<Vec<String>>>,
    /// Held while the kill switch is moved, so that store and runs agree on its position.
    kill_switch: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        settings: Settings,
        network: fn() -> bool,
        reload: mpsc::Sender<oneshot::Sender<Vec<String>>>,
    ) -> Self {
        Self {
            store,
            clock,
            settings,
            network,
            running: Running::default(),
            warnings: Warnings::default(),
            timer_hint: Notify::new(),
            watch_hint: Notify::new(),
            reload,
            kill_switch: tokio::sync::Mutex::new(()),
        }
    }
}

impl Handle {
    /// Says that the store has changed: a task, an answer, an event, a run by hand. A hint; the store tells.
    pub fn wake(&self) {
        self.shared.timer_hint.notify_one();
        self.shared.watch_hint.notify_one();
    }

    /// The same where no task was saved or deleted, so that nobody has to look for watches.
    pub fn wake_for_work(&self) {
        self.shared.timer_hint.notify_one();
    }

    /// Offers a message of a Slack channel to the tasks that listen to it, durably.
    pub async fn offer_post(&self, posted: &Posted) -> Result<Delivered, StoreError> {
        let delivered = delivery::accept_post(&*self.shared.store, posted, self.shared.clock.now()).await?;
        if delivered.new > 0 {
            self.wake_for_work();
        }
        Ok(delivered)
    }

    /// Offers a delivery to the tasks that name its hook, durably.
    pub async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
        let delivered = delivery::accept(&*self.shared.store, delivery, self.shared.clock.now()).await?;
        if delivered.new > 0 {
            self.wake_for_work();
        }
        Ok(delivered)
    }

    /// Whether some task would run on such a mail.
    pub async fn wants_mail(&self, arrival: &Arrival) -> Result<Wanted, StoreError> {
        arrival::wanted(&*self.shared.store, arrival).await
    }

    /// Offers a mail to the tasks that run on it, durably.
    pub async fn take_mail(&self, arrival: &Arrival, sender: Sender) -> Result<Delivered, StoreError> {
        let delivered = arrival::accept(&*self.shared.store, arrival, sender, self.shared.clock.now()).await?;
        if delivered.new > 0 {
            self.wake_for_work();
        }
        Ok(delivered)
    }

    /// The kill switch: nothing starts from here on, and what runs is interrupted, to go on after
    /// [`Handle::resume_all`]. Returns when that is durable; runs take a moment longer to stand still.
    pub async fn pause_all(&self, by: &str) -> Result<(), StoreError> {
        let _moved = self.shared.kill_switch.lock().await;
        self.shared.store.pause_all(by, self.shared.clock.now()).await?;
        self.shared.running.halt();
        Ok(())
    }

    pub async fn resume_all(&self) -> Result<(), StoreError> {
        let _moved = self.shared.kill_switch.lock().await;
        // Released first: a run handed out right after the store has resumed must not meet the old halt.
        let was_halted = self.shared.running.release();
        let resumed = self.shared.store.resume_all(self.shared.clock.now()).await;
        if resumed.is_err() && was_halted {
            self.shared.running.halt();
        }
        self.wake();
        resumed
    }

    /// Tells a running run to end as cancelled. One that no worker has is left alone.
    #[expect(clippy::unused_async, reason = "stopping a run may come to wait for its worker")]
    pub async fn stop_run(&self, run: RunId, why: &str) {
        self.shared.running.cancel(run, why);
    }

    /// Reads the task files again and returns all that is wrong with them, a line each.
    pub async fn reload_tasks(&self) -> Vec<String> {
        let (answer, answered) = oneshot::channel();
        if self.shared.reload.send(answer).await.is_err() {
            return vec![]; // owd drains; nothing is loaded any more.
        }
        answered.await.unwrap_or_default()
    }

    /// What a person should know, as it stands now.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        self.shared.warnings.all()
    }

    /// How many runs workers have.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.running.count()
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("running", &self.running()).finish_non_exhaustive()
    }
}
