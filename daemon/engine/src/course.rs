use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use ow_model::{
    Answered, Call, CallErrorKind, CallResult, Category, EventPayload, Fact, Failure, Hole, Intent, ItemId, ItemKind,
    ItemState, Outcome, Position, Reconciled, RefusedAddress, RuleId, Run, Span, TaskSpec,
};
use ow_policy::{Action, Authorized, Facts, Refusal, Situation, StepFacts, Verdict};
use ow_store::{EndRequest, NewItem, ParkRequest, StoreError, TakenRun};
use ow_tool::{CallOf, Helper, HelperEnd, Job, Limits, Net, Place, Runner};
use ow_turn::{Doubt, Effect, Permission, RunContext, RunFolder, StepsTurn};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::engine::{Engine, Standing};
use crate::words;
use crate::{Stop, StopReason};

/// The course of one run under one worker: steps the turn, performs what it asks for, journals.
pub(crate) struct Course {
    engine: Arc<Engine>,
    run: Run,
    spec: Arc<TaskSpec>,
    turn: StepsTurn,
    place: Place,
    /// Facts that are folded but not written yet: nothing in the world depends on them.
    pending: Vec<Fact>,
    /// The sequence number that the first pending fact will get.
    next_seq: u32,
    began: Instant,
}

/// What following one effect came to.
enum Onward {
    Continue,
    /// Parked, ended or interrupted, and durable.
    Left,
}

impl Course {
    pub(crate) fn new(engine: Arc<Engine>, taken: TakenRun) -> Self {
        let TakenRun { run, spec, journal } = taken;
        let spec = Arc::new(spec);
        let next_seq = u32::try_from(journal.len()).expect("a journal stays far below 2^32 facts");
        let turn = journal.iter().fold(StepsTurn::new(Arc::clone(&spec)), |turn, recorded| turn.apply(&recorded.fact));
        let place = engine.place(&spec, engine.run_folder(run.id));
        Self { engine, run, spec, turn, place, pending: vec![], next_seq, began: Instant::now() }
    }

    /// Follows the turn to where the worker may leave it.
    pub(crate) async fn follow(mut self, stop: &Stop) -> Result<(), StoreError> {
        loop {
            if let Some(reason) = stop.reason() {
                return self.leave(reason.clone(), stop).await;
            }
            if self.ran_for() >= self.spec.timeout && !self.turn.has_ended() {
                let message = format!("the run took longer than its timeout of {}", self.spec.timeout);
                return self.end(Outcome::Failed { failure: Failure::Timeout, message }, stop).await;
            }
            let onward = match self.turn.next() {
                Effect::Start => self.start().await?,
                Effect::Record(fact) => self.record(fact),
                Effect::Admit { step, call, holes, permission } => {
                    self.admit(step, call, holes, permission, stop).await?
                }
                Effect::Reconcile { call, intent, repeatable } => self.reconcile(call, intent, repeatable).await?,
                Effect::AskUncertain { step, call, doubt } => self.ask_uncertain(step, call, doubt, stop).await?,
                Effect::Wait { position, item } => self.look_at(position, item, stop).await?,
                Effect::End(outcome) => return self.end(outcome, stop).await,
            };
            match onward {
                Onward::Continue => {}
                Onward::Left => return Ok(()),
            }
        }
    }

    async fn start(&mut self) -> Result<Onward, StoreError> {
        let events: Vec<EventPayload> =
            self.engine.store.run_events(self.run.id).await?.into_iter().map(|event| event.payload).collect();
        let zone = TimeZone::get(&self.spec.timezone.0).unwrap_or(TimeZone::UTC);
        let folder = RunFolder(self.place.run_folder.to_string_lossy().into_owned());
        let context = ow_turn::context(&RunContext {
            spec: &self.spec,
            run: &self.run,
            folder: &folder,
            events: &events,
            zone: &zone,
            now: self.engine.clock.now(),
        });
        info!(cause = ?self.run.cause, "run started");
        Ok(self.record(Fact::Started { cause: self.run.cause.clone(), context }))
    }

    /// Folds a fact in; it is written with the next commit.
    fn record(&mut self, fact: Fact) -> Onward {
        self.turn = self.turn.clone().apply(&fact);
        self.pending.push(fact);
        Onward::Continue
    }

    async fn admit(
        &mut self,
        step: u32,
        call: Call,
        holes: Vec<Hole>,
        permission: Permission,
        stop: &Stop,
    ) -> Result<Onward, StoreError> {
        let engine = Arc::clone(&self.engine);
        let position = call.position;
        let Some(tool) = engine.toolbox.tool(&call.tool) else {
            return Ok(self.broken(position, format!("there is no tool `{}`", call.tool)));
        };
        let call = match &permission {
            Permission::Answer { resolution, .. } => match &resolution.answer {
                ow_model::Answer::Edited { args } if *args != call.args => {
                    let edited = Call { args: args.clone(), ..call };
                    return Ok(self.record(Fact::Edited { position, call: edited }));
                }
                _ => call,
            },
            Permission::Policy => call,
        };
        if let Err(why) = tool.check(&call.args) {
            return Ok(self.broken(position, why));
        }
        if let Err(error) = std::fs::create_dir_all(&self.place.run_folder) {
            return Ok(self.broken(position, format!("cannot make {}: {error}", self.place.run_folder.display())));
        }
        let facts = match self.facts_of(&call).await {
            Ok(facts) => facts,
            Err(error) => {
                let result = CallResult::failed(error.kind, error.message);
                return Ok(self.record(Fact::Done { position, result, took_ms: 0 }));
            }
        };
        let now = engine.clock.now();
        let rules = engine.store.rules(Some(&self.spec.name), now).await?;
        let standing = engine.standing();
        let step_facts = step_facts(&self.spec, step, &holes);
        let tainted = is_tainted(&holes, self.turn.holds_outside());
        let situation = Situation {
            task: Some(&self.spec.name),
            mode: self.spec.mode,
            roots: &self.place.roots,
            run_folder: Some(&self.place.run_folder),
            rules: &rules,
            step: Some(&step_facts),
            tainted,
            denied: self.turn.denied(),
            uncertain: self.turn.uncertain(),
            task_http: &self.spec.http_allow,
            settings: &standing.settings,
            now,
        };
        let (cleared, rule, by_rule) = match &permission {
            Permission::Policy => match ow_policy::judge(&call, &facts, &situation) {
                Verdict::Allow { rule, by_rule } => match ow_policy::authorize(call, &facts, &situation) {
                    Ok(cleared) => (cleared, rule, by_rule),
                    Err(verdict) => return Ok(self.record(Fact::Refused { position, rule: verdict.rule().to_owned() })),
                },
                Verdict::Deny { rule, why } => {
                    info!(%position, %rule, "call refused");
                    self.note_refused_address(position, &facts, &rule, &why);
                    return Ok(self.record(Fact::Refused { position, rule: format!("{rule}: {why}") }));
                }
                Verdict::Ask { rule, why, category, rule_offer } => {
                    let reason = format!("{rule}: {why}");
                    let question = Question { category, reason, rule_offer, holds: true };
                    return self.park(step, call, &facts, question, stop).await;
                }
            },
            Permission::Answer { item, resolution } => {
                let binding = match &resolution.answer {
                    ow_model::Answer::Edited { .. } => ow_policy::binding_of(&facts),
                    _ => self.binding_of(*item).await?,
                };
                match ow_policy::authorize_answered(call, &facts, &binding, &resolution.answer, &situation) {
                    Ok(cleared) => (cleared, format!("answered by {}", resolution.by.person.0), None),
                    Err(Refusal::Changed(why)) => {
                        info!(%position, %item, "what was approved has changed; asking again");
                        return Ok(self.record(Fact::Voided { position, item: *item, why }));
                    }
                    Err(refusal) => {
                        if let Refusal::Denied { rule, why } = &refusal {
                            self.note_refused_address(position, &facts, rule, why);
                        }
                        return Ok(self.record(Fact::Refused { position, rule: refusal.to_string() }));
                    }
                }
            }
        };
        let repeatable = facts.risk.is_repeatable() || rule.starts_with("safe: ");
        let clearance = Clearance { rule, by_rule, repeatable };
        self.execute(cleared, facts, clearance, &standing, stop).await
    }

    /// Journals that a call was let through and is about to take effect: durable when this has returned.
    ///
    /// False, and nothing is written, if the rule that let it through is gone or used up by now: the call must be
    /// judged again.
    async fn intend(
        &mut self,
        call: &Call,
        clearance: &Clearance,
        intent: Intent,
        stop: &Stop,
    ) -> Result<bool, StoreError> {
        let (turn, pending) = (self.turn.clone(), self.pending.len());
        let Clearance { rule, by_rule, repeatable } = clearance.clone();
        let position = call.position;
        debug!(%position, %rule, "call allowed");
        self.record(Fact::Allowed { position, rule, by_rule });
        self.record(Fact::Intended { position, hash: call.hash(), repeatable, intent });
        match self.commit(by_rule, stop).await {
            Ok(()) => Ok(true),
            Err(StoreError::Unknown { kind: "rule", .. }) => {
                self.turn = turn;
                self.pending.truncate(pending);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Puts on record that the URL guard refused the call, if it did.
    fn note_refused_address(&mut self, position: Position, facts: &Facts, rule: &str, why: &str) {
        if let Action::Url { url, .. } = &facts.action
            && rule == ow_policy::ADDRESS_BLOCK
        {
            let address = RefusedAddress { url: ow_policy::url::on_record(url), hop: 0, why: why.into() };
            self.record(Fact::AddressRefused { position, address });
        }
    }

    /// The call ends without having been tried.
    fn broken(&mut self, position: Position, why: String) -> Onward {
        let result = CallResult::failed(CallErrorKind::BadArguments, why);
        self.record(Fact::Done { position, result, took_ms: 0 })
    }

    /// Looks at the world off the runtime's threads: a hung file system must hold up this run only.
    async fn facts_of(&self, call: &Call) -> Result<Facts, ow_model::CallError> {
        let (engine, call, place) = (Arc::clone(&self.engine), call.clone(), self.place.clone());
        blocking(move || match engine.toolbox.tool(&call.tool) {
            Some(tool) => tool.facts(&call, &place),
            None => Err(ow_model::CallError { kind: CallErrorKind::BadArguments, message: "no such tool".into() }),
        })
        .await
    }

    async fn note_of(&self, call: &Call) -> serde_json::Value {
        let (engine, call, place) = (Arc::clone(&self.engine), call.clone(), self.place.clone());
        blocking(move || engine.toolbox.tool(&call.tool).map_or_else(Default::default, |tool| tool.note(&call, &place)))
            .await
    }

    async fn binding_of(&self, item: ItemId) -> Result<ow_model::Binding, StoreError> {
        let kind = self.engine.store.item(item).await?.map(|item| item.kind);
        Ok(match kind {
            Some(ItemKind::Approval { binding, .. }) => binding,
            Some(_) | None => ow_model::Binding::default(),
        })
    }

    async fn execute(
        &mut self,
        cleared: Authorized<Call>,
        facts: Facts,
        clearance: Clearance,
        standing: &Standing,
        stop: &Stop,
    ) -> Result<Onward, StoreError> {
        let engine = Arc::clone(&self.engine);
        let call = cleared.get().clone();
        let position = call.position;
        let repeatable = clearance.repeatable;
        match engine.toolbox.runner(&call.tool) {
            Some(Runner::Daemon(tool)) => {
                let tool = Arc::clone(tool);
                if !self.intend(&call, &clearance, Intent::default(), stop).await? {
                    return Ok(Onward::Continue);
                }
                let began = Instant::now();
                let of =
                    CallOf { task: Some(self.spec.name.clone()), run: self.run.id, position, now: engine.clock.now() };
                let result = tool.run(&cleared, &of).await;
                self.finish(position, result, began, repeatable, stop).await
            }
            Some(Runner::Helper) | None => {
                let helper = match engine.helpers.ready().await {
                    Ok(helper) => helper,
                    Err(error) => {
                        let result = CallResult::failed(CallErrorKind::Failed, format!("no helper process: {error}"));
                        return Ok(self.record(Fact::Done { position, result, took_ms: 0 }));
                    }
                };
                let note = if repeatable { serde_json::Value::Null } else { self.note_of(&call).await };
                let intent = Intent {
                    helper_pid: Some(helper.pid()),
                    helper_start: helper.start_ticks(),
                    boot_id: helper.boot_id(),
                    note,
                };
                if !self.intend(&call, &clearance, intent, stop).await? {
                    return Ok(Onward::Continue);
                }
                let job = Job {
                    place: self.place.clone(),
                    limits: self.limits(),
                    facts,
                    secrets: Arc::clone(&standing.secrets),
                    net: Net {
                        allow: self.http_allow(standing),
                        own: standing.settings.own_addresses.clone(),
                        hosts: Some(self.http_allow(standing)),
                    },
                    protected: standing.settings.protected.clone(),
                };
                self.run_in(helper, cleared, job, repeatable, stop).await
            }
        }
    }

    async fn run_in(
        &mut self,
        helper: Helper,
        cleared: Authorized<Call>,
        job: Job,
        repeatable: bool,
        stop: &Stop,
    ) -> Result<Onward, StoreError> {
        let position = cleared.get().position;
        let began = Instant::now();
        let end = helper.run(&cleared, job, stop.token().clone(), self.engine.grace).await;
        match end {
            HelperEnd::Done(mut result, whole) => {
                for (field, text) in whole {
                    result.kept.push((field, self.engine.store.put_blob(&text).await?));
                }
                self.finish(position, result, began, repeatable, stop).await
            }
            HelperEnd::TimedOut => {
                let message = format!("it took longer than {}", self.spec.call_timeout);
                let result = CallResult::failed(CallErrorKind::TimedOut, message);
                self.finish(position, result, began, repeatable, stop).await
            }
            HelperEnd::Stopped => Ok(self.record(Fact::Stopped { position })),
            HelperEnd::Lost(why) if repeatable => {
                let result = CallResult::failed(CallErrorKind::Failed, format!("the call's process died: {why}"));
                self.finish(position, result, began, repeatable, stop).await
            }
            // The journal says `Intended`: the next effect is to find out what became of it.
            HelperEnd::Lost(why) => {
                warn!(%position, %why, "the call's process died");
                Ok(Onward::Continue)
            }
        }
    }

    /// Journals a call's result: at once if it took effect, else with the next commit. With the last call's result
    /// the run ends, which is the next thing to be written and takes it along.
    async fn finish(
        &mut self,
        position: Position,
        result: CallResult,
        began: Instant,
        repeatable: bool,
        stop: &Stop,
    ) -> Result<Onward, StoreError> {
        let took_ms = millis(began.elapsed());
        if let Some(address) = RefusedAddress::of(&result) {
            self.record(Fact::AddressRefused { position, address });
        }
        self.record(Fact::Done { position, result, took_ms });
        if !repeatable && !matches!(self.turn.next(), Effect::End(_)) {
            self.commit(None, stop).await?;
        }
        Ok(Onward::Continue)
    }

    fn limits(&self) -> Limits {
        let left = Span::from_millis(self.spec.timeout.millis().saturating_sub(self.ran_for().millis()).max(1));
        Limits { time: self.spec.call_timeout.min(left), ..self.engine.limits }
    }

    fn http_allow(&self, standing: &Standing) -> Vec<String> {
        standing.settings.http_allow.iter().chain(&self.spec.http_allow).cloned().collect()
    }

    async fn park(
        &mut self,
        step: u32,
        call: Call,
        facts: &Facts,
        question: Question,
        stop: &Stop,
    ) -> Result<Onward, StoreError> {
        let Question { category, reason, rule_offer, holds } = question;
        let position = call.position;
        let (engine, place) = (Arc::clone(&self.engine), self.place.clone());
        let shown = call.clone();
        let secrets = Arc::clone(&self.engine.standing().secrets);
        let diff = blocking(move || {
            let diff = engine.toolbox.tool(&shown.tool)?.diff(&shown, &place)?;
            // It shows what the file holds now, which may be a key.
            Some(secrets.redactor().redact(&diff).into_owned())
        })
        .await;
        let item = NewItem {
            task: Some(self.spec.name.clone()),
            run: Some(self.run.id),
            title: words::title(&self.spec, step, &call, category),
            kind: ItemKind::Approval {
                hash: call.hash(),
                category,
                reason,
                binding: ow_policy::binding_of(facts),
                rule_offer,
                diff,
                call,
            },
            expires_in: Some(self.spec.item_expiry),
            remind_after: Some(self.spec.item_reminder),
        };
        let request = ParkRequest {
            run: self.run.id,
            next: self.next_seq,
            facts: std::mem::take(&mut self.pending),
            items: vec![(position, item)],
            holds,
            ran_for_ms: self.ran_for().millis(),
        };
        let items = persist(stop, || self.engine.store.park(&request, self.engine.clock.now())).await?;
        info!(items = ?items, "run parked");
        Ok(Onward::Left)
    }

    async fn ask_uncertain(&mut self, step: u32, call: Call, doubt: Doubt, stop: &Stop) -> Result<Onward, StoreError> {
        let (category, reason) = match doubt {
            Doubt::Crashed { why } => (Category::UnknownOutcome, words::unknown(&why)),
            Doubt::Stopped => (Category::Stopped, words::stopped()),
        };
        let facts = match self.facts_of(&call).await {
            Ok(facts) => facts,
            Err(_) => Facts { risk: ow_model::Risk::External, action: Action::Plain },
        };
        let question = Question { category, reason, rule_offer: None, holds: false };
        self.park(step, call, &facts, question, stop).await
    }

    async fn reconcile(&mut self, call: Call, intent: Intent, repeatable: bool) -> Result<Onward, StoreError> {
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
        info!(%position, found = words::found(&found), "looked at what became of a call");
        Ok(self.record(Fact::Reconciled { position, found }))
    }

    /// The journal waits for an item: the store knows how it ended, even if the journal does not say.
    async fn look_at(&mut self, position: Position, item: ItemId, stop: &Stop) -> Result<Onward, StoreError> {
        let answered = match self.engine.store.item(item).await? {
            Some(found) => match found.state {
                ItemState::Pending => {
                    let request = ParkRequest {
                        run: self.run.id,
                        next: self.next_seq,
                        facts: std::mem::take(&mut self.pending),
                        items: vec![(
                            position,
                            NewItem {
                                task: found.task,
                                run: found.run,
                                title: found.title,
                                kind: found.kind,
                                expires_in: None,
                                remind_after: None,
                            },
                        )],
                        holds: true,
                        ran_for_ms: self.ran_for().millis(),
                    };
                    persist(stop, || self.engine.store.park(&request, self.engine.clock.now())).await?;
                    return Ok(Onward::Left);
                }
                ItemState::Resolved(resolution) => Answered::Resolved(resolution),
                ItemState::Expired { .. } => Answered::Expired,
                ItemState::Withdrawn { why, .. } => Answered::Withdrawn { why },
            },
            None => Answered::Withdrawn { why: "the item is gone".into() },
        };
        Ok(self.record(Fact::Answered { position, item, answered }))
    }

    async fn end(&mut self, outcome: Outcome, stop: &Stop) -> Result<(), StoreError> {
        let now = self.engine.clock.now();
        let retry_at =
            ow_schedule::next_attempt(&self.spec, self.run.attempt, &outcome, self.turn.had_side_effect(), now);
        let ran_for_ms = self.ran_for().millis();
        let request = EndRequest {
            run: self.run.id,
            next: self.next_seq,
            facts: std::mem::take(&mut self.pending),
            outcome,
            ran_for_ms,
            retry_at,
        };
        persist(stop, || self.engine.store.end_run(&request, now)).await?;
        info!(outcome = request.outcome.word(), ran_for_ms, "run ended");
        Ok(())
    }

    async fn leave(&mut self, reason: StopReason, stop: &Stop) -> Result<(), StoreError> {
        match reason {
            StopReason::Cancel { why } => self.end(Outcome::Cancelled { why }, stop).await,
            StopReason::Interrupt => {
                let facts = std::mem::take(&mut self.pending);
                let (ran, now) = (self.ran_for().millis(), self.engine.clock.now());
                self.engine.store.interrupt_run(self.run.id, self.next_seq, &facts, ran, now).await?;
                info!("run interrupted; it goes on later");
                Ok(())
            }
        }
    }

    /// Writes the pending facts: when this has returned they are durable.
    async fn commit(&mut self, used: Option<RuleId>, stop: &Stop) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.next_seq = persist(stop, || {
            self.engine.store.append(self.run.id, self.next_seq, &self.pending, used, self.engine.clock.now())
        })
        .await?;
        self.pending.clear();
        Ok(())
    }

    /// Running time so far, earlier workers' included.
    fn ran_for(&self) -> Span {
        Span::from_millis(self.run.ran_for_ms + millis(self.began.elapsed()))
    }
}

/// By what a call was let through.
#[derive(Clone)]
struct Clearance {
    rule: String,
    by_rule: Option<RuleId>,
    /// It has no side effect, so that after a crash it may simply run again.
    repeatable: bool,
}

/// What a parked call asks.
struct Question {
    category: Category,
    reason: String,
    rule_offer: Option<ow_model::RuleTarget>,
    holds: bool,
}

const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Writes, waiting out a store that cannot write just now: an effect that happened must not be forgotten.
/// Gives up when the run is told to stop.
async fn persist<T, F>(stop: &Stop, write: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut wait = FIRST_WAIT;
    loop {
        match write().await {
            Err(error @ (StoreError::Full { .. } | StoreError::Failed { .. })) if stop.reason().is_none() => {
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
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// What policy must know of the step that a call was rendered from.
pub(crate) fn step_facts(spec: &TaskSpec, step: u32, holes: &[Hole]) -> StepFacts {
    let text = spec.steps.get(step as usize).map(ow_config::step_text).map(|(_, hash)| hash);
    StepFacts {
        step,
        text: text.expect("an admitted call's step is one of the task's"),
        holes: holes
            .iter()
            .map(|hole| ow_policy::Hole { name: hole.name.clone(), at: ow_policy::HolePlace::of_pointer(&hole.at) })
            .collect(),
    }
}

/// Whether a step's call is drawn from outside content: from an event, or from an earlier result of a run that
/// holds outside text. A step without holes is the person's own text, whatever stands in the session.
pub(crate) fn is_tainted(holes: &[Hole], holds_outside: bool) -> bool {
    holes.iter().any(|hole| holds_outside || hole.name.split('.').next() == Some("event"))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
