use std::fmt::Write as _;

use ow_model::{Position, ToolUse};
use serde_json::Value;

use super::walk::{Item, NO_RESULT};
use super::{
    LimitField, Parameters, Piece, Profile, Walk, Wire, arguments, escaped, push_quoted, text_part, tool_name,
};
use crate::settings::Echo;
use crate::{Capabilities, Request, ToolChoice};

pub(super) fn body(
    request: &Request,
    profile: &Profile,
    capabilities: &Capabilities,
    parameters: Parameters,
) -> String {
    let (system, tools) = (request.system.escaped(), request.tools.encoded(Wire::OpenAi));
    let mut out = String::with_capacity(system.map_or(0, str::len) + tools.len() + 4096);
    out.push_str(r#"{"model":"#);
    push_quoted(&mut out, &request.model);
    out.push_str(r#","stream":true"#);
    if parameters.stream_options {
        out.push_str(r#","stream_options":{"include_usage":true}"#);
    }
    let limit = match parameters.limit {
        LimitField::MaxTokens => Some("max_tokens"),
        LimitField::MaxCompletionTokens => Some("max_completion_tokens"),
        LimitField::None => None,
    };
    if let (Some(name), Some(limit)) = (limit, request.max_output.or_else(|| capabilities.default_output())) {
        push(&mut out, format_args!(r#","{name}":{limit}"#));
    }
    if let Some(effort) = request.effort.filter(|_| parameters.effort) {
        push(&mut out, format_args!(r#","reasoning_effort":"{}""#, effort.word()));
    }
    if capabilities.tools && !request.tools.is_empty() {
        out.push_str(r#","tools":"#);
        out.push_str(tools);
        if request.tool_choice == ToolChoice::None && parameters.tool_choice {
            out.push_str(r#","tool_choice":"none""#);
        }
    }
    out.push_str(r#","messages":["#);
    if let Some(system) = system {
        push(&mut out, format_args!(r#"{{"role":"system","content":"{system}"}},"#));
    }
    request.history.encoded(profile, &*request.attachments, |messages, pieces| {
        let pieces: Vec<&Piece> = pieces.collect();
        let no_result = |position| result_body(position, NO_RESULT, profile);
        let items = Walk::items(messages, &pieces, request.history.summary(), request.tail.as_deref(), &no_result);
        out.reserve(items.iter().map(length).sum());
        write(&mut out, &items);
    });
    out.push_str("]}");
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all text");
}

fn length(item: &Item<'_>) -> usize {
    const AROUND: usize = 64;
    match item {
        Item::Result(text) | Item::UserText(text) => AROUND + text.len(),
        Item::UserParts(text) => AROUND + text.len(),
        Item::Assistant { text, body, fields } => AROUND + text.len() + body.len() + fields.len(),
        Item::Stable => 0,
    }
}

/// Joins neighbours of one role, since many templates want roles to alternate.
fn write(out: &mut String, items: &[Item<'_>]) {
    let mut rest = items;
    let mut separator = "";
    while let Some(first) = rest.first() {
        let length = match first {
            Item::Stable | Item::Result(_) => 1,
            Item::UserText(_) | Item::UserParts(_) => rest
                .iter()
                .position(|item| matches!(item, Item::Assistant { .. } | Item::Result(_)))
                .unwrap_or(rest.len()),
            Item::Assistant { .. } => {
                rest.iter().position(|item| !matches!(item, Item::Assistant { .. })).unwrap_or(rest.len())
            }
        };
        let (run, after) = rest.split_at(length);
        rest = after;
        match first {
            Item::Stable => continue,
            Item::Result(body) => {
                out.push_str(separator);
                out.push_str(body);
            }
            Item::UserText(_) | Item::UserParts(_) => {
                out.push_str(separator);
                write_user(out, run);
            }
            Item::Assistant { .. } => {
                out.push_str(separator);
                write_assistant(out, run);
            }
        }
        separator = ",";
    }
}

fn write_user(out: &mut String, run: &[Item<'_>]) {
    out.push_str(r#"{"role":"user","content":"#);
    let is_plain = run.iter().all(|item| matches!(item, Item::UserText(_) | Item::Stable));
    if is_plain {
        out.push('"');
        let mut separator = "";
        for item in run {
            if let Item::UserText(text) = item {
                out.push_str(separator);
                out.push_str(text);
                separator = "\\n\\n";
            }
        }
        out.push_str("\"}");
        return;
    }
    out.push('[');
    let mut separator = "";
    for item in run {
        match item {
            Item::UserText(text) => {
                out.push_str(separator);
                out.push_str(&text_part(text));
            }
            Item::UserParts(parts) => {
                out.push_str(separator);
                out.push_str(parts);
            }
            Item::Stable | Item::Result(_) | Item::Assistant { .. } => continue,
        }
        separator = ",";
    }
    out.push_str("]}");
}

fn write_assistant(out: &mut String, run: &[Item<'_>]) {
    let mut joined = String::new();
    let mut calls = "";
    let mut last_fields = "";
    for item in run {
        if let Item::Assistant { text, body, fields } = item {
            if !joined.is_empty() && !text.is_empty() {
                joined.push_str("\\n\\n");
            }
            joined.push_str(text);
            // Only the last of a run can have calls: results would stand between it and the next.
            (calls, last_fields) = (body, fields);
        }
    }
    out.push_str(r#"{"role":"assistant","content":"#);
    if joined.is_empty() {
        out.push_str("null");
    } else {
        push(out, format_args!("\"{joined}\""));
    }
    out.push_str(last_fields);
    if !calls.is_empty() {
        push(out, format_args!(r#","tool_calls":[{calls}]"#));
    }
    out.push('}');
}

pub(super) fn assistant(text: &str, calls: &[ToolUse], private: Option<&Value>, profile: &Profile) -> Piece {
    let private = private.unwrap_or(&Value::Null);
    let extra = private["extra_content"].as_array().filter(|extra| extra.len() == calls.len());
    let mut body = String::new();
    for (index, ToolUse { position, name, args }) in calls.iter().enumerate() {
        body.push_str(if index == 0 { r#"{"id":"# } else { r#",{"id":"# });
        push_quoted(&mut body, &profile.id(*position));
        body.push_str(r#","type":"function","function":{"name":"#);
        push_quoted(&mut body, &tool_name(name));
        body.push_str(r#","arguments":"#);
        push_quoted(&mut body, &arguments(args));
        body.push('}');
        if let Some(extra) = extra.map(|extra| &extra[index]).filter(|extra| extra.is_object()) {
            push(&mut body, format_args!(r#","extra_content":{extra}"#));
        }
        body.push('}');
    }
    let mut fields = String::new();
    let mut text = escaped(text);
    if let Some(thought) = private["thought"].as_str() {
        match profile.echo {
            // Wanted within a chain of calls, and refused or ignored elsewhere.
            Echo::ReasoningContent if !calls.is_empty() => {
                fields.push_str(r#","reasoning_content":"#);
                push_quoted(&mut fields, thought);
            }
            Echo::ThinkTags => text.insert_str(0, &format!("<think>{}</think>", escaped(thought))),
            Echo::ReasoningContent | Echo::Nothing => {}
        }
    }
    if private["reasoning_details"].is_array() {
        push(&mut fields, format_args!(r#","reasoning_details":{}"#, private["reasoning_details"]));
    }
    Piece::Assistant {
        text: text.into(),
        body: body.into(),
        fields: fields.into(),
        calls: calls.iter().map(|call| call.position).collect(),
    }
}

pub(super) fn result(position: Position, text: &str, parts: &[String], profile: &Profile) -> Piece {
    let mut pictures = String::new();
    if !parts.is_empty() {
        let said = escaped(&format!("Images from the result of {}:", profile.id(position)));
        pictures = format!("{},{}", text_part(&said), parts.join(","));
    }
    Piece::Result { position, body: result_body(position, text, profile).into(), pictures: pictures.into() }
}

fn result_body(position: Position, text: &str, profile: &Profile) -> String {
    let mut body = String::with_capacity(text.len() + text.len() / 16 + 96);
    body.push_str(r#"{"role":"tool","tool_call_id":"#);
    push_quoted(&mut body, &profile.id(position));
    body.push_str(r#","content":"#);
    push_quoted(&mut body, if text.trim().is_empty() { "(no output)" } else { text });
    body.push('}');
    body
}
