//! What the model says.

use jiff::Timestamp;
use ow_model::{Failure, Finish, Message, ModelFailure, Purpose, Reply, Why};

use super::prose;
use super::turn::{AgentTurn, Asked, Checkpoint, Stage, TurnEnd};
use super::words;

const CORRECTIONS: u32 = 2;
const CONTINUATIONS: u32 = 3;

impl AgentTurn {
    pub(super) fn replied(&mut self, reply: &Reply, at: Timestamp) {
        let Some(Asked { purpose, reserved, sent }) = self.asked.take() else { return };
        self.spend(reply.usage.unwrap_or(reserved));
        if purpose == Purpose::Summary {
            self.compactor.summarised(&reply.text);
            self.hear_queue();
            return;
        }
        self.compactor.replied();
        if purpose == Purpose::Turn {
            self.tally.iterations += 1;
        }
        let has_calls = purpose == Purpose::Turn && !reply.calls.is_empty() && reply.finish != Finish::Refusal;
        let has_text = !reply.text.trim().is_empty();
        if let Some(usage) = &reply.usage {
            self.log.measure(usage, sent, has_calls || has_text);
        }
        if has_calls {
            self.tally.parts.clear();
            self.tally.continued = 0;
            if has_text {
                self.last_text = Some(reply.text.clone());
            }
            self.open_batch(reply, at);
            return;
        }
        if has_text {
            self.push_text(&reply.text, Some(reply), at);
        }
        self.after_text(reply);
        self.hear_queue();
    }

    /// Decides what a reply in text alone means.
    fn after_text(&mut self, reply: &Reply) {
        // Each part of a cut text stands in the history as it came; the answer is all of them joined.
        let mut text = std::mem::take(&mut self.tally.parts);
        text.push_str(&reply.text);
        let is_blank = text.trim().is_empty();
        if !is_blank {
            self.last_text = Some(text.clone());
        }
        if reply.finish == Finish::Refusal {
            let words = if is_blank { String::new() } else { format!(": {}", words_of(&text)) };
            return self.fail(Failure::Model(ModelFailure::Refusal), format!("the model refused{words}"));
        }
        if reply.finish == Finish::Length {
            if self.tally.continued < CONTINUATIONS {
                self.tally.parts = text;
                return self.will_say(Why::Continue);
            }
            let message = format!(
                "the answer was still cut by the output limit after {CONTINUATIONS} continuations; ask for a shorter one"
            );
            return self.fail(Failure::NoAnswer, message);
        }
        self.tally.continued = 0;
        if self.tally.halt.is_some() {
            return self.fail(Failure::NoAnswer, String::new());
        }
        if self.tally.checkpoint == Checkpoint::Asked {
            return self.will_say(Why::Checkpoint);
        }
        // Something was said meanwhile: the turn goes on with that.
        let is_steered = !self.queue.is_empty();
        if is_blank {
            if is_steered {
                return;
            }
            if self.tally.empties == 0 {
                return self.will_say(Why::Empty);
            }
            let after = match &self.tally.last_result {
                Some(last) => format!("; the last result was that of {last}"),
                None => String::new(),
            };
            let message = format!("the model ended without an answer: its replies were empty{after}");
            return self.fail(Failure::NoAnswer, message);
        }
        let tools: Vec<&str> = self.setup.tools.iter().map(|tool| tool.name.as_str()).collect();
        if prose::holds_call(&text, &tools) {
            if self.tally.corrections < CORRECTIONS {
                return self.will_say(Why::CallAsText);
            }
            let message = "the model writes its calls as text instead of making them, and nothing of it was run; choose a \
                           model that can call tools (`owctl model list`)";
            return self.fail(Failure::NoAnswer, message.into());
        }
        if !is_steered {
            self.stage = Stage::Closing(TurnEnd::Completed);
        }
    }

    pub(super) fn model_failed(&mut self, kind: ModelFailure, message: &str, partial: Option<&str>, at: Timestamp) {
        let purpose = self.asked.take().map_or(Purpose::Turn, |asked| asked.purpose);
        if purpose == Purpose::Summary {
            self.compactor.failing(message);
            self.hear_queue();
            return;
        }
        if kind == ModelFailure::Overflow && self.log.can_be_shortened() {
            self.compactor.force();
            self.hear_queue();
            return;
        }
        self.keep_partial(partial, at);
        let message = match kind {
            ModelFailure::Overflow => format!(
                "{message}: what must be sent is longer than the model's window and cannot be shortened further; choose a \
                 model with a larger window"
            ),
            _ => message.to_owned(),
        };
        self.notice(message.clone(), at);
        self.fail(Failure::Model(kind), message);
        self.hear_queue();
    }

    /// Keeps the text of a reply that never ended, without its calls.
    pub(super) fn keep_partial(&mut self, partial: Option<&str>, at: Timestamp) {
        let Some(text) = partial.filter(|text| !text.trim().is_empty()) else { return };
        let mut whole = std::mem::take(&mut self.tally.parts);
        whole.push_str(text);
        self.last_text = Some(whole);
        self.push_text(text, None, at);
    }

    fn push_text(&mut self, text: &str, reply: Option<&Reply>, at: Timestamp) {
        let message = Message::Assistant {
            text: text.to_owned(),
            calls: vec![],
            reasoning: reply.and_then(|reply| reply.reasoning.clone()),
            usage: reply.and_then(|reply| reply.usage),
            model: reply.map(|reply| reply.model.clone()).unwrap_or_default(),
            private: reply.and_then(|reply| reply.private.clone()),
            at,
        };
        self.log.push(message, false);
    }

    pub(super) fn notice(&mut self, text: String, at: Timestamp) {
        self.log.push(Message::Notice { text, at }, false);
    }

    /// Ends the turn as failed. What halted it before counts more than what became of its last words.
    pub(super) fn fail(&mut self, failure: Failure, message: String) {
        let end = match self.tally.halt.take() {
            Some(halt) => TurnEnd::Failed { failure: halt.failure, message: halt.message },
            None => TurnEnd::Failed { failure, message },
        };
        self.stage = Stage::Closing(end);
    }

    fn will_say(&mut self, why: Why) {
        self.say = Some((why, words::text_of(why).to_owned()));
    }
}

fn words_of(text: &str) -> String {
    super::shown::cut(text.trim(), 1_000, "left out")
}
