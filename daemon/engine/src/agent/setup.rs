//! What an agent's session is equipped with: a model, tools, limits.

use std::sync::{Arc, OnceLock};

use ow_model::{LoopLimits, TaskSpec};
use ow_provider::{Price, Router, SystemPrompt, Tools};
use ow_tool::Place;
use ow_turn::{Prices, ToolDecl};

use super::kit::Kit;
use super::prompt;
use super::shelf::Shelf;
use crate::engine::Engine;

/// The window of a model that nobody knows.
pub(super) const UNKNOWN_WINDOW: u64 = 32_000;

/// Model calls of one turn where the task says nothing.
const MAX_ITERATIONS: u32 = 50;
const SUB_AGENT_ITERATIONS: u32 = 10;

/// What agents are made with; replaced as a whole by a reload.
#[derive(Clone, Debug)]
pub struct Agents {
    pub router: Router,
    pub defaults: ModelDefaults,
}

/// What the configuration says where a task does not.
#[derive(Clone, Debug, Default)]
pub struct ModelDefaults {
    /// `provider:model`; none: an agent must name its own.
    pub model: Option<String>,
    pub failover: Vec<String>,
    pub max_iterations: Option<u32>,
    /// Tokens at which a history is compacted even where the window is larger; none: 250 000.
    pub compaction_cap: Option<u64>,
    /// Of sessions from their next turn on.
    pub loops: LoopLimits,
}

/// The equipment of one session under one worker.
pub(super) struct Equipment {
    pub(super) router: Option<Router>,
    pub(super) model: Option<String>,
    pub(super) failover: Vec<String>,
    pub(super) max_iterations: u32,
    pub(super) compaction_cap: u64,
    pub(super) loops: LoopLimits,
    pub(super) declared: Arc<[ToolDecl]>,
    pub(super) tools: Tools,
    /// Hosts that a person or the task named.
    pub(super) named_hosts: Vec<String>,
    system: OnceLock<SystemPrompt>,
    is_chat: bool,
    is_nested: bool,
    /// What was attached to the history.
    pub(super) shelf: Shelf,
}

impl Equipment {
    pub(super) fn of(engine: &Engine, spec: &TaskSpec, is_nested: bool) -> Self {
        let agent = spec.agent.clone().unwrap_or_default();
        let agents = engine.agents();
        let defaults = agents.as_ref().map(|agents| agents.defaults.clone()).unwrap_or_default();
        let Kit { declared, shown } = Kit::of(engine, spec, is_nested);
        let max = agent.max_iterations.or(defaults.max_iterations).unwrap_or(MAX_ITERATIONS);
        let mut named_hosts = vec![];
        for text in agent.goal.iter().chain(&agent.instructions) {
            named_hosts.extend(ow_policy::url::named_hosts([text.as_str()]));
        }
        Self {
            router: agents.map(|agents| agents.router.clone()),
            model: agent.model.or(defaults.model),
            failover: if agent.failover.is_empty() { defaults.failover } else { agent.failover },
            max_iterations: if is_nested { max.min(SUB_AGENT_ITERATIONS) } else { max },
            compaction_cap: defaults.compaction_cap.unwrap_or(250_000),
            loops: defaults.loops.overridden_by(&agent.loops),
            declared,
            tools: shown,
            named_hosts,
            system: OnceLock::new(),
            is_chat: agent.goal.is_none(),
            is_nested,
            shelf: Shelf::default(),
        }
    }

    /// What tokens cost of the model that the person chose, else of the agent's own.
    pub(super) fn prices(&self, chosen: Option<&str>) -> Option<Prices> {
        let resolved = self.router.as_ref()?.resolve(chosen.or(self.model.as_deref())?);
        let Price { input, cached, output } = resolved.capabilities.price?;
        Some(Prices { input, cached, output })
    }

    pub(super) fn system(&self, spec: &TaskSpec, place: &Place) -> SystemPrompt {
        let make = || prompt::system(spec, place, self.is_chat, self.is_nested).as_str().into();
        self.system.get_or_init(make).clone()
    }

    /// The person's own words name hosts that may be fetched from.
    pub(super) fn note_named(&mut self, text: &str) {
        for host in ow_policy::url::named_hosts([text]) {
            if !self.named_hosts.contains(&host) {
                self.named_hosts.push(host);
            }
        }
    }
}
