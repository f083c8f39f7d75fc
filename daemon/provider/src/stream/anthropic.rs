//! Messages: named events from `message_start` to `message_stop`.

use std::collections::BTreeMap;

use ow_model::{Finish, Reply, Usage};
use serde_json::{Map, Value, json};

use super::{Draft, Stage, StreamFault, broken, count, reply};
use crate::{Deltas, StreamLimits};

#[derive(Debug)]
pub(crate) struct AnthropicStream {
    pub(super) draft: Draft,
    /// By the vendor's index.
    blocks: BTreeMap<u64, Block>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    is_over: bool,
}

#[derive(Debug)]
enum Block {
    Text {
        bytes: usize,
    },
    /// A thought, kept as it must go back.
    Thought(Map<String, Value>),
    Call {
        place: usize,
        given: Value,
    },
    /// Something that was not asked for.
    Other,
}

impl AnthropicStream {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self { draft: Draft::new(limits), blocks: BTreeMap::new(), finish: None, usage: None, is_over: false }
    }

    pub(super) const fn stage(&self) -> Stage {
        match (self.is_over, self.finish) {
            (true, _) => Stage::Over,
            (false, Some(_)) => Stage::Complete,
            (false, None) => Stage::Open,
        }
    }

    pub(super) fn value(&mut self, value: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        let index = count(&value["index"]);
        match value["type"].as_str().unwrap_or_default() {
            "message_start" => self.count_usage(&value["message"]["usage"]),
            "content_block_start" => self.begin(index, &value["content_block"], deltas)?,
            "content_block_delta" => self.grow(index, &value["delta"], deltas)?,
            "content_block_stop" => self.end(index)?,
            "message_delta" => {
                self.count_usage(&value["usage"]);
                if let Some(reason) = value["delta"]["stop_reason"].as_str() {
                    self.finish = Some(finish(reason));
                }
            }
            "message_stop" => self.is_over = true,
            // `ping`, and events that are still to come.
            _ => {}
        }
        Ok(())
    }

    pub(super) fn whole(&mut self, body: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        let Some(content) = body["content"].as_array() else {
            return Err(StreamFault::garbage("an answer without content"));
        };
        for (index, block) in (0..).zip(content) {
            self.begin(index, block, deltas)?;
            self.end(index)?;
        }
        self.count_usage(&body["usage"]);
        self.finish = body["stop_reason"].as_str().map(finish);
        self.is_over = true;
        Ok(())
    }

    fn begin(&mut self, index: u64, start: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        let block = match start["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = start["text"].as_str().unwrap_or_default();
                self.draft.push_text(text, deltas)?;
                Block::Text { bytes: text.len() }
            }
            "thinking" | "redacted_thinking" => {
                self.draft.push_reasoning(start["thinking"].as_str().unwrap_or_default(), deltas)?;
                Block::Thought(start.as_object().cloned().unwrap_or_default())
            }
            "tool_use" => {
                let name = start["name"].as_str().unwrap_or_default();
                let place = self.draft.begin_call(start["id"].as_str(), name, deltas)?;
                Block::Call { place, given: start["input"].clone() }
            }
            _ => Block::Other,
        };
        self.blocks.insert(index, block);
        Ok(())
    }

    fn grow(&mut self, index: u64, delta: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match (self.blocks.get_mut(&index), text("type")) {
            (Some(Block::Text { bytes }), "text_delta") => {
                *bytes += text("text").len();
                self.draft.push_text(text("text"), deltas)?;
            }
            (Some(Block::Thought(thought)), "thinking_delta") => {
                append(thought, "thinking", text("thinking"));
                self.draft.push_reasoning(text("thinking"), deltas)?;
            }
            (Some(Block::Thought(thought)), "signature_delta") => append(thought, "signature", text("signature")),
            (Some(Block::Call { place, .. }), "input_json_delta") => {
                self.draft.push_arguments(*place, text("partial_json"))?;
            }
            // What belongs to no block that was begun, and kinds that are still to come.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, index: u64) -> Result<(), StreamFault> {
        if let Some(Block::Call { place, given }) = self.blocks.get(&index)
            && self.draft.calls[*place].arguments.is_empty()
            && given.as_object().is_some_and(|given| !given.is_empty())
        {
            self.draft.push_arguments(*place, &given.to_string())?;
        }
        Ok(())
    }

    /// Later figures replace earlier ones; those that an event leaves out stay.
    fn count_usage(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let mut known = self.usage.unwrap_or_default();
        if usage["input_tokens"].is_u64() {
            known.cached = count(&usage["cache_read_input_tokens"]);
            known.input = count(&usage["input_tokens"]) + count(&usage["cache_creation_input_tokens"]) + known.cached;
        }
        if usage["output_tokens"].is_u64() {
            known.output = count(&usage["output_tokens"]);
        }
        self.usage = Some(known);
    }

    pub(super) fn finish(self, model: &str) -> Result<Reply, StreamFault> {
        let finish = match self.finish {
            Some(finish) => finish,
            None if self.is_over => Finish::Stop,
            None => return Err(broken()),
        };
        // The order matters only where thoughts must go back in their places.
        let has_thoughts = self.blocks.values().any(|block| matches!(block, Block::Thought(_)));
        let order: Vec<Value> = self.blocks.into_values().filter_map(Block::entry).collect();
        let private = has_thoughts.then(|| json!({ "order": order }));
        Ok(reply(self.draft, finish, self.usage, private, model))
    }
}

impl Block {
    fn entry(self) -> Option<Value> {
        match self {
            Self::Text { bytes } => Some(json!({ "text": bytes })),
            Self::Thought(thought) => Some(json!({ "thought": thought })),
            Self::Call { .. } => Some(json!({ "call": true })),
            Self::Other => None,
        }
    }
}

fn append(thought: &mut Map<String, Value>, key: &str, more: &str) {
    match thought.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => drop(thought.insert(key.to_owned(), more.into())),
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Refusal,
        // `end_turn`, `stop_sequence`, `pause_turn`.
        _ => Finish::Stop,
    }
}
