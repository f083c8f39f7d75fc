use std::sync::Arc;

use jiff::Timestamp;
use ow_model::Span;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use crate::handle::Shared;

/// After the start, first comes the work that waited.
const AFTER_START: Span = Span::from_secs(15 * 60);
const PERIOD: Span = Span::from_secs(24 * 3600);

/// Lets go of what retention no longer keeps and compares the zones: a pass a day, in small steps, begun while nothing
/// runs.
pub(crate) struct Retention {
    due: Timestamp,
    passes: TaskTracker,
}

impl Retention {
    pub(crate) fn new(started: Timestamp) -> Self {
        Self { due: started + AFTER_START.signed(), passes: TaskTracker::new() }
    }

    /// When the timer should look here, if nothing runs. While something does, the end of that is early enough.
    pub(crate) const fn due(&self) -> Timestamp {
        self.due
    }

    /// Begins a pass if one is due. It goes on beside the timer, which never waits for it.
    pub(crate) fn begin(&mut self, shared: &Arc<Shared>, now: Timestamp, stop: &CancellationToken) {
        if now < self.due {
            return;
        }
        self.due = now + PERIOD.signed();
        self.passes.spawn(pass(Arc::clone(shared), stop.clone()));
    }

    /// Waits for a pass that was begun; it ends with its step once `stop` is cancelled.
    pub(crate) async fn end(self) {
        self.passes.close();
        self.passes.wait().await;
    }
}

async fn pass(shared: Arc<Shared>, stop: CancellationToken) {
    compare_zones(&shared).await;
    let mut steps = 0_u64;
    while !stop.is_cancelled() {
        match shared.store.retain(&shared.settings.retention, shared.clock.now()).await {
            Ok(true) => steps += 1,
            Ok(false) => break,
            Err(error) => {
                warn!(%error, "retention was given up; the next pass is in a day");
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    debug!(steps, "retention pass ended");
}

/// A tz database that was updated while owd runs is noticed within a day, one that was before, at the start.
pub(crate) async fn compare_zones(shared: &Shared) {
    match shared.store.compare_zones(shared.clock.now()).await {
        Ok(0) => {}
        Ok(zones) => {
            info!(zones, "the tz database has changed; what is next is computed anew");
            shared.timer_hint.notify_one();
        }
        Err(error) => warn!(%error, "zones were not compared; the next time is in a day"),
    }
}
