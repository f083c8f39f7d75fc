//! An item of the Inbox before the person: what it asks, and the keys by which it is answered.
//!
//! No key is an answer that was pressed before its card stood there: a card is drawn, the keyboard rests for a moment, the
//! keys are shown, and only what is pressed from then on counts, one key at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use ow_protocol::{AnswerRequest, ApprovalView, ItemView, QuestionView};
use serde_json::Value;

use super::call;
use super::key::Key;
use super::prompt::{Prompt, Typed};
use super::text::{Line, Style};
use crate::command::inbox::answer::{chosen, together};
use crate::command::rule::target_in_words;
use crate::command::run::view::arguments;

/// How long no key may come before those of a card count.
const REST: Duration = Duration::from_millis(300);

/// An item, and how far the person is with its answer.
#[derive(Debug)]
pub(super) struct Card {
    pub(super) item: ItemView,
    stage: Stage,
    attention: Attention,
}

/// Whether the person can have seen what is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Attention {
    /// Not drawn yet.
    Fresh,
    /// Drawn; the keyboard has rested since.
    Resting { since: Duration },
    /// It has rested long enough; the keys are to be shown.
    Ready,
    /// The keys have been on the screen since.
    Open { since: Duration },
}

#[derive(Debug)]
enum Stage {
    Choosing,
    /// Why it is denied.
    Reason(Prompt),
    Asking(Asking),
    /// The answer is under way.
    Sent,
}

/// The questions of one item, one after the other.
#[derive(Debug, Default)]
struct Asking {
    answers: Vec<String>,
    /// Options chosen so far, where several may be.
    chosen: BTreeSet<usize>,
    /// The person writes an answer.
    writing: Option<Prompt>,
}

/// What a key did.
#[derive(Debug, PartialEq)]
pub(super) enum Pressed {
    Nothing,
    /// It cannot have been meant, or is no answer here.
    Refused,
    Answer(AnswerRequest),
    /// The arguments are to be edited.
    Edit(Value),
    /// The person answers later.
    Aside,
}

impl Card {
    pub(super) fn new(item: ItemView) -> Self {
        let stage = if item.kind == "question" && !item.questions.is_empty() {
            Stage::Asking(Asking::about(&item.questions[0]))
        } else {
            Stage::Choosing
        };
        Self { item, stage, attention: Attention::Fresh }
    }

    /// When it has to be looked at again.
    pub(super) fn wakes_at(&self) -> Option<Duration> {
        match self.attention {
            Attention::Resting { since } => Some(since + REST),
            Attention::Fresh | Attention::Ready | Attention::Open { .. } => None,
        }
    }

    pub(super) fn tick(&mut self, now: Duration) {
        if self.wakes_at().is_some_and(|at| at <= now) {
            self.attention = Attention::Ready;
        }
    }

    /// It was put on the screen as it is, between these instants.
    pub(super) fn drawn(&mut self, from: Duration, until: Duration) {
        self.attention = match self.attention {
            Attention::Fresh => Attention::Resting { since: until },
            // The keys are one row; whoever answers has seen it, though we may not have gone on yet.
            Attention::Ready => Attention::Open { since: from },
            other => other,
        };
    }

    /// The answer was not taken, or other work came in between: it is asked anew.
    pub(super) fn again(&mut self) {
        if matches!(self.stage, Stage::Sent | Stage::Reason(_)) {
            self.stage = Stage::Choosing;
            if let Some(question) = self.item.questions.first() {
                self.stage = Stage::Asking(Asking::about(question));
            }
        }
        self.attention = Attention::Fresh;
    }

    /// Its answer is under way.
    pub(super) fn sent(&mut self) {
        self.stage = Stage::Sent;
    }

    /// Takes the keys of one reading of the terminal, which came at `at`.
    pub(super) fn press(&mut self, keys: &[Key], at: Duration) -> Pressed {
        if keys == [Key::Escape] && !matches!(self.stage, Stage::Sent) {
            return self.back();
        }
        match self.attention {
            Attention::Open { since } if since < at => {}
            // Typed before the keys were shown.
            Attention::Resting { .. } => {
                self.attention = Attention::Resting { since: at };
                return Pressed::Refused;
            }
            Attention::Fresh | Attention::Ready | Attention::Open { .. } => return Pressed::Refused,
        }
        if self.prompt_mut().is_some() {
            for key in keys {
                let pressed = self.write(key);
                if pressed != Pressed::Nothing {
                    return pressed;
                }
            }
            return Pressed::Nothing;
        }
        if let [key] = keys {
            return self.choose(key);
        }
        // Several at once are typing or a paste, not a choice.
        self.attention = Attention::Fresh;
        Pressed::Refused
    }

    fn prompt_mut(&mut self) -> Option<&mut Prompt> {
        match &mut self.stage {
            Stage::Reason(prompt) => Some(prompt),
            Stage::Asking(asking) => asking.writing.as_mut(),
            Stage::Choosing | Stage::Sent => None,
        }
    }

    /// What is written into the card.
    pub(super) fn prompt(&self) -> Option<&Prompt> {
        match &self.stage {
            Stage::Reason(prompt) => Some(prompt),
            Stage::Asking(asking) => asking.writing.as_ref(),
            Stage::Choosing | Stage::Sent => None,
        }
    }

    fn back(&mut self) -> Pressed {
        match &mut self.stage {
            Stage::Reason(_) => self.stage = Stage::Choosing,
            Stage::Asking(asking)
                if asking.writing.is_some() && !self.item.questions[asking.answers.len()].options.is_empty() =>
            {
                asking.writing = None;
            }
            _ => return Pressed::Aside,
        }
        Pressed::Nothing
    }

    fn write(&mut self, key: &Key) -> Pressed {
        let Some(prompt) = self.prompt_mut() else { return Pressed::Nothing };
        let Typed::Entered(text) = prompt.press(key) else { return Pressed::Nothing };
        match &mut self.stage {
            Stage::Reason(_) => {
                let reason = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
                self.send(AnswerRequest::Deny { reason })
            }
            Stage::Asking(asking) => {
                if text.trim().is_empty() {
                    asking.writing = Some(Prompt::default());
                    return Pressed::Refused;
                }
                self.answered(text.trim())
            }
            Stage::Choosing | Stage::Sent => Pressed::Nothing,
        }
    }

    fn send(&mut self, answer: AnswerRequest) -> Pressed {
        self.stage = Stage::Sent;
        Pressed::Answer(answer)
    }

    fn choose(&mut self, key: &Key) -> Pressed {
        if matches!(self.stage, Stage::Asking(_)) {
            return self.choose_option(key);
        }
        if matches!(self.stage, Stage::Sent) {
            return Pressed::Refused;
        }
        let Key::Char(letter) = key else { return Pressed::Refused };
        let offered = self.offers();
        let Some((_, _, does)) = offered.into_iter().find(|(offered, ..)| offered == letter) else {
            return Pressed::Refused;
        };
        match does {
            Does::Answer(answer) => self.send(answer),
            Does::Edit(arguments) => Pressed::Edit(arguments),
            Does::Deny => {
                self.stage = Stage::Reason(Prompt::default());
                Pressed::Nothing
            }
        }
    }

    fn choose_option(&mut self, key: &Key) -> Pressed {
        let Stage::Asking(asking) = &mut self.stage else { return Pressed::Refused };
        let question = &self.item.questions[asking.answers.len()];
        match key {
            Key::Char('w') => {
                asking.writing = Some(Prompt::default());
                Pressed::Nothing
            }
            Key::Char(digit @ '1'..='9') => {
                let option = *digit as usize - '1' as usize;
                if option >= question.options.len() {
                    return Pressed::Refused;
                }
                if question.multi {
                    if !asking.chosen.remove(&option) {
                        asking.chosen.insert(option);
                    }
                    return Pressed::Nothing;
                }
                let label = question.options[option].clone();
                self.answered(&label)
            }
            Key::Enter if question.multi && !asking.chosen.is_empty() => {
                let labels: Vec<&str> = asking.chosen.iter().map(|option| question.options[*option].as_str()).collect();
                let labels = labels.join(", ");
                self.answered(&labels)
            }
            _ => Pressed::Refused,
        }
    }

    /// One question has its answer; the next is asked, or all are sent.
    fn answered(&mut self, answer: &str) -> Pressed {
        let Stage::Asking(asking) = &mut self.stage else { return Pressed::Nothing };
        asking.answers.push(answer.to_owned());
        let questions = &self.item.questions;
        if let Some(next) = questions.get(asking.answers.len()) {
            let answers = std::mem::take(&mut asking.answers);
            self.stage = Stage::Asking(Asking { answers, ..Asking::about(next) });
            self.attention = Attention::Fresh;
            return Pressed::Nothing;
        }
        let text = match (questions.as_slice(), asking.answers.as_slice()) {
            ([question], [answer]) => chosen(question, answer),
            (questions, answers) => together(questions, answers).unwrap_or_else(|_| answers.join("\n")),
        };
        self.send(AnswerRequest::Answer { text })
    }

    /// The keys that answer it, what they are called, and what they do.
    fn offers(&self) -> Vec<(char, &'static str, Does)> {
        let deny = ('d', "[d]eny, with a reason", Does::Deny);
        match (&self.item.approval, self.item.kind.as_str()) {
            (Some(approval), _) => {
                let mut offers = vec![('o', "[o]nce", Does::Answer(AnswerRequest::Approve))];
                // What is not known to be harmless a second time is decided each time.
                if !matches!(approval.category.as_str(), "unknown-outcome" | "stopped") {
                    // What would ask again all the same is not offered.
                    if approval.tool_offer {
                        offers.push(('t', "[t]his tool in this chat", Does::Answer(AnswerRequest::ApproveTool)));
                    }
                    if approval.command_offer.is_some() {
                        offers.push(('c', "this [c]ommand in this chat", Does::Answer(AnswerRequest::ApproveCommand)));
                    }
                    if approval.rule_offer.is_some() {
                        offers.push(('k', "for this tas[k]", Does::Answer(AnswerRequest::ApproveForTask)));
                    }
                    offers.push(('e', "[e]dit first", Does::Edit(approval.arguments.clone())));
                }
                offers.push(deny);
                offers
            }
            (None, "plan") => vec![('y', "[y]es, go ahead", Does::Answer(AnswerRequest::Approve)), deny],
            (None, "directory") => vec![('y', "[y]es, it may", Does::Answer(AnswerRequest::Approve)), deny],
            (None, "budget") => vec![('y', "[y]es, raise it", Does::Answer(AnswerRequest::Approve)), deny],
            _ => vec![('y', "[y]es, read", Does::Answer(AnswerRequest::Acknowledge))],
        }
    }

    /// The call that it asks for, on one line.
    pub(super) fn in_short(&self) -> Option<String> {
        let approval = self.item.approval.as_ref()?;
        Some(format!("{} {}", approval.tool, call::in_short(&approval.arguments)))
    }

    /// What is asked, for the scrollback: all of it, as nobody should have to answer what they cannot see.
    pub(super) fn rows(&self, columns: usize) -> Vec<Line> {
        let mut lines = vec![];
        let item = &self.item;
        let mut body = |text: &str, style: Style| {
            for line in text.lines() {
                lines.push(Line::styled(line, style));
            }
        };
        let title;
        if let Some(approval) = &item.approval {
            title = format!("May it run {}?", approval.tool);
            body(&shown_arguments(approval), Style::PLAIN);
            if let Some(folder) = &approval.working_directory {
                body(&format!("in {folder}"), Style::DIM);
            }
            body(&format!("It asks because: {}", approval.reason), Style::DIM);
            if let Some(diff) = &approval.diff {
                lines.extend(call::diff(diff));
            }
            let mut body = |text: &str| lines.extend(text.lines().map(|line| Line::styled(line, Style::DIM)));
            if !approval.bound_files.is_empty() {
                let files: Vec<&str> = approval.bound_files.iter().map(|file| file.path.as_str()).collect();
                body(&format!("Your answer holds for these as they are now: {}", files.join(", ")));
            }
            if let Some(unbound) = &approval.unbound {
                body(&format!("Not bound: {unbound}"));
            }
            if let Some(offer) = &approval.rule_offer {
                body(&format!("For this task would be: {}", target_in_words(offer)));
            }
        } else if let Some(directory) = &item.directory {
            let how = if directory.writable { "read and write in" } else { "read" };
            title = format!("May it {how} {}?", directory.path);
            body(&directory.reason, Style::PLAIN);
        } else {
            title = match item.kind.as_str() {
                "question" => "It asks you".into(),
                "plan" => "It proposes a plan".into(),
                "budget" => "May it use more?".into(),
                _ => item.title.clone(),
            };
            if item.kind == "plan" {
                lines
                    .extend(super::markdown::rows(item.text.as_deref().unwrap_or_default(), columns.saturating_sub(2)));
            } else {
                body(item.text.as_deref().unwrap_or_default(), Style::PLAIN);
            }
            for question in &item.questions {
                lines.extend(question.text.lines().map(Line::plain));
                for (index, option) in question.options.iter().enumerate() {
                    lines.push(Line::plain(&format!("  {}. {option}", index + 1)));
                }
            }
        }
        let bar = Line::styled("│ ", Style::YELLOW);
        let head = Line::of([("? ", Style::YELLOW | Style::BOLD), (title.as_str(), Style::BOLD)]);
        let mut rows = head.wrap(columns, &Line::empty(), &Line::plain("  "));
        rows.extend(lines.iter().flat_map(|line| line.wrap(columns, &bar, &bar)));
        rows
    }

    /// What the person can do now.
    pub(super) fn choices(&self, columns: usize) -> Vec<Line> {
        if matches!(self.attention, Attention::Fresh | Attention::Resting { .. }) {
            return vec![Line::styled("…", Style::DIM)];
        }
        let text = match &self.stage {
            Stage::Sent => return vec![Line::styled("answering …", Style::DIM)],
            Stage::Reason(_) => "Why not? Enter denies, with or without a reason; Esc goes back".to_owned(),
            Stage::Choosing => {
                let offers = self.offers();
                let words: Vec<&str> = offers.iter().map(|(_, words, _)| *words).collect();
                format!("{}  (Esc: later)", words.join("  "))
            }
            Stage::Asking(asking) => {
                let question = &self.item.questions[asking.answers.len()];
                return asking.choices(question, self.item.questions.len(), columns);
            }
        };
        Line::styled(&text, Style::YELLOW).wrap(columns, &Line::empty(), &Line::empty())
    }
}

/// What a key of a card does.
enum Does {
    Answer(AnswerRequest),
    Edit(Value),
    Deny,
}

impl Asking {
    fn about(question: &QuestionView) -> Self {
        let writing = question.options.is_empty().then(Prompt::default);
        Self { writing, ..Self::default() }
    }

    fn choices(&self, question: &QuestionView, questions: usize, columns: usize) -> Vec<Line> {
        let mut rows = vec![];
        if questions > 1 {
            let about = question.header.as_deref().unwrap_or(&question.text);
            rows.push(Line::styled(&format!("{} of {questions}: {about}", self.answers.len() + 1), Style::BOLD));
        }
        let keys = if self.writing.is_some() {
            "Your answer, then Enter".to_owned()
        } else {
            let options = question.options.iter().enumerate().map(|(index, option)| {
                let mark = if self.chosen.contains(&index) { "*" } else { "" };
                format!("[{}]{mark} {option}", index + 1)
            });
            let all = options.collect::<Vec<_>>().join("  ");
            if question.multi {
                format!("{all}  [w]rite an answer  (several; Enter sends; Esc: later)")
            } else {
                format!("{all}  [w]rite an answer  (Esc: later)")
            }
        };
        rows.push(Line::styled(&keys, Style::YELLOW));
        rows.iter().flat_map(|row| row.wrap(columns, &Line::empty(), &Line::empty())).collect()
    }
}

/// The arguments; those that a whole difference shows better are left to it.
fn shown_arguments(approval: &ApprovalView) -> String {
    let told_by_diff = approval.diff.as_ref().is_some_and(|diff| !diff.contains("[… "));
    let shown = match &approval.arguments {
        Value::Object(map) if told_by_diff && matches!(approval.tool.as_str(), "write_file" | "edit_file") => {
            let kept = map.iter().filter(|(name, _)| !matches!(name.as_str(), "content" | "old" | "new"));
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Value::Object(map) if matches!(map.get("argv"), Some(Value::Array(_))) => {
            let mut rest = map.clone();
            let line = match rest.remove("argv") {
                Some(Value::Array(parts)) => call::command_line(&parts),
                _ => String::new(),
            };
            return format!("{line}\n{}", arguments(&Value::Object(rest), ""));
        }
        other => other.clone(),
    };
    arguments(&shown, "")
}
