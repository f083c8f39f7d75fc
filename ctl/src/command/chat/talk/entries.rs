//! What happens in the session, as the person sees it.

use ow_client::SessionEvent;
use ow_protocol::{MessageView, SessionView, UsageView};
use serde_json::Value;

use super::call::{self, RunningCall};
use super::card::Card;
use super::conversation::{Conversation, Turn};
use super::exchange::Effect;
use super::text::{Line, Style};
use crate::command::printed::Printed;
use crate::time::span;

/// What is kept of the model's thinking to show its end.
const REASONING_KEPT: usize = 400;

impl Conversation {
    pub(super) fn event(&mut self, event: SessionEvent) -> Vec<Effect> {
        match event {
            SessionEvent::Message(message) => match &mut self.before {
                Some(before) => before.push(*message),
                None => self.entry(&message),
            },
            SessionEvent::State(state) => return self.state(*state),
            SessionEvent::Live { kind, payload } => self.live(&kind, &payload),
            SessionEvent::Lost => {
                self.lost = true;
                self.stream.tear();
                // What ran has ended with it.
                for call in self.calls.values_mut() {
                    call.since = None;
                }
                self.note("owd has gone; waiting for it to come back");
            }
            SessionEvent::Resumed => {
                self.lost = false;
                self.note("owd is back");
            }
        }
        vec![]
    }

    fn state(&mut self, state: SessionView) -> Vec<Effect> {
        // The stream knows no title that was given, nor a change of mode, before the state tells.
        let usage = state.usage.or(self.session.usage);
        self.session = SessionView { usage, ..state };
        if let Some(before) = self.before.take() {
            self.greet(&before);
            // What comes from now on and was not typed here is somebody's.
            self.is_shared = true;
        }
        match self.session.state.as_str() {
            // The entry that ends the turn may be still to come: how it stands is read after the entries are.
            "idle" => self.no_longer_stopping(),
            "cancelled" => {
                self.rest();
                self.note("This chat was removed.");
                return vec![Effect::Leave];
            }
            _ => self.begin_turn(),
        }
        self.look_at_items()
    }

    /// Shows where it stands: how it is set, and of an old chat what was said last.
    fn greet(&mut self, before: &[MessageView]) {
        let session = self.session.clone();
        let roots = if session.roots.is_empty() { "no folder".into() } else { session.roots.join(", ") };
        let replied = before.iter().rev().find_map(|entry| entry.model.clone());
        self.replied = replied.or(self.replied.take());
        let how = format!("{} · mode {} · {roots} · /help", self.model(), session.mode);
        if before.iter().all(|entry| entry.kind != "user") {
            self.say_line(&Line::styled(&how, Style::DIM));
            return;
        }
        self.used = true;
        let title = session.title.as_deref().unwrap_or("A chat");
        self.say_line(&Line::styled(title, Style::BOLD));
        self.say_line(&Line::styled(&how, Style::DIM));
        let said = |entry: &&MessageView| entry.kind == "user" && entry.by.as_deref() != Some("owd");
        let last = before.iter().rposition(|entry| said(&entry)).unwrap_or(0);
        if last > 0 {
            let entries = if last == 1 { "entry" } else { "entries" };
            self.note(&format!("… {last} {entries} before: owctl session export {}", session.id));
        }
        let mut people = before.iter().filter(said).map(|entry| &entry.by);
        let first = people.next();
        self.is_shared = people.any(|by| Some(by) != first);
        for (index, entry) in before.iter().enumerate() {
            if index < last {
                // Only what later entries refer to.
                self.remember_calls(entry);
            } else {
                self.entry(entry);
            }
        }
        let stands = match session.state.as_str() {
            "idle" => return,
            "parked" => "It waits for your answer.".to_owned(),
            "running" => "It is at work.".to_owned(),
            _ => {
                session.message.map_or_else(|| format!("It is {}.", session.state), |message| format!("It {message}."))
            }
        };
        self.note(&stands);
    }

    fn remember_calls(&mut self, entry: &MessageView) {
        for used in &entry.calls {
            let call = RunningCall {
                tool: used.tool.clone(),
                arguments: used.arguments.clone(),
                since: None,
                printed: Printed::default(),
            };
            self.calls.insert(used.position, call);
        }
        if entry.kind == "call"
            && let Some(position) = entry.position
        {
            self.calls.remove(&position);
        }
    }

    fn entry(&mut self, entry: &MessageView) {
        match entry.kind.as_str() {
            "user" => self.heard(entry),
            "assistant" => self.replied(entry),
            "call" => {
                let call = entry.position.and_then(|position| self.calls.remove(&position));
                let rows = call::card(entry, call.as_ref(), self.columns);
                self.said.extend(rows);
                self.think_anew();
            }
            // It does not run, whatever was seen of it: of a call whose outcome is unknown a person is asked again.
            "asked" => {
                if let Some(call) = entry.position.and_then(|position| self.calls.get_mut(&position)) {
                    call.since = None;
                }
            }
            "answered" => {
                let outcome = entry.outcome.as_deref().unwrap_or("answered");
                let by = entry.by.as_deref().map_or(String::new(), |by| format!(" by {by}"));
                let why = if entry.text.is_empty() { String::new() } else { format!(": {}", entry.text) };
                let answered = |card: &Card| entry.item.as_deref() == Some(card.item.id.as_str());
                let what = self.cards.iter().find(|card| answered(card)).and_then(Card::in_short);
                let what = what.map_or(String::new(), |what| format!(" {what}:"));
                self.cards.retain(|card| !answered(card));
                self.note(format!("{what} {outcome}{by}{why}").trim_start());
            }
            "interrupted" => {
                let rows = self.stream.complete(&entry.text, self.columns);
                self.said.extend(rows);
                let by = entry.by.as_deref().map_or(String::new(), |by| format!(" by {by}"));
                self.cards.clear();
                self.note(&format!("interrupted{by}"));
            }
            "turn-ended" => self.turn_ended(entry),
            _ => self.note(&entry.text),
        }
    }

    /// The agent has heard something.
    fn heard(&mut self, entry: &MessageView) {
        self.used = true;
        let by = entry.by.as_deref().unwrap_or_default();
        if by == "owd" {
            let first = entry.text.lines().next().unwrap_or_default();
            self.note(&format!("owd tells it: {first}"));
            return;
        }
        let mine = self.unheard.iter().position(|unheard| *unheard == entry.text);
        let sign = match mine {
            Some(at) => {
                self.unheard.remove(at);
                "› ".to_owned()
            }
            None if by.is_empty() || !self.is_shared => "› ".to_owned(),
            None => format!("{by} › "),
        };
        self.gap();
        let style = Style::BOLD | Style::CYAN;
        let (mut first, rest) = (Line::styled(&sign, style), Line::plain("  "));
        for line in entry.text.trim_end().lines() {
            let rows = Line::styled(line, Style::BOLD).wrap(self.columns, &first, &rest);
            self.said.extend(rows);
            first = rest.clone();
        }
        for attachment in &entry.attachments {
            self.note(&format!(
                "attached: {} ({}, {} bytes)",
                attachment.name, attachment.media_type, attachment.bytes
            ));
        }
        self.gap();
    }

    fn replied(&mut self, entry: &MessageView) {
        let rows = self.stream.complete(&entry.text, self.columns);
        self.said.extend(rows);
        if !entry.text.trim().is_empty() {
            self.gap();
        }
        self.reasoning.clear();
        self.replied = entry.model.clone().or(self.replied.take());
        self.remember_calls(entry);
        self.think_anew();
        // Some providers do not say what a call used; it was one all the same.
        let usage = entry.usage.unwrap_or(UsageView { calls: 1, ..UsageView::default() });
        if let Some(turn) = &mut self.turn {
            add(&mut turn.usage, usage);
        }
        if self.before.is_none() {
            add(self.session.usage.get_or_insert_default(), usage);
        }
    }

    fn turn_ended(&mut self, entry: &MessageView) {
        self.flow_out();
        let used = self.turn.take().map_or(String::new(), |turn| {
            let took = u64::try_from((self.now.saturating_sub(turn.since)).as_millis()).unwrap_or(u64::MAX);
            format!("{} · {}", span(took), usage_in_words(turn.usage))
        });
        match entry.outcome.as_deref() {
            Some("failed") => {
                self.error(&format!("the turn failed: {}", entry.text), None);
            }
            Some("interrupted") => self.note("The turn is over; the chat goes on."),
            _ if used.is_empty() => {}
            _ => self.say_line(&Line::styled(&used, Style::DIM)),
        }
        self.rest();
    }

    fn live(&mut self, kind: &str, payload: &Value) {
        let text = payload.get("text").and_then(Value::as_str).unwrap_or_default();
        let position =
            payload.get("position").and_then(Value::as_u64).and_then(|position| u32::try_from(position).ok());
        match (kind, position) {
            ("text", _) => {
                self.reasoning.clear();
                self.stream.push(text);
            }
            ("reasoning", _) => {
                self.reasoning.push_str(text);
                let over = self.reasoning.len().saturating_sub(REASONING_KEPT);
                let start = (over..=self.reasoning.len()).find(|at| self.reasoning.is_char_boundary(*at)).unwrap_or(0);
                self.reasoning.drain(..start);
            }
            ("tool-started", Some(position)) => {
                let tool = payload.get("tool").and_then(Value::as_str).unwrap_or_default().to_owned();
                let arguments = payload.get("arguments").cloned().unwrap_or_default();
                let call = RunningCall { tool, arguments, since: Some(self.now), printed: Printed::default() };
                self.calls.insert(position, call);
            }
            ("tool-output", Some(position)) => {
                if let Some(call) = self.calls.get_mut(&position) {
                    call.printed.take(text);
                }
            }
            ("turn-started", _) => {
                // It is told again where a turn goes on after an answer.
                self.begin_turn();
                self.think_anew();
            }
            // The reply begins anew; the entry that says why comes with it.
            ("notice", _) if payload.get("restart").is_some_and(|restart| restart == true) => {
                self.flow_out();
                self.note(text);
            }
            ("lagged", _) => self.stream.tear(),
            _ => {}
        }
    }

    fn begin_turn(&mut self) {
        let now = self.now;
        self.turn.get_or_insert(Turn { since: now, usage: UsageView::default(), thinking: now });
    }

    fn think_anew(&mut self) {
        let now = self.now;
        if let Some(turn) = &mut self.turn {
            turn.thinking = now;
        }
    }
}

fn add(sum: &mut UsageView, usage: UsageView) {
    let UsageView { input, cached, output, calls } = usage;
    sum.input += input;
    sum.cached += cached;
    sum.output += output;
    sum.calls += calls;
}

pub(super) fn usage_in_words(usage: UsageView) -> String {
    let UsageView { input, cached, output, calls } = usage;
    let cached = if cached > 0 { format!(" ({} cached)", grouped(cached)) } else { String::new() };
    let times = if calls == 1 { "call" } else { "calls" };
    if calls > 0 && input == 0 && output == 0 {
        return format!("{calls} model {times} · tokens not told");
    }
    format!("{calls} model {times} · {} tokens in{cached}, {} out", grouped(input), grouped(output))
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
