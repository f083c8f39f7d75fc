//! What an item looks like in Slack: Block Kit, all of it as plain text that neither links nor calls anybody.

mod modal;
mod rich;
mod shown;

use ow_inbox::told::time;
use ow_inbox::wording;
use ow_model::{Category, Item, ItemKind, ItemState, Occasion, escape};
use serde_json::{Value, json};

use crate::text::escaped;

pub(crate) use modal::modal;
pub use shown::fits;

use rich::{Rich, cut};

/// Labels of buttons are cut at this.
const LABEL: usize = 75;
/// Options that become buttons; of more, one is chosen in a modal.
const OPTIONS: usize = 10;
/// Items that are shown in one message; of more, their titles.
const IN_DIGEST: usize = 10;
/// Letters of a title in a message's plain text.
const TITLE: usize = 200;

/// A message: what notifications show, and its blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Post {
    pub text: String,
    pub blocks: Value,
}

/// The item with its buttons; one that waits no more, with its outcome.
#[must_use]
pub fn notice(item: &Item, news: Occasion) -> Post {
    let title = format!("{}: {}", wording::heading(&item.kind), wording::title(item));
    let mut rich = Rich::default();
    rich.bold(&title);
    if let Some(outcome) = outcome(item) {
        rich.line(&outcome);
        let blocks = rich.blocks();
        return Post { text: format!("{} — {}", escaped(&cut(&title, TITLE)), escaped(&outcome)), blocks };
    }
    if let Some(why) = wording::occasion(news) {
        rich.line(why);
    }
    shown::item(&mut rich, item);
    let mut blocks = rich.blocks();
    let buttons = buttons(item);
    if let Some(list) = blocks.as_array_mut() {
        if !buttons.is_empty() {
            list.push(json!({ "type": "actions", "block_id": "choices", "elements": buttons }));
        }
        list.push(
            json!({ "type": "context", "elements": [{ "type": "plain_text", "text": hint(item), "emoji": false }] }),
        );
    }
    Post { text: format!("{} {}", escaped(&cut(&title, TITLE)), item.id.token()), blocks }
}

/// A text alone, in which nothing links, as a title of an item's could.
pub(crate) fn line(text: &str) -> Post {
    let mut rich = Rich::default();
    rich.line(text);
    Post { text: escaped(text), blocks: rich.blocks() }
}

/// Several items in one message, each with its own buttons as long as there is room for all of it.
#[must_use]
pub fn digest(items: &[&Item]) -> Post {
    let waiting = items.iter().filter(|item| matches!(item.state, ItemState::Pending)).count();
    let heading = format!("{} items in the Inbox, {waiting} of which wait for an answer", items.len());
    let mut rich = Rich::default();
    rich.bold(&heading);
    let mut blocks: Vec<Value> = rich.blocks().as_array().cloned().unwrap_or_default();
    let mut rest = Rich::default();
    for (number, item) in items.iter().enumerate() {
        let title = format!("{}: {}", wording::heading(&item.kind), wording::title(item));
        if number >= IN_DIGEST {
            rest.line(&format!("{title} {}", item.id.token()));
            continue;
        }
        let mut rich = Rich::default();
        rich.bold(&title);
        match outcome(item) {
            Some(outcome) => rich.line(&outcome),
            None if shown::fits_in_digest(item) => shown::item(&mut rich, item),
            None => rich.line(&format!("Open it: owctl inbox show {}", item.id)),
        }
        blocks.extend(rich.blocks().as_array().cloned().unwrap_or_default());
        if matches!(item.state, ItemState::Pending) && shown::fits_in_digest(item) {
            let mut buttons = buttons(item);
            // An id is used once in a block, and blocks have names of their own.
            buttons.truncate(25);
            blocks.push(json!({ "type": "actions", "block_id": format!("choices-{number}"), "elements": buttons }));
        }
    }
    blocks.extend(rest.blocks().as_array().cloned().unwrap_or_default());
    Post { text: escaped(&heading), blocks: Value::Array(blocks) }
}

/// The arguments of an item's call, whole as far as a message holds them.
pub(crate) fn arguments(item: &Item) -> Post {
    let ItemKind::Approval { call, .. } = &item.kind else {
        let post = notice(item, Occasion::Asked);
        return Post { text: post.text, blocks: json!([]) };
    };
    let mut rich = Rich::default();
    rich.line(&format!("{} is called with:", escape::line(call.tool.as_str())));
    let text = serde_json::to_string_pretty(&call.args).unwrap_or_default();
    rich.code(&escape::block(&text));
    let mut post = Post { text: format!("The arguments of {}", item.id.token()), blocks: rich.blocks() };
    if rich_is_too_long(&post.blocks) {
        let mut rich = Rich::default();
        rich.code(&escape::block(&cut(&text, shown::WHOLE)));
        rich.line(&format!("… cut here. Open it: owctl inbox show {}", item.id));
        post.blocks = rich.blocks();
    }
    post
}

fn rich_is_too_long(blocks: &Value) -> bool {
    blocks.to_string().chars().count() > 2 * shown::WHOLE
}

/// How an item ended; none: it waits.
#[must_use]
pub fn outcome(item: &Item) -> Option<String> {
    wording::outcome(item, &time).map(|outcome| cut(&outcome, TITLE * 5))
}

/// The name of the block in which an option of this question is chosen.
pub(crate) fn option_field(question: usize) -> String {
    format!("option-{question}")
}

/// The name of the block in which this question is answered in words.
pub(crate) fn text_field(question: usize) -> String {
    format!("text-{question}")
}

fn buttons(item: &Item) -> Vec<Value> {
    let button = |choice: &str, label: &str, style: Option<&str>| {
        let mut button = json!({
            "type": "button", "action_id": choice, "value": format!("{}/{choice}", item.id),
            "text": { "type": "plain_text", "text": cut(label, LABEL), "emoji": false },
        });
        if let Some(style) = style {
            button["style"] = json!(style);
        }
        button
    };
    let deny = |buttons: &mut Vec<Value>| {
        buttons.push(button("deny", "Deny", Some("danger")));
        buttons.push(button("reason", "Deny because…", None));
    };
    let mut buttons = vec![];
    match &item.kind {
        ItemKind::Approval { category, rule_offer, .. } => {
            if fits(item) {
                let again = matches!(category, Category::UnknownOutcome | Category::Stopped);
                buttons.push(button("once", if again { "Run it again" } else { "Allow once" }, Some("primary")));
                if rule_offer.is_some() && item.task.is_some() {
                    buttons.push(button("task", "Allow for this task", None));
                }
                buttons.push(button("edit", "Allow, edited…", None));
            }
            deny(&mut buttons);
            buttons.push(button("show", "Show arguments", None));
        }
        ItemKind::Plan { .. } | ItemKind::Directory { .. } | ItemKind::Budget { .. } => {
            if fits(item) {
                buttons.push(button("once", "Allow", Some("primary")));
            }
            deny(&mut buttons);
        }
        ItemKind::Question { questions } => {
            if let [question] = questions.as_slice()
                && !question.multi
                && (1..=OPTIONS).contains(&question.options.len())
            {
                for (number, option) in question.options.iter().enumerate() {
                    let label = format!("{}. {}", number + 1, escape::line(option));
                    buttons.push(button(&format!("option-{number}"), &label, None));
                }
                buttons.push(button("answer", "Another answer…", None));
            } else {
                buttons.push(button("answer", "Answer…", Some("primary")));
            }
            buttons.push(button("deny", "Go on without an answer", None));
        }
        ItemKind::Notification { .. } => buttons.push(button("seen", "Seen", None)),
    }
    buttons
}

/// What else answers it.
fn hint(item: &Item) -> String {
    let token = item.id.token();
    match &item.kind {
        ItemKind::Notification { .. } => token,
        ItemKind::Question { .. } => format!("Or reply in this thread with your answer. {token}"),
        _ if fits(item) => format!("Or reply in this thread: approve, or deny. {token}"),
        _ => format!("Or reply in this thread: deny. {token}"),
    }
}
