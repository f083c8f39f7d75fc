//! A session's history for people, folded from its journal.

use std::collections::HashMap;
use std::fmt::Write;

use ow_model::{
    Answered, Attachment, CallResult, Fact, Finish, HookReport, Input, Position, Reconciled, RecordedFact, Reply,
    ReplyCall, Resolution, Source, TurnOutcome, Usage,
};
use ow_protocol::{AttachmentView, CallUse, MessageView, SessionView, UsageView};
use serde_json::Value;

use super::positions::Positions;
use super::run::slept_words;
use super::session::mode_word;
use super::{failure_word, instant};
use crate::limits::RESULT_SHOWN;

/// Makes entries of facts, one after the other from the first.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// The tools of the calls so far, by position.
    tools: HashMap<u32, String>,
    positions: Positions,
    usage: UsageView,
}

impl Transcript {
    /// Tokens of all facts so far.
    pub(crate) fn usage(&self) -> UsageView {
        self.usage
    }

    /// The entry that a fact makes, if it makes one.
    pub(crate) fn fold(&mut self, recorded: &RecordedFact) -> Option<MessageView> {
        let RecordedFact { seq, at, fact } = recorded;
        let is_summary = self.positions.awaits_summary();
        let calls = self.positions.take(fact);
        if let (Fact::Replied { reply, .. }, true) = (fact, is_summary) {
            self.spend(reply.usage);
            return None;
        }
        let view = self.view(fact, &calls)?;
        Some(MessageView { seq: *seq, at: instant(*at), ..view })
    }

    fn view(&mut self, fact: &Fact, calls: &[(Position, &ReplyCall)]) -> Option<MessageView> {
        Some(match fact {
            Fact::Input { number: _, input } => input_view(input),
            Fact::Asked { purpose: _, model: _, reserved: _, sent: _ } => {
                self.usage.calls += 1;
                return None;
            }
            Fact::Replied { reply, .. } => self.reply_view(reply, calls),
            Fact::Delegated { position: _, fact } => {
                self.count(fact);
                return None;
            }
            Fact::ModelFailed { message, partial, .. } => {
                let mut text = format!("the model could not be asked: {message}");
                if let Some(partial) = partial.as_deref().filter(|partial| !partial.trim().is_empty()) {
                    write!(text, "\nIt had said so far:\n{partial}").expect("a String takes all");
                }
                notice(text)
            }
            Fact::Refused { position, rule } => {
                let text = format!("refused: {rule}");
                MessageView { is_error: true, text, ..self.of_call("call", position.0) }
            }
            Fact::Done { position, result, took_ms } => {
                MessageView { took_ms: Some(*took_ms), ..self.result_view(position.0, result) }
            }
            Fact::Reconciled { position, found: Reconciled::Happened { result } } => {
                self.result_view(position.0, result)
            }
            Fact::Reconciled { position, found: Reconciled::Unknown { why } } => {
                let text = format!("call {position}: nobody can tell whether it took effect: {why}");
                MessageView { position: Some(position.0), ..notice(text) }
            }
            Fact::Stopped { position } => {
                let text = "stopped in the middle".into();
                MessageView { is_error: true, text, ..self.of_call("call", position.0) }
            }
            Fact::AddressRefused { position, address } => {
                MessageView { position: Some(position.0), ..notice(format!("call {position}: {address}")) }
            }
            Fact::Parked { position, item } => {
                MessageView { item: Some(item.to_string()), ..self.of_call("asked", position.0) }
            }
            Fact::Answered { position, item, answered } => {
                MessageView { item: Some(item.to_string()), ..self.answer_view(position.0, answered) }
            }
            Fact::Edited { position, call } => {
                let text = format!("runs with other arguments: {}", call.args);
                MessageView { position: Some(position.0), tool: Some(call.tool.to_string()), ..notice(text) }
            }
            Fact::Hooked { position, report: HookReport { command, said, .. } } => {
                let why = said.why()?;
                let text = format!("hook {} said {}: {why}", command.display(), said.word());
                MessageView { position: position.map(|position| position.0), ..notice(text) }
            }
            Fact::Compacted { .. } => notice("from here on the model is sent a summary of what was said before".into()),
            Fact::CompactionFailed { message } => notice(format!("no summary could be had: {message}")),
            Fact::LoopFound { detector, evidence, stop } => {
                let what = if *stop { "the turn ends" } else { "the agent was told" };
                notice(format!("it goes round in circles ({detector}): {evidence}; {what}"))
            }
            Fact::BudgetReached { what } => notice(format!("a budget is used up: {what}")),
            Fact::BudgetRaised { times } => notice(format!("the budget is now {times} times what it was")),
            Fact::TurnInterrupted { by, partial } => {
                let text = partial.clone().unwrap_or_default();
                MessageView { text, by: Some(by.clone()), ..entry("interrupted") }
            }
            Fact::TurnEnded { outcome } => turn_view(outcome),
            Fact::Noticed { text } => notice(text.clone()),
            Fact::ModeSet { mode } => notice(format!("the mode is now {}", mode_word(*mode))),
            Fact::ModelSet { model } => notice(format!("the model is now {model}")),
            Fact::RootGranted { path, writable } => {
                let how = if *writable { "read and write in" } else { "read" };
                notice(format!("it may {how} {}", path.display()))
            }
            Fact::Slept { until, on, note: _ } => notice(format!("it {}", slept_words(*until, on))),
            Fact::Started { .. }
            | Fact::StepSkipped { .. }
            | Fact::Named { .. }
            | Fact::Rendered { .. }
            | Fact::RenderFailed { .. }
            | Fact::Allowed { .. }
            | Fact::Voided { .. }
            | Fact::Intended { .. }
            | Fact::Reconciled { .. }
            | Fact::Resumed
            | Fact::Admitted { .. }
            | Fact::CompactionWanted
            | Fact::LoopLimitsSet { .. }
            | Fact::Ended { .. } => return None,
        })
    }

    /// What a sub-agent's fact uses of what is the session's.
    fn count(&mut self, fact: &Fact) {
        match fact {
            Fact::Asked { .. } => self.usage.calls += 1,
            Fact::Replied { reply, .. } => self.spend(reply.usage),
            _ => {}
        }
    }

    fn spend(&mut self, usage: Option<Usage>) {
        let Usage { input, cached, output } = usage.unwrap_or_default();
        self.usage.input += input;
        self.usage.cached += cached;
        self.usage.output += output;
    }

    fn reply_view(&mut self, reply: &Reply, calls: &[(Position, &ReplyCall)]) -> MessageView {
        let Reply { text, reasoning, calls: _, finish, usage, model, private: _ } = reply;
        self.spend(*usage);
        let calls = calls.iter().map(|(position, call)| self.call_use(position.0, call)).collect();
        let mut text = text.clone();
        match finish {
            Finish::Refusal if text.trim().is_empty() => text = "(the model refused to answer)".into(),
            Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::Refusal => {}
        }
        MessageView {
            text,
            reasoning: reasoning.clone(),
            calls,
            model: Some(model.clone()),
            usage: usage.map(|Usage { input, cached, output }| UsageView { input, cached, output, calls: 1 }),
            ..entry("assistant")
        }
    }

    fn call_use(&mut self, position: u32, call: &ReplyCall) -> CallUse {
        self.tools.insert(position, call.name.clone());
        CallUse { position, tool: call.name.clone(), arguments: read_arguments(call) }
    }

    fn of_call(&self, kind: &str, position: u32) -> MessageView {
        MessageView { position: Some(position), tool: self.tools.get(&position).cloned(), ..entry(kind) }
    }

    fn result_view(&self, position: u32, result: &CallResult) -> MessageView {
        let CallResult { output, kept, artifacts: _, outside: _, error } = result;
        let mut text = String::new();
        if let Some(error) = error {
            text.push_str(&error.message);
        }
        let output = output_text(output);
        if !output.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&output);
        }
        if let Some((end, _)) = text.char_indices().nth(RESULT_SHOWN) {
            text.truncate(end);
            text.push('…');
        }
        let kept = kept.iter().map(|(field, hash)| (field.clone(), hash.to_string())).collect();
        MessageView { text, is_error: error.is_some(), kept, ..self.of_call("call", position) }
    }

    fn answer_view(&self, position: u32, answered: &Answered) -> MessageView {
        let (outcome, by, text) = match answered {
            Answered::Resolved(Resolution { answer, by, at: _ }) => {
                let text = match answer {
                    ow_model::Answer::Deny { reason } => reason.clone().unwrap_or_default(),
                    ow_model::Answer::Text { text } => text.clone(),
                    _ => String::new(),
                };
                (answer.word(), Some(by.person.0.clone()), text)
            }
            Answered::Expired => ("expired", None, String::new()),
            Answered::Withdrawn { why } => ("withdrawn", None, why.clone()),
        };
        MessageView { outcome: Some(outcome.into()), by, text, ..self.of_call("answered", position) }
    }
}

/// A call's arguments; as a text where the model wrote no JSON.
pub(super) fn read_arguments(call: &ReplyCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into())
}

fn entry(kind: &str) -> MessageView {
    MessageView { kind: kind.into(), ..MessageView::default() }
}

fn notice(text: String) -> MessageView {
    MessageView { text, ..entry("notice") }
}

fn input_view(input: &Input) -> MessageView {
    let Input { text, attachments, source } = input;
    let by = match source {
        Source::Person { person } => person.0.clone(),
        Source::Task => "task".into(),
        Source::Event { kind } => format!("event {kind}"),
        Source::Wake { note: _ } => "wake".into(),
        Source::Owd { why: _ } => "owd".into(),
    };
    let attachments = attachments.iter().map(attachment_view).collect();
    MessageView { text: text.clone(), by: Some(by), attachments, ..entry("user") }
}

fn attachment_view(attachment: &Attachment) -> AttachmentView {
    let Attachment { name, media_type, bytes, hash } = attachment;
    AttachmentView { name: name.clone(), media_type: media_type.clone(), bytes: *bytes, hash: hash.to_string() }
}

fn turn_view(outcome: &TurnOutcome) -> MessageView {
    let (word, failure, text) = match outcome {
        TurnOutcome::Completed => ("completed", None, String::new()),
        TurnOutcome::Interrupted => ("interrupted", None, String::new()),
        TurnOutcome::Failed { failure, message } => ("failed", Some(failure_word(*failure).into()), message.clone()),
    };
    MessageView { outcome: Some(word.into()), failure, text, ..entry("turn-ended") }
}

/// An output for people: its texts; where there are several, by name.
fn output_text(output: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Value::Object(fields) = output else {
        return if output.is_null() { String::new() } else { plain(output) };
    };
    let told: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null() && value.as_str() != Some("")).collect();
    match told.as_slice() {
        [] => String::new(),
        [(_, only)] => plain(only),
        several => {
            let lines = several.iter().map(|(name, value)| {
                let text = plain(value);
                if text.contains('\n') { format!("{name}:\n{text}") } else { format!("{name}: {text}") }
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// A session as a Markdown document.
pub(crate) fn markdown(session: &SessionView, messages: &[MessageView]) -> String {
    let mut text = format!("# {}\n\n", session.title.as_deref().or(session.task.as_deref()).unwrap_or("A chat"));
    let model = session.model.as_deref().unwrap_or("the default model");
    writeln!(text, "Session {}, begun {}, {model}, mode {}.", session.id, session.created_at, session.mode)
        .expect("a String takes all");
    for message in messages {
        text.push('\n');
        entry_in_markdown(&mut text, message);
    }
    text
}

fn entry_in_markdown(text: &mut String, message: &MessageView) {
    let who = message.by.as_deref().unwrap_or_default();
    let written = match message.kind.as_str() {
        "user" => {
            let attached = message.attachments.iter().fold(String::new(), |list, attached| {
                format!("{list}\n- attached: {} ({}, {} bytes)", attached.name, attached.media_type, attached.bytes)
            });
            writeln!(text, "## {who}\n\n{}{attached}", message.text.trim())
        }
        "assistant" => {
            let model = message.model.as_deref().unwrap_or("assistant");
            let calls = message.calls.iter().fold(String::new(), |list, call| {
                format!(
                    "{list}\n\nCall {}, `{}`:\n\n{}",
                    call.position,
                    call.tool,
                    fenced("json", &pretty(&call.arguments))
                )
            });
            writeln!(text, "## {model}\n\n{}{calls}", message.text.trim())
        }
        "call" => {
            let how = if message.is_error { "failed" } else { "gave" };
            let position = message.position.unwrap_or_default();
            writeln!(text, "Call {position} {how}:\n\n{}", fenced("", &message.text))
        }
        "asked" => writeln!(text, "> asked: item {}", message.item.as_deref().unwrap_or_default()),
        "answered" => {
            let outcome = message.outcome.as_deref().unwrap_or_default();
            let by = if who.is_empty() { String::new() } else { format!(" by {who}") };
            writeln!(text, "> item {} {outcome}{by}", message.item.as_deref().unwrap_or_default())
        }
        "interrupted" => writeln!(text, "{}\n\n> interrupted by {who}", message.text.trim()),
        "turn-ended" => match message.outcome.as_deref() {
            Some("failed") => writeln!(text, "> the turn failed: {}", message.text),
            _ => Ok(()),
        },
        _ => writeln!(text, "> {}", message.text.replace('\n', "\n> ")),
    };
    written.expect("a String takes all");
}

fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).expect("a JSON value is written"),
    }
}

/// A block that nothing inside can close.
fn fenced(kind: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{kind}\n{}\n{fence}", text.trim_end())
}
