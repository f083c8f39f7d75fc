use super::{Draft, StreamFault};
use crate::Deltas;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Takes thoughts out of a text that begins with them, as local servers send them that know no field for thoughts.
///
/// Only at the very beginning: a tag further on is the model's own text.
#[derive(Debug, Default)]
pub(super) struct ThinkSplit {
    state: State,
    /// What may be a part of a tag.
    held: String,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    #[default]
    Before,
    Inside,
    /// The thoughts are over; the white space after them belongs to nobody.
    Between,
    Text,
}

impl ThinkSplit {
    pub(super) fn push(&mut self, text: &str, draft: &mut Draft, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        if self.state == State::Text {
            return draft.push_text(text, deltas);
        }
        self.held.push_str(text);
        loop {
            match self.state {
                State::Before => {
                    let begun = self.held.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.state = State::Inside;
                    } else if OPEN.starts_with(begun) {
                        return Ok(());
                    } else {
                        self.state = State::Text;
                    }
                }
                State::Inside => {
                    if let Some((thought, rest)) = self.held.split_once(CLOSE) {
                        draft.push_reasoning(thought, deltas)?;
                        self.held = rest.to_owned();
                        self.state = State::Between;
                    } else {
                        let certain = self.held.len() - tail_of_tag(&self.held);
                        draft.push_reasoning(&self.held[..certain], deltas)?;
                        self.held.drain(..certain);
                        return Ok(());
                    }
                }
                State::Between => {
                    let rest = self.held.trim_start();
                    if rest.is_empty() {
                        self.held.clear();
                        return Ok(());
                    }
                    self.held = rest.to_owned();
                    self.state = State::Text;
                }
                State::Text => return draft.push_text(&std::mem::take(&mut self.held), deltas),
            }
        }
    }

    pub(super) fn finish(&mut self, draft: &mut Draft, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Inside => draft.push_reasoning(&held, deltas),
            State::Before | State::Between | State::Text => draft.push_text(&held, deltas),
        }
    }
}

/// How many bytes at the end may be the beginning of the closing tag.
fn tail_of_tag(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|length| text.ends_with(&CLOSE[..*length])).unwrap_or(0)
}
