//! What is said to the session.

use jiff::Timestamp;
use ow_model::{Failure, Input, Message, Source, Why};

use super::batch::{CallState, Settled, SettledBy};
use super::shown::framed;
use super::turn::{AgentTurn, Checkpoint, Halt, Stage, Tally, TurnEnd, digest};

impl AgentTurn {
    pub(super) fn input(&mut self, number: Option<u64>, input: &Input, at: Timestamp) {
        if let Some(number) = number {
            if self.has_heard(number) {
                return;
            }
            self.heard = Some(number);
        }
        self.wake(input);
        if self.batch.is_some() || self.asked.is_some() {
            // It enters behind what is under way: a reply stands right before its results.
            self.queue.push((input.clone(), at));
            self.close_batch(at);
        } else {
            self.hear(input.clone(), at);
        }
    }

    /// Lets everything in that was said meanwhile.
    pub(super) fn hear_queue(&mut self) {
        for (input, at) in std::mem::take(&mut self.queue) {
            self.hear(input, at);
        }
    }

    fn hear(&mut self, input: Input, at: Timestamp) {
        if let Source::Owd { why } = &input.source {
            self.said(*why);
        } else {
            match &self.stage {
                Stage::Idle => self.begin_turn(),
                // The last word is not the last: the turn goes on.
                Stage::Closing(TurnEnd::Completed) => self.stage = Stage::Working,
                // It begins the next turn.
                Stage::Closing(_) => return self.queue.push((input, at)),
                Stage::New | Stage::Working | Stage::Ended => {}
            }
        }
        self.take_in(input, at);
    }

    /// Puts an input into the history.
    pub(super) fn take_in(&mut self, input: Input, at: Timestamp) {
        let (input, outside) = match &input.source {
            Source::Event { kind } => {
                let text = framed(&format!("event {kind}"), &input.text);
                (Input { text, ..input }, true)
            }
            _ => (input, false),
        };
        self.log.push(Message::User { input, at }, outside);
    }

    fn begin_turn(&mut self) {
        self.stage = Stage::Working;
        self.tally = Tally::default();
        self.turn_spent = super::turn::Spent::default();
        self.budget_times = 1;
        self.detectors.begin_turn();
        self.grants.denied.clear();
        self.hold = None;
        self.say = None;
        self.verdict = None;
    }

    /// Owd itself spoke.
    fn said(&mut self, why: Why) {
        if self.say.as_ref().is_some_and(|(due, _)| *due == why) {
            self.say = None;
        }
        let tally = &mut self.tally;
        match why {
            Why::Checkpoint => {
                tally.checkpoint = match tally.checkpoint {
                    Checkpoint::Ahead => Checkpoint::Asked,
                    Checkpoint::Asked | Checkpoint::Passed => Checkpoint::Passed,
                }
            }
            Why::CallAsText => tally.corrections += 1,
            Why::Empty => tally.empties += 1,
            Why::Continue => tally.continued += 1,
            Why::Stop if tally.halt.is_none() => {
                let limit = self.limit();
                let message = format!(
                    "the agent used up its limit of {limit} replies; raise `max-iterations`, or ask for less at a time"
                );
                self.tally.halt = Some(Halt { failure: Failure::Iterations, message });
            }
            // A Stop hook that objects sends the agent back to work.
            Why::Hook if matches!(self.stage, Stage::Closing(TurnEnd::Completed)) => self.stage = Stage::Working,
            Why::Stop | Why::Loop | Why::Hook => {}
        }
    }

    /// Ends the sleep of a session that hears something.
    fn wake(&mut self, input: &Input) {
        if matches!(input.source, Source::Owd { .. }) {
            return;
        }
        let text = match &input.source {
            Source::Wake { note } if note.is_empty() => "awake again".to_owned(),
            Source::Wake { note } => format!("awake again; you wanted to: {note}"),
            _ => "woken early by the message that follows".to_owned(),
        };
        let Some(batch) = &mut self.batch else { return };
        let Some(open) = batch.calls.iter_mut().find(|open| matches!(open.state, CallState::Asleep)) else { return };
        open.state = CallState::Settled(Settled {
            result: digest(&text),
            text,
            images: vec![],
            error: None,
            outside: false,
            by: SettledBy::Run,
        });
    }
}
