use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ow_clock::{Clock, Wake};
use ow_model::Span;
use ow_store::{Claim, FreeHands, HandedOut, StoreError, WakeTimes};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::handle::Shared;
use crate::retention::Retention;
use crate::warnings::{Warning, WarningKind};
use crate::workers::{Free, Returned, Workers};

/// Tasks looked at in one transaction: a hundred due at once are one commit, and a thousand do not keep an
/// answer waiting for the writer.
const CLAIM_LIMIT: usize = 256;
/// How often the network is looked for, and only while a run waits for it.
const NETWORK_PERIOD: Span = Span::from_secs(60);
const MOMENT: Duration = Duration::from_secs(1);
/// A store that refuses is asked again after this, then after twice the time, up to a minute.
const FIRST_RETRY: Span = Span::from_secs(1);
const LAST_RETRY: Span = Span::from_secs(60);
/// A clock set ahead by no more than this was put right; what lies between is still on time.
const AHEAD: Span = Span::from_secs(2);
/// After so many rounds that changed nothing the store is taken to be at fault. Events of one instant take a few.
const ROUNDS: u32 = 64;
/// A machine that was suspended for less was not: its two clocks are read one after the other.
const SUSPENDED: Duration = Duration::from_millis(100);
/// How long interrupted runs may take to become durable as such.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The one timer of all tasks: sleeps until something is due, claims it, hands runs to workers.
pub(crate) struct Timer {
    shared: Arc<Shared>,
    workers: Workers,
    retention: Retention,
    stop: CancellationToken,
    /// Since when owd has been awake without a gap.
    awake_since: Timestamp,
    /// What the clock said last.
    mark: Reading,
    /// The clock was set back and the store does not know yet.
    set_back: bool,
    /// What the store said last; none once something may have changed.
    known: Option<WakeTimes>,
    retry: Option<Span>,
    /// When the network was last found to be there.
    network_seen: Option<Instant>,
}

/// What the clock says of one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    now: Timestamp,
    awake: Duration,
    suspended: Duration,
}

impl Reading {
    /// Reads again what was not read at once: a busy machine may stop owd between two clocks, and that is no jump.
    fn of(clock: &Clock) -> Self {
        const TRIES: u32 = 4;

        let mut reading = Self { awake: clock.awake(), suspended: clock.suspended(), now: clock.now() };
        for _ in 0..TRIES {
            let awake = clock.awake();
            if awake.saturating_sub(reading.awake) < SUSPENDED {
                break;
            }
            reading = Self { awake, suspended: clock.suspended(), now: clock.now() };
        }
        reading
    }
}

/// Why the timer is awake.
enum Woken {
    Clock(Wake),
    Hint,
    Returned(Returned),
    HandedOut(HandedOut),
}

impl Timer {
    pub(crate) fn new(shared: Arc<Shared>, workers: Workers, started: Timestamp, stop: CancellationToken) -> Self {
        let retention = Retention::new(started);
        let mark = Reading { now: started, ..Reading::of(&shared.clock) };
        Self {
            shared,
            workers,
            retention,
            stop,
            awake_since: started,
            mark,
            set_back: false,
            known: None,
            retry: None,
            network_seen: None,
        }
    }

    /// Runs until `stop` is cancelled, then drains: nothing new starts, and all that runs is durable at the end.
    pub(crate) async fn run(mut self) {
        let store = Arc::clone(&self.shared.store);
        loop {
            let wake_at = self.tend().await;
            self.leave_hands().await;
            let woken = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                handed_out = store.handed_out() => Woken::HandedOut(handed_out),
                returned = self.workers.next_returned() => Woken::Returned(returned),
                () = self.shared.timer_hint.notified() => Woken::Hint,
                wake = self.shared.clock.wake_at(wake_at) => Woken::Clock(wake),
            };
            self.woken(woken).await;
        }
        self.drain().await;
    }

    async fn woken(&mut self, woken: Woken) {
        match woken {
            // What the store said is still so; asking again would only make the claim late.
            Woken::Clock(Wake::Due) => {}
            Woken::Clock(Wake::Resumed | Wake::ClockSet) | Woken::Hint => self.known = None,
            Woken::Returned(returned) => {
                self.settle(returned).await;
                self.known = None;
            }
            Woken::HandedOut(handed_out) => {
                self.start(handed_out);
                self.known = None;
            }
        }
    }

    async fn settle(&mut self, returned: Returned) {
        if let Err(error) = self.workers.settle(returned).await {
            warn!(%error, "a run whose worker panicked is still open in the store; it goes on at the next start");
        }
    }

    /// Does what is due; returns when to look again, at the latest.
    async fn tend(&mut self) -> Option<Timestamp> {
        match self.do_due().await {
            Ok(wake_at) => {
                if self.retry.take().is_some() {
                    self.shared.warnings.settle(WarningKind::Store, "store");
                }
                wake_at
            }
            Err(error) => {
                let pause = self.retry.map_or(FIRST_RETRY, |last| Span::from_millis(last.millis() * 2).min(LAST_RETRY));
                self.retry = Some(pause);
                self.known = None;
                self.shared.warnings.stand(Warning {
                    kind: WarningKind::Store,
                    about: "store".into(),
                    message: format!("nothing is started: {error}"),
                    hint: Some("see `owctl doctor`; owd tries again by itself".into()),
                });
                Some(self.shared.clock.now() + pause.signed())
            }
        }
    }

    /// One path for start, catch-up and tick: asks what is due until nothing is.
    async fn do_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let store = Arc::clone(&self.shared.store);
        let mut rounds = 0_u32;
        loop {
            let now = self.present();
            if self.set_back {
                store.clock_changed(now).await?;
                self.set_back = false;
            }
            let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
            let times = match self.known.take() {
                Some(times) => times,
                None => store.wake_times().await?,
            };
            let free = self.workers.free();
            let ready = (times.ready || is_due(times.runs)) && free.any_at_all();
            let chats = (times.ready_chats || is_due(times.runs)) && free.chats > 0;
            if !(is_due(times.tasks) || is_due(times.items) || ready || chats) {
                return Ok(self.rest(times, now, Network::NotNeeded));
            }
            if is_due(times.items) {
                let tended = store.tend_items(now).await?;
                debug!(reminded = tended.reminded.len(), expired = tended.expired.len(), "items were tended");
            }
            if chats || is_due(times.items) {
                self.hand_out_chats(now).await?;
            }
            let network = if is_due(times.tasks) {
                self.claim(now).await?
            } else if ready || is_due(times.items) {
                self.hand_out(now).await?
            } else {
                Network::NotNeeded
            };
            let left = store.wake_times().await?;
            let stands = |before: Option<Timestamp>, after: Option<Timestamp>| is_due(after) && before == after;
            rounds = if stands(times.tasks, left.tasks) || stands(times.items, left.items) { rounds + 1 } else { 0 };
            if rounds > ROUNDS {
                let what = "what is due stays due although it was seen to".into();
                return Err(StoreError::Failed { what });
            }
            if !(is_due(left.tasks) || is_due(left.items) || is_due(left.runs)) {
                // What is ready still found no worker, or no network.
                return Ok(self.rest(left, now, network));
            }
            self.known = Some(left);
        }
    }

    /// Claims all that is due and hands it out, a batch at a time.
    async fn claim(&mut self, now: Timestamp) -> Result<Network, StoreError> {
        let claim = Claim { now, awake_since: self.awake_since, limit: CLAIM_LIMIT };
        loop {
            self.leave_hands().await;
            let claimed = self.shared.store.claim_due(&claim).await;
            // Started first: what it stops may be one of them.
            self.take_back_hands().await;
            let claimed = claimed?;
            for (run, why) in &claimed.stop {
                info!(%run, why, "a running run is stopped");
                self.shared.running.cancel(*run, why);
            }
            let network = self.hand_out(now).await?;
            if !claimed.more {
                return Ok(network);
            }
        }
    }

    /// Gives queued runs to free workers: first those that go on after an answer.
    async fn hand_out(&mut self, now: Timestamp) -> Result<Network, StoreError> {
        let store = Arc::clone(&self.shared.store);
        self.take_back_hands().await;
        let up = self.network_is_up();
        let free = self.workers.free();
        for taken in store.take_runs(free.any + free.kept, 0, up, now).await? {
            self.workers.start_answered(taken);
        }
        let free = self.workers.free();
        if free.any > 0 {
            for taken in store.take_runs(0, free.any, up, now).await? {
                self.workers.start_fresh(taken);
            }
        }
        if up || !self.workers.free().any_at_all() {
            return Ok(Network::NotNeeded);
        }
        // Takes nothing: from here on the store calls those ready that wait for the network alone.
        drop(store.take_runs(0, 0, true, now).await?);
        Ok(Network::Missing)
    }

    /// Leaves the workers that are free with the store: what becomes ready while the timer sleeps needs no flush more.
    async fn leave_hands(&mut self) {
        self.take_back_hands().await;
        let Free { any, kept, chats } = self.workers.free();
        self.shared.store.leave_hands(FreeHands { any, kept, chats });
    }

    /// From its return on the store gives nothing to workers until they are left to it again.
    async fn take_back_hands(&mut self) {
        let handed_out = self.shared.store.take_back_hands().await;
        self.start(handed_out);
    }

    fn start(&mut self, handed_out: HandedOut) {
        let HandedOut { answered, fresh, chats } = handed_out;
        for taken in answered {
            self.workers.start_answered(taken);
        }
        for taken in fresh {
            self.workers.start_fresh(taken);
        }
        for taken in chats {
            self.workers.start_chat(taken);
        }
    }

    /// Gives chats that have something to do to the workers that are theirs alone.
    async fn hand_out_chats(&mut self, now: Timestamp) -> Result<(), StoreError> {
        self.take_back_hands().await;
        let free = self.workers.free().chats;
        if free > 0 {
            for taken in self.shared.store.take_chats(free, now).await? {
                self.workers.start_chat(taken);
            }
        }
        Ok(())
    }

    /// A network that was there a moment ago is taken to be there: looking costs as much as handing out.
    fn network_is_up(&mut self) -> bool {
        if self.network_seen.is_none_or(|seen| seen.elapsed() > MOMENT) {
            self.network_seen = (self.shared.network)().then(Instant::now);
        }
        self.network_seen.is_some()
    }

    /// When to look again although nobody asked.
    fn rest(&mut self, times: WakeTimes, now: Timestamp, network: Network) -> Option<Timestamp> {
        self.known = Some(times);
        let mut wake_at = [times.tasks, times.items, times.runs].into_iter().flatten().filter(|at| *at > now).min();
        let mut no_later_than = |at: Timestamp| wake_at = Some(wake_at.map_or(at, |earlier| earlier.min(at)));
        if network == Network::Missing && times.ready {
            no_later_than(now + NETWORK_PERIOD.signed());
        }
        if self.workers.is_idle() {
            self.retention.begin(&self.shared, now, &self.stop);
            no_later_than(self.retention.due());
        }
        wake_at
    }

    /// Returns the present, with note taken of how the clock moved since it was asked last.
    ///
    /// A jump is told only to who sleeps, and the news is lost with the sleep when something else wakes the timer; so
    /// it is read off the clock itself.
    fn present(&mut self) -> Timestamp {
        let before = std::mem::replace(&mut self.mark, Reading::of(&self.shared.clock));
        let Reading { now, awake, suspended } = self.mark;
        let (then, slept) = (before.now, suspended.saturating_sub(before.suspended));
        let passed = awake.saturating_sub(before.awake).saturating_add(slept);
        let expected = then.saturating_add(SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX));
        let expected = expected.expect("an absolute duration saturates");
        if now < then {
            info!(%then, %now, "the clock was set back");
            self.set_back = true;
            self.awake_since = self.awake_since.min(now);
            self.known = None;
        }
        if slept > SUSPENDED {
            info!(%then, %now, "the machine was suspended");
            self.awake_since = now;
            self.known = None;
        } else if now.duration_since(expected) > AHEAD.signed() {
            // Instants that the clock jumped over never were; they are caught up with.
            info!(%then, %now, "the clock was set ahead");
            self.awake_since = now;
            self.known = None;
        }
        now
    }

    /// Lets what runs go on for the grace period, then interrupts it and waits until that is durable.
    async fn drain(mut self) {
        let grace = self.shared.settings.grace.duration();
        // What the store gave away before this moment has begun.
        self.take_back_hands().await;
        self.finish_until(Instant::now() + grace).await;
        if !self.workers.is_idle() {
            info!(runs = self.shared.running.count(), "runs are interrupted; they go on at the next start");
        }
        self.shared.running.halt();
        self.finish_until(Instant::now() + LAST_WORDS).await;
        for run in self.workers.runs() {
            warn!(%run, "a run did not stop; the next start finds it in the middle");
        }
        drop(self.workers);
        self.retention.end().await;
    }

    async fn finish_until(&mut self, deadline: Instant) {
        while !self.workers.is_idle() {
            match timeout_at(deadline, self.workers.next_returned()).await {
                Ok(returned) => self.settle(returned).await,
                Err(_elapsed) => break,
            }
        }
    }
}

/// Whether queued runs wait for nothing but the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Network {
    NotNeeded,
    /// There is none; runs that the store calls ready wait for it.
    Missing,
}
