//! One turn, for scripts: the answer and nothing else, or all events in JSON.

use std::io::{IsTerminal, Read, Stdin};
use std::os::fd::AsFd;

use ow_client::{Client, SessionEvent};
use ow_protocol::{MessageView, SessionView};
use rustix::fs::FileType;
use serde_json::json;

use super::{Chat, attach, opening};
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::{json_line, write};

/// Whether something is piped in, or comes from a file.
pub(super) fn is_piped(stdin: &Stdin) -> bool {
    let kind = rustix::fs::fstat(stdin.as_fd()).map(|found| FileType::from_raw_mode(found.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

/// What was piped in; none: nothing, or a terminal.
pub(super) fn piped(stdin: &Stdin) -> Result<Option<String>, Failure> {
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut text = String::new();
    stdin.lock().read_to_string(&mut text).map_err(|why| Failure::io("cannot read what is piped in", &why))?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// What the agent has said in answer so far: its texts since it last did something.
#[derive(Debug, Default)]
pub(super) struct Answer {
    heard: bool,
    text: String,
}

/// What an entry of the history means for the turn that is waited for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    On,
    /// The turn is over.
    Ended {
        outcome: String,
        message: String,
    },
}

impl Answer {
    /// Takes an entry; those before the person's own message count for nothing.
    pub(super) fn take(&mut self, message: &MessageView, said: &str) -> Step {
        if !self.heard {
            self.heard = message.kind == "user" && message.text == said;
            return Step::On;
        }
        match message.kind.as_str() {
            // A text that was cut by the model's limit is continued by the next.
            "assistant" if message.calls.is_empty() => self.text.push_str(&message.text),
            "assistant" | "call" => self.text.clear(),
            "user" if message.by.as_deref() != Some("owd") => self.text.clear(),
            "interrupted" => self.text.push_str(&message.text),
            "turn-ended" => {
                let outcome = message.outcome.clone().unwrap_or_default();
                return Step::Ended { outcome, message: message.text.clone() };
            }
            _ => {}
        }
        Step::On
    }
}

pub(super) async fn one_turn(owd: &mut Client, chat: &Chat, said: &str, context: &Context) -> Result<(), Failure> {
    let attachments = attach::files(&chat.attach)?;
    let session = opening::open(owd, chat, context).await?;
    let mut stream = owd.watch_session(&session.id, session.length.checked_sub(1)).await?;
    opening::say(owd, &session.id, said, attachments).await?;
    let mut answer = Answer::default();
    let mut interrupted = false;
    loop {
        let event = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => None,
            event = stream.next() => Some(event?),
        };
        match event {
            None if interrupted => return Err(left(&owd.session(&session.id).await?)),
            None => {
                interrupted = true;
                owd.interrupt_session(&session.id).await?;
            }
            Some(SessionEvent::Message(message)) => {
                if context.out.is_json() {
                    json_line(&json!({ "event": "message", "data": message }));
                }
                if let Step::Ended { outcome, message } = answer.take(&message, said) {
                    return give(&answer.text, &outcome, &message, context);
                }
            }
            Some(SessionEvent::State(state)) => {
                if context.out.is_json() {
                    json_line(&json!({ "event": "state", "data": state }));
                }
                // What stood open before the message keeps it waiting, too; who only sleeps is woken by it.
                let waits = state.state == "parked" && (answer.heard || !state.items.is_empty());
                if state.state == "cancelled" || (waits && !chat.wait) {
                    return Err(left(&state));
                }
                if state.state == "parked" {
                    for item in &state.items {
                        context.out.note(&format!("It waits for you: owctl inbox show {}", escape::line(item)));
                    }
                }
            }
            Some(SessionEvent::Live { kind, payload }) => {
                if context.out.is_json() {
                    json_line(&json!({ "event": kind, "data": payload }));
                }
            }
            Some(SessionEvent::Lost) => context.out.note("owd has gone; waiting for it to come back"),
            Some(SessionEvent::Resumed) => context.out.note("owd is back"),
        }
    }
}

/// The turn is not over, and nobody waits for it any longer.
fn left(session: &SessionView) -> Failure {
    let (code, message) = match session.state.as_str() {
        "parked" => ("waiting", "the turn waits for an answer; it goes on when you have given it".to_owned()),
        "cancelled" => ("cancelled", format!("session {} was removed", session.id)),
        _ => ("left", "the turn goes on without you".to_owned()),
    };
    let mut hint = String::new();
    for item in &session.items {
        put!(hint, "owctl inbox show {item}, ");
    }
    put!(hint, "owctl chat --session {}", session.id);
    Failure::failed(code, message).hint(hint)
}

fn give(text: &str, outcome: &str, message: &str, context: &Context) -> Result<(), Failure> {
    let text = text.trim_end();
    if !context.out.is_json() && !text.is_empty() {
        write(&escape::block(text));
    }
    match outcome {
        "completed" => Ok(()),
        "interrupted" => Err(Failure::new(Exit::Failed, "interrupted", "the turn was interrupted")),
        _ => Err(Failure::new(Exit::Failed, "turn_failed", format!("the turn failed: {message}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, text: &str) -> MessageView {
        MessageView { kind: kind.into(), text: text.into(), ..MessageView::default() }
    }

    fn answer(entries: &[MessageView]) -> (String, Step) {
        let mut answer = Answer::default();
        let mut step = Step::On;
        for entry in entries {
            step = answer.take(entry, "q");
        }
        (answer.text, step)
    }

    fn calling(text: &str) -> MessageView {
        let call = ow_protocol::CallUse { position: 0, tool: "shell".into(), arguments: json!({}) };
        MessageView { calls: vec![call], ..entry("assistant", text) }
    }

    #[test]
    fn the_answer_is_what_was_said_after_the_last_deed() {
        let ended = MessageView { outcome: Some("completed".into()), ..entry("turn-ended", "") };
        let owd = MessageView { by: Some("owd".into()), ..entry("user", "go on") };
        let entries = [
            entry("assistant", "of the turn before"),
            entry("turn-ended", ""),
            entry("user", "q"),
            calling("I look."),
            entry("call", "x"),
            entry("assistant", "There is "),
            owd,
            entry("assistant", "x."),
            ended,
        ];
        let over = Step::Ended { outcome: "completed".into(), message: String::new() };
        assert_eq!(answer(&entries), ("There is x.".into(), over));
    }

    #[test]
    fn a_message_that_steers_begins_a_new_answer() {
        let ada = MessageView { by: Some("ada".into()), ..entry("user", "shorter") };
        let entries = [entry("user", "q"), entry("assistant", "long"), ada, entry("assistant", "short")];
        assert_eq!(answer(&entries).0, "short");
    }
}
