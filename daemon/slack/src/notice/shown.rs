use ow_model::{Category, Item, ItemKind, escape};
use serde_json::Value;

use super::rich::Rich;
use super::time;

/// Letters of an item that a message shows; one with more is cut, and not approved in Slack.
pub(super) const WHOLE: usize = 12_000;
/// Letters of each text that are shown of an item that is cut.
const CUT: usize = 1_500;
/// Texts of an item that are shown of one that is cut.
const CUT_TEXTS: usize = 5;

/// Letters of an item that is shown beside others.
const BESIDE_OTHERS: usize = 1_500;

/// A paragraph of a notice.
enum Part {
    Line(String),
    Code(String),
}

impl Part {
    const fn text(&self) -> &String {
        match self {
            Self::Line(text) | Self::Code(text) => text,
        }
    }
}

/// Whether a message can show all that this item asks. One that it cannot is not approved in Slack.
#[must_use]
pub fn fits(item: &Item) -> bool {
    letters(&asked(item)) <= WHOLE
}

/// Whether it is short enough to be shown whole beside others.
pub(super) fn fits_in_digest(item: &Item) -> bool {
    letters(&asked(item)) <= BESIDE_OTHERS
}

fn letters(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.text().chars().count()).sum()
}

/// All that is asked, or its beginning and that there is more.
pub(super) fn item(rich: &mut Rich, item: &Item) {
    let mut facts = vec![];
    if let Some(task) = &item.task {
        facts.push(format!("task {}", escape::line(task.as_str())));
    }
    if let Some(at) = item.expires_at {
        facts.push(format!("expires {}", time(at)));
    }
    if !facts.is_empty() {
        rich.line(&facts.join(" · "));
    }
    let parts = asked(item);
    let whole = letters(&parts) <= WHOLE;
    for (number, part) in parts.iter().enumerate() {
        let text = if whole { part.text().clone() } else { shortened(part.text(), number) };
        match part {
            Part::Line(_) => rich.line(&text),
            Part::Code(_) => rich.code(&text),
        }
    }
    if !whole {
        rich.bold(&format!("It is too long to be shown here whole. Open it: owctl inbox show {}", item.id));
    }
}

fn shortened(text: &str, number: usize) -> String {
    let most = if number < CUT_TEXTS { CUT } else { 0 };
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}\n… cut here: {} more letters", &text[..end], text[end..].chars().count()),
    }
}

fn asked(item: &Item) -> Vec<Part> {
    let mut parts = vec![];
    let mut line = |text: String| parts.push(Part::Line(text));
    match &item.kind {
        ItemKind::Approval { call, category, reason, binding, diff, hash: _, rule_offer: _ } => {
            let tool = escape::line(call.tool.as_str());
            line(format!("{tool}: {}", kind(*category)));
            if let Some(folder) = &binding.working_directory {
                line(format!("in {}", escape::line(&folder.display().to_string())));
            }
            parts.push(Part::Code(arguments(&call.args)));
            parts.push(Part::Line(format!("It asks because: {}", escape::block(reason))));
            if matches!(category, Category::UnknownOutcome | Category::Stopped) {
                parts.push(Part::Line("Allowing it runs it again.".into()));
            }
            if let Some(diff) = diff {
                parts.push(Part::Code(escape::block(diff).into_owned()));
            }
            if !binding.files.is_empty() {
                let files =
                    binding.files.iter().map(|file| escape::line(&file.path.display().to_string()).into_owned());
                parts.push(Part::Line("Your answer holds for these files as they are now:".into()));
                parts.push(Part::Code(files.collect::<Vec<_>>().join("\n")));
            }
            if let Some(unbound) = &binding.unbound {
                parts.push(Part::Line(format!("Not bound: {}", escape::line(unbound))));
            }
        }
        ItemKind::Question { questions } => {
            for (at, question) in questions.iter().enumerate() {
                let number = if questions.len() > 1 { format!("{}. ", at + 1) } else { String::new() };
                parts.push(Part::Line(format!("{number}{}", escape::block(&question.text))));
                if !question.options.is_empty() {
                    let numbered = |(at, option): (usize, &String)| format!("{}. {}", at + 1, escape::line(option));
                    let options: Vec<String> = question.options.iter().enumerate().map(numbered).collect();
                    parts.push(Part::Code(options.join("\n")));
                }
            }
        }
        ItemKind::Plan { text } | ItemKind::Budget { text } | ItemKind::Notification { text } => {
            line(escape::block(text).into_owned());
        }
        ItemKind::Directory { path, writable, reason } => {
            let how = if *writable { "read and write in" } else { "read" };
            line(format!("It asks to {how} {}: {}", escape::line(&path.display().to_string()), escape::block(reason)));
        }
    }
    parts
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
