use jiff::Timestamp;
use ow_model::{Answer, Category, Item, ItemKind, ItemState, Occasion, Surface, escape};
use serde_json::Value;

use crate::notice::Letter;
use crate::notice::choices::{self, Shown};
use crate::notice::render::Page;

/// A mail program cuts off what is longer, some without a word, so an item that would make more HTML is cut by us.
const WHOLE: usize = 64 * 1024;

/// Letters of each text that are shown of an item that is cut.
const CUT: usize = 2_000;

/// Texts of an item that are shown of one that is cut.
const CUT_TEXTS: usize = 8;

/// Letters that an item may have in a digest; there it is cut before.
const IN_DIGEST: usize = 4 * 1024;

/// Whether a mail can show all that this item asks. One that it cannot is not approved by mail.
#[must_use]
pub fn fits_in_a_mail(item: &Item) -> bool {
    whole(item).as_html().len() <= WHOLE
}

/// What is asked, in a word or two.
pub(crate) fn heading(item: &Item) -> &'static str {
    match &item.kind {
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

/// The item and what may be answered.
pub(crate) fn item(page: &mut Page, item: &Item, news: Occasion, letter: &Letter<'_>) {
    item_within(page, item, news, letter, WHOLE);
}

/// The same beside others.
pub(crate) fn in_digest(page: &mut Page, item: &Item, news: Occasion, letter: &Letter<'_>) {
    item_within(page, item, news, letter, IN_DIGEST);
}

fn item_within(page: &mut Page, item: &Item, news: Occasion, letter: &Letter<'_>, most: usize) {
    let when = |at: Timestamp| at.to_zoned(letter.zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string();
    page.heading(format!("{}: {}", heading(item), escape::line(&item.title)));
    if let Some(end) = ended(item, &when) {
        page.text(end);
        page.text(item.id.token());
        return;
    }
    match news {
        Occasion::Reminded => page.text("It still waits for an answer."),
        Occasion::Escalated => page.text("Nobody has answered it yet, so you are asked too."),
        Occasion::Delegated => page.text("It was handed on to you."),
        Occasion::Asked | Occasion::Settled => {}
    }
    let mut pairs = vec![];
    if let Some(task) = &item.task {
        pairs.push(("task", escape::line(task.as_str()).into_owned()));
    }
    pairs.push(("asked", when(item.created_at)));
    if let Some(at) = item.expires_at {
        pairs.push(("expires", format!("{}; then it counts as denied", when(at))));
    }
    page.pairs(pairs);
    let asked = whole(item);
    let shown = if asked.as_html().len() <= most { Shown::Whole } else { Shown::Cut };
    page.append(if shown == Shown::Whole { asked } else { cut(item) });
    page.text(choices::in_words(item, shown));
    page.links(choices::links(item, shown, &letter.from.email));
    page.text(item.id.token());
}

/// How an item that waits no more ended.
fn ended(item: &Item, when: &dyn Fn(Timestamp) -> String) -> Option<String> {
    Some(match &item.state {
        ItemState::Pending => return None,
        ItemState::Resolved(resolution) => {
            let surface = match resolution.by.surface {
                Surface::Socket => "owctl",
                Surface::Web => "the web page",
                Surface::Mail => "mail",
                Surface::Slack => "Slack",
            };
            let said = match &resolution.answer {
                Answer::Deny { reason: Some(reason) } => format!(": {}", escape::block(reason)),
                Answer::Text { text } => format!(": {}", escape::block(text)),
                Answer::Edited { .. } => ", with other arguments".into(),
                _ => String::new(),
            };
            let word = resolution.answer.word();
            let by = escape::line(&resolution.by.person.0).into_owned();
            format!("It is {word} by {by} over {surface} at {}{said}", when(resolution.at))
        }
        ItemState::Expired { at } => format!("Nobody answered it; it expired at {}, which counts as a no.", when(*at)),
        ItemState::Withdrawn { at, why } => {
            format!("It is withdrawn since {}: {}", when(*at), escape::block(why))
        }
    })
}

/// All that is asked.
fn whole(item: &Item) -> Page {
    asked(item, &mut |text| text.to_owned())
}

fn cut(item: &Item) -> Page {
    let mut texts = 0;
    asked(item, &mut |text| {
        texts += 1;
        let most = if texts <= CUT_TEXTS { CUT } else { 0 };
        match text.char_indices().nth(most) {
            None => text.to_owned(),
            Some((end, _)) => {
                let left = text[end..].chars().count();
                format!("{}\n… cut here: {left} more letters", &text[..end])
            }
        }
    })
}

fn asked(item: &Item, bounded: &mut dyn FnMut(&str) -> String) -> Page {
    let mut page = Page::default();
    match &item.kind {
        ItemKind::Approval { call, category, reason, binding, diff, hash: _, rule_offer: _ } => {
            let mut pairs =
                vec![("tool", escape::line(call.tool.as_str()).into_owned()), ("kind", kind(*category).into())];
            if let Some(folder) = &binding.working_directory {
                pairs.push(("in", escape::line(&folder.display().to_string()).into_owned()));
            }
            page.pairs(pairs);
            page.code(bounded(&arguments(&call.args)));
            page.text(format!("It asks because: {}", bounded(&escape::block(reason))));
            if let Some(warning) = again(*category) {
                page.text(warning);
            }
            if let Some(diff) = diff {
                page.code(bounded(&escape::block(diff)));
            }
            if !binding.files.is_empty() {
                let files: Vec<String> = binding
                    .files
                    .iter()
                    .map(|file| escape::line(&file.path.display().to_string()).into_owned())
                    .collect();
                page.text("Your answer holds for these files as they are now:");
                page.code(bounded(&files.join("\n")));
            }
            if let Some(unbound) = &binding.unbound {
                page.text(format!("Not bound: {}", bounded(&escape::line(unbound))));
            }
        }
        ItemKind::Question { questions } => {
            for (at, question) in questions.iter().enumerate() {
                let number = if questions.len() > 1 { format!("{}. ", at + 1) } else { String::new() };
                page.text(bounded(&format!("{number}{}", escape::block(&question.text))));
                if !question.options.is_empty() {
                    let numbered = |(at, option): (usize, &String)| format!("{}. {}", at + 1, escape::line(option));
                    let options: Vec<String> = question.options.iter().enumerate().map(numbered).collect();
                    page.code(bounded(&options.join("\n")));
                }
            }
        }
        ItemKind::Plan { text } | ItemKind::Budget { text } | ItemKind::Notification { text } => {
            page.text(bounded(&escape::block(text)));
        }
        ItemKind::Directory { path, writable, reason } => {
            let how = if *writable { "read and write in" } else { "read" };
            page.text(bounded(&format!(
                "It asks to {how} {}: {}",
                escape::line(&path.display().to_string()),
                escape::block(reason)
            )));
        }
    }
    page
}

fn kind(category: Category) -> &'static str {
    match category {
        Category::WriteLocal => "writes files",
        Category::Exec => "runs a program",
        Category::External => "acts outside this machine",
        Category::Read => "reads what needs consent",
        Category::UnknownOutcome => "ended with owd; nobody knows whether it took effect",
        Category::Stopped => "was stopped in the middle",
    }
}

fn again(category: Category) -> Option<&'static str> {
    matches!(category, Category::UnknownOutcome | Category::Stopped).then_some("Approving runs it again.")
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
