use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::Wake;

/// Where a manual clock stands, and how often it was set or resumed.
#[derive(Clone, Copy, Debug)]
struct Stand {
    now: Timestamp,
    set: u64,
    resumed: u64,
    suspended: Duration,
    awake: Duration,
}

#[derive(Debug)]
pub(crate) struct Manual {
    stand: watch::Sender<Stand>,
}

impl Manual {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            stand: watch::Sender::new(Stand {
                now,
                set: 0,
                resumed: 0,
                suspended: Duration::ZERO,
                awake: Duration::ZERO,
            }),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.stand.borrow().now
    }

    pub(crate) fn suspended(&self) -> Duration {
        self.stand.borrow().suspended
    }

    pub(crate) fn awake(&self) -> Duration {
        self.stand.borrow().awake
    }

    pub(crate) async fn sleep(&self, at: Option<Timestamp>) -> Wake {
        let mut stands = self.stand.subscribe();
        let began = *stands.borrow_and_update();
        loop {
            let stand = *stands.borrow_and_update();
            if stand.resumed != began.resumed {
                return Wake::Resumed;
            }
            if stand.set != began.set {
                return Wake::ClockSet;
            }
            if at.is_some_and(|at| at <= stand.now) {
                return Wake::Due;
            }
            stands.changed().await.expect("the sender lives as long as this clock");
        }
    }
}

/// Moves a manual clock and wakes who sleeps on it.
#[derive(Clone, Debug)]
pub struct ManualHand(Arc<Manual>);

impl ManualHand {
    pub(crate) const fn new(manual: Arc<Manual>) -> Self {
        Self(manual)
    }

    /// Lets time pass until `now`: who sleeps to an instant before it wakes as due.
    pub fn set(&self, now: Timestamp) {
        self.0.stand.send_modify(|stand| {
            stand.awake += Duration::try_from(now.duration_since(stand.now)).unwrap_or_default();
            stand.now = now;
        });
    }

    /// Sets the clock, back or ahead, as a person or NTP does.
    pub fn jump(&self, now: Timestamp) {
        self.0.stand.send_modify(|stand| {
            stand.now = now;
            stand.set += 1;
        });
    }

    /// The machine was suspended and wakes at `now`.
    pub fn resume(&self, now: Timestamp) {
        self.0.stand.send_modify(|stand| {
            stand.suspended += Duration::try_from(now.duration_since(stand.now)).unwrap_or_default();
            stand.now = now;
            stand.resumed += 1;
        });
    }

    /// How many sleep on this clock.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.0.stand.receiver_count()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Clock, Wake};

    fn at(text: &str) -> jiff::Timestamp {
        text.parse().expect("an instant")
    }

    #[tokio::test]
    async fn a_sleep_says_why_it_ended() {
        let (clock, hand) = Clock::manual(at("2026-03-03T06:00:00Z"));
        let due = Some(at("2026-03-03T07:00:00Z"));
        let (wake, ()) = tokio::join!(clock.wake_at(due), async { hand.set(at("2026-03-03T07:00:00Z")) });
        assert_eq!(wake, Wake::Due);
        let (wake, ()) = tokio::join!(clock.wake_at(None), async { hand.jump(at("2026-03-03T05:00:00Z")) });
        assert_eq!(wake, Wake::ClockSet);
        let (wake, ()) = tokio::join!(clock.wake_at(due), async { hand.resume(at("2026-03-03T05:30:00Z")) });
        assert_eq!(wake, Wake::Resumed);
        assert_eq!(clock.now(), at("2026-03-03T05:30:00Z"));
    }

    #[tokio::test]
    async fn an_instant_that_has_passed_does_not_wait() {
        let (clock, _hand) = Clock::manual(at("2026-03-03T06:00:00Z"));
        assert_eq!(clock.wake_at(Some(at("2026-03-03T05:00:00Z"))).await, Wake::Due);
    }

    #[tokio::test]
    async fn a_jump_wakes_every_sleeper_and_time_that_is_not_yet_enough_none() {
        let (clock, hand) = Clock::manual(at("2026-03-03T06:00:00Z"));
        let due = Some(at("2026-03-03T07:00:00Z"));
        let (other, last) = (clock.clone(), at("2026-03-03T04:00:00Z"));
        let (one, two, ()) = tokio::join!(clock.wake_at(due), other.wake_at(None), async {
            hand.set(at("2026-03-03T06:59:59Z"));
            assert_eq!(hand.sleepers(), 2);
            hand.jump(last);
        });
        assert_eq!((one, two, clock.now(), hand.sleepers()), (Wake::ClockSet, Wake::ClockSet, last, 0));
    }

    #[test]
    fn only_time_that_passes_counts_as_awake() {
        let (clock, hand) = Clock::manual(at("2026-03-03T06:00:00Z"));
        hand.set(at("2026-03-03T07:00:00Z"));
        hand.jump(at("2026-03-03T09:00:00Z"));
        hand.jump(at("2026-03-03T08:00:00Z"));
        hand.resume(at("2026-03-03T15:00:00Z"));
        assert_eq!(clock.awake(), std::time::Duration::from_hours(1));
    }

    #[tokio::test]
    async fn a_suspend_is_seen_by_who_was_not_asleep() {
        let (clock, hand) = Clock::manual(at("2026-03-03T06:00:00Z"));
        let before = clock.suspended();
        hand.set(at("2026-03-03T07:00:00Z"));
        assert_eq!(clock.suspended(), before);
        hand.resume(at("2026-03-03T15:00:00Z"));
        assert_eq!(clock.suspended(), before + std::time::Duration::from_hours(8));
    }
}
