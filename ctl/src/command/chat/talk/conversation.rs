//! The chat as a machine: what is on the screen, what a key or an event does to it, and what is to be done then.
//!
//! It reads no clock and performs nothing: the present comes in as the time since the chat was opened, and what is to be
//! done goes out as [`Effect`]s.

use std::collections::BTreeMap;
use std::time::Duration;

use ow_protocol::{MessageView, NewAttachment, SessionView, UsageView};

use super::call::RunningCall;
use super::card::{Card, Pressed};
use super::exchange::{Ask, Completed, Effect, Farewell, Input};
use super::key::Key;
use super::prompt::{Prompt, Typed};
use super::screen::Frame;
use super::stream::TextStream;
use super::text::{Line, Style};

/// How far the person's wish to stop has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stopping {
    No,
    Asked,
}

/// A turn as it goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) since: Duration,
    pub(super) usage: UsageView,
    /// When the model was last known to begin to think.
    pub(super) thinking: Duration,
}

/// The whole state.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Conversation {
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) session: SessionView,
    /// Entries from before, until the first state ends them.
    pub(super) before: Option<Vec<MessageView>>,
    /// Rows that go into the scrollback.
    pub(super) said: Vec<Line>,
    pub(super) stream: TextStream,
    pub(super) reasoning: String,
    pub(super) calls: BTreeMap<u32, RunningCall>,
    pub(super) turn: Option<Turn>,
    /// Messages that the agent has not heard yet.
    pub(super) unheard: Vec<String>,
    pub(super) cards: Vec<Card>,
    /// The item whose card stands last in the scrollback, above the keys.
    pub(super) shown: Option<String>,
    /// Items that are being fetched.
    pub(super) fetching: Vec<String>,
    /// Items that the person answers later.
    pub(super) aside: Vec<String>,
    pub(super) prompt: Prompt,
    pub(super) attachments: Vec<NewAttachment>,
    /// Said below the prompt until the next key.
    pub(super) hint: Option<Line>,
    stopping: Stopping,
    pub(super) lost: bool,
    pub(super) now: Duration,
    /// Something was said in it, by anyone.
    pub(super) used: bool,
    /// The model that replied last, or the configured one.
    pub(super) replied: Option<String>,
    /// More than one person speaks, so that each is named.
    pub(super) is_shared: bool,
    /// The scrollback ends with an empty row.
    pub(super) is_parted: bool,
}

impl Conversation {
    pub(super) fn new(session: SessionView, history: Vec<String>, now: Duration) -> Self {
        Self {
            columns: 80,
            rows: 24,
            used: session.length > 1,
            session,
            before: Some(vec![]),
            said: vec![],
            stream: TextStream::default(),
            reasoning: String::new(),
            calls: BTreeMap::new(),
            turn: None,
            unheard: vec![],
            cards: vec![],
            shown: None,
            fetching: vec![],
            aside: vec![],
            prompt: Prompt::with_history(history),
            attachments: vec![],
            hint: None,
            stopping: Stopping::No,
            lost: false,
            now,
            replied: None,
            is_shared: true,
            is_parted: true,
        }
    }

    pub(super) fn step(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        self.now = now;
        match input {
            Input::Keys { keys, at } => self.keys(&keys, at),
            Input::Resized { columns, rows } => {
                (self.columns, self.rows) = (columns.max(20), rows.max(4));
                vec![]
            }
            Input::Event(event) => self.event(event),
            Input::Told(told) => self.told(told),
            Input::Tick => {
                if let Some(card) = self.card_mut() {
                    card.tick(now);
                }
                vec![]
            }
        }
    }

    /// The frame was put on the screen between these instants.
    pub(super) fn drawn(&mut self, from: Duration, until: Duration) {
        if let Some(card) = self.card_mut() {
            card.drawn(from, until);
        }
    }

    /// When time alone changes what is to be seen.
    pub(super) fn wakes_at(&self) -> Option<Duration> {
        let spins = self.is_busy().then(|| self.now + super::frame::SPIN);
        let card = self.card().and_then(Card::wakes_at);
        [spins, card].into_iter().flatten().min()
    }

    /// Its turn is under way and waits for nobody, as far as one can see.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.session.state.as_str(), "running" | "queued") && self.before.is_none() && !self.lost
    }

    /// In the middle of a turn, waiting or not.
    pub(super) fn is_in_turn(&self) -> bool {
        self.session.state != "idle" && self.session.state != "cancelled"
    }

    /// The card before the person.
    pub(super) fn card(&self) -> Option<&Card> {
        self.cards.iter().find(|card| !self.aside.contains(&card.item.id))
    }

    fn card_mut(&mut self) -> Option<&mut Card> {
        let aside = &self.aside;
        self.cards.iter_mut().find(|card| !aside.contains(&card.item.id))
    }

    fn keys(&mut self, keys: &[Key], at: Duration) -> Vec<Effect> {
        self.hint = None;
        if keys.contains(&Key::Ctrl('c')) {
            return self.stop();
        }
        if keys.contains(&Key::Ctrl('z')) {
            return vec![Effect::Suspend];
        }
        if keys == [Key::Ctrl('l')] {
            return vec![Effect::Clear];
        }
        if self.card().is_some() {
            return self.press_on_card(keys, at);
        }
        let mut effects = vec![];
        for key in keys {
            match (self.prompt.press(key), key) {
                (Typed::Entered(text), _) => effects.extend(self.entered(text)),
                (Typed::Unused, Key::Ctrl('d')) => effects.push(Effect::Leave),
                (Typed::Unused, Key::Tab) => effects.extend(self.complete()),
                (Typed::On | Typed::Unused, _) => {}
            }
            // What was typed ahead is for what was seen then.
            if self.card().is_some() {
                break;
            }
        }
        effects
    }

    fn press_on_card(&mut self, keys: &[Key], at: Duration) -> Vec<Effect> {
        if keys == [Key::Ctrl('d')] {
            return vec![Effect::Leave];
        }
        let Some(card) = self.card_mut() else { return vec![] };
        let item = card.item.id.clone();
        match card.press(keys, at) {
            Pressed::Nothing => vec![],
            Pressed::Refused => vec![Effect::Bell],
            Pressed::Answer(answer) => vec![Effect::Ask(Ask::Answer { item, answer })],
            Pressed::Edit(arguments) => vec![Effect::Edit { item, arguments }],
            Pressed::Aside => {
                self.aside.push(item);
                self.hint("put aside: /inbox asks again; what you say now waits behind it");
                vec![]
            }
        }
    }

    /// The person wants it to stop: first the turn, then the program.
    fn stop(&mut self) -> Vec<Effect> {
        if self.is_in_turn() && self.stopping == Stopping::No {
            self.stopping = Stopping::Asked;
            self.hint("interrupting; once more leaves");
            return vec![Effect::Ask(Ask::Interrupt)];
        }
        if !self.is_in_turn() && !self.prompt.is_empty() {
            self.prompt.clear();
            self.hint("once more leaves");
            return vec![];
        }
        vec![Effect::Leave]
    }

    fn entered(&mut self, text: String) -> Vec<Effect> {
        if text.trim().is_empty() && self.attachments.is_empty() {
            return vec![];
        }
        let mut effects = vec![];
        // As in shells: what begins with a blank is not kept.
        if !text.starts_with(' ') && !text.trim().is_empty() {
            self.prompt.remember(&text);
            effects.push(Effect::Remember(text.clone()));
        }
        match super::slash::read(&text) {
            Some(Ok(command)) => {
                self.say_line(&Line::styled(&format!("> {}", text.trim_end()), Style::DIM));
                effects.extend(self.obey(command));
            }
            Some(Err(wrong)) => self.error(&wrong.message, Some(&wrong.hint)),
            None => effects.push(self.say(text)),
        }
        effects
    }

    pub(super) fn say(&mut self, text: String) -> Effect {
        let attachments = std::mem::take(&mut self.attachments);
        self.unheard.push(text.clone());
        Effect::Ask(Ask::Say { text, attachments })
    }

    fn complete(&mut self) -> Option<Effect> {
        let before = self.prompt.before().to_owned();
        if let Some((start, candidates)) = super::slash::completions(&before) {
            self.offer(start, &candidates);
            return None;
        }
        let (word, of) = match (before.strip_prefix("/attach "), before.strip_prefix("/model ")) {
            (Some(word), _) => (word, Completed::Files),
            (_, Some(word)) => (word, Completed::Models),
            _ => return None,
        };
        let start = before.len() - word.len();
        Some(Effect::Ask(Ask::Complete { start, word: word.to_owned(), of }))
    }

    /// Completes the word that begins at `start` as far as all candidates agree, and shows them if they are several.
    pub(super) fn offer(&mut self, start: usize, candidates: &[String]) {
        let before = self.prompt.before().to_owned();
        let Some(word) = before.get(start..) else { return };
        let Some(first) = candidates.first().filter(|first| first.starts_with(word)) else {
            self.hint("nothing fits");
            return;
        };
        let mut agreed = first.as_str();
        for candidate in candidates {
            let common = agreed.char_indices().zip(candidate.chars()).take_while(|((_, one), other)| one == other);
            let end = common.last().map_or(0, |((at, letter), _)| at + letter.len_utf8());
            agreed = &agreed[..end];
        }
        if let Some(more) = agreed.strip_prefix(word) {
            let more = more.to_owned();
            self.prompt.insert(&more);
        }
        if candidates.len() > 1 {
            self.hint(&candidates.iter().map(|candidate| candidate.trim_end()).collect::<Vec<_>>().join("  "));
        }
    }

    pub(super) fn no_longer_stopping(&mut self) {
        self.stopping = Stopping::No;
    }

    /// The turn is over, or there is none.
    pub(super) fn rest(&mut self) {
        self.no_longer_stopping();
        self.turn = None;
        self.reasoning.clear();
        self.calls.clear();
    }

    pub(super) fn model(&self) -> String {
        let model = self.session.model.as_ref().or(self.replied.as_ref());
        model.cloned().unwrap_or_else(|| "the configured model".into())
    }

    /// Rows that go into the scrollback; nothing else may take them.
    pub(super) fn take_said(&mut self) -> Vec<Line> {
        let said = std::mem::take(&mut self.said);
        self.is_parted = said.last().map_or(self.is_parted, Line::is_empty);
        said
    }

    /// The same terminal with another session.
    pub(super) fn succeeded_by(&self, session: SessionView) -> Self {
        let next = Self::new(session, self.prompt.history().to_vec(), self.now);
        Self { columns: self.columns, rows: self.rows, ..next }
    }

    /// Whether anything was said in it.
    pub(super) fn is_used(&self) -> bool {
        self.used || !self.unheard.is_empty()
    }

    /// What stays on the terminal when the person leaves.
    pub(super) fn last_frame(&mut self, farewell: Farewell) -> Frame {
        self.flow_out();
        let mut said = self.take_said();
        if farewell == Farewell::ComeBack {
            said.extend(self.farewell());
        }
        Frame { said, live: vec![], cursor: (0, 0) }
    }

    fn farewell(&self) -> Vec<Line> {
        let id = &self.session.id;
        let mut rows = vec![];
        match self.session.state.as_str() {
            "parked" => {
                let items = self.session.items.iter().map(|item| format!("owctl inbox show {item}"));
                let items = items.collect::<Vec<_>>().join(", ");
                rows.push(format!("It waits for you; its questions are in the Inbox: {items}"));
            }
            state if matches!(state, "running" | "queued") || !self.unheard.is_empty() => {
                rows.push("The turn goes on without you; what it asks will be in the Inbox: owctl inbox list".into());
            }
            _ => {}
        }
        rows.push(format!("Come back: owctl chat --session {id}"));
        rows.iter()
            .map(|row| Line::styled(row, Style::DIM))
            .flat_map(|row| row.wrap(self.columns, &Line::empty(), &Line::empty()))
            .collect()
    }

    pub(super) fn hint(&mut self, text: &str) {
        self.hint = Some(Line::styled(text, Style::DIM));
    }

    /// An empty row, unless there is one.
    pub(super) fn gap(&mut self) {
        if !self.said.last().map_or(self.is_parted, Line::is_empty) {
            self.said.push(Line::empty());
        }
    }

    /// In the middle of a reply it stands above the block that still grows.
    pub(super) fn say_line(&mut self, line: &Line) {
        let rows = line.wrap(self.columns, &Line::empty(), &Line::plain("  "));
        self.said.extend(rows);
    }

    pub(super) fn note(&mut self, text: &str) {
        for line in text.lines() {
            self.say_line(&Line::of([("· ", Style::DIM), (line, Style::DIM)]));
        }
    }

    pub(super) fn error(&mut self, message: &str, hint: Option<&str>) {
        self.say_line(&Line::of([("error: ", Style::RED), (message, Style::PLAIN)]));
        if let Some(hint) = hint {
            self.say_line(&Line::of([("next:  ", Style::CYAN), (hint, Style::PLAIN)]));
        }
    }
}
