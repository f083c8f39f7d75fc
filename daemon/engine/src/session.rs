//! One run under one worker, as every kind of turn has it.

mod asking;
mod calls;
mod hooks;
pub(crate) mod workspace;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ow_model::{
    Category, EventPayload, Fact, HookEvent, Outcome, Position, RecordedFact, RuleId, RuleTarget, Run, SessionOffer,
    Span, TaskSpec,
};
use ow_store::{EndRequest, RestRequest, StoreError, TakenRun};
use ow_tool::Place;
use ow_turn::{RunContext, RunFolder};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::{info, warn};

pub(crate) use self::calls::{CallEnd, Clearance, Ready, Surroundings};
use crate::engine::Engine;
use crate::live::Watchers;
use crate::{Stop, StopReason};

/// The state of a turn: the fold of its session's journal.
pub(crate) trait Turn: Send + Sync {
    fn fold(&mut self, recorded: &RecordedFact);
    /// Whether something outside was changed, or may have been.
    fn had_side_effect(&self) -> bool;
    /// Whether it holds text from outside, of which whatever it writes may be drawn.
    fn holds_outside(&self) -> bool;
}

/// One run under one worker: its journal, and what every kind of turn does with calls.
pub(crate) struct Session<T> {
    pub(crate) engine: Arc<Engine>,
    pub(crate) run: Run,
    pub(crate) spec: Arc<TaskSpec>,
    pub(crate) turn: T,
    pub(crate) place: Place,
    /// Facts that are folded but not written yet: nothing in the world depends on them.
    pub(crate) pending: Vec<Fact>,
    /// The sequence number that the first pending fact will get.
    next_seq: u32,
    began: Instant,
    /// It is a part of a call of this one.
    outer: Option<Outer>,
    /// The call that has no end, and why.
    lost: Option<(Position, String)>,
    is_end_told: bool,
}

/// Where the facts of a part of another session's call are kept: in that one's journal.
pub(crate) type Outer = mpsc::Sender<Handed>;

/// Facts on their way there.
pub(crate) struct Handed {
    pub(crate) facts: Vec<Fact>,
    pub(crate) used: Option<RuleId>,
    /// Whether they are durable; not, if the rule is gone or used up.
    pub(crate) kept: oneshot::Sender<bool>,
}

/// What a parked call asks.
pub(crate) struct Question {
    pub(crate) category: Category,
    pub(crate) reason: String,
    pub(crate) rule_offer: Option<RuleTarget>,
    pub(crate) session_offer: SessionOffer,
}

impl<T: Turn> Session<T> {
    /// Whether it is a part of another session's call: it waits for nobody.
    pub(crate) const fn is_nested(&self) -> bool {
        self.outer.is_some()
    }

    /// Takes up the run where its journal ends.
    pub(crate) fn new(engine: Arc<Engine>, taken: TakenRun, spec: Arc<TaskSpec>, mut turn: T) -> Self {
        let TakenRun { run, journal, .. } = taken;
        let next_seq = u32::try_from(journal.len()).expect("a journal stays far below 2^32 facts");
        for recorded in &journal {
            turn.fold(recorded);
        }
        let place = engine.place(&spec, engine.run_folder(run.id));
        Self {
            engine,
            run,
            spec,
            turn,
            place,
            pending: vec![],
            next_seq,
            began: Instant::now(),
            outer: None,
            lost: None,
            is_end_told: false,
        }
    }

    /// Makes it a part of a call of the session that began then, which keeps its facts: it waits for nobody.
    pub(crate) fn nest(&mut self, began: Instant, outer: Outer) {
        self.outer = Some(outer);
        self.began = began;
    }

    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Those who watch it. Nobody watches a sub-agent: of what it does its report alone is seen.
    pub(crate) fn watchers(&self) -> Option<Watchers> {
        let (live, session, at) = (self.engine.live(), self.run.id, self.length());
        (!self.is_nested()).then_some(Watchers { live, session, at })
    }

    // --- journal ---

    /// Folds a fact in; it is written with the next commit.
    pub(crate) fn record(&mut self, fact: Fact) {
        self.fold(&fact);
        self.pending.push(fact);
    }

    fn fold(&mut self, fact: &Fact) {
        let pending = u32::try_from(self.pending.len()).unwrap_or(u32::MAX);
        let at = self.engine.clock.now();
        self.turn.fold(&RecordedFact { seq: self.next_seq.saturating_add(pending), at, fact: fact.clone() });
    }

    /// The journal's length, with what is folded and not written yet.
    pub(crate) fn length(&self) -> u32 {
        self.next_seq.saturating_add(u32::try_from(self.pending.len()).unwrap_or(u32::MAX))
    }

    /// Writes the pending facts: when this has returned they are durable.
    pub(crate) async fn commit(&mut self, stop: &Stop) -> Result<(), StoreError> {
        if !self.pending.is_empty() {
            self.keep(vec![], None, stop).await?;
        }
        Ok(())
    }

    /// Writes these facts behind the pending ones, and folds them in; all of it is durable when it has returned.
    ///
    /// False, and nothing is written, if the rule that is used is gone or used up by now.
    pub(crate) async fn keep(
        &mut self,
        facts: Vec<Fact>,
        used: Option<RuleId>,
        stop: &Stop,
    ) -> Result<bool, StoreError> {
        let written: Vec<Fact> = self.pending.iter().chain(&facts).cloned().collect();
        let count = u32::try_from(written.len()).unwrap_or(u32::MAX);
        let next = match &self.outer {
            None => self.append(&written, used, stop).await,
            Some(outer) => {
                let (kept, is_kept) = oneshot::channel();
                // Without the session that it works for, nobody follows this one any further.
                let is_handed = outer.send(Handed { facts: written, used, kept }).await.is_ok();
                if !is_handed || !is_kept.await.unwrap_or(false) {
                    return Ok(false);
                }
                Ok(self.next_seq.saturating_add(count))
            }
        };
        let next = match next {
            Ok(next) => next,
            Err(StoreError::Unknown { kind: "rule", .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        // Folded only now: had the rule been gone, the call would have to be judged again.
        for fact in facts {
            self.fold(&fact);
            self.pending.push(fact);
        }
        self.pending.clear();
        self.next_seq = next;
        Ok(true)
    }

    async fn append(&self, facts: &[Fact], used: Option<RuleId>, stop: &Stop) -> Result<u32, StoreError> {
        persist(stop, || self.engine.store.append(self.run.id, self.next_seq, facts, used, self.engine.clock.now()))
            .await
    }

    /// What templates may read as `task`, `slot`, `run` and `event`.
    pub(crate) async fn context(&self) -> Result<serde_json::Value, StoreError> {
        let events = self.engine.store.run_events(self.run.id).await?;
        let mut events: Vec<EventPayload> = events.into_iter().map(|event| event.payload).collect();
        crate::attached::lay_out(&*self.engine.store, &mut events, &self.place.run_folder).await?;
        let zone = TimeZone::get(&self.spec.timezone.0).unwrap_or(TimeZone::UTC);
        let folder = RunFolder(self.place.run_folder.to_string_lossy().into_owned());
        let (spec, run, now) = (&self.spec, &self.run, self.engine.clock.now());
        Ok(ow_turn::context(&RunContext { spec, run, folder: &folder, events: &events, zone: &zone, now }))
    }

    /// Running time so far, earlier workers' included.
    pub(crate) fn ran_for(&self) -> Span {
        Span::from_millis(self.run.ran_for_ms + millis(self.began.elapsed()))
    }

    /// Running time that is left; none: a chat may run for ever.
    pub(crate) fn time_left(&self) -> Option<Span> {
        let is_chat = self.spec.agent.as_ref().is_some_and(|agent| agent.goal.is_none());
        let left = || Span::from_millis(self.spec.timeout.millis().saturating_sub(self.ran_for().millis()));
        (!is_chat).then(left)
    }

    // --- standing still ---

    /// A chat's turn is over: it waits for the next message at no cost.
    pub(crate) async fn idle(&mut self, stop: &Stop) -> Result<(), StoreError> {
        let request = self.resting();
        persist(stop, || self.engine.store.idle_run(&request, self.engine.clock.now())).await?;
        self.pending.clear();
        Ok(())
    }

    /// The session goes on at `until`, or when something is said to it.
    pub(crate) async fn sleep(&mut self, until: Option<Timestamp>, stop: &Stop) -> Result<(), StoreError> {
        let request = self.resting();
        persist(stop, || self.engine.store.sleep_run(&request, until, self.engine.clock.now())).await?;
        self.pending.clear();
        info!(?until, "session sleeps");
        Ok(())
    }

    fn resting(&self) -> RestRequest {
        RestRequest {
            session: self.run.id,
            next: self.next_seq,
            facts: self.pending.clone(),
            ran_for_ms: self.ran_for().millis(),
        }
    }

    // --- leaving ---

    pub(crate) async fn end(&mut self, outcome: Outcome, stop: &Stop) -> Result<(), StoreError> {
        // A store that fails the end is no reason to tell them again.
        if !std::mem::replace(&mut self.is_end_told, true) {
            self.tell_hooks_of(HookEvent::Stop, stop).await?;
        }
        let now = self.engine.clock.now();
        let retry_at =
            ow_schedule::next_attempt(&self.spec, self.run.attempt, &outcome, self.turn.had_side_effect(), now);
        let ran_for_ms = self.ran_for().millis();
        let request = EndRequest {
            run: self.run.id,
            next: self.next_seq,
            facts: self.pending.clone(),
            outcome,
            ran_for_ms,
            retry_at,
        };
        persist(stop, || self.engine.store.end_run(&request, now)).await?;
        self.pending.clear();
        self.engine.helpers.background().end_session(self.run.id);
        info!(outcome = request.outcome.word(), ran_for_ms, "run ended");
        Ok(())
    }

    pub(crate) async fn leave(&mut self, reason: StopReason, stop: &Stop) -> Result<(), StoreError> {
        match reason {
            StopReason::Cancel { why } => self.end(Outcome::Cancelled { why }, stop).await,
            StopReason::Interrupt => {
                let (ran, now) = (self.ran_for().millis(), self.engine.clock.now());
                self.engine.store.interrupt_run(self.run.id, self.next_seq, &self.pending, ran, now).await?;
                self.pending.clear();
                info!("run interrupted; it goes on later");
                Ok(())
            }
        }
    }
}

const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Writes, waiting out a store that cannot write just now: an effect that happened must not be forgotten.
/// Gives up when the run is told to stop.
pub(crate) async fn persist<T, F>(stop: &Stop, write: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut wait = FIRST_WAIT;
    loop {
        match write().await {
            Err(
                error @ (StoreError::Full { .. }
                | StoreError::Disk { .. }
                | StoreError::Failed { .. }
                | StoreError::Write { .. }),
            ) if stop.reason().is_none() => {
                warn!(error = &error as &dyn std::error::Error, "the store cannot write; trying again");
                tokio::select! {
                    () = stop.token().cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
                wait = (wait * 2).min(LONGEST_WAIT);
            }
            result => return result,
        }
    }
}

/// Runs file-system work where waiting holds up nobody else.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
