use std::sync::Arc;

use ow_model::{Call, CallResult, Fact, Failure, Hole, HookEvent, Outcome, RecordedFact, SessionOffer, Span, TaskSpec};
use ow_policy::{Facts, Refusal, Situation, StepFacts, Verdict};
use ow_store::{StoreError, TakenRun};
use ow_turn::{Doubt, Effect, Permission, StepsTurn};
use tracing::info;

use crate::engine::Engine;
use crate::session::workspace::Brought;
use crate::session::{Clearance, Question, Ready, Session, Surroundings, Turn};
use crate::trouble::Trouble;
use crate::{Say, Stop, words};

impl Turn for StepsTurn {
    fn fold(&mut self, recorded: &RecordedFact) {
        *self = self.clone().apply(&recorded.fact);
    }

    fn had_side_effect(&self) -> bool {
        Self::had_side_effect(self)
    }

    fn holds_outside(&self) -> bool {
        Self::holds_outside(self)
    }
}

/// The course of one run of steps under one worker: performs what the turn asks for.
pub(crate) struct Course(Session<StepsTurn>);

/// What following one effect came to.
enum Onward {
    Continue,
    /// Parked, ended or interrupted, and durable.
    Left,
}

impl Course {
    pub(crate) fn new(engine: Arc<Engine>, taken: TakenRun) -> Self {
        let spec = Arc::new(taken.spec.clone());
        let turn = StepsTurn::new(Arc::clone(&spec));
        Self(Session::new(engine, taken, spec, turn))
    }

    /// Follows the turn to where the worker may leave it.
    pub(crate) async fn follow(mut self, stop: &Stop) -> Result<(), StoreError> {
        let mut trouble = Trouble::default();
        loop {
            match self.go_on(stop).await {
                Ok(Onward::Continue) => trouble = Trouble::default(),
                Ok(Onward::Left) => return Ok(()),
                Err(error) => trouble.outlast(error, stop).await?,
            }
        }
    }

    /// Performs the one thing that comes next. After an error it is asked again what that is.
    async fn go_on(&mut self, stop: &Stop) -> Result<Onward, StoreError> {
        if let Some(reason) = stop.reason() {
            self.0.leave(reason.clone(), stop).await?;
            return Ok(Onward::Left);
        }
        if self.0.ran_for() >= self.0.spec.timeout && !self.0.turn.has_ended() {
            self.0.end(timed_out(self.0.spec.timeout), stop).await?;
            return Ok(Onward::Left);
        }
        Ok(match self.0.turn.next() {
            Effect::Start => self.start(stop).await?,
            Effect::Record(fact) => self.record(fact),
            Effect::Admit { step, call, holes, permission } => self.admit(step, call, holes, permission, stop).await?,
            Effect::Reconcile { call, intent, repeatable } => {
                self.0.reconcile(call, intent, repeatable).await;
                Onward::Continue
            }
            Effect::AskUncertain { step, call, doubt } => self.ask_uncertain(step, call, doubt, stop).await?,
            Effect::Wait { position, item } => {
                if self.0.look_at(position, item, stop).await? {
                    Onward::Left
                } else {
                    Onward::Continue
                }
            }
            Effect::End(outcome) => {
                self.0.end(outcome, stop).await?;
                Onward::Left
            }
        })
    }

    async fn start(&mut self, stop: &Stop) -> Result<Onward, StoreError> {
        let context = self.0.context().await?;
        info!(cause = ?self.0.run.cause, "run started");
        let cause = self.0.run.cause.clone();
        self.record(Fact::Started { cause, context });
        self.0.tell_hooks_of(HookEvent::SessionStart, stop).await?;
        Ok(Onward::Continue)
    }

    fn record(&mut self, fact: Fact) -> Onward {
        self.0.record(fact);
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
        let engine = Arc::clone(&self.0.engine);
        let position = call.position;
        let Some(tool) = engine.toolbox.tool(&call.tool) else {
            self.0.broken(position, format!("there is no tool `{}`", call.tool));
            return Ok(Onward::Continue);
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
            self.0.broken(position, why);
            return Ok(Onward::Continue);
        }
        if let Err(error) = std::fs::create_dir_all(&self.0.place.run_folder) {
            let why = format!("cannot make {}: {error}", self.0.place.run_folder.display());
            self.0.broken(position, why);
            return Ok(Onward::Continue);
        }
        let (facts, brought) = self.0.look(&call).await;
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) => {
                self.0.untried(position, CallResult::failed(error.kind, error.message));
                return Ok(Onward::Continue);
            }
        };
        let now = engine.clock.now();
        let rules = engine.store.rules(Some(&self.0.spec.name), now).await?;
        let standing = brought.judged_by(engine.standing());
        let step_facts = step_facts(&self.0.spec, step, &holes);
        let tainted = is_tainted(&holes, self.0.turn.holds_outside());
        let situation = Situation {
            task: Some(&self.0.spec.name),
            mode: self.0.spec.mode,
            roots: &self.0.place.roots,
            run_folder: Some(&self.0.place.run_folder),
            rules: &rules,
            step: Some(&step_facts),
            tainted,
            denied: self.0.turn.denied(),
            uncertain: self.0.turn.uncertain(),
            task_http: &self.0.spec.http_allow,
            named_hosts: &[],
            always_tools: &[],
            always_commands: &[],
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
                    self.0.note_refused_address(position, &facts, &rule, &why);
                    return Ok(self.record(Fact::Refused { position, rule: format!("{rule}: {why}") }));
                }
                Verdict::Ask { rule, why, category, rule_offer } => {
                    let reason = format!("{rule}: {why}");
                    return self
                        .park(
                            step,
                            call,
                            &facts,
                            Question { category, reason, rule_offer, session_offer: SessionOffer::default() },
                            stop,
                        )
                        .await;
                }
            },
            Permission::Answer { item, resolution } => {
                let binding = match &resolution.answer {
                    ow_model::Answer::Edited { .. } => ow_policy::binding_of(&facts),
                    _ => self.0.binding_of(*item).await?,
                };
                match ow_policy::authorize_answered(call, &facts, &binding, &resolution.answer, &situation) {
                    Ok(cleared) => (cleared, format!("answered by {}", resolution.by.person.0), None),
                    Err(Refusal::Changed(why)) => {
                        info!(%position, %item, "what was approved has changed; asking again");
                        return Ok(self.record(Fact::Voided { position, item: *item, why }));
                    }
                    Err(refusal) => {
                        if let Refusal::Denied { rule, why } = &refusal {
                            self.0.note_refused_address(position, &facts, rule, why);
                        }
                        return Ok(self.record(Fact::Refused { position, rule: refusal.to_string() }));
                    }
                }
            }
        };
        match self.0.ask_hooks(cleared.get(), &brought, stop).await {
            Say::Pass => {}
            Say::Stopped => return Ok(Onward::Continue),
            Say::Deny { why } => {
                info!(%position, "call refused by a hook");
                return Ok(self.record(Fact::Refused { position, rule: why }));
            }
            // A person has said yes to this very call.
            Say::Ask { .. } if matches!(permission, Permission::Answer { .. }) => {}
            Say::Ask { why: reason } => {
                let category = words::category(facts.risk);
                let question = Question { category, reason, rule_offer: None, session_offer: SessionOffer::default() };
                return self.park(step, cleared.get().clone(), &facts, question, stop).await;
            }
        }
        let repeatable = facts.risk.is_repeatable() || rule.starts_with("safe: ");
        let surroundings = Surroundings { standing: &standing, tainted, named_hosts: &[] };
        let ready = match self.0.prepare(cleared, facts, Clearance { rule, by_rule, repeatable }, surroundings).await {
            Ok(ready) => ready,
            Err(result) => {
                self.0.untried(position, result);
                return Ok(Onward::Continue);
            }
        };
        self.execute(ready, &brought, stop).await
    }

    async fn execute(&mut self, ready: Ready, brought: &Brought, stop: &Stop) -> Result<Onward, StoreError> {
        let (position, repeatable) = (ready.call().position, ready.clearance.repeatable);
        if !self.0.intend(&ready, stop).await? {
            return Ok(Onward::Continue);
        }
        let engine = Arc::clone(&self.0.engine);
        let call = ready.call().clone();
        let ready = ready.watched_by(self.0.watchers());
        let (end, took_ms) = Session::<StepsTurn>::carry_out(&engine, ready, stop).await?;
        let result = end.result().cloned();
        self.0.record_end(position, end, took_ms);
        if let Some(result) = result {
            self.0.tell_hooks(&call, &result, Some(brought).filter(|_| repeatable), stop).await?;
        }
        // With the last call's result the run ends, which is the next thing to be written and takes it along.
        if !repeatable && !matches!(self.0.turn.next(), Effect::End(_)) {
            self.0.commit(stop).await?;
        }
        Ok(Onward::Continue)
    }

    async fn park(
        &mut self,
        step: u32,
        call: Call,
        facts: &Facts,
        question: Question,
        stop: &Stop,
    ) -> Result<Onward, StoreError> {
        let position = call.position;
        let title = words::title(&self.0.spec, step, &call, question.category);
        let item = self.0.approval(title, call, facts, question).await;
        self.0.park(vec![(position, item)], stop).await?;
        Ok(Onward::Left)
    }

    async fn ask_uncertain(&mut self, step: u32, call: Call, doubt: Doubt, stop: &Stop) -> Result<Onward, StoreError> {
        let (category, reason) = words::doubt(doubt);
        let facts = self.0.look(&call).await.0.unwrap_or_else(|_| words::unseen());
        self.park(
            step,
            call,
            &facts,
            Question { category, reason, rule_offer: None, session_offer: SessionOffer::default() },
            stop,
        )
        .await
    }
}

pub(crate) fn timed_out(timeout: Span) -> Outcome {
    let message = format!("the run took longer than its timeout of {timeout}");
    Outcome::Failed { failure: Failure::Timeout, message }
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
