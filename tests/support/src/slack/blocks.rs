//! What Slack takes as Block Kit, by its published limits.

use std::collections::BTreeSet;

use serde_json::Value;

const ID: usize = 255;

/// Where a block is to be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Surface {
    Message,
    Modal,
}

/// Says what is wrong with blocks, as Slack does in `response_metadata.messages`.
pub(super) fn check(blocks: &Value, surface: Surface) -> Result<(), String> {
    let Some(blocks) = blocks.as_array() else { return Err("[ERROR] blocks must be an array".into()) };
    let most = match surface {
        Surface::Message => 50,
        Surface::Modal => 100,
    };
    if blocks.len() > most {
        return Err(format!("[ERROR] no more than {most} items allowed [json-pointer:/blocks]"));
    }
    let mut ids = BTreeSet::new();
    let mut markdown = 0;
    for (place, block) in blocks.iter().enumerate() {
        let at = format!("/blocks/{place}");
        if let Some(id) = block["block_id"].as_str()
            && (id.len() > ID || !ids.insert(id))
        {
            return Err(format!("[ERROR] block_id is too long or used twice [json-pointer:{at}/block_id]"));
        }
        if block["type"] == "markdown" {
            markdown += block["text"].as_str().map_or(0, |text| text.chars().count());
            if markdown > 12_000 {
                return Err(format!("[ERROR] markdown is too long [json-pointer:{at}/text]"));
            }
        }
        check_block(block, &at, surface)?;
    }
    Ok(())
}

fn check_block(block: &Value, at: &str, surface: Surface) -> Result<(), String> {
    match block["type"].as_str().unwrap_or_default() {
        "section" => {
            let fields = block["fields"].as_array();
            if block["text"].is_null() && fields.is_none_or(Vec::is_empty) {
                return Err(format!("[ERROR] a section needs text or fields [json-pointer:{at}]"));
            }
            if !block["text"].is_null() {
                text(&block["text"], 3000, &format!("{at}/text"))?;
            }
            if fields.is_some_and(|fields| fields.len() > 10) {
                return Err(format!("[ERROR] no more than 10 items allowed [json-pointer:{at}/fields]"));
            }
            for field in fields.into_iter().flatten() {
                text(field, 2000, &format!("{at}/fields"))?;
            }
            if block["accessory"].is_null() { Ok(()) } else { element(&block["accessory"], &format!("{at}/accessory")) }
        }
        "header" => plain(&block["text"], 150, &format!("{at}/text")),
        "context" => {
            let elements = block["elements"].as_array();
            if !elements.is_some_and(|elements| (1..=10).contains(&elements.len())) {
                return Err(format!("[ERROR] 1 to 10 items allowed [json-pointer:{at}/elements]"));
            }
            elements.into_iter().flatten().try_for_each(|piece| text(piece, 3000, &format!("{at}/elements")))
        }
        "actions" => {
            let elements = block["elements"].as_array();
            if !elements.is_some_and(|elements| (1..=25).contains(&elements.len())) {
                return Err(format!("[ERROR] 1 to 25 items allowed [json-pointer:{at}/elements]"));
            }
            let mut ids = BTreeSet::new();
            for (place, piece) in elements.into_iter().flatten().enumerate() {
                element(piece, &format!("{at}/elements/{place}"))?;
                if !ids.insert(piece["action_id"].as_str().unwrap_or_default()) {
                    return Err(format!("[ERROR] `action_id` already exists [json-pointer:{at}/elements/{place}]"));
                }
            }
            Ok(())
        }
        "input" => {
            plain(&block["label"], 2000, &format!("{at}/label"))?;
            if !block["hint"].is_null() {
                plain(&block["hint"], 2000, &format!("{at}/hint"))?;
            }
            element(&block["element"], &format!("{at}/element"))
        }
        "divider" | "rich_text" | "image" => Ok(()),
        "markdown" if surface == Surface::Message && block["text"].is_string() => Ok(()),
        other => Err(format!("[ERROR] unsupported type: {other} [json-pointer:{at}/type]")),
    }
}

fn element(element: &Value, at: &str) -> Result<(), String> {
    if element["action_id"].as_str().is_some_and(|id| id.len() > ID) {
        return Err(format!("[ERROR] must be less than 256 characters [json-pointer:{at}/action_id]"));
    }
    match element["type"].as_str().unwrap_or_default() {
        "button" => {
            plain(&element["text"], 75, &format!("{at}/text"))?;
            if element["value"].as_str().is_some_and(|value| value.chars().count() > 2000) {
                return Err(format!("[ERROR] must be less than 2001 characters [json-pointer:{at}/value]"));
            }
            if !matches!(element["style"].as_str(), None | Some("primary" | "danger")) {
                return Err(format!("[ERROR] invalid style [json-pointer:{at}/style]"));
            }
            confirm(&element["confirm"], at)
        }
        "static_select" | "radio_buttons" | "checkboxes" => {
            let most = if element["type"] == "static_select" { 100 } else { 10 };
            let options = element["options"].as_array();
            if !options.is_some_and(|options| (1..=most).contains(&options.len())) {
                return Err(format!("[ERROR] 1 to {most} items allowed [json-pointer:{at}/options]"));
            }
            options.into_iter().flatten().try_for_each(|option| {
                text(&option["text"], 75, &format!("{at}/options"))?;
                let value = option["value"].as_str().map_or(0, |value| value.chars().count());
                if (1..=150).contains(&value) {
                    Ok(())
                } else {
                    Err(format!("[ERROR] bad value [json-pointer:{at}/options]"))
                }
            })
        }
        "plain_text_input" => {
            if element["initial_value"].as_str().is_some_and(|value| value.chars().count() > 3000) {
                return Err(format!("[ERROR] must be less than 3001 characters [json-pointer:{at}/initial_value]"));
            }
            if !element["placeholder"].is_null() {
                plain(&element["placeholder"], 150, &format!("{at}/placeholder"))?;
            }
            Ok(())
        }
        other => Err(format!("[ERROR] unsupported type: {other} [json-pointer:{at}/type]")),
    }
}

fn confirm(confirm: &Value, at: &str) -> Result<(), String> {
    if confirm.is_null() {
        return Ok(());
    }
    plain(&confirm["title"], 100, &format!("{at}/confirm/title"))?;
    text(&confirm["text"], 300, &format!("{at}/confirm/text"))?;
    plain(&confirm["confirm"], 30, &format!("{at}/confirm/confirm"))?;
    plain(&confirm["deny"], 30, &format!("{at}/confirm/deny"))
}

pub(super) fn plain(value: &Value, most: usize, at: &str) -> Result<(), String> {
    if value["type"] != "plain_text" {
        return Err(format!("[ERROR] must be plain_text [json-pointer:{at}]"));
    }
    text(value, most, at)
}

fn text(value: &Value, most: usize, at: &str) -> Result<(), String> {
    let length = value["text"].as_str().map_or(0, |text| text.chars().count());
    if !matches!(value["type"].as_str(), Some("plain_text" | "mrkdwn")) || length == 0 {
        return Err(format!("[ERROR] must be a text that is not empty [json-pointer:{at}]"));
    }
    if length > most {
        return Err(format!("[ERROR] must be less than {} characters [json-pointer:{at}/text]", most + 1));
    }
    Ok(())
}

/// Says what is wrong with a modal.
pub(super) fn check_view(view: &Value) -> Result<(), String> {
    if view["type"] != "modal" {
        return Err("[ERROR] must be a modal [json-pointer:/view/type]".into());
    }
    plain(&view["title"], 24, "/view/title")?;
    let has_input = view["blocks"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "input"));
    if has_input || !view["submit"].is_null() {
        plain(&view["submit"], 24, "/view/submit")?;
    }
    if !view["close"].is_null() {
        plain(&view["close"], 24, "/view/close")?;
    }
    if view["private_metadata"].as_str().is_some_and(|text| text.chars().count() > 3000) {
        return Err("[ERROR] must be less than 3001 characters [json-pointer:/view/private_metadata]".into());
    }
    if view["callback_id"].as_str().is_some_and(|id| id.len() > ID) {
        return Err("[ERROR] must be less than 256 characters [json-pointer:/view/callback_id]".into());
    }
    check(&view["blocks"], Surface::Modal)
}
