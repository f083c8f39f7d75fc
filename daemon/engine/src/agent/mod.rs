//! The shell of the agent's turn: asks models, has calls judged and run, parks, sleeps, and journals all of it.

mod asking;
mod calls;
mod granting;
mod inputs;
mod kit;
mod model;
mod prompt;
mod sent;
mod setup;
mod shelf;
mod sleeping;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ow_model::{
    Fact, Failure, HookEvent, Input, ModelFailure, Outcome, Position, RecordedFact, Source, TaskSpec, TurnOutcome,
};
use ow_provider::{Prompt, Resolved};
use ow_store::{StoreError, TakenRun};
use ow_turn::{AgentEffect, AgentSetup, AgentTurn, Progress, Sleep};
use tracing::info;

pub(crate) use kit::Kits;
pub use sent::{SentBody, SentRequest, sent_requests};
pub use setup::{Agents, ModelDefaults};

use crate::command::{Command, CommandReceiver, Commands, Told};
use crate::course::timed_out;
use crate::engine::Engine;
use crate::live::LiveKind;
use crate::session::{Outer, Session, Turn};
use crate::trouble::Trouble;
use crate::{Stop, StopReason};
use sent::SentLog;
use setup::Equipment;

impl Turn for AgentTurn {
    fn fold(&mut self, recorded: &RecordedFact) {
        self.apply(recorded);
    }

    fn had_side_effect(&self) -> bool {
        Self::had_side_effect(self)
    }

    fn holds_outside(&self) -> bool {
        Self::holds_outside(self)
    }
}

/// The course of one agent's session under one worker.
pub(crate) struct AgentCourse {
    session: Session<AgentTurn>,
    equipment: Equipment,
    /// The history as it goes to models; grows with the turn's.
    prompt: Prompt,
    /// The index of the first message in it.
    prompt_begins: usize,
    /// What the requests so far were, to keep each as its difference from the one before.
    sent: SentLog,
    commands: CommandReceiver,
    /// Calls that were cleared by this worker and have not begun.
    cleared: HashMap<Position, calls::Cleared>,
    /// The text of a model call that was cut off.
    partial: Option<String>,
    /// Calls that read again what came from outside.
    outside_texts: HashSet<Position>,
    /// What a sub-agent is told may be drawn from outside.
    is_born_tainted: bool,
    /// All that was said when the store said this is heard.
    heard_until: Option<u64>,
}

/// What came of a sub-agent.
struct Report {
    outcome: Outcome,
    text: Option<String>,
    /// It is drawn from outside text.
    outside: bool,
    /// What it did last and is not in the journal yet.
    facts: Vec<Fact>,
}

/// What following one effect came to.
enum Onward {
    Continue,
    /// Parked, asleep, idle, ended or interrupted, and durable.
    Left,
}

impl AgentCourse {
    pub(crate) fn new(engine: Arc<Engine>, taken: TakenRun) -> Self {
        Self::make(engine, taken, None)
    }

    /// The course of a sub-agent, for a call of this one, which keeps its facts.
    fn nested(parent: &Self, position: Position, goal: String, outer: Outer) -> Self {
        let mut run = parent.session.run.clone();
        run.started_at = None;
        let mut spec = TaskSpec::clone(parent.spec());
        spec.title = None;
        // What would ask is refused.
        spec.mode = ow_model::Mode::Ask;
        let agent = spec.agent.get_or_insert_default();
        agent.goal = Some(goal);
        agent.instructions = None;
        agent.model = parent.session.turn.model().map(str::to_owned).or(agent.model.take());
        agent.budget = parent.session.turn.budget_left();
        let mut course = Self::make(Arc::clone(parent.engine()), TakenRun { run, spec, journal: vec![] }, Some(parent));
        course.session.place.roots.clone_from(&parent.session.place.roots);
        course.session.place.cwd.clone_from(&parent.session.place.cwd);
        course.session.nest(parent.session.began(), outer);
        // Its goal is the model's text, not a person's: it names nothing that may be fetched.
        course.equipment.named_hosts.clone_from(&parent.equipment.named_hosts);
        course.is_born_tainted = parent.is_born_tainted || parent.session.turn.holds_outside();
        tracing::debug!(%position, "sub-agent begins");
        course
    }

    fn make(engine: Arc<Engine>, taken: TakenRun, outer: Option<&Self>) -> Self {
        let is_nested = outer.is_some();
        let spec = Arc::new(taken.spec.clone());
        let mut equipment = Equipment::of(&engine, &spec, is_nested);
        let mut chosen = None;
        for recorded in &taken.journal {
            match &recorded.fact {
                Fact::ModelSet { model } => chosen = Some(model.as_str()),
                Fact::Input { input: Input { text, source: Source::Person { .. }, .. }, .. } => {
                    equipment.note_named(text);
                }
                _ => {}
            }
        }
        let setup = AgentSetup {
            max_iterations: equipment.max_iterations,
            prices: equipment.prices(chosen),
            ..AgentSetup::bare(Arc::clone(&spec), Arc::clone(&equipment.declared))
        };
        let sent = SentLog::of(&taken.journal);
        // What the person tells the session is for the session itself, not for a sub-agent of it.
        let commands = if is_nested { Commands::new() } else { engine.commands() }.open(taken.run.id);
        let setup = Arc::new(setup);
        let turn = match outer {
            None => AgentTurn::new(setup),
            Some(outer) => AgentTurn::of_sub_agent(setup, &outer.session.turn),
        };
        let session = Session::new(engine, taken, spec, turn);
        let mut course = Self {
            session,
            equipment,
            prompt: Prompt::new(),
            prompt_begins: 0,
            sent,
            commands,
            cleared: HashMap::new(),
            partial: None,
            outside_texts: HashSet::new(),
            is_born_tainted: false,
            heard_until: None,
        };
        course.apply_grants();
        course
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
            self.leave(reason.clone(), stop).await?;
            return Ok(Onward::Left);
        }
        self.obey(stop).await?;
        if !self.is_chat() && self.session.ran_for() >= self.spec().timeout && !self.session.turn.has_ended() {
            self.session.end(timed_out(self.spec().timeout), stop).await?;
            return Ok(Onward::Left);
        }
        self.tune();
        match self.next() {
            AgentEffect::End(outcome) => {
                self.end(outcome, stop).await?;
                Ok(Onward::Left)
            }
            effect => self.perform(effect, stop).await,
        }
    }

    /// All but the model call, for which most sessions wait, have their futures by themselves: else each that waits would
    /// hold room for the largest.
    async fn perform(&mut self, effect: AgentEffect, stop: &Stop) -> Result<Onward, StoreError> {
        Ok(match effect {
            AgentEffect::Start => Box::pin(self.start(stop)).await?,
            AgentEffect::Record(facts) => {
                for fact in facts {
                    self.record(fact);
                }
                Onward::Continue
            }
            AgentEffect::CallModel { purpose, reserved, with_tools, tail, max_output, instruction } => {
                if self.hear().await? {
                    return Ok(Onward::Continue);
                }
                let ask = model::Ask { purpose, reserved, with_tools, tail, max_output, instruction };
                self.call_model(ask, stop).await?
            }
            AgentEffect::Admit { calls } => Box::pin(self.admit(calls, stop)).await?,
            AgentEffect::Execute { calls } => Box::pin(self.execute(calls, stop)).await?,
            AgentEffect::Reconcile { call, intent, repeatable } => {
                Box::pin(self.session.reconcile(call, intent, repeatable)).await;
                Onward::Continue
            }
            AgentEffect::AskUncertain { call, doubt } => Box::pin(self.ask_uncertain(call, doubt, stop)).await?,
            AgentEffect::Ask { position, kind } => Box::pin(self.ask(position, kind, stop)).await?,
            AgentEffect::Grant { position, path, writable, by } => {
                Box::pin(self.grant(position, path, writable, by)).await
            }
            AgentEffect::AskBudget { position, text } => {
                Box::pin(self.ask(position, ow_model::ItemKind::Budget { text }, stop)).await?
            }
            AgentEffect::Sleep { position, until, on, note } => {
                Box::pin(self.fall_asleep(Sleep { position, until, on, note }, stop)).await?
            }
            AgentEffect::Delegate { call, goal } => Box::pin(self.delegate(call, goal, stop)).await?,
            AgentEffect::Wait { items } => Box::pin(self.wait(items, stop)).await?,
            AgentEffect::AwaitInput => {
                if self.hear().await? {
                    return Ok(Onward::Continue);
                }
                if let Some(sleep) = self.session.turn.sleep() {
                    Box::pin(self.sleep_on(sleep, stop)).await?
                } else {
                    Box::pin(self.session.idle(stop)).await?;
                    Onward::Left
                }
            }
            AgentEffect::End(_) => Onward::Continue,
        })
    }

    fn next(&self) -> AgentEffect {
        let resolved = self.model();
        let window = resolved.as_ref().map_or(setup::UNKNOWN_WINDOW, |resolved| resolved.capabilities.window);
        self.session.turn.next(&Progress {
            ran_for: self.session.ran_for(),
            window,
            cap: self.equipment.compaction_cap,
            attended: self.is_chat(),
        })
    }

    fn spec(&self) -> &TaskSpec {
        &self.session.spec
    }

    /// A session without a goal of its own hears its goals from a person.
    fn is_chat(&self) -> bool {
        self.spec().agent.as_ref().is_some_and(|agent| agent.goal.is_none())
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.session.engine
    }

    fn tell(&self, kind: LiveKind, payload: impl FnOnce() -> serde_json::Value) {
        if let Some(watchers) = self.session.watchers() {
            watchers.send(kind, payload);
        }
    }

    /// Folds a fact in, and tells those who watch.
    fn record(&mut self, fact: Fact) {
        match &fact {
            Fact::TurnEnded { outcome } => {
                let word = match outcome {
                    TurnOutcome::Completed => "completed",
                    TurnOutcome::Interrupted => "interrupted",
                    TurnOutcome::Failed { .. } => "failed",
                };
                self.tell(LiveKind::TurnEnded, || serde_json::json!({ "outcome": word }));
            }
            Fact::Noticed { text } => self.tell(LiveKind::Notice, || serde_json::json!({ "text": text })),
            // What was let through and has not begun is judged again.
            Fact::ModeSet { .. } => self.cleared.clear(),
            _ => {}
        }
        let grants = matches!(fact, Fact::RootGranted { .. });
        self.session.record(fact);
        if grants {
            self.apply_grants();
        }
    }

    /// Writes down what is configured of the loop detectors where the journal has it otherwise: they judge by the
    /// journal alone. It goes out with the next commit.
    fn tune(&mut self) {
        let turn = &self.session.turn;
        if turn.has_started() && !turn.has_ended() && *turn.loop_limits() != self.equipment.loops {
            let limits = self.equipment.loops.clone();
            self.record(Fact::LoopLimitsSet { limits });
        }
    }

    /// The session's first facts. What it is to do is durable with the very first of them: a crash while a hook is told
    /// leaves no session that waits for words which nobody will say.
    async fn start(&mut self, stop: &Stop) -> Result<Onward, StoreError> {
        let context = self.session.context().await?;
        let goal = self.spec().agent.as_ref().and_then(|agent| agent.goal.clone());
        let inputs = goal.map_or(Ok(vec![]), |goal| inputs::task_inputs(&goal, &context));
        if !self.session.turn.has_started() {
            info!(cause = ?self.session.run.cause, "session started");
            let cause = self.session.run.cause.clone();
            self.record(Fact::Started { cause, context });
        }
        let inputs = match inputs {
            Ok(inputs) => inputs,
            Err(message) => {
                let outcome = Outcome::Failed { failure: Failure::Template, message };
                self.session.end(outcome, &Stop::new()).await?;
                return Ok(Onward::Left);
            }
        };
        for input in inputs {
            self.record(Fact::Input { number: None, input });
        }
        if !self.session.is_nested() {
            self.session.tell_hooks_of(HookEvent::SessionStart, stop).await?;
        }
        Ok(Onward::Continue)
    }

    /// Does what the person told the session beside messages.
    async fn obey(&mut self, stop: &Stop) -> Result<(), StoreError> {
        while let Some(told) = self.commands.try_recv() {
            self.carry(told, None, stop).await?;
        }
        Ok(())
    }

    /// Writes down what the person told the session, and only then says that it is heard.
    async fn carry(&mut self, told: Told, partial: Option<String>, stop: &Stop) -> Result<(), StoreError> {
        self.record(match told.command.clone() {
            // What was asked for open calls is moot.
            Command::Interrupt { by } => Fact::TurnInterrupted { by, partial },
            Command::SetMode(mode) => Fact::ModeSet { mode },
            Command::SetModel(model) => Fact::ModelSet { model },
            Command::Compact => Fact::CompactionWanted,
        });
        self.session.commit(stop).await?;
        told.taken();
        Ok(())
    }

    /// The same for interrupts, once what they cut off has come to its end. One speaks for all.
    async fn carry_interrupt(&mut self, told: Vec<Told>, stop: &Stop) -> Result<(), StoreError> {
        let mut told = told.into_iter();
        if let Some(first) = told.next() {
            self.carry(first, None, stop).await?;
        }
        told.for_each(Told::taken);
        Ok(())
    }

    /// Takes in what was said to the session meanwhile; true if there was something.
    async fn hear(&mut self) -> Result<bool, StoreError> {
        // What is said is said to the session, not to a sub-agent of it.
        if self.session.is_nested() {
            return Ok(false);
        }
        // Mostly nothing was said since the last model call: then the store is not read.
        let said = self.engine().store.inputs_said();
        if self.heard_until == Some(said) {
            return Ok(false);
        }
        let waiting = self.engine().store.inputs(self.session.run.id).await?;
        self.heard_until = Some(said);
        let heard: Vec<(u64, Input)> =
            waiting.into_iter().filter(|(number, _)| !self.session.turn.has_heard(*number)).collect();
        let any = !heard.is_empty();
        if any && self.session.turn.is_idle() {
            self.tell(LiveKind::TurnStarted, || serde_json::json!({}));
        }
        for (number, input) in heard {
            if let Source::Person { .. } = &input.source {
                self.equipment.note_named(&input.text);
            }
            let input = self.with_note(input);
            self.record(Fact::Input { number: Some(number), input });
        }
        Ok(any)
    }

    /// Follows a sub-agent's turn to its end; its last text is its report.
    fn follow_nested(mut self, stop: &Stop) -> BoxFuture<'_, Result<Report, StoreError>> {
        Box::pin(async move {
            let outcome = loop {
                if stop.reason().is_some() {
                    break Outcome::Cancelled { why: "stopped".into() };
                }
                if self.session.time_left().is_some_and(|left| left.millis() == 0) {
                    break timed_out(self.spec().timeout);
                }
                self.tune();
                match self.next() {
                    AgentEffect::End(outcome) => break outcome,
                    AgentEffect::AskBudget { text, .. } => {
                        break Outcome::Failed { failure: Failure::Budget, message: text };
                    }
                    AgentEffect::Wait { .. }
                    | AgentEffect::AwaitInput
                    | AgentEffect::Sleep { .. }
                    | AgentEffect::Ask { .. }
                    | AgentEffect::Grant { .. }
                    | AgentEffect::AskUncertain { .. } => {
                        break Outcome::Cancelled { why: "a sub-agent waits for nobody".into() };
                    }
                    other => self.perform(other, stop).await?,
                };
            };
            let facts = std::mem::take(&mut self.session.pending);
            let turn = &self.session.turn;
            Ok(Report { outcome, text: turn.last_text().map(str::to_owned), outside: turn.holds_outside(), facts })
        })
    }

    async fn end(&mut self, outcome: Outcome, stop: &Stop) -> Result<(), StoreError> {
        self.session.end(outcome, stop).await
    }

    async fn leave(&mut self, reason: StopReason, stop: &Stop) -> Result<(), StoreError> {
        self.session.leave(reason, stop).await
    }

    /// The model that the session speaks to now; none: none is configured.
    fn model(&self) -> Option<Resolved> {
        let name = self.session.turn.model().or(self.equipment.model.as_deref())?;
        Some(self.equipment.router.as_ref()?.resolve(name))
    }

    /// Why no model can be asked at all.
    fn no_model() -> Fact {
        Fact::ModelFailed {
            kind: ModelFailure::BadRequest,
            message:
                "no model is named: write `model = \"provider:model\"` in the task, or under [agent] in owd.toml; \
                      `owctl model list` shows the known ones"
                    .into(),
            partial: None,
            sent: None,
        }
    }
}
