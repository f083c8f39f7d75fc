//! What is said of an item wherever it can be answered: pure. Surfaces lay it out; what they say is the same.

use jiff::Timestamp;
use ow_model::{Answer, Category, InboxName, Item, ItemKind, ItemState, Occasion, escape};
use serde_json::Value;

/// A piece of what is asked; its text is safe to show already.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Part {
    /// Names and their values.
    Facts(Vec<(&'static str, String)>),
    Text(String),
    /// As it stands, line by line.
    Code(String),
}

impl Part {
    /// How many letters it has.
    #[must_use]
    pub fn letters(&self) -> usize {
        match self {
            Self::Facts(facts) => facts.iter().map(|(name, value)| name.len() + value.chars().count()).sum(),
            Self::Text(text) | Self::Code(text) => text.chars().count(),
        }
    }
}

/// What is asked, in a word or two.
#[must_use]
pub const fn heading(kind: &ItemKind) -> &'static str {
    match kind {
        ItemKind::Approval { category: Category::UnknownOutcome, .. } => "Did it happen",
        ItemKind::Approval { category: Category::Stopped, .. } => "Stopped in the middle",
        ItemKind::Approval { .. } => "Approval needed",
        ItemKind::Question { .. } => "Question",
        ItemKind::Plan { .. } => "Plan",
        ItemKind::Directory { .. } => "Folder wanted",
        ItemKind::Budget { .. } => "Budget used up",
        ItemKind::Notification { .. } => "Notice",
    }
}

/// An item's title on one line, safe to show. It names no item: a token of its own would have a reply answer another.
#[must_use]
pub fn title(item: &Item) -> String {
    let title = escape::line(&item.title);
    // A token may be folded, and its end may stand in what follows the title.
    let letters: String =
        title.chars().filter(|letter| !letter.is_whitespace()).collect::<String>().to_ascii_lowercase();
    if letters.contains("[ow") || letters.contains("[ocw") {
        return title.replace('[', "(").replace(']', ")");
    }
    title.into_owned()
}

/// Why somebody is told of an item that he may have heard of, or that was not his.
#[must_use]
pub const fn occasion(occasion: Occasion) -> Option<&'static str> {
    match occasion {
        Occasion::Reminded => Some("It still waits for an answer."),
        Occasion::Escalated => Some("Nobody has answered it yet, so you are asked too."),
        Occasion::Delegated => Some("It was handed on to you."),
        Occasion::Asked | Occasion::HandedOn | Occasion::Settled => None,
    }
}

/// That an item is with somebody else now. An answer from here still counts: it was not taken away.
#[must_use]
pub fn handed_on(item: &Item) -> String {
    let to = item.also.last().map_or("another inbox", InboxName::as_str);
    format!("It was handed on to `{to}` and needs nothing more of you; an answer of yours would still count.")
}

/// How an item ended; none: it waits. `when` writes an instant.
#[must_use]
pub fn outcome(item: &Item, when: &dyn Fn(Timestamp) -> String) -> Option<String> {
    Some(match &item.state {
        ItemState::Pending => return None,
        ItemState::Resolved(resolution) => {
            let said = match &resolution.answer {
                Answer::Deny { reason: Some(said) } | Answer::Text { text: said } => {
                    format!(": {}", escape::block(said))
                }
                Answer::Edited { .. } => ", with other arguments".into(),
                Answer::ForTask => ", and from now on for this task".into(),
                Answer::Once
                | Answer::AlwaysTool
                | Answer::AlwaysCommand
                | Answer::Deny { reason: None }
                | Answer::Acknowledge => String::new(),
            };
            let by = escape::line(&resolution.by.person.0);
            let (word, surface) = (capital(resolution.answer.word()), resolution.by.surface.word());
            format!("{word} by {by} over {surface} at {}{said}", when(resolution.at))
        }
        ItemState::Expired { at } => format!("Expired at {}: nobody answered, which counts as a no", when(*at)),
        ItemState::Withdrawn { at, why } => format!("Withdrawn at {}: {}", when(*at), escape::block(why)),
    })
}

/// All that is asked.
#[must_use]
pub fn asked(item: &Item) -> Vec<Part> {
    match &item.kind {
        ItemKind::Approval { call, category, reason, binding, diff, hash: _, rule_offer: _, session_offer: _ } => {
            let mut facts =
                vec![("tool", escape::line(call.tool.as_str()).into_owned()), ("kind", kind(*category).to_owned())];
            if let Some(folder) = &binding.working_directory {
                facts.push(("in", escape::line(&folder.display().to_string()).into_owned()));
            }
            let mut parts = vec![Part::Facts(facts), Part::Code(arguments(&call.args))];
            parts.push(Part::Text(format!("It asks because: {}", escape::block(reason))));
            if matches!(category, Category::UnknownOutcome | Category::Stopped) {
                parts.push(Part::Text("Allowing it runs it again.".into()));
            }
            if let Some(diff) = diff {
                parts.push(Part::Code(escape::block(diff).into_owned()));
            }
            if !binding.files.is_empty() {
                let path = |file: &ow_model::BoundFile| escape::line(&file.path.display().to_string()).into_owned();
                parts.push(Part::Text("Your answer holds for these files as they are now:".into()));
                parts.push(Part::Code(binding.files.iter().map(path).collect::<Vec<_>>().join("\n")));
            }
            if let Some(unbound) = &binding.unbound {
                parts.push(Part::Text(format!("Not bound: {}", escape::line(unbound))));
            }
            parts
        }
        ItemKind::Question { questions } => {
            let mut parts = vec![];
            for (at, question) in questions.iter().enumerate() {
                let number = if questions.len() > 1 { format!("{}. ", at + 1) } else { String::new() };
                parts.push(Part::Text(format!("{number}{}", escape::block(&question.text))));
                if !question.options.is_empty() {
                    let numbered = |(at, option): (usize, &String)| format!("{}. {}", at + 1, escape::line(option));
                    let options: Vec<String> = question.options.iter().enumerate().map(numbered).collect();
                    parts.push(Part::Code(options.join("\n")));
                }
            }
            parts
        }
        ItemKind::Plan { text } | ItemKind::Budget { text } | ItemKind::Notification { text } => {
            vec![Part::Text(escape::block(text).into_owned())]
        }
        ItemKind::Directory { path, writable, reason } => {
            let how = if *writable { "read and write in" } else { "read" };
            let path = path.display().to_string();
            vec![Part::Text(format!("It asks to {how} {}: {}", escape::line(&path), escape::block(reason)))]
        }
    }
}

/// The same, where there is no room for all of it: of the first `texts` texts as many letters, of the others none.
#[must_use]
pub fn shortened(parts: Vec<Part>, texts: usize, letters: usize) -> Vec<Part> {
    let shortened = |(number, part): (usize, Part)| {
        let most = if number < texts { letters } else { 0 };
        match part {
            Part::Facts(facts) => {
                Part::Facts(facts.into_iter().map(|(name, value)| (name, cut(value, letters))).collect())
            }
            Part::Text(text) => Part::Text(cut(text, most)),
            Part::Code(text) => Part::Code(cut(text, most)),
        }
    };
    parts.into_iter().enumerate().map(shortened).collect()
}

fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{}\n… cut here: {} more letters", &text[..end], text[end..].chars().count()),
    }
}

const fn kind(category: Category) -> &'static str {
    match category {
        Category::WriteLocal => "writes files",
        Category::Exec => "runs a program",
        Category::External => "acts outside this machine",
        Category::Read => "reads what needs consent",
        Category::UnknownOutcome => "ended with owd; nobody knows whether it took effect",
        Category::Stopped => "was stopped in the middle",
    }
}

/// Each argument on lines of its own.
fn arguments(arguments: &Value) -> String {
    let Value::Object(map) = arguments else { return escape::line(&arguments.to_string()).into_owned() };
    if map.is_empty() {
        return "(no arguments)".into();
    }
    let mut text = vec![];
    for (name, value) in map {
        let name = escape::line(name);
        match value {
            Value::String(value) if value.contains('\n') => {
                text.push(format!("{name}:"));
                text.extend(value.split('\n').map(|line| format!("  {}", escape::line(line))));
            }
            Value::String(value) => text.push(format!("{name}: {}", escape::line(value))),
            value => text.push(format!("{name}: {}", escape::line(&value.to_string()))),
        }
    }
    text.join("\n")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
