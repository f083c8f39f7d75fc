use std::time::Duration;

use bytes::Bytes;
use ow_model::ModelFailure;
use thiserror::Error;

/// Why there is no reply.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum CompletionError {
    #[error(transparent)]
    Failed(#[from] ModelError),
    /// The caller cancelled. The connection is closed.
    #[error("cancelled")]
    Cancelled { partial: Option<String> },
}

/// A completion that failed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelFailure,
    /// For a person: the provider, what it said, what to do. Holds no key.
    pub message: String,
    /// Of HTTP, where there was one.
    pub status: Option<u16>,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
    /// The text that had arrived.
    pub partial: Option<String>,
    /// The body of the request, byte for byte; none where none was sent.
    pub sent: Option<Bytes>,
}

/// More of a broken reply is not kept.
const LONGEST_PARTIAL: usize = 256 * 1024;

impl ModelError {
    #[must_use]
    pub fn new(kind: ModelFailure, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, retry_after: None, partial: None, sent: None }
    }

    /// With the text that had arrived, as far as it is kept.
    #[must_use]
    pub fn with_partial(mut self, text: &str) -> Self {
        self.partial = partial(text);
        self
    }
}

pub(crate) fn partial(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    Some(text[..text.floor_char_boundary(LONGEST_PARTIAL)].to_owned())
}
