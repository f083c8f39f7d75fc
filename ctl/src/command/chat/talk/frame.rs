//! What is drawn: the end of the reply, calls that run, what is asked, the line to type in, and how it stands.

use std::time::Duration;

use super::call;
use super::conversation::Conversation;
use super::screen::Frame;
use super::text::{Line, Style};
use crate::time::span;

/// How long a picture of the working sign stands.
pub(super) const SPIN: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Calls shown while they run; of the others only the number.
const CALLS_SHOWN: usize = 4;
/// Of what a call prints that runs alone.
const LINES_SHOWN: usize = 3;
const UNHEARD_SHOWN: usize = 3;

impl Conversation {
    /// The frame as it is to be seen now. What goes into the scrollback is given once.
    pub(super) fn frame(&mut self) -> Frame {
        let columns = self.columns - 1;
        let mut live = self.flow();
        self.show_card();
        live.extend(self.work().into_iter().map(|row| row.cut(columns)));
        live.extend(self.waiting_messages().into_iter().map(|row| row.cut(columns)));
        if !live.is_empty() {
            live.push(Line::empty());
        }
        let most = (self.rows / 3).max(1);
        let (rows, cursor) = match self.card() {
            Some(card) => {
                live.extend(card.choices(columns));
                match card.prompt() {
                    Some(prompt) => prompt.rows("› ", columns, most),
                    None => (vec![], (0, 0)),
                }
            }
            None => self.prompt.rows("› ", columns, most),
        };
        let top = live.len();
        let cursor = if rows.is_empty() {
            (top.saturating_sub(1), live.last().map_or(0, Line::width))
        } else {
            (top + cursor.0, cursor.1)
        };
        live.extend(rows);
        live.push(self.hint.clone().unwrap_or_else(|| self.status()).cut(columns));
        // The screen must hold all that is drawn anew; the beginning of the reply gives way.
        let over = live.len().saturating_sub(self.rows.saturating_sub(1).max(1)).min(cursor.0);
        live.drain(..over);
        Frame { said: self.take_said(), live, cursor: (cursor.0 - over, cursor.1) }
    }

    /// Moves what is finished of the reply into the scrollback; the rest is to be drawn.
    fn flow(&mut self) -> Vec<Line> {
        let most = self.rows.saturating_sub(8).max(2);
        let (said, live) = self.stream.flow(self.columns - 1, most);
        self.said.extend(said);
        live
    }

    /// Moves all of the reply into the scrollback, as it will not go on.
    pub(super) fn flow_out(&mut self) {
        if !self.stream.is_empty() {
            let said = self.stream.end(self.columns - 1);
            self.said.extend(said);
            self.gap();
        }
    }

    /// What goes on: the calls that run, or that the model thinks.
    fn work(&self) -> Vec<Line> {
        let mut rows = vec![];
        if !self.is_in_turn() {
            return rows;
        }
        let spinner = SPINNER[usize::try_from(self.now.as_millis() / SPIN.as_millis()).unwrap_or(0) % SPINNER.len()];
        let begun: Vec<_> = self.calls.values().filter_map(|call| Some((call, call.since?))).collect();
        for (call, since) in begun.iter().take(CALLS_SHOWN) {
            let mut row = Line::of([(spinner, Style::CYAN), (" ", Style::PLAIN), (call.tool.as_str(), Style::BOLD)]);
            row.push(&format!(" {}", call::in_short(&call.arguments)), Style::PLAIN);
            row.push(&format!("  {}", self.elapsed(*since)), Style::DIM);
            rows.push(row);
            let lines = if begun.len() == 1 { LINES_SHOWN } else { 1 };
            rows.extend(call.printed.newest(lines).map(|line| Line::styled(&format!("    {line}"), Style::DIM)));
        }
        if begun.len() > CALLS_SHOWN {
            rows.push(Line::styled(&format!("  and {} more", begun.len() - CALLS_SHOWN), Style::DIM));
        }
        if !self.is_busy() || !begun.is_empty() {
            return rows;
        }
        let Some(turn) = &self.turn else { return rows };
        if self.session.state == "queued" {
            let why = self.session.message.as_deref().unwrap_or("waits for a worker");
            rows.push(Line::of([(spinner, Style::CYAN), (" ", Style::PLAIN), (why, Style::DIM)]));
            return rows;
        }
        let what = if self.stream.is_empty() { "thinking" } else { "writing" };
        let mut row = Line::of([(spinner, Style::CYAN), (" ", Style::PLAIN), (what, Style::DIM)]);
        row.push(&format!(" {}", self.elapsed(turn.thinking)), Style::DIM);
        rows.push(row);
        if let Some(thought) = self.reasoning.lines().rfind(|line| !line.trim().is_empty()) {
            let room = self.columns.saturating_sub(4);
            let letters: Vec<char> = thought.chars().collect();
            let end: String = letters[letters.len().saturating_sub(room)..].iter().collect();
            rows.push(Line::styled(&format!("  {end}"), Style::DIM | Style::ITALIC));
        }
        rows
    }

    /// Whole seconds, so that a row changes no more often than it must.
    fn elapsed(&self, since: Duration) -> String {
        let seconds = self.now.saturating_sub(since).as_secs();
        if seconds < 60 { format!("{seconds} s") } else { span(seconds * 1000) }
    }

    fn waiting_messages(&self) -> Vec<Line> {
        let mut rows: Vec<Line> = self
            .unheard
            .iter()
            .take(UNHEARD_SHOWN)
            .map(|text| {
                let first = text.lines().next().unwrap_or_default();
                Line::of([("› ", Style::DIM), (first, Style::DIM), ("  (not heard yet)", Style::DIM)])
            })
            .collect();
        if self.unheard.len() > UNHEARD_SHOWN {
            rows.push(Line::styled(&format!("  and {} more", self.unheard.len() - UNHEARD_SHOWN), Style::DIM));
        }
        rows
    }

    fn status(&self) -> Line {
        if self.before.is_some() {
            return Line::styled("opening …", Style::DIM);
        }
        let mut parts = vec![];
        if self.lost {
            parts.push("owd has gone".to_owned());
        }
        if !self.attachments.is_empty() {
            let names: Vec<&str> = self.attachments.iter().map(|attachment| attachment.name.as_str()).collect();
            parts.push(format!("with it: {}", names.join(", ")));
        }
        if !self.aside.is_empty() {
            parts.push("a question waits: /inbox".into());
        }
        parts.push(format!("mode {}", self.session.mode));
        parts.push(self.model());
        if self.is_in_turn() {
            parts.push("Ctrl-C interrupts".into());
        }
        Line::styled(&parts.join(" · "), Style::DIM)
    }
}
