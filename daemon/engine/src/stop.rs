use std::sync::Arc;
use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

/// How a worker tells the engine to leave a run. The first reason counts.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    token: CancellationToken,
    reason: Arc<OnceLock<StopReason>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StopReason {
    /// owd drains, or the kill switch was thrown: the run is interrupted and goes on later.
    Interrupt,
    /// The run ends as cancelled, for this reason.
    Cancel { why: String },
}

impl Stop {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub fn interrupt(&self) {
        self.stop(StopReason::Interrupt);
    }

    pub fn cancel(&self, why: impl Into<String>) {
        self.stop(StopReason::Cancel { why: why.into() });
    }

    fn stop(&self, reason: StopReason) {
        // A second reason is of no use: the run is being left already.
        if self.reason.set(reason).is_ok() {
            self.token.cancel();
        }
    }

    /// Why the run must be left; none: it goes on.
    #[must_use]
    pub fn reason(&self) -> Option<&StopReason> {
        self.reason.get()
    }

    /// Cancelled once a reason stands.
    #[must_use]
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }
}
