use std::sync::Arc;

use ow_model::{Risk, Span, TaskSpec, ToolName, Usage};
use serde::Serialize;
use serde_json::Value;

/// What an agent is, apart from what happens to it.
#[derive(Clone, Debug)]
pub struct AgentSetup {
    pub spec: Arc<TaskSpec>,
    pub tools: Arc<[ToolDecl]>,
    /// Model calls of one turn.
    pub max_iterations: u32,
    pub prices: Option<Prices>,
}

/// Model calls of one turn of a machine that is told nothing of them.
const BARE_ITERATIONS: u32 = 12;

impl AgentSetup {
    /// A machine of 12 model calls a turn and without prices.
    #[must_use]
    pub const fn bare(spec: Arc<TaskSpec>, tools: Arc<[ToolDecl]>) -> Self {
        Self { spec, tools, max_iterations: BARE_ITERATIONS, prices: None }
    }
}

/// A tool as the turn must know it.
#[derive(Clone, Debug)]
pub struct ToolDecl {
    pub name: ToolName,
    /// JSON Schema of the arguments.
    pub schema: Value,
    pub risk: Risk,
    /// It drives a screen: such work takes more steps.
    pub gui: bool,
    pub kind: ToolKind,
}

/// Who performs a tool: a helper, or the turn itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum ToolKind {
    Plain,
    AskUser,
    ProposePlan,
    RequestDirectory,
    Todo,
    SleepUntil,
    WakeOn,
    SubAgent,
}

/// What a million tokens cost, in millionths of the price table's currency.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Prices {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

impl Prices {
    /// The cost of a call's tokens, in millionths.
    #[must_use]
    pub const fn cost(&self, usage: &Usage) -> u64 {
        let fresh = usage.input.saturating_sub(usage.cached);
        (fresh * self.input + usage.cached * self.cached + usage.output * self.output).div_ceil(1_000_000)
    }
}

/// What the turn must know of the present.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Running time so far.
    pub ran_for: Span,
    /// Tokens that fit into the model's window.
    pub window: u64,
    /// Tokens at which the history is shortened even where the window is larger.
    pub cap: u64,
    /// A person is there.
    pub attended: bool,
}
