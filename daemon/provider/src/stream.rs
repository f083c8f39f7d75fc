use ow_model::{Finish, ModelFailure, Reply, Usage};
use serde_json::Value;

use crate::sse::{Event, TooLong};
use crate::{Deltas, Wire};

mod anthropic;
mod draft;
mod openai;

use anthropic::AnthropicStream;
use draft::Draft;
use openai::OpenAiStream;

/// Puts a reply together from a vendor's stream.
#[derive(Debug)]
pub(crate) enum Assembly {
    OpenAi(OpenAiStream),
    Anthropic(AnthropicStream),
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    Open,
    /// The reply is complete; figures on tokens may still follow.
    Complete,
    /// The vendor has said that nothing follows.
    Over,
}

/// Why a stream cannot become a reply.
#[derive(Debug)]
pub(crate) struct StreamFault {
    pub(crate) kind: ModelFailure,
    pub(crate) message: String,
}

impl StreamFault {
    fn garbage(message: impl Into<String>) -> Self {
        Self { kind: ModelFailure::Garbage, message: message.into() }
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self { kind: ModelFailure::TooLarge, message: message.into() }
    }
}

impl From<TooLong> for StreamFault {
    fn from(_: TooLong) -> Self {
        Self::too_large("one line of the stream is longer than 16 MB")
    }
}

impl Assembly {
    pub(crate) fn new(wire: Wire, limits: crate::StreamLimits) -> Self {
        match wire {
            Wire::OpenAi => Self::OpenAi(OpenAiStream::new(limits)),
            Wire::Anthropic => Self::Anthropic(AnthropicStream::new(limits)),
        }
    }

    pub(crate) fn event(&mut self, event: &Event, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            if let Self::OpenAi(stream) = self {
                stream.done();
            }
            return Ok(());
        }
        let Ok(value) = serde_json::from_str::<Value>(data) else {
            let shown: String = data.chars().take(80).collect();
            return Err(StreamFault::garbage(format!("an event that is not JSON: `{shown}`")));
        };
        self.value(&value, event.name.as_deref(), deltas)
    }

    /// The body of a server that answers at once although a stream was asked for.
    pub(crate) fn whole(&mut self, body: &Value, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        match self {
            Self::OpenAi(stream) => {
                stream.value(body, deltas)?;
                stream.done();
                Ok(())
            }
            Self::Anthropic(stream) => stream.whole(body, deltas),
        }
    }

    fn value(&mut self, value: &Value, name: Option<&str>, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        if value["error"].is_object() || value["error"].is_string() || name == Some("error") {
            let fault = crate::fault::Answer::of_stream(value);
            return Err(StreamFault { kind: fault.kind, message: fault.message });
        }
        match self {
            Self::OpenAi(stream) => stream.value(value, deltas),
            Self::Anthropic(stream) => stream.value(value, deltas),
        }
    }

    pub(crate) const fn stage(&self) -> Stage {
        match self {
            Self::OpenAi(stream) => stream.stage(),
            Self::Anthropic(stream) => stream.stage(),
        }
    }

    /// The text so far.
    pub(crate) fn partial(&self) -> &str {
        match self {
            Self::OpenAi(stream) => &stream.draft.text,
            Self::Anthropic(stream) => &stream.draft.text,
        }
    }

    /// The reply, at the end of the stream. `model` is `provider:model`.
    pub(crate) fn finish(self, model: &str, deltas: &mut Deltas<'_>) -> Result<Reply, StreamFault> {
        match self {
            Self::OpenAi(stream) => stream.finish(model, deltas),
            Self::Anthropic(stream) => stream.finish(model),
        }
    }
}

fn reply(draft: Draft, finish: Finish, usage: Option<Usage>, private: Option<Value>, model: &str) -> Reply {
    let reasoning = (!draft.reasoning.is_empty()).then_some(draft.reasoning);
    let finish = match finish {
        // Many servers say `stop` after calls.
        Finish::Stop if !draft.calls.is_empty() => Finish::ToolCalls,
        Finish::ToolCalls if draft.calls.is_empty() => Finish::Stop,
        other => other,
    };
    Reply {
        text: draft.text,
        reasoning,
        calls: draft.calls.into_iter().map(|call| call.into_call(finish)).collect(),
        finish,
        usage,
        model: model.to_owned(),
        private,
    }
}

/// A stream that ended before its reply did.
fn broken() -> StreamFault {
    StreamFault { kind: ModelFailure::Unavailable, message: "the stream ended in the middle of the reply".into() }
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests;
