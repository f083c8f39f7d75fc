//! Linux: a `timerfd` on the real-time clock, absolute, cancelled when the clock is set.

use std::os::fd::OwnedFd;
use std::time::Duration;

use jiff::Timestamp;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::Wake;

/// Boot time runs on in suspend and monotonic time does not: more than this apart means that the machine slept.
const SUSPENDED: Duration = Duration::from_millis(100);

pub(crate) struct SystemTimer;

impl SystemTimer {
    /// Sleeps on a timer of its own; the kernel wakes it, nothing ticks.
    pub(crate) async fn sleep(at: Option<Timestamp>) -> Wake {
        let asleep = time_asleep();
        // Without an instant the timer still stands, far away: only so does the kernel tell of a set clock.
        let at = at.unwrap_or(Timestamp::MAX);
        let waited = wait(at).await;
        // The instant may have come in the suspend; that there was one matters more.
        if time_asleep().saturating_sub(asleep) > SUSPENDED {
            return Wake::Resumed;
        }
        match waited {
            Ok(()) => Wake::Due,
            Err(_) => Wake::ClockSet,
        }
    }
}

/// Waits until the instant; an error means that the clock was set, or that the system has no timer to give.
async fn wait(at: Timestamp) -> Result<(), Errno> {
    let (Ok(timer), false) = (timer_at(at), at <= crate::clock::system_now()) else {
        return fall_back(at).await;
    };
    #[expect(
        deprecated,
        reason = "unsound for a type that gives out another descriptor each time; an OwnedFd does not"
    )]
    let Ok(timer) = AsyncFd::with_interest(timer, Interest::READABLE) else { return fall_back(at).await };
    loop {
        let Ok(mut ready) = timer.readable().await else { return fall_back(at).await };
        let mut expirations = [0; 8];
        match rustix::io::read(timer.get_ref(), &mut expirations) {
            Ok(_) => return Ok(()),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(error) => return Err(error),
        }
    }
}

fn timer_at(at: Timestamp) -> Result<OwnedFd, Errno> {
    let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let value = Timespec {
        tv_sec: at.as_second().max(0),
        // An instant of exactly 0 would disarm the timer.
        tv_nsec: i64::from(at.subsec_nanosecond().max(1)),
    };
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(&timer, flags, &Itimerspec { it_interval: none, it_value: value })?;
    Ok(timer)
}

/// Without a timer (no file handles left) the sleep is short, so that a set clock is noticed too.
async fn fall_back(at: Timestamp) -> Result<(), Errno> {
    const LONGEST: Duration = Duration::from_secs(30);
    let left = at.duration_since(crate::clock::system_now());
    let left = Duration::try_from(left).unwrap_or_default();
    tokio::time::sleep(left.min(LONGEST)).await;
    if left > LONGEST { Err(Errno::CANCELED) } else { Ok(()) }
}

/// How long the machine has been suspended since it booted.
pub(crate) fn time_asleep() -> Duration {
    read(ClockId::Boottime).saturating_sub(time_awake())
}

/// How long the machine has been awake since it booted.
pub(crate) fn time_awake() -> Duration {
    read(ClockId::Monotonic)
}

fn read(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::SignedDuration;

    use crate::{Clock, Wake};

    #[tokio::test]
    async fn a_sleep_ends_at_its_instant_and_not_before() {
        let clock = Clock::system();
        let at = clock.now() + SignedDuration::from_millis(30);
        assert_eq!(clock.wake_at(Some(at)).await, Wake::Due);
        assert!(clock.now() >= at);
    }

    #[tokio::test]
    async fn an_instant_that_has_passed_does_not_wait() {
        let clock = Clock::system();
        assert_eq!(clock.wake_at(Some(clock.now() - SignedDuration::from_secs(5))).await, Wake::Due);
    }

    #[tokio::test]
    async fn without_an_instant_it_sleeps_on() {
        let slept = tokio::time::timeout(Duration::from_millis(30), Clock::system().wake_at(None)).await;
        assert!(slept.is_err(), "{slept:?}");
    }

    #[tokio::test]
    async fn the_time_awake_goes_on_with_the_wall() {
        let clock = Clock::system();
        let (began, before) = (clock.now(), clock.awake());
        clock.wake_at(Some(began + SignedDuration::from_millis(30))).await;
        assert!(clock.awake() >= before + Duration::from_millis(29));
    }

    #[test]
    fn the_time_asleep_never_shrinks() {
        let clock = Clock::system();
        let before = clock.suspended();
        assert!(clock.suspended() + Duration::from_millis(1) >= before);
    }
}
