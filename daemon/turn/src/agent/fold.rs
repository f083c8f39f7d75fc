//! Folding the journal's facts in.

use ow_model::{Fact, Failure, Mode, Position, Purpose, RecordedFact, Why};

use super::budget::Hold;
use super::turn::{AgentTurn, Asked, Halt, Stage, TurnEnd};
use super::words;

impl AgentTurn {
    /// Folds one fact in.
    ///
    /// Total: a fact that does not fit where the session stands changes nothing.
    pub fn apply(&mut self, recorded: &RecordedFact) {
        let at = recorded.at;
        match (&self.stage, &recorded.fact) {
            (Stage::Ended, _) => {}
            (_, Fact::Ended { .. }) => {
                self.interrupt_calls("the session ended", at);
                self.asked = None;
                self.stage = Stage::Ended;
            }
            (Stage::New, Fact::Started { .. }) => self.stage = Stage::Idle,
            // A person may set a chat before anything is said in it.
            (Stage::New, Fact::ModeSet { .. } | Fact::ModelSet { .. } | Fact::RootGranted { .. }) => {
                self.fold(&recorded.fact, at);
            }
            (Stage::New, _) => {}
            (_, fact) => self.fold(fact, at),
        }
    }

    fn fold(&mut self, fact: &Fact, at: jiff::Timestamp) {
        match fact {
            Fact::Input { number, input } => self.input(*number, input, at),
            Fact::Asked { purpose, reserved, .. } => self.asked(*purpose, *reserved),
            Fact::Replied { reply, .. } => self.replied(reply, at),
            Fact::ModelFailed { kind, message, partial, .. } if self.awaits_model() => {
                self.model_failed(*kind, message, partial.as_deref(), at);
            }
            Fact::Compacted { until, summary, how } if self.batch.is_none() => {
                if self.log.shorten(*until as usize, summary) {
                    self.compactor.compacted(*how);
                }
            }
            Fact::CompactionWanted => self.compactor.want(),
            Fact::CompactionFailed { .. } => self.compactor.failed(),
            Fact::LoopFound { detector, evidence, stop } if self.is_between() => {
                self.verdict = None;
                if *stop {
                    let message = format!("stopped by the loop detector {detector}: {evidence}");
                    self.say = Some((Why::Stop, words::stop(&format!("You were stopped: {evidence}"))));
                    self.tally.halt = Some(Halt { failure: Failure::Loop, message });
                } else {
                    self.say = Some((Why::Loop, words::nudge(evidence)));
                }
            }
            Fact::LoopLimitsSet { limits } => self.detectors.limit(limits.clone()),
            Fact::BudgetReached { what } if self.is_between() && self.hold.is_none() => {
                let position = Position(self.next_position);
                self.next_position += 1;
                self.hold = Some(Hold::Reached { position, what: what.clone() });
            }
            Fact::BudgetRaised { times } => {
                self.budget_times = (*times).max(1);
                self.hold = None;
            }
            Fact::Delegated { fact, .. } => self.delegated(fact),
            Fact::TurnInterrupted { by, partial } => self.interrupted(by, partial.as_deref(), at),
            Fact::TurnEnded { .. } if self.may_end() => {
                self.stage = Stage::Idle;
                self.hold = None;
                self.say = None;
                self.verdict = None;
                self.hear_queue();
            }
            Fact::Noticed { text } => self.notice(text.clone(), at),
            Fact::ModeSet { mode } => {
                if *mode == Mode::Plan && self.grants.mode != Mode::Plan {
                    self.grants.before_plan = self.grants.mode;
                }
                self.grants.mode = *mode;
            }
            Fact::ModelSet { model } => {
                if self.grants.model.as_ref() != Some(model) && !self.history().is_empty() {
                    self.notice(format!("from here on: {model}"), at);
                }
                self.grants.model = Some(model.clone());
            }
            Fact::RootGranted { path, writable } => {
                self.grants.roots.retain(|(known, _)| known != path);
                self.grants.roots.push((path.clone(), *writable));
            }
            Fact::Resumed => {
                // The reply that was awaited will not come; nobody knows what it used.
                self.spend_lent();
                if let Some(lost) = self.asked.take() {
                    self.spend(lost.reserved);
                }
                if self.batch.is_none() {
                    self.hear_queue();
                }
            }
            fact => self.fold_call(fact, at),
        }
    }

    fn asked(&mut self, purpose: Purpose, reserved: ow_model::Usage) {
        let fits = match self.stage {
            Stage::Working => self.batch.is_none(),
            Stage::Idle => purpose == Purpose::Summary,
            _ => false,
        };
        if !fits {
            return;
        }
        self.spend_lent();
        if let Some(lost) = self.asked.take() {
            self.spend(lost.reserved);
            self.hear_queue();
        }
        self.say = None;
        self.verdict = None;
        let sent = self.log.len();
        if purpose == Purpose::Summary {
            self.compactor.asked(sent);
        } else {
            self.compactor.passed();
        }
        self.turn_spent.calls += 1;
        self.spent.calls += 1;
        self.asked = Some(Asked { purpose, reserved, sent });
    }

    /// What a sub-agent's fact means for the session: what its models use is used of the session's budget.
    fn delegated(&mut self, fact: &Fact) {
        if let Some(Position(position)) = fact.call() {
            self.next_position = self.next_position.max(position + 1);
        }
        match fact {
            Fact::Asked { reserved, .. } => {
                self.spend_lent();
                self.turn_spent.calls += 1;
                self.spent.calls += 1;
                self.lent = Some(*reserved);
            }
            Fact::Replied { reply, .. } => {
                if let Some(reserved) = self.lent.take() {
                    self.spend(reply.usage.unwrap_or(reserved));
                }
            }
            Fact::ModelFailed { .. } => self.lent = None,
            _ => {}
        }
    }

    /// Nobody knows what a model call used whose reply was lost.
    fn spend_lent(&mut self) {
        if let Some(lost) = self.lent.take() {
            self.spend(lost);
        }
    }

    /// Neither a call is open nor a model at work.
    fn is_between(&self) -> bool {
        matches!(self.stage, Stage::Working) && self.batch.is_none() && self.asked.is_none()
    }

    /// A model is at work, or could not even be asked.
    fn awaits_model(&self) -> bool {
        self.asked.is_some() || self.is_between()
    }

    fn may_end(&self) -> bool {
        matches!(self.stage, Stage::Closing(_)) || self.is_between()
    }

    fn interrupted(&mut self, by: &str, partial: Option<&str>, at: jiff::Timestamp) {
        let asked = self.asked.take();
        if let Some(lost) = &asked {
            self.spend(lost.reserved);
        }
        self.compactor.interrupted();
        if !matches!(self.stage, Stage::Working) {
            self.hear_queue();
            return;
        }
        self.interrupt_calls(&format!("interrupted by {by}"), at);
        if asked.is_some_and(|asked| asked.purpose != Purpose::Summary) {
            self.keep_partial(partial, at);
        }
        self.notice(format!("interrupted by {by}"), at);
        self.say = None;
        self.verdict = None;
        self.hold = None;
        self.tally.halt = None;
        // What was said before the interrupt belongs to this turn.
        for (input, at) in std::mem::take(&mut self.queue) {
            self.take_in(input, at);
        }
        self.stage = Stage::Closing(TurnEnd::Interrupted { by: by.to_owned() });
    }
}
