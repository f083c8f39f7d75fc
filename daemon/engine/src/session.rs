//! One run under one worker, as every kind of turn has it.

mod asking;
mod hooks;
pub(crate) mod workspace;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ow_model::{
    Binding, BoundFile, Call, CallError, CallErrorKind, CallResult, Category, EventPayload, Fact, HookEvent, Intent,
    ItemId, ItemKind, Outcome, Position, Reconciled, RecordedFact, RefusedAddress, Risk, RuleId, RuleTarget, Run, Span,
    TaskSpec,
};
use ow_policy::{Action, Authorized, Facts};
use ow_store::{EndRequest, RestRequest, StoreError, TakenRun};
use ow_tool::{CallOf, DaemonTool, Helper, HelperEnd, Job, Limits, Net, Place, Runner};
use ow_turn::{RunContext, RunFolder};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::engine::{Engine, Standing};
use crate::live::{CallWatchers, Watchers};
use crate::words;
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

/// By what a call was let through.
#[derive(Clone, Debug)]
pub(crate) struct Clearance {
    pub(crate) rule: String,
    pub(crate) by_rule: Option<RuleId>,
    /// It has no side effect, so that after a crash it may simply run again.
    pub(crate) repeatable: bool,
}

/// What a parked call asks.
pub(crate) struct Question {
    pub(crate) category: Category,
    pub(crate) reason: String,
    pub(crate) rule_offer: Option<RuleTarget>,
}

/// What a call runs in, beside its session.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) standing: &'a Standing,
    /// The call may be drawn from text of outside.
    pub(crate) tainted: bool,
    /// Hosts that a person or the task mentions.
    pub(crate) named_hosts: &'a [String],
}

impl Surroundings<'_> {
    /// The only hosts that a redirect may lead the call to; none: any public one. To fetch a page is to read: only where
    /// text of outside may have chosen the way, it leads no further than people wanted.
    fn hosts(self, facts: &Facts, allow: &[String]) -> Option<Vec<String>> {
        let is_fetch = facts.risk == Risk::Read && matches!(facts.action, Action::Url { .. });
        match (is_fetch, self.tainted) {
            (true, false) => None,
            (true, true) => Some(allow.iter().chain(self.named_hosts).cloned().collect()),
            (false, _) => Some(allow.to_vec()),
        }
    }
}

/// A cleared call with all that it needs to run.
pub(crate) struct Ready {
    cleared: Authorized<Call>,
    pub(crate) clearance: Clearance,
    way: Way,
}

enum Way {
    Daemon(Arc<dyn DaemonTool>, CallOf),
    Helper(Box<(Helper, Job)>),
}

/// What became of a call.
pub(crate) enum CallEnd {
    Done(CallResult),
    Stopped,
    /// Its process died, or its answer was lost; the journal says `Intended`.
    Lost(String),
}

impl CallEnd {
    /// A tool that does not know whether its call took effect has no result to give.
    fn unless_lost(self, repeatable: bool) -> Self {
        match self {
            Self::Done(CallResult { error: Some(CallError { kind: CallErrorKind::Lost, message }), .. })
                if !repeatable =>
            {
                Self::Lost(message)
            }
            end => end,
        }
    }

    pub(crate) const fn result(&self) -> Option<&CallResult> {
        match self {
            Self::Done(result) => Some(result),
            Self::Stopped | Self::Lost(_) => None,
        }
    }
}

impl Ready {
    pub(crate) const fn call(&self) -> &Call {
        self.cleared.get()
    }

    /// Lets them hear what the call prints while it runs.
    pub(crate) fn watched_by(mut self, watchers: Option<Watchers>) -> Self {
        let position = self.call().position;
        if let (Way::Helper(way), Some(watchers)) = (&mut self.way, watchers) {
            way.1.audience = Some(Arc::new(CallWatchers { watchers, position }));
        }
        self
    }
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
        let events: Vec<EventPayload> = events.into_iter().map(|event| event.payload).collect();
        let zone = TimeZone::get(&self.spec.timezone.0).unwrap_or(TimeZone::UTC);
        let folder = RunFolder(self.place.run_folder.to_string_lossy().into_owned());
        let (spec, run, now) = (&self.spec, &self.run, self.engine.clock.now());
        Ok(ow_turn::context(&RunContext { spec, run, folder: &folder, events: &events, zone: &zone, now }))
    }

    /// Running time so far, earlier workers' included.
    pub(crate) fn ran_for(&self) -> Span {
        Span::from_millis(self.run.ran_for_ms + millis(self.began.elapsed()))
    }

    // --- calls ---

    /// Looks at the world off the runtime's threads: a hung file system must hold up this run only.
    pub(crate) async fn facts_of(&self, call: &Call) -> Result<Facts, CallError> {
        let (engine, call, place) = (Arc::clone(&self.engine), call.clone(), self.place.clone());
        blocking(move || match engine.toolbox.tool(&call.tool) {
            Some(tool) => tool.facts(&call, &place),
            None => Err(CallError { kind: CallErrorKind::BadArguments, message: "no such tool".into() }),
        })
        .await
    }

    async fn note_of(&self, call: &Call) -> serde_json::Value {
        let (engine, call, place) = (Arc::clone(&self.engine), call.clone(), self.place.clone());
        blocking(move || engine.toolbox.tool(&call.tool).map_or_else(Default::default, |tool| tool.note(&call, &place)))
            .await
    }

    pub(crate) async fn binding_of(&self, item: ItemId) -> Result<Binding, StoreError> {
        let kind = self.engine.store.item(item).await?.map(|item| item.kind);
        Ok(match kind {
            Some(ItemKind::Approval { binding, .. }) => binding,
            Some(_) | None => Binding::default(),
        })
    }

    /// Gets ready what a cleared call runs in.
    ///
    /// # Errors
    ///
    /// The result that it ends with because it cannot be tried.
    pub(crate) async fn prepare(
        &self,
        cleared: Authorized<Call>,
        facts: Facts,
        clearance: Clearance,
        surroundings: Surroundings<'_>,
    ) -> Result<Ready, CallResult> {
        let standing = surroundings.standing;
        let call = cleared.get();
        let way = match self.engine.toolbox.runner(&call.tool) {
            Some(Runner::Daemon(tool)) => {
                let (position, now) = (call.position, self.engine.clock.now());
                let of = CallOf {
                    task: Some(self.spec.name.clone()),
                    inbox: self.spec.inbox.clone(),
                    run: self.run.id,
                    position,
                    now,
                    enclosed: enclosed(facts),
                };
                Way::Daemon(Arc::clone(tool), of)
            }
            Some(Runner::Helper) | None => {
                let helper = self.engine.helpers.ready().await.map_err(|error| {
                    CallResult::failed(CallErrorKind::Failed, format!("no helper process: {error}"))
                })?;
                let allow = self.http_allow(standing);
                let hosts = surroundings.hosts(&facts, &allow);
                let job = Job {
                    run: self.run.id,
                    place: Place { outside: self.turn.holds_outside(), ..self.place.clone() },
                    limits: self.limits(),
                    facts,
                    secrets: Arc::clone(&standing.secrets),
                    net: Net { allow, own: standing.settings.own_addresses.clone(), hosts },
                    protected: standing.settings.protected.clone(),
                    audience: None,
                };
                Way::Helper(Box::new((helper, job)))
            }
        };
        Ok(Ready { cleared, clearance, way })
    }

    /// Journals that a call was let through and is about to take effect. If it has an effect, or uses up a rule, this
    /// is durable when it has returned.
    ///
    /// False, and nothing is written, if the rule that let it through is gone or used up by now: the call must be
    /// judged again.
    pub(crate) async fn intend(&mut self, ready: &Ready, stop: &Stop) -> Result<bool, StoreError> {
        let call = ready.call();
        let Clearance { rule, by_rule, repeatable } = ready.clearance.clone();
        let position = call.position;
        let intent = match &ready.way {
            Way::Daemon(..) if repeatable => Intent::default(),
            Way::Daemon(..) => Intent { note: self.note_of(call).await, ..Intent::default() },
            Way::Helper(way) => Intent {
                helper_pid: Some(way.0.pid()),
                helper_start: way.0.start_ticks(),
                boot_id: way.0.boot_id(),
                note: if repeatable { serde_json::Value::Null } else { self.note_of(call).await },
            },
        };
        debug!(%position, %rule, "call allowed");
        let facts = [
            Fact::Allowed { position, rule, by_rule },
            Fact::Intended { position, hash: call.hash(), repeatable, intent },
        ];
        if repeatable && by_rule.is_none() {
            for fact in facts {
                self.record(fact);
            }
            return Ok(true);
        }
        self.keep(facts.into(), by_rule, stop).await
    }

    /// Runs a call that was journaled as intended. Needs nothing of the session, so that calls may run side by side.
    pub(crate) async fn carry_out(engine: &Engine, ready: Ready, stop: &Stop) -> Result<(CallEnd, u64), StoreError> {
        let began = Instant::now();
        let repeatable = ready.clearance.repeatable;
        let end = match ready.way {
            Way::Daemon(tool, of) => CallEnd::Done(tool.run(&ready.cleared, &of).await),
            Way::Helper(way) => {
                let (helper, job) = *way;
                let time = job.limits.time;
                match helper.run(&ready.cleared, job, stop.token().clone(), engine.grace).await {
                    HelperEnd::Done(mut result, whole) => {
                        for (field, text) in whole {
                            let hash = persist(stop, || engine.store.put_blob(&text)).await?;
                            result.kept.push((field, hash));
                        }
                        CallEnd::Done(result)
                    }
                    HelperEnd::TimedOut => CallEnd::Done(CallResult::failed(
                        CallErrorKind::TimedOut,
                        format!("it took longer than {time}"),
                    )),
                    HelperEnd::Stopped => CallEnd::Stopped,
                    HelperEnd::Lost(why) if repeatable => CallEnd::Done(CallResult::failed(
                        CallErrorKind::Failed,
                        format!("the call's process died: {why}"),
                    )),
                    HelperEnd::Lost(why) => CallEnd::Lost(why),
                }
            }
        };
        Ok((end.unless_lost(repeatable), millis(began.elapsed())))
    }

    /// Folds in what became of a call. A lost one stays `Intended`: what became of it must be found out.
    pub(crate) fn record_end(&mut self, position: Position, end: CallEnd, took_ms: u64) {
        match end {
            CallEnd::Done(result) => {
                if let Some(address) = RefusedAddress::of(&result) {
                    self.record(Fact::AddressRefused { position, address });
                }
                self.record(Fact::Done { position, result, took_ms });
            }
            CallEnd::Stopped => self.record(Fact::Stopped { position }),
            CallEnd::Lost(why) => {
                warn!(%position, %why, "what became of a call is not known");
                self.lost = Some((position, why));
            }
        }
    }

    /// Puts on record that the URL guard refused the call, if it did.
    pub(crate) fn note_refused_address(&mut self, position: Position, facts: &Facts, rule: &str, why: &str) {
        if let Action::Url { url, .. } = &facts.action
            && rule == ow_policy::ADDRESS_BLOCK
        {
            let address = RefusedAddress { url: ow_policy::url::on_record(url), hop: 0, why: why.into() };
            self.record(Fact::AddressRefused { position, address });
        }
    }

    /// The call ends without having been tried.
    pub(crate) fn broken(&mut self, position: Position, why: String) {
        self.untried(position, CallResult::failed(CallErrorKind::BadArguments, why));
    }

    pub(crate) fn untried(&mut self, position: Position, result: CallResult) {
        self.record(Fact::Done { position, result, took_ms: 0 });
    }

    /// Makes sure that nothing of a call lives whose end is not in the journal, and finds out what it did.
    pub(crate) async fn reconcile(&mut self, call: Call, intent: Intent, repeatable: bool) {
        let position = call.position;
        if let Some(pid) = intent.helper_pid {
            let (start, boot) = (intent.helper_start, intent.boot_id.clone());
            let leftover = blocking(move || ow_tool::end_leftover(pid, start, boot.as_deref())).await;
            debug!(%position, ?leftover, "made sure that nothing of the call lives");
        }
        let found = if repeatable {
            Reconciled::DidNotHappen
        } else {
            let (engine, place) = (Arc::clone(&self.engine), self.place.clone());
            blocking(move || match engine.toolbox.tool(&call.tool) {
                Some(tool) => tool.reconcile(&call, &intent.note, &place),
                None => Reconciled::Unknown { why: format!("there is no tool `{}` any more", call.tool) },
            })
            .await
        };
        let found = match (found, self.lost.take()) {
            (Reconciled::Unknown { why }, Some((lost, how))) if lost == position => {
                Reconciled::Unknown { why: format!("{how}; {why}") }
            }
            (found, _) => found,
        };
        info!(%position, found = words::found(&found), "looked at what became of a call");
        self.record(Fact::Reconciled { position, found });
    }

    /// Running time that is left; none: a chat may run for ever.
    pub(crate) fn time_left(&self) -> Option<Span> {
        let is_chat = self.spec.agent.as_ref().is_some_and(|agent| agent.goal.is_none());
        let left = || Span::from_millis(self.spec.timeout.millis().saturating_sub(self.ran_for().millis()));
        (!is_chat).then(left)
    }

    fn limits(&self) -> Limits {
        let most = self.spec.call_timeout;
        let time = self.time_left().map_or(most, |left| most.min(left).max(Span::from_millis(1)));
        Limits { time, ..self.engine.limits }
    }

    pub(crate) fn http_allow(&self, standing: &Standing) -> Vec<String> {
        standing.settings.http_allow.iter().chain(&self.spec.http_allow).cloned().collect()
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

fn enclosed(facts: Facts) -> Vec<BoundFile> {
    match facts.action {
        Action::Enclosed { files, .. } => files,
        Action::Plain | Action::Command { .. } | Action::Paths { .. } | Action::Url { .. } => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_is_led_to_any_public_host_until_text_of_outside_may_have_chosen_the_way() {
        let standing = Standing {
            settings: ow_policy::Settings::default(),
            secrets: Arc::default(),
            agents: None,
            kits: crate::agent::Kits::default().into(),
        };
        let named_hosts = ["named.example".to_owned()];
        let allow = ["allowed.example".to_owned()];
        let led = |risk: Risk, tainted: bool| {
            let url = "https://a.example/".parse().expect("a URL");
            let action = Action::Url { method: "GET".into(), url, has_body: false, own_headers: false };
            let surroundings = Surroundings { standing: &standing, tainted, named_hosts: &named_hosts };
            surroundings.hosts(&Facts { risk, action }, &allow)
        };
        assert_eq!(led(Risk::Read, false), None);
        assert_eq!(led(Risk::Read, true), Some(vec!["allowed.example".into(), "named.example".into()]));
        for tainted in [false, true] {
            assert_eq!(led(Risk::External, tainted), Some(allow.to_vec()), "to send something is another thing");
        }
    }
}
