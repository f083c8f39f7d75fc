use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::{anthropic, openai};

/// What a model says, independent of the wire that asks.
#[derive(Clone, Debug, Default)]
pub struct ModelReply {
    pub text: String,
    pub reasoning: Option<String>,
    pub calls: Vec<ModelCall>,
    /// As OpenAI names it: `stop`, `tool_calls`, `length`, `content_filter`; none: what fits.
    pub finish: Option<&'static str>,
    /// Tokens in, tokens of them cached, tokens out; none: no usage is told.
    pub usage: Option<(u64, u64, u64)>,
    /// Characters of text, and of arguments, in one event; 0: all in one.
    pub pieces: usize,
}

/// A call that the model makes. Arguments are text, so that they can be broken.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// None: one that is unique over all requests.
    pub id: Option<String>,
    pub name: String,
    pub arguments: String,
}

/// What the server answers to one request.
#[derive(Clone, Debug)]
pub struct ModelResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    body: Body,
    chunk: Option<usize>,
    stop: Option<(usize, Stop)>,
    pub(super) opens: Option<Gate>,
    pub(super) latency: Option<Duration>,
    pub(super) flushes: bool,
}

#[derive(Clone, Debug)]
enum Body {
    Reply(ModelReply),
    Stream(Vec<u8>),
    Chunks(Vec<Vec<u8>>),
    Whole(Vec<u8>),
}

#[derive(Clone, Debug)]
enum Stop {
    Cut,
    Hang,
    Wait(Gate),
}

pub(super) struct Part {
    pub(super) bytes: Vec<u8>,
    /// Waited for before the bytes are sent.
    pub(super) waits: Option<Gate>,
}

pub(super) enum End {
    Whole,
    /// The connection is closed in mid-stream.
    Cut,
    Hang,
}

impl ModelReply {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), usage: Some((100, 0, 10)), ..Self::default() }
    }

    /// A reply with calls: names and arguments.
    #[must_use]
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls.into_iter().map(|(name, arguments)| ModelCall {
            id: None,
            name: name.into(),
            arguments: arguments.to_string(),
        });
        Self { calls: calls.collect(), usage: Some((100, 0, 10)), ..Self::default() }
    }

    #[must_use]
    pub fn finish(mut self, finish: &'static str) -> Self {
        self.finish = Some(finish);
        self
    }

    #[must_use]
    pub fn reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = Some(reasoning.into());
        self
    }

    #[must_use]
    pub const fn usage(mut self, input: u64, cached: u64, output: u64) -> Self {
        self.usage = Some((input, cached, output));
        self
    }

    #[must_use]
    pub const fn in_pieces(mut self, characters: usize) -> Self {
        self.pieces = characters;
        self
    }

    pub(super) fn finish_reason(&self) -> &'static str {
        self.finish.unwrap_or(if self.calls.is_empty() { "stop" } else { "tool_calls" })
    }
}

impl ModelResponse {
    fn of(status: u16, body: Body) -> Self {
        Self { status, headers: vec![], body, chunk: None, stop: None, opens: None, latency: None, flushes: false }
    }

    /// A stream as given, whatever it holds.
    #[must_use]
    pub fn stream(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(200, Body::Stream(bytes.into()))
    }

    /// A stream in exactly these network chunks.
    #[must_use]
    pub fn chunks(chunks: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut response = Self::of(200, Body::Chunks(chunks.into_iter().collect()));
        response.flushes = true;
        response
    }

    /// A whole body with its status.
    #[must_use]
    pub fn whole(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::of(status, Body::Whole(body.into()))
    }

    /// An error in the form that OpenAI and Anthropic share: `error.type` and `error.message`.
    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let body =
            json!({ "type": "error", "error": { "type": kind, "message": message, "code": null, "param": null } });
        Self::whole(status, body.to_string())
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// Sends the stream in network chunks of this many bytes.
    #[must_use]
    pub const fn in_chunks_of(mut self, bytes: usize) -> Self {
        self.chunk = Some(bytes);
        self.flushes = true;
        self
    }

    /// Closes the connection after this many bytes of the stream.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.stop = Some((bytes, Stop::Cut));
        self
    }

    /// Falls silent after this many bytes of the stream, until the client leaves.
    #[must_use]
    pub fn hang_after(mut self, bytes: usize) -> Self {
        self.stop = Some((bytes, Stop::Hang));
        self
    }

    /// Waits after this many bytes of the stream until the gate opens.
    #[must_use]
    pub fn wait_after(mut self, bytes: usize, gate: &Gate) -> Self {
        self.stop = Some((bytes, Stop::Wait(gate.clone())));
        self
    }

    /// Sends not even a status before the gate opens.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.opens = Some(gate.clone());
        self
    }

    /// Thinks for as long as a model would; for measurements alone.
    #[must_use]
    pub const fn takes(mut self, latency: Duration) -> Self {
        self.latency = Some(latency);
        self
    }

    pub(super) const fn is_stream(&self) -> bool {
        !matches!(self.body, Body::Whole(_))
    }

    /// The body's parts for this wire. `number` makes ids unique.
    pub(super) fn render(&self, is_anthropic: bool, request: &Value, number: usize) -> (Vec<Part>, End) {
        let chunks = match &self.body {
            Body::Reply(reply) if is_anthropic => vec![anthropic::stream(reply, request, number)],
            Body::Reply(reply) => vec![openai::stream(reply, request, number)],
            Body::Stream(bytes) | Body::Whole(bytes) => vec![bytes.clone()],
            Body::Chunks(chunks) => chunks.clone(),
        };
        let chunks = match self.chunk {
            Some(size) => chunks.concat().chunks(size.max(1)).map(<[u8]>::to_vec).collect(),
            None => chunks,
        };
        let Some((at, stop)) = &self.stop else {
            return (chunks.into_iter().map(|bytes| Part { bytes, waits: None }).collect(), End::Whole);
        };
        let mut parts = vec![];
        let mut waits = None;
        let mut sent = 0;
        for bytes in chunks {
            let before = at.saturating_sub(sent).min(bytes.len());
            sent += bytes.len();
            let (first, rest) = bytes.split_at(before);
            if !first.is_empty() {
                parts.push(Part { bytes: first.to_vec(), waits: None });
            }
            if rest.is_empty() {
                continue;
            }
            match stop {
                Stop::Cut => return (parts, End::Cut),
                Stop::Hang => return (parts, End::Hang),
                Stop::Wait(gate) => {
                    let waits = waits.replace(()).is_none().then(|| gate.clone());
                    parts.push(Part { bytes: rest.to_vec(), waits });
                }
            }
        }
        let end = match stop {
            Stop::Cut => End::Cut,
            Stop::Hang => End::Hang,
            Stop::Wait(_) => End::Whole,
        };
        (parts, end)
    }
}

impl From<ModelReply> for ModelResponse {
    fn from(reply: ModelReply) -> Self {
        Self::of(200, Body::Reply(reply))
    }
}

/// Holds a response back until a test opens it.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets all pass who wait, and all who come later.
    pub fn open(&self) {
        let (open, condition) = &*self.0;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        condition.notify_all();
    }

    pub(super) fn wait(&self, stopped: &AtomicBool) {
        let (open, condition) = &*self.0;
        let mut is_open = open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_open && !stopped.load(Ordering::SeqCst) {
            // Looks up now and then, so that a server that ends takes its connections along.
            let waited = condition.wait_timeout(is_open, Duration::from_millis(50));
            is_open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A text in pieces of so many characters; 0: in one.
pub(super) fn pieces(text: &str, characters: usize) -> Vec<String> {
    if text.is_empty() {
        return vec![];
    }
    if characters == 0 {
        return vec![text.to_owned()];
    }
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(characters).map(|piece| piece.iter().collect()).collect()
}
