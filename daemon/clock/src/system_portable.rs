//! Elsewhere: short sleeps on the runtime's timer, each compared with the wall clock.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;

use crate::Wake;

/// How long one sleep is at most: a set clock or a resume is noticed within this.
const LONGEST: Duration = Duration::from_secs(30);
/// A wall clock that moved this much more or less than the sleep was set, or stood through a suspend.
const JUMP: i128 = 2_000;

pub(crate) struct SystemTimer;

impl SystemTimer {
    pub(crate) async fn sleep(at: Option<Timestamp>) -> Wake {
        loop {
            let before = crate::clock::system_now();
            let left = at.map_or(LONGEST, |at| Duration::try_from(at.duration_since(before)).unwrap_or_default());
            if left.is_zero() {
                return Wake::Due;
            }
            let began = tokio::time::Instant::now();
            tokio::time::sleep(left.min(LONGEST)).await;
            let passed = crate::clock::system_now().duration_since(before).as_millis();
            let jumped = passed - i128::try_from(began.elapsed().as_millis()).unwrap_or(i128::MAX);
            if jumped > JUMP {
                return Wake::Resumed;
            }
            if jumped < -JUMP {
                return Wake::ClockSet;
            }
        }
    }
}

/// These systems do not tell.
pub(crate) fn time_asleep() -> Duration {
    Duration::ZERO
}

/// Since the first reading; the runtime's clock stands still in suspend.
pub(crate) fn time_awake() -> Duration {
    static BEGAN: LazyLock<tokio::time::Instant> = LazyLock::new(tokio::time::Instant::now);
    BEGAN.elapsed()
}
