//! What the vendors demand of a request, and answer 400 to where it is not so.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// What is wrong with a request, and where.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    pub at: String,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

impl std::error::Error for Fault {}

fn fault<T>(at: impl Into<String>, what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { at: at.into(), what: what.into() })
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// A request for chat completions. `alternates`: roles must, as with Gemini and many local templates.
pub fn check_openai(body: &Value, alternates: bool) -> Result<(), Fault> {
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return fault("messages", "must be a list that is not empty");
    };
    if text(body, "model").is_empty() {
        return fault("model", "must be given");
    }
    for (index, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        let function = &tool["function"];
        if tool["type"] != "function" || !is_name(text(function, "name")) || !function["parameters"].is_object() {
            return fault(format!("tools[{index}]"), "must be a function with a name and parameters");
        }
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut before = "system";
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = text(message, "role");
        if role == "tool" {
            let id = text(message, "tool_call_id");
            if !open.remove(id) {
                return fault(at, format!("a result for `{id}`, which no call before it is waiting for"));
            }
            if !message["content"].is_string() && !message["content"].is_array() {
                return fault(at, "a result without content");
            }
            before = role;
            continue;
        }
        if let Some(id) = open.first() {
            return fault(at, format!("tool_call_ids did not have response messages: {id}"));
        }
        match role {
            "system" | "developer" if index == 0 => {}
            "user" => content(&message["content"], &at)?,
            "assistant" => {
                let calls = message["tool_calls"].as_array();
                if calls.is_some_and(Vec::is_empty) {
                    return fault(at, "[] is too short - 'tool_calls'");
                }
                for call in calls.into_iter().flatten() {
                    let id = text(call, "id");
                    if id.is_empty() || !used.insert(id) {
                        return fault(at, format!("the id `{id}` is missing or used twice"));
                    }
                    open.insert(id);
                    let function = &call["function"];
                    let arguments: Option<Value> = serde_json::from_str(text(function, "arguments")).ok();
                    if call["type"] != "function" || !is_name(text(function, "name")) {
                        return fault(at, "a call must be a function with a name");
                    }
                    if !arguments.is_some_and(|arguments| arguments.is_object()) {
                        return fault(at, "arguments must be an object in JSON");
                    }
                }
                if calls.is_none() {
                    content(&message["content"], &at)?;
                }
            }
            _ => return fault(at, format!("the role `{role}` is not possible here")),
        }
        if alternates && (before == role || (before == "system" && role == "assistant")) {
            return fault(at, "roles must alternate and begin with user");
        }
        before = role;
    }
    open.first().map_or(Ok(()), |id| fault("messages", format!("no result for `{id}`")))
}

fn content(content: &Value, at: &str) -> Result<(), Fault> {
    let is_good = match content {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty() && parts.iter().all(|part| part["type"].is_string()),
        _ => false,
    };
    if is_good { Ok(()) } else { fault(at, "content must not be empty") }
}

/// A request for messages.
pub fn check_anthropic(body: &Value) -> Result<(), Fault> {
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return fault("messages", "at least one message is required");
    };
    if body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return fault("max_tokens", "field required");
    }
    for (index, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        if !is_name(text(tool, "name")) || !tool["input_schema"].is_object() {
            return fault(format!("tools.{index}"), "must have a name and an input_schema");
        }
    }
    if body.to_string().matches(r#""cache_control""#).count() > 4 {
        return fault("cache_control", "a maximum of 4 blocks with cache_control may be provided");
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let expected = if index % 2 == 0 { "user" } else { "assistant" };
        if text(message, "role") != expected {
            return fault(at, format!("roles must alternate; expected {expected}"));
        }
        let plain;
        let blocks = match &message["content"] {
            Value::String(text) if !text.is_empty() => {
                plain = vec![serde_json::json!({ "type": "text", "text": text })];
                &plain
            }
            Value::Array(blocks) if !blocks.is_empty() => blocks,
            _ => return fault(at, "content must not be empty"),
        };
        let waiting = std::mem::take(&mut open);
        let mut answered: BTreeSet<String> = BTreeSet::new();
        let mut results_are_over = false;
        for (place, block) in blocks.iter().enumerate() {
            let at = format!("{at}.content.{place}");
            match (expected, text(block, "type")) {
                (_, "text") if !text(block, "text").trim().is_empty() => results_are_over = true,
                (_, "text") => return fault(at, "text content blocks must be non-empty"),
                ("user", "tool_result") if results_are_over => {
                    return fault(at, "tool_result blocks must come first");
                }
                ("user", "tool_result") => {
                    let id = text(block, "tool_use_id").to_owned();
                    if !waiting.contains(&id) || !answered.insert(id.clone()) {
                        return fault(at, format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
                    }
                }
                ("user", "image" | "document") => results_are_over = true,
                ("assistant", "thinking") if text(block, "signature").is_empty() => {
                    return fault(at, "thinking.signature: field required");
                }
                ("assistant", "thinking" | "redacted_thinking") => {}
                ("assistant", "tool_use") => {
                    let id = text(block, "id").to_owned();
                    if !block["input"].is_object() || !is_name(text(block, "name")) {
                        return fault(at, "a tool_use needs a name and an object as input");
                    }
                    if id.is_empty() || !used.insert(id.clone()) {
                        return fault(at, format!("`tool_use` ids must be unique: {id}"));
                    }
                    open.insert(id);
                }
                (_, kind) => return fault(at, format!("a block of type `{kind}` is not possible here")),
            }
        }
        if let Some(id) = waiting.difference(&answered).next() {
            return fault(
                at,
                format!("`tool_use` ids were found without `tool_result` blocks immediately after: {id}"),
            );
        }
    }
    open.first().map_or(Ok(()), |id| fault("messages", format!("no tool_result for `{id}`")))
}
