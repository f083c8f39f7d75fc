use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::manual::{Manual, ManualHand};
use crate::system::{SystemTimer, time_asleep, time_awake};

/// The wall clock. Clones share one source.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<Manual>),
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wake {
    /// The instant has come.
    Due,
    /// Somebody set the clock; it may stand before the instant, or long after it.
    ClockSet,
    /// The machine was suspended and is awake again.
    Resumed,
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands still until its hand moves it.
    #[must_use]
    pub fn manual(now: Timestamp) -> (Self, ManualHand) {
        let manual = Arc::new(Manual::new(now));
        (Self(Source::Manual(Arc::clone(&manual))), ManualHand::new(manual))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => system_now(),
            Source::Manual(manual) => manual.now(),
        }
    }

    /// How long the machine has been suspended since it booted; zero for ever where the system does not tell (all but
    /// Linux).
    ///
    /// It only grows, to within a millisecond: two readings tell of a suspend between them also to who was not asleep
    /// on this clock at the time.
    #[must_use]
    pub fn suspended(&self) -> Duration {
        match &self.0 {
            Source::System => time_asleep(),
            Source::Manual(manual) => manual.suspended(),
        }
    }

    /// How long the machine has been awake since an instant before the first reading; no suspend is in it.
    ///
    /// Nobody sets it: two readings tell by how much [`Clock::now`] should have moved, also to who was not asleep on
    /// this clock when it was set.
    #[must_use]
    pub fn awake(&self) -> Duration {
        match &self.0 {
            Source::System => time_awake(),
            Source::Manual(manual) => manual.awake(),
        }
    }

    /// Sleeps until `at`, or until the clock is set or the machine resumes; for ever without an instant.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses no time, but a jump of the clock is told only to who sleeps: it may have come just before the
    /// drop, or between two sleeps. After a wake from elsewhere compare [`Clock::now`], [`Clock::awake`] and
    /// [`Clock::suspended`] with what you knew.
    pub async fn wake_at(&self, at: Option<Timestamp>) -> Wake {
        match &self.0 {
            Source::System => SystemTimer::sleep(at).await,
            Source::Manual(manual) => manual.sleep(at).await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "here is where the wall clock is read")]
pub(crate) fn system_now() -> Timestamp {
    Timestamp::now()
}
