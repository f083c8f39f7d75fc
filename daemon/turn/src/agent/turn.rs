use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use ow_model::{
    BlobHash, Call, CallHash, Failure, Input, ItemId, LoopLimits, Message, Mode, Outcome, Position, Purpose, ToolName,
    TurnOutcome, Usage, Wake, Why,
};
use serde::Serialize;
use serde_json::Value;

use super::batch::{Batch, CallState};
use super::budget::Hold;
use super::compact::Compactor;
use super::deeds::Deeds;
use super::detect::{Detectors, Verdict};
use super::log::Log;
use super::setup::{AgentSetup, ToolDecl};

/// Where an agent's session stands: the fold of its journal.
///
/// A session is a task's run, with one turn, or a chat with many. Its serialized form is the same for the same journal,
/// and is meant for comparing.
#[derive(Clone, Debug, Serialize)]
pub struct AgentTurn {
    #[serde(skip)]
    pub(super) setup: Arc<AgentSetup>,
    pub(super) stage: Stage,
    pub(super) log: Log,
    /// The newest reply, while its calls are open.
    pub(super) batch: Option<Batch>,
    /// The model call under way, with what is reserved for it and how much of the history it was sent.
    pub(super) asked: Option<Asked>,
    /// What was said while a model or a tool was at work: it enters the history behind that.
    pub(super) queue: Vec<(Input, Timestamp)>,
    /// The number of the newest input that was queued for this session.
    pub(super) heard: Option<u64>,
    pub(super) next_position: u32,
    /// What is reserved for the model call of a sub-agent that is under way.
    pub(super) lent: Option<Usage>,
    /// What owd itself has to say to the model next.
    pub(super) say: Option<(Why, String)>,
    pub(super) verdict: Option<Verdict>,
    pub(super) hold: Option<Hold>,
    pub(super) compactor: Compactor,
    pub(super) detectors: Detectors,
    pub(super) tally: Tally,
    /// Of the turn under way.
    pub(super) turn_spent: Spent,
    /// Of the whole session.
    pub(super) spent: Spent,
    /// The budget's limits hold this many times.
    pub(super) budget_times: u32,
    pub(super) grants: Grants,
    pub(super) deeds: Deeds,
    /// What the newest reads found: by the call, where it stands and the result's hash.
    pub(super) reads: Vec<(CallHash, Position, BlobHash)>,
    pub(super) side_effect: bool,
    pub(super) last_text: Option<String>,
    pub(super) todo: Value,
}

#[derive(Clone, Debug, Serialize)]
pub(super) enum Stage {
    New,
    /// Nothing to do until an input: a chat between two turns, or a run before its goal.
    Idle,
    /// Calls are open, or a model is to be asked.
    Working,
    /// How the turn ends is known and not recorded yet.
    Closing(TurnEnd),
    Ended,
}

/// How a turn ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) enum TurnEnd {
    Completed,
    Interrupted {
        by: String,
    },
    Failed {
        failure: Failure,
        message: String,
    },
    /// Nobody raised the budget in time.
    Expired {
        item: ItemId,
        message: String,
    },
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Asked {
    pub(super) purpose: Purpose,
    pub(super) reserved: Usage,
    pub(super) sent: usize,
}

/// Counters of the turn under way.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Tally {
    /// Replies of purpose `Turn`.
    pub(super) iterations: u32,
    pub(super) tools_used: bool,
    pub(super) gui_used: bool,
    pub(super) checkpoint: Checkpoint,
    /// Calls written as text that were pointed out.
    pub(super) corrections: u32,
    pub(super) empties: u32,
    pub(super) continued: u32,
    /// The parts of a text that the token limit cuts, joined.
    pub(super) parts: String,
    /// The turn ends with one last call without tools, for this reason.
    pub(super) halt: Option<Halt>,
    /// Replies in a row of which no call could be used.
    pub(super) unusable: u32,
    /// The newest result, in a few words.
    pub(super) last_result: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub(super) enum Checkpoint {
    #[default]
    Ahead,
    /// A text-only reply to it does not end the turn.
    Asked,
    Passed,
}

/// Why a turn ends before the model ends it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Halt {
    pub(super) failure: Failure,
    pub(super) message: String,
}

/// What the person allowed or refused in this session.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Grants {
    pub(super) mode: Mode,
    /// The mode to go back to when a plan is approved.
    pub(super) before_plan: Mode,
    pub(super) model: Option<String>,
    pub(super) roots: Vec<(PathBuf, bool)>,
    pub(super) tools: Vec<ToolName>,
    pub(super) commands: Vec<Vec<String>>,
    pub(super) denied: Vec<CallHash>,
    pub(super) uncertain: Vec<CallHash>,
}

/// What model calls have used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Spent {
    pub usage: Usage,
    /// In millionths of the price table's currency; 0 where no prices are known.
    pub cost_micros: u64,
    /// Model calls.
    pub calls: u32,
}

/// The part of the history that goes to a provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outgoing<'a> {
    /// The index of the first message that is sent.
    pub from: usize,
    /// Stands for all before it, the session's first input word for word included.
    pub summary: Option<&'a str>,
}

/// What a sleeping session waits for, as its call asked.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Sleep {
    pub position: Position,
    pub until: Option<Timestamp>,
    pub on: Vec<Wake>,
    pub note: String,
}

impl AgentTurn {
    #[must_use]
    pub fn new(setup: Arc<AgentSetup>) -> Self {
        let mode = setup.spec.mode;
        let before_plan = if mode == Mode::Plan { Mode::Ask } else { mode };
        Self {
            setup,
            stage: Stage::New,
            log: Log::new(),
            batch: None,
            asked: None,
            queue: vec![],
            heard: None,
            next_position: 0,
            lent: None,
            say: None,
            verdict: None,
            hold: None,
            compactor: Compactor::default(),
            detectors: Detectors::default(),
            tally: Tally::default(),
            turn_spent: Spent::default(),
            spent: Spent::default(),
            budget_times: 1,
            grants: Grants { mode, before_plan, ..Grants::default() },
            deeds: Deeds::default(),
            reads: vec![],
            side_effect: false,
            last_text: None,
            todo: Value::Null,
        }
    }

    /// The same for a sub-agent of `outer`: its calls get positions that no call of the session has.
    #[must_use]
    pub fn of_sub_agent(setup: Arc<AgentSetup>, outer: &Self) -> Self {
        Self { next_position: outer.next_position, ..Self::new(setup) }
    }

    /// The canonical history, whole; never shortened. A reply enters it together with the results of all its calls.
    #[must_use]
    pub fn history(&self) -> &[Arc<Message>] {
        self.log.messages()
    }

    /// What goes to a provider of it.
    #[must_use]
    pub fn outgoing(&self) -> Outgoing<'_> {
        Outgoing { from: self.log.from(), summary: self.log.summary() }
    }

    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.grants.mode
    }

    /// The model that the person chose in this session.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.grants.model.as_deref()
    }

    /// Folders that the person granted, and whether they may be written.
    #[must_use]
    pub fn granted_roots(&self) -> &[(PathBuf, bool)] {
        &self.grants.roots
    }

    #[must_use]
    pub fn always_tools(&self) -> &[ToolName] {
        &self.grants.tools
    }

    /// Commands that the person always allows, as argv; one that was given as a line is its single element.
    #[must_use]
    pub fn always_commands(&self) -> &[Vec<String>] {
        &self.grants.commands
    }

    /// Calls that were denied in this turn; they are not asked again.
    #[must_use]
    pub fn denied(&self) -> &[CallHash] {
        &self.grants.denied
    }

    /// Calls whose outcome was unknown; equal ones ask, whatever rule or mode says.
    #[must_use]
    pub fn uncertain(&self) -> &[CallHash] {
        &self.grants.uncertain
    }

    /// Whether what goes to a provider, or anything drawn from it, holds text from outside.
    #[must_use]
    pub fn holds_outside(&self) -> bool {
        let settled = |state: &CallState| matches!(state, CallState::Settled(settled) if settled.outside);
        self.log.holds_outside() || self.batch.iter().flat_map(|batch| &batch.calls).any(|open| settled(&open.state))
    }

    /// Whether a call with side effects has begun: then the run is not tried again by itself.
    #[must_use]
    pub const fn had_side_effect(&self) -> bool {
        self.side_effect
    }

    /// Whether a model was asked of whose answer nothing is in the journal.
    #[must_use]
    pub const fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether the session's last fact is in the journal.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    /// Whether the session's first fact is in the journal.
    #[must_use]
    pub const fn has_started(&self) -> bool {
        !matches!(self.stage, Stage::New)
    }

    /// Nothing to do until an input.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Whether the session's input with this number is in the journal.
    #[must_use]
    pub fn has_heard(&self, number: u64) -> bool {
        self.heard.is_some_and(|heard| number <= heard)
    }

    /// Model calls of the turn under way, summaries and the last one without tools apart.
    #[must_use]
    pub const fn iterations(&self) -> u32 {
        self.tally.iterations
    }

    /// What the whole session has used.
    #[must_use]
    pub const fn usage(&self) -> Spent {
        self.spent
    }

    /// The agent's newest text; the parts of one that was cut are joined.
    #[must_use]
    pub fn last_text(&self) -> Option<&str> {
        self.last_text.as_deref()
    }

    /// The agent's list of what is to do, as it wrote it; null before the first.
    #[must_use]
    pub const fn todo(&self) -> &Value {
        &self.todo
    }

    /// What is set of the loop detectors' patience, as the journal has it.
    #[must_use]
    pub const fn loop_limits(&self) -> &LoopLimits {
        self.detectors.limits()
    }

    /// The calls of the newest reply that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = (Position, Option<&Call>)> {
        self.batch.iter().flat_map(Batch::open).map(|open| (open.position, open.call.as_ref()))
    }

    /// What the session sleeps for, while it does.
    #[must_use]
    pub fn sleep(&self) -> Option<Sleep> {
        let batch = self.batch.as_ref()?;
        let open = batch.open().find(|open| matches!(open.state, CallState::Asleep))?;
        Some(super::own::sleep(open, batch.at, self.setup.spec.item_expiry))
    }

    pub(super) fn is_chat(&self) -> bool {
        self.setup.spec.agent.as_ref().is_some_and(|agent| agent.goal.is_none())
    }

    /// A task's session that began, and whose goal is not in the journal: nobody else will say it.
    pub(super) fn lacks_goal(&self) -> bool {
        !self.is_chat() && self.history().is_empty() && self.queue.is_empty()
    }

    pub(super) fn tool(&self, name: &str) -> Option<&ToolDecl> {
        self.setup.tools.iter().find(|tool| tool.name.as_str() == name)
    }

    pub(super) fn limit(&self) -> u32 {
        // Work on a screen takes more steps.
        self.setup.max_iterations.max(1).saturating_mul(if self.tally.gui_used { 3 } else { 1 })
    }
}

impl TurnEnd {
    /// The end of a turn after which its chat goes on.
    pub(super) fn of_turn(&self) -> TurnOutcome {
        match self.clone() {
            Self::Completed => TurnOutcome::Completed,
            Self::Interrupted { .. } => TurnOutcome::Interrupted,
            Self::Failed { failure, message } => TurnOutcome::Failed { failure, message },
            Self::Expired { message, .. } => TurnOutcome::Failed { failure: Failure::Budget, message },
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.clone() {
            Self::Completed => Outcome::Succeeded,
            Self::Interrupted { by } => Outcome::Cancelled { why: format!("interrupted by {by}") },
            Self::Failed { failure, message } => Outcome::Failed { failure, message },
            Self::Expired { item, .. } => Outcome::Expired { item },
        }
    }
}

/// The hash by which results and texts are compared.
pub(super) fn digest(text: &str) -> BlobHash {
    BlobHash::of(text.as_bytes())
}
