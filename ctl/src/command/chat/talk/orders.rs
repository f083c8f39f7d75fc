//! The chat's own commands, obeyed, and the lists that they show.

use std::path::PathBuf;

use ow_protocol::{SessionSettings, SessionView, UsageView};

use super::conversation::Conversation;
use super::entries::usage_in_words;
use super::exchange::{Ask, Effect, Told};
use super::slash::{COMMANDS, Slash};
use super::text::{Line, Style};
use crate::command::model::Price;

/// Keys that are worth to be told.
const KEYS: [(&str, &str); 7] = [
    ("Enter", "say it; during a turn it steers the agent"),
    ("Alt-Enter, or \\ at the end", "a new line; a paste keeps its own"),
    ("Up, Down", "what was said before"),
    ("Tab", "complete a command, a file or a model"),
    ("Ctrl-C", "interrupt the turn; once more, or between turns, leave"),
    ("Ctrl-L", "an empty screen"),
    ("Esc", "at a question: answer it later"),
];

impl Conversation {
    pub(super) fn obey(&mut self, command: Slash) -> Vec<Effect> {
        let ask = match command {
            Slash::Model(None) => {
                self.note(&format!("{}; another: /model PROVIDER:NAME, Tab lists them", self.model()));
                return vec![];
            }
            Slash::Model(model) => Ask::Set(SessionSettings { model, ..SessionSettings::default() }),
            Slash::Mode(None) => {
                let mode = self.session.mode.clone();
                self.note(&format!("mode {mode}; another: /mode plan|ask|edit|auto"));
                return vec![];
            }
            Slash::Mode(mode) => Ask::Set(SessionSettings { mode, ..SessionSettings::default() }),
            Slash::Plan(text) => {
                let plan = SessionSettings { mode: Some("plan".into()), ..SessionSettings::default() };
                let mut effects = vec![Effect::Ask(Ask::Set(plan))];
                effects.extend(text.map(|text| self.say(text)));
                return effects;
            }
            Slash::Compact => Ask::Compact,
            Slash::Attach(None) => {
                let names: Vec<&str> = self.attachments.iter().map(|attachment| attachment.name.as_str()).collect();
                let told = if names.is_empty() {
                    "no file goes with the next message; add one: /attach FILE".into()
                } else {
                    format!("with the next message go: {}", names.join(", "))
                };
                self.note(&told);
                return vec![];
            }
            Slash::Attach(Some(path)) => Ask::Attach(PathBuf::from(path)),
            Slash::Inbox => {
                // What was put aside is asked again.
                self.aside.clear();
                for card in &mut self.cards {
                    card.again();
                }
                Ask::Pending
            }
            Slash::Tools => Ask::Tools,
            Slash::Cost => Ask::Cost,
            Slash::Resume(None) => Ask::Chats,
            Slash::Resume(Some(id)) => return vec![Effect::Switch(id)],
            Slash::Help => {
                self.help();
                return vec![];
            }
            Slash::Quit => return vec![Effect::Leave],
        };
        vec![Effect::Ask(ask)]
    }

    fn help(&mut self) {
        let commands =
            COMMANDS.iter().map(|(name, argument, about)| [format!("{name} {argument}"), (*about).to_owned()]);
        let keys = KEYS.iter().map(|(key, about)| [(*key).to_owned(), (*about).to_owned()]);
        self.pairs(&commands.chain(keys).collect::<Vec<_>>());
    }

    pub(super) fn list(&mut self, told: Told) {
        match told {
            Told::Pending(items) => {
                if items.is_empty() {
                    return self.note("Nothing waits for you.");
                }
                let here = &self.session.items;
                let rows = items.iter().map(|item| {
                    let place = if here.contains(&item.id) { "  (this chat)" } else { "" };
                    [item.id.clone(), format!("{}{place}", item.title)]
                });
                let rows: Vec<_> = rows.collect();
                self.pairs(&rows);
                self.note("Elsewhere: owctl inbox show ID");
                // The question of this chat stands at the end, where the keys are.
                self.shown = None;
            }
            Told::Tools(tools) => {
                let rows: Vec<_> =
                    tools.into_iter().map(|[name, risk, about]| [name, format!("{risk}: {about}")]).collect();
                self.pairs(&rows);
                let mode = self.session.mode.clone();
                self.note(&match mode.as_str() {
                    "plan" => "mode plan: only read".to_owned(),
                    "edit" => "mode edit: read and write-local just run; exec and external ask".to_owned(),
                    "auto" => "mode auto: read, write-local and exec just run; external asks".to_owned(),
                    _ => format!("mode {mode}: read just runs; the others ask"),
                });
            }
            Told::Cost { usage, price } => {
                let money = price.map_or(String::new(), |price| format!(" · about ${:.4}", cost(usage, price)));
                self.note(&format!("{}{money}", usage_in_words(usage)));
            }
            Told::Chats(chats) => {
                let rows: Vec<_> = chats
                    .iter()
                    .map(|chat| {
                        let SessionView { id, title, state, .. } = chat;
                        let here = if *id == self.session.id { "  (this chat)" } else { "" };
                        [id.clone(), format!("{}  {state}{here}", title.as_deref().unwrap_or("(nothing said)"))]
                    })
                    .collect();
                self.pairs(&rows);
                self.note("Go on with one: /resume ID");
            }
            _ => {}
        }
    }

    /// Two columns, the second beginning at the same place in all rows where there is room.
    fn pairs(&mut self, rows: &[[String; 2]]) {
        let widest = rows.iter().map(|[name, _]| Line::plain(name).width()).max().unwrap_or(0) + 2;
        let is_narrow = widest * 2 > self.columns;
        let indent = Line::plain(&" ".repeat(if is_narrow { 4 } else { widest }));
        for [name, about] in rows {
            let name = Line::styled(name.trim_end(), Style::CYAN);
            let about = Line::plain(about);
            if is_narrow {
                self.said.extend(name.wrap(self.columns, &Line::empty(), &indent));
                self.said.extend(about.wrap(self.columns, &indent, &indent));
            } else {
                let mut first = name.clone();
                first.push(&" ".repeat(widest - name.width()), Style::PLAIN);
                self.said.extend(about.wrap(self.columns, &first, &indent));
            }
        }
    }
}

/// Dollars.
#[expect(clippy::cast_precision_loss, reason = "a price of tokens is told to four digits")]
fn cost(usage: UsageView, price: Price) -> f64 {
    let UsageView { input, cached, output, calls: _ } = usage;
    let fresh = input.saturating_sub(cached) as f64;
    (fresh * price.input + cached as f64 * price.cached + output as f64 * price.output) / 1_000_000.0
}
