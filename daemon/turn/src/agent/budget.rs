//! What a turn may use: reserved before each model call.

use ow_model::{Budget, ItemId, Position, Span, Usage};
use serde::Serialize;

use super::setup::Progress;
use super::turn::{AgentTurn, Spent};

/// Tokens of output that are reserved for a reply, as far as the budget has them.
const EXPECTED_OUTPUT: u64 = 1_000;

/// The budget is used up.
#[derive(Clone, Debug, Serialize)]
pub(super) enum Hold {
    Reached {
        position: Position,
        what: String,
    },
    Parked {
        position: Position,
        item: ItemId,
        what: String,
    },
    /// A person approved; it is not recorded yet.
    Approved,
}

impl AgentTurn {
    pub(super) fn spend(&mut self, usage: Usage) {
        let cost = self.setup.prices.map_or(0, |prices| prices.cost(&usage));
        for spent in [&mut self.turn_spent, &mut self.spent] {
            spent.add(usage, cost);
        }
    }

    /// What a sub-agent may use: what is left of the turn's budget.
    #[must_use]
    pub fn budget_left(&self) -> Budget {
        let Some(agent) = &self.setup.spec.agent else { return Budget::default() };
        let (times, used) = (self.budget_times.max(1), &self.turn_spent);
        let left = |limit: u64, used: u64| limit.saturating_mul(u64::from(times)).saturating_sub(used);
        let Budget { tokens, cost_micros, calls, time } = agent.budget;
        Budget {
            tokens: tokens.map(|limit| left(limit, used.usage.total())),
            cost_micros: cost_micros.map(|limit| left(limit, used.cost_micros)),
            calls: calls.map(|limit| limit.saturating_mul(times).saturating_sub(used.calls)),
            // It counts from the session's beginning, as the sub-agent's does.
            time: time.map(|limit| Span::from_millis(limit.millis().saturating_mul(u64::from(times)))),
        }
    }

    /// What a request with this input is reserved, or which limit it would pass.
    pub(super) fn reserve(&self, input: u64, progress: &Progress) -> Result<Usage, String> {
        let mut reserved = Usage { input, cached: 0, output: EXPECTED_OUTPUT };
        let Some(agent) = &self.setup.spec.agent else { return Ok(reserved) };
        let times = u64::from(self.budget_times.max(1));
        let (used, budget) = (&self.turn_spent, &agent.budget);
        if let Some(limit) = budget.tokens.map(|limit| limit.saturating_mul(times)) {
            let used = used.usage.total();
            let left = limit.saturating_sub(used);
            if input >= left {
                return Err(format!(
                    "its budget of {limit} tokens is used up: {used} are used, and the next request needs about {input}"
                ));
            }
            reserved.output = reserved.output.min(left - input);
        }
        if let Some(limit) = budget.cost_micros.map(|limit| limit.saturating_mul(times)) {
            let next = self.setup.prices.map_or(0, |prices| prices.cost(&reserved));
            if used.cost_micros >= limit || used.cost_micros.saturating_add(next) > limit {
                return Err(format!(
                    "its budget of {} is used up: {} is spent, and the next request costs about {}",
                    money(limit),
                    money(used.cost_micros),
                    money(next)
                ));
            }
        }
        if let Some(limit) = budget.calls.map(|limit| u64::from(limit).saturating_mul(times))
            && u64::from(used.calls) >= limit
        {
            return Err(format!("its budget of {limit} model calls is used up"));
        }
        if let Some(limit) = budget.time
            && progress.ran_for.millis() >= limit.millis().saturating_mul(times)
        {
            return Err(format!("its budget of {limit} running time, {times} times, is used up"));
        }
        Ok(reserved)
    }
}

impl Spent {
    const fn add(&mut self, usage: Usage, cost: u64) {
        self.usage.input = self.usage.input.saturating_add(usage.input);
        self.usage.cached = self.usage.cached.saturating_add(usage.cached);
        self.usage.output = self.usage.output.saturating_add(usage.output);
        self.cost_micros = self.cost_micros.saturating_add(cost);
    }
}

fn money(micros: u64) -> String {
    format!("{}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100)
}
