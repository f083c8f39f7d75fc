use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long a test waits for a condition before it fails.
pub const LIMIT: Duration = Duration::from_mins(1);

/// Looks until `look` gives something; panics with `what` after [`LIMIT`].
///
/// # Panics
///
/// When the condition has not come true within the limit.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = monotonic();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(monotonic().saturating_sub(began) < LIMIT, "waited {LIMIT:?} for: {what}");
        pause();
    }
}

/// Monotonic time since boot.
#[must_use]
pub fn monotonic() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Gives the processor away between two looks at a condition.
pub(crate) fn pause() {
    std::thread::park_timeout(Duration::from_millis(5));
}
