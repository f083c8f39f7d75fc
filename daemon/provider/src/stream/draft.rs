use ow_model::{Finish, ReplyCall};

use super::StreamFault;
use crate::{Delta, Deltas, StreamLimits};

/// A reply as far as it has come, within bounds.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<DraftCall>,
    limits: StreamLimits,
    bytes: usize,
}

/// A call as far as it has come.
#[derive(Debug, Default)]
pub(super) struct DraftCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
    scan: Scan,
}

/// Follows JSON text so far that it knows where a value ends.
#[derive(Debug, Default)]
struct Scan {
    depth: usize,
    in_text: bool,
    escapes: bool,
    is_begun: bool,
}

impl Draft {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    pub(super) fn push_text(&mut self, text: &str, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.grow(text.len())?;
        self.text.push_str(text);
        deltas(Delta::Text(text));
        Ok(())
    }

    pub(super) fn push_reasoning(&mut self, text: &str, deltas: &mut Deltas<'_>) -> Result<(), StreamFault> {
        if text.is_empty() {
            return Ok(());
        }
        self.grow(text.len())?;
        self.reasoning.push_str(text);
        deltas(Delta::Reasoning(text));
        Ok(())
    }

    /// Begins a call; its place.
    pub(super) fn begin_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        deltas: &mut Deltas<'_>,
    ) -> Result<usize, StreamFault> {
        let index = self.calls.len();
        if index >= self.limits.calls {
            return Err(StreamFault::too_large(format!("the reply holds more than {} calls", self.limits.calls)));
        }
        self.grow(name.len())?;
        self.calls.push(DraftCall {
            id: id.filter(|id| !id.is_empty()).map(str::to_owned),
            name: name.to_owned(),
            ..DraftCall::default()
        });
        deltas(Delta::CallStarted { index, name });
        Ok(index)
    }

    pub(super) fn push_arguments(&mut self, index: usize, text: &str) -> Result<(), StreamFault> {
        self.grow(text.len())?;
        let call = &mut self.calls[index];
        call.scan.follow(text);
        call.arguments.push_str(text);
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), StreamFault> {
        self.bytes += bytes;
        if self.bytes > self.limits.bytes {
            return Err(StreamFault::too_large(format!("the reply is longer than {} bytes", self.limits.bytes)));
        }
        Ok(())
    }
}

impl DraftCall {
    /// Whether the arguments are a complete value.
    pub(super) const fn is_complete(&self) -> bool {
        self.scan.is_begun && self.scan.depth == 0 && !self.scan.in_text
    }

    pub(super) fn into_call(self, finish: Finish) -> ReplyCall {
        let Self { id, name, arguments, scan: _ } = self;
        // No arguments at all are an empty object, unless the limit cut them off.
        let is_empty = arguments.trim().is_empty() && finish != Finish::Length;
        let arguments = if is_empty { "{}".into() } else { arguments };
        ReplyCall { id, name, arguments }
    }
}

impl Scan {
    fn follow(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.in_text {
                match byte {
                    _ if self.escapes => self.escapes = false,
                    b'\\' => self.escapes = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ if byte.is_ascii_whitespace() => continue,
                _ => {}
            }
            self.is_begun = true;
        }
    }
}
