//! Modals: what does not fit on a button.

use ow_model::{Item, ItemKind, Question, escape};
use serde_json::{Value, json};

use super::rich::cut;
use super::{option_field, text_field};
use crate::answer::Modal;
use crate::event::Place;

/// Letters that an input of a modal takes.
const INPUT: usize = 3_000;
const LABEL: usize = 2_000;
const OPTION: usize = 75;
/// Options that are shown one below the other.
const RADIOS: usize = 10;
const SELECT: usize = 100;

/// A modal about an item, for the button at `from`.
///
/// # Errors
///
/// Says why there is none.
pub(crate) fn modal(what: Modal, item: &Item, from: &Place) -> Result<Value, String> {
    let (title, submit, blocks) = match (what, &item.kind) {
        (Modal::Reason, _) => ("Deny", "Deny", vec![input("reason", "Why", None, true)]),
        (Modal::Edit, ItemKind::Approval { call, .. }) => {
            let text = serde_json::to_string_pretty(&call.args).unwrap_or_default();
            if text.chars().count() > INPUT {
                let id = item.id;
                return Err(format!("The arguments are too long to be edited here. Edit them: owctl inbox edit {id}"));
            }
            ("Edit the arguments", "Allow", vec![input("arguments", "Arguments, in JSON", Some(&text), false)])
        }
        (Modal::Answer, ItemKind::Question { questions }) => {
            let blocks = questions.iter().enumerate().flat_map(|(number, question)| asked(number, question));
            ("Answer", "Answer", blocks.collect())
        }
        _ => return Err("This button is of another time. Open the item with owctl.".into()),
    };
    Ok(json!({
        "type": "modal",
        "callback_id": format!("{}/{}", item.id, what.word()),
        "private_metadata": json!(from).to_string(),
        "title": label(title),
        "submit": label(submit),
        "close": label("Not now"),
        "blocks": blocks,
    }))
}

fn label(text: &str) -> Value {
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

fn input(name: &str, what: &str, initial: Option<&str>, optional: bool) -> Value {
    let mut element = json!({ "type": "plain_text_input", "action_id": "text", "multiline": true });
    if let Some(initial) = initial {
        element["initial_value"] = json!(initial);
    }
    json!({ "type": "input", "block_id": name, "optional": optional, "label": label(what), "element": element })
}

/// A question's options, as far as they can be shown, and words of one's own.
fn asked(number: usize, question: &Question) -> Vec<Value> {
    let text = cut(&escape::block(&question.text), LABEL);
    let options: Vec<Value> = question
        .options
        .iter()
        .enumerate()
        .map(|(at, option)| {
            let shown = if option.is_empty() { "—".to_owned() } else { cut(&escape::line(option), OPTION) };
            json!({ "text": label(&shown), "value": at.to_string() })
        })
        .collect();
    let kind = match (question.multi, options.len()) {
        (true, 1..=RADIOS) => Some("checkboxes"),
        (false, 1..=RADIOS) => Some("radio_buttons"),
        (false, 1..=SELECT) => Some("static_select"),
        _ => None,
    };
    match kind {
        Some(kind) => vec![
            json!({
                "type": "input", "block_id": option_field(number), "optional": true, "label": label(&text),
                "element": { "type": kind, "action_id": "option", "options": options },
            }),
            input(&text_field(number), "Or in your own words", None, true),
        ],
        None => vec![input(&text_field(number), &text, None, false)],
    }
}
