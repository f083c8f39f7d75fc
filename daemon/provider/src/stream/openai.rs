//! Chat completions: `chat.completion.chunk` objects, and what the many servers that speak them make of these.

use ow_model::{Finish, ModelFailure, Reply, Usage};
use serde_json::{Map, Value, json};

use super::{Draft, Stage, StreamFault, broken, count, reply};
use crate::{Deltas, StreamLimits};

mod think;

use think::ThinkSplit;

#[derive(Debug)]
pub(crate) struct OpenAiStream {
    pub(super) draft: Draft,
    /// The `index` under which a call was announced, by its place.
    indices: Vec<Option<u64>>,
    split: ThinkSplit,
    finish: Option<Finish>,
    usage: Option<Usage>,
    is_over: bool,
    refusal: String,
    /// By the call's place: what Google wants back with it.
    extra: Vec<Value>,
    details: Vec<Value>,
}

impl OpenAiStream {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self {
            draft: Draft::new(limits),
            indices: vec![],
            split: ThinkSplit::default(),
            finish: None,
            usage: None,
            is_over: false,
            refusal: String::new(),
            extra: vec![],
            details: vec![],
        }
    }

    pub(super) const fn done(&mut self) {
        self.is_over = true;
    }

    pub(super) const fn stage(&self) -> Stage {
        match (self.is_over, self.finish) {
            (true, _) => Stage::Over,
            (false, Some(_)) => Stage::Complete,
            (false, None) => Stage::Open,
        }
    }

    pub(super) fn value(&mut self, value: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        self.count_usage(&value["usage"]);
        self.count_usage(&value["x_groq"]["usage"]);
        let Some(choices) = value["choices"].as_array() else {
            if value["usage"].is_object() || value["object"] == "chat.completion.chunk" {
                return Ok(());
            }
            let shown: String = value.to_string().chars().take(80).collect();
            return Err(StreamFault::garbage(format!("an event without choices: `{shown}`")));
        };
        // One answer was asked for; a second one would be mixed into it.
        let Some(choice) = choices.iter().find(|choice| count(&choice["index"]) == 0) else { return Ok(()) };
        self.count_usage(&choice["usage"]);
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        self.delta(delta, deltas)?;
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finish = Some(finish(reason)?);
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        for field in ["reasoning_content", "reasoning"] {
            if let Some(text) = delta[field].as_str().filter(|text| !text.is_empty()) {
                self.draft.push_reasoning(text, deltas)?;
                // Some send the same text under both names.
                break;
            }
        }
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            merge_detail(&mut self.details, detail);
        }
        match &delta["content"] {
            Value::String(text) => self.split.push(text, &mut self.draft, deltas)?,
            Value::Array(parts) => {
                for part in parts {
                    if let Some(text) = part["text"].as_str() {
                        self.split.push(text, &mut self.draft, deltas)?;
                    }
                    for thought in part["thinking"].as_array().into_iter().flatten() {
                        self.draft.push_reasoning(thought["text"].as_str().unwrap_or_default(), deltas)?;
                    }
                }
            }
            _ => {}
        }
        if let Some(text) = delta["refusal"].as_str() {
            self.refusal.push_str(text);
            self.draft.push_text(text, deltas)?;
        }
        match &delta["tool_calls"] {
            Value::Array(calls) => {
                for call in calls {
                    self.call(call, deltas)?;
                }
            }
            call @ Value::Object(_) => self.call(call, deltas)?,
            _ => {}
        }
        if delta["function_call"].is_object() {
            self.call(&json!({ "index": 0, "function": delta["function_call"] }), deltas)?;
        }
        Ok(())
    }

    /// A fragment of a call: which call it belongs to is told by index, id and name, all of which may be missing,
    /// repeated or the same for all calls.
    fn call(&mut self, fragment: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        let index = fragment["index"].as_u64();
        let id = fragment["id"].as_str().filter(|id| !id.is_empty());
        let name = fragment["function"]["name"].as_str().filter(|name| !name.is_empty());
        let held;
        let arguments = match &fragment["function"]["arguments"] {
            Value::String(text) => text.as_str(),
            Value::Null => "",
            // An object where text belongs.
            other => {
                held = other.to_string();
                &held
            }
        };
        let place = if let Some(place) = self.continued(index, id, name, arguments) {
            place
        } else {
            let name = name.or_else(|| self.draft.calls.last().map(|call| call.name.as_str())).unwrap_or_default();
            let name = name.to_owned();
            self.indices.push(index);
            self.extra.push(Value::Null);
            self.draft.begin_call(id, &name, deltas)?
        };
        let call = &mut self.draft.calls[place];
        if call.id.is_none() {
            call.id = id.map(str::to_owned);
        }
        if call.name.is_empty()
            && let Some(name) = name
        {
            name.clone_into(&mut call.name);
        }
        if fragment["extra_content"].is_object() {
            self.extra[place] = fragment["extra_content"].clone();
        }
        self.draft.push_arguments(place, arguments)
    }

    /// The call that a fragment goes on with; none: it begins one.
    fn continued(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Option<usize> {
        let by_index = || self.indices.iter().rposition(|known| *known == index);
        let by_id = |id: &str| self.draft.calls.iter().rposition(|call| call.id.as_deref() == Some(id));
        let place = match (index, id) {
            (Some(_), _) => by_index()?,
            (None, Some(id)) => by_id(id)?,
            (None, None) => self.draft.calls.len().checked_sub(1)?,
        };
        let call = &self.draft.calls[place];
        if let (Some(id), Some(known)) = (id, &call.id)
            && id != known
        {
            // Every call has index 0, as behind Gemini's compatible endpoint.
            return None;
        }
        if call.is_complete() {
            // A second value, or another name: the next call under the same index, without an id of its own.
            let begins = arguments.trim_start().starts_with('{');
            let is_named_anew = name.is_some_and(|name| name != call.name);
            return (!begins && !is_named_anew).then_some(place);
        }
        let is_empty = call.arguments.trim().is_empty();
        if is_empty && call.id.is_none() && id.is_none() && name.is_some_and(|name| name != call.name) {
            return call.name.is_empty().then_some(place);
        }
        Some(place)
    }

    fn count_usage(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let cached = [
            &usage["prompt_tokens_details"]["cached_tokens"],
            &usage["prompt_cache_hit_tokens"],
            &usage["cached_tokens"],
        ];
        self.usage = Some(Usage {
            input: count(&usage["prompt_tokens"]),
            cached: cached.into_iter().find_map(Value::as_u64).unwrap_or(0),
            output: count(&usage["completion_tokens"]),
        });
    }

    pub(super) fn finish(mut self, model: &str, deltas: &mut Deltas<'_>) -> Result<Reply, StreamFault> {
        self.split.finish(&mut self.draft, deltas)?;
        let finish = match self.finish {
            _ if !self.refusal.is_empty() => Finish::Refusal,
            Some(finish) => finish,
            None if self.is_over => Finish::Stop,
            None => return Err(broken()),
        };
        let mut private = Map::new();
        if !self.draft.reasoning.is_empty() {
            private.insert("thought".into(), self.draft.reasoning.clone().into());
        }
        if self.extra.iter().any(Value::is_object) {
            private.insert("extra_content".into(), self.extra.into());
        }
        if !self.details.is_empty() {
            private.insert("reasoning_details".into(), self.details.into());
        }
        let private = (!private.is_empty()).then_some(Value::Object(private));
        Ok(reply(self.draft, finish, self.usage, private, model))
    }
}

fn finish(reason: &str) -> Result<Finish, StreamFault> {
    Ok(match reason {
        "tool_calls" | "function_call" | "tool_use" => Finish::ToolCalls,
        "length" | "max_tokens" | "model_length" | "MAX_TOKENS" => Finish::Length,
        "content_filter" | "sensitive" | "safety" | "SAFETY" | "refusal" => Finish::Refusal,
        "error" | "network_error" | "insufficient_system_resource" => {
            let message = format!("the reply ended with finish_reason `{reason}`");
            return Err(StreamFault { kind: ModelFailure::Unavailable, message });
        }
        // `stop`, `eos`, `end_turn` and whatever else ends a text.
        _ => Finish::Stop,
    })
}

/// Joins the fragments of a thought that goes back as it came.
fn merge_detail(details: &mut Vec<Value>, fragment: &Value) {
    let same = |known: &&mut Value| {
        fragment["index"].is_u64() && known["index"] == fragment["index"] && known["type"] == fragment["type"]
    };
    let Some(known) = details.iter_mut().rev().find(same) else {
        details.push(fragment.clone());
        return;
    };
    for (key, value) in fragment.as_object().into_iter().flatten() {
        match (known.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if matches!(key.as_str(), "text" | "summary" | "data") => {
                text.push_str(more);
            }
            (_, Value::Null) => {}
            _ => known[key] = value.clone(),
        }
    }
}
