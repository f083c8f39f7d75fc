//! What has to be done while neither a call is open nor a model at work.

use ow_model::{Fact, Input, Mode, Purpose, Source, Why};

use super::budget::Hold;
use super::effect::AgentEffect;
use super::setup::Progress;
use super::turn::{AgentTurn, Checkpoint, TurnEnd};
use super::words;

/// The model is told when so many replies are left.
const FEW: u32 = 2;

impl AgentTurn {
    pub(super) fn between(&self, progress: &Progress) -> AgentEffect {
        if let Some((why, text)) = &self.say {
            return says(*why, text.clone());
        }
        if let Some(verdict) = &self.verdict {
            return AgentEffect::Record(vec![verdict.fact()]);
        }
        match &self.hold {
            Some(Hold::Reached { position, what }) => {
                let text = format!("{what}. Approve to double it, deny to end here.");
                return AgentEffect::AskBudget { position: *position, text };
            }
            Some(Hold::Parked { position, item, .. }) => return AgentEffect::Wait { items: vec![(*position, *item)] },
            Some(Hold::Approved) => {
                let times = self.budget_times.saturating_mul(2);
                return AgentEffect::Record(vec![Fact::BudgetRaised { times }]);
            }
            None => {}
        }
        let left = self.limit().saturating_sub(self.tally.iterations);
        if self.tally.halt.is_none() && left == 0 && self.tally.parts.is_empty() {
            return says(Why::Stop, words::stop("The limit of replies is reached"));
        }
        if let Some(effect) = self.shorten(progress) {
            return effect;
        }
        if self.is_at_checkpoint() {
            return says(Why::Checkpoint, words::checkpoint(left));
        }
        let reserved = match (self.reserve(self.log.next_request(), progress), &self.tally.halt) {
            (Ok(reserved), _) => reserved,
            // Last words are not worth a question.
            (Err(_), Some(halt)) => {
                return self.end(&TurnEnd::Failed { failure: halt.failure, message: halt.message.clone() });
            }
            (Err(what), None) => return AgentEffect::Record(vec![Fact::BudgetReached { what }]),
        };
        let is_last = self.tally.halt.is_some();
        AgentEffect::CallModel {
            purpose: if is_last { Purpose::Final } else { Purpose::Turn },
            reserved,
            with_tools: !is_last,
            tail: self.tail(left).filter(|_| !is_last),
            max_output: None,
            instruction: None,
        }
    }

    /// What the model is reminded of in this request alone.
    fn tail(&self, left: u32) -> Option<String> {
        let few = (left <= FEW && self.limit() > FEW && self.tally.tools_used).then(|| words::few_left(left));
        let plan = (self.grants.mode == Mode::Plan).then(|| words::PLAN_MODE.to_owned());
        let lines: Vec<String> = plan.into_iter().chain(few).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn is_at_checkpoint(&self) -> bool {
        let at = u64::from(self.limit()) * 6 / 10;
        let tally = &self.tally;
        tally.checkpoint == Checkpoint::Ahead
            && tally.tools_used
            && tally.halt.is_none()
            && u64::from(tally.iterations) >= at.max(1)
    }

    /// Ends the turn; in a chat the session goes on.
    pub(super) fn end(&self, end: &TurnEnd) -> AgentEffect {
        if self.is_chat() {
            AgentEffect::Record(vec![Fact::TurnEnded { outcome: end.of_turn() }])
        } else {
            AgentEffect::End(end.outcome())
        }
    }
}

fn says(why: Why, text: String) -> AgentEffect {
    let input = Input { text, attachments: vec![], source: Source::Owd { why } };
    AgentEffect::Record(vec![Fact::Input { number: None, input }])
}
