use std::fmt::Write as _;

use ow_model::{Position, ToolUse};
use serde_json::Value;

use super::walk::{Item, NO_RESULT};
use super::{Parameters, Piece, Profile, Walk, Wire, arguments, escaped, push_quoted, text_part, tool_name};
use crate::{Capabilities, Request, Thinking, ToolChoice};

/// The limit for models that the table does not know; the vendor wants one.
const OUTPUT: u32 = 8_192;
/// What must be left of the limit for the answer itself.
const ANSWER: u32 = 1_024;
const MARK: &str = r#","cache_control":{"type":"ephemeral"}}"#;

pub(super) fn body(
    request: &Request,
    profile: &Profile,
    capabilities: &Capabilities,
    parameters: Parameters,
) -> String {
    let (system, tools) = (request.system.escaped(), request.tools.encoded(Wire::Anthropic));
    let mut out = String::with_capacity(system.map_or(0, str::len) + tools.len() + 4096);
    out.push_str(r#"{"model":"#);
    push_quoted(&mut out, &request.model);
    let limit = request.max_output.or_else(|| capabilities.default_output()).unwrap_or(OUTPUT);
    push(&mut out, format_args!(r#","stream":true,"max_tokens":{limit}"#));
    if let Some(effort) = request.effort.filter(|_| parameters.effort) {
        let budget = effort.budget().min(limit.saturating_sub(ANSWER));
        match capabilities.thinking {
            Thinking::Budget if budget >= 1_024 => {
                push(&mut out, format_args!(r#","thinking":{{"type":"enabled","budget_tokens":{budget}}}"#));
            }
            Thinking::Adaptive => push(
                &mut out,
                format_args!(r#","thinking":{{"type":"adaptive"}},"output_config":{{"effort":"{}"}}"#, effort.word()),
            ),
            Thinking::Budget | Thinking::None => {}
        }
    }
    if capabilities.tools && !request.tools.is_empty() {
        out.push_str(r#","tools":"#);
        out.push_str(tools);
        if request.tool_choice == ToolChoice::None && parameters.tool_choice {
            out.push_str(r#","tool_choice":{"type":"none"}"#);
        }
    }
    if let Some(system) = system {
        // The mark covers the tools too: they come before the system prompt.
        out.push_str(r#","system":["#);
        push_block(&mut out, &text_part(system), parameters.cache);
        out.push(']');
    }
    out.push_str(r#","messages":["#);
    request.history.encoded(profile, &*request.attachments, |messages, pieces| {
        let pieces: Vec<&Piece> = pieces.collect();
        let no_result = |position| result_block(position, NO_RESULT, true, &[], profile);
        let items = Walk::items(messages, &pieces, request.history.summary(), request.tail.as_deref(), &no_result);
        write(&mut out, &items, parameters.cache);
    });
    out.push_str("]}");
    out
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all text");
}

/// Blocks, the last of them with a cache mark where it is marked.
fn push_block(out: &mut String, blocks: &str, is_marked: bool) {
    if is_marked && let Some(open) = blocks.strip_suffix('}') {
        out.push_str(open);
        out.push_str(MARK);
    } else {
        out.push_str(blocks);
    }
}

/// Joins neighbours of one role into one message: roles must alternate.
fn write(out: &mut String, items: &[Item<'_>], cache: bool) {
    let mut role = "";
    for (index, item) in items.iter().enumerate() {
        // Marked: what stands before the part that changes with each request, and the end where nothing changes.
        let is_marked = cache
            && match items.get(index + 1) {
                None => !matches!(index.checked_sub(1).map(|before| &items[before]), Some(Item::Stable)),
                Some(next) => matches!(next, Item::Stable),
            };
        let (speaker, text);
        let blocks: &str = match item {
            Item::Stable => continue,
            Item::Result(body) => {
                speaker = "user";
                body
            }
            Item::UserText(said) => {
                speaker = "user";
                text = text_part(said);
                &text
            }
            Item::UserParts(parts) => {
                speaker = "user";
                parts
            }
            Item::Assistant { body, .. } => {
                speaker = "assistant";
                body
            }
        };
        if speaker == role {
            out.push(',');
        } else {
            if !role.is_empty() {
                out.push_str("]},");
            }
            push(out, format_args!(r#"{{"role":"{speaker}","content":["#));
            role = speaker;
        }
        push_block(out, blocks, is_marked);
    }
    if !role.is_empty() {
        out.push_str("]}");
    }
}

pub(super) fn assistant(text: &str, calls: &[ToolUse], private: Option<&Value>, profile: &Profile) -> Piece {
    let mut blocks: Vec<String> = vec![];
    let mut thoughts: Vec<&Value> = vec![];
    // The order of the reply, as long as text and calls are still what they were in it.
    let order = private.and_then(|private| private["order"].as_array()).map_or(&[][..], Vec::as_slice);
    let fits = order.iter().filter_map(|entry| entry["text"].as_u64()).sum::<u64>() == text.len() as u64
        && order.iter().filter(|entry| entry["call"] == true).count() == calls.len();
    let mut rest = text;
    let mut left = calls.iter();
    for entry in order {
        if let Some(thought) = entry.get("thought") {
            thoughts.push(thought);
            if fits {
                blocks.push(thought.to_string());
            }
        } else if fits && let Some(length) = entry["text"].as_u64() {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (first, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            rest = after;
            push_text(&mut blocks, first);
        } else if fits && let Some(call) = left.next() {
            blocks.push(call_block(call, profile));
        }
    }
    if !fits || order.is_empty() {
        blocks = thoughts.iter().map(ToString::to_string).collect();
        push_text(&mut blocks, text);
        blocks.extend(calls.iter().map(|call| call_block(call, profile)));
    }
    Piece::Assistant {
        text: "".into(),
        body: blocks.join(",").into(),
        fields: "".into(),
        calls: calls.iter().map(|call| call.position).collect(),
    }
}

fn push_text(blocks: &mut Vec<String>, text: &str) {
    if !text.trim().is_empty() {
        blocks.push(text_part(&escaped(text)));
    }
}

fn call_block(call: &ToolUse, profile: &Profile) -> String {
    let ToolUse { position, name, args } = call;
    let mut block = String::from(r#"{"type":"tool_use","id":"#);
    push_quoted(&mut block, &profile.id(*position));
    block.push_str(r#","name":"#);
    push_quoted(&mut block, &tool_name(name));
    push(&mut block, format_args!(r#","input":{}}}"#, arguments(args)));
    block
}

pub(super) fn result(position: Position, text: &str, is_error: bool, parts: &[String], profile: &Profile) -> Piece {
    let body = result_block(position, text, is_error, parts, profile);
    Piece::Result { position, body: body.into(), pictures: "".into() }
}

fn result_block(position: Position, text: &str, is_error: bool, parts: &[String], profile: &Profile) -> String {
    let text = if text.trim().is_empty() { "(no output)" } else { text };
    let mut block = String::with_capacity(text.len() + text.len() / 16 + 128);
    block.push_str(r#"{"type":"tool_result","tool_use_id":"#);
    push_quoted(&mut block, &profile.id(position));
    if is_error {
        block.push_str(r#","is_error":true"#);
    }
    block.push_str(r#","content":"#);
    if parts.is_empty() {
        push_quoted(&mut block, text);
    } else {
        push(&mut block, format_args!("[{},{}]", text_part(&escaped(text)), parts.join(",")));
    }
    block.push('}');
    block
}
