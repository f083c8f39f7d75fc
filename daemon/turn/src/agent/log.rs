use std::ops::Range;
use std::sync::Arc;

use ow_model::{Attachment, Message, Usage};
use serde::{Serialize, Serializer};

/// Tokens that an attachment is taken for until a provider has counted.
const ATTACHMENT_TOKENS: u64 = 1_000;
/// Tokens that a message costs apart from its text.
const MESSAGE_TOKENS: u64 = 4;

/// The canonical history, whole, and where what goes to a provider begins in it.
///
/// A reply enters it together with the results of all its calls, so that it is well-formed at every instant.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Log {
    #[serde(serialize_with = "plain")]
    messages: Vec<Arc<Message>>,
    /// `before[i]`: estimated tokens of the first `i` messages.
    before: Vec<u64>,
    /// Indices of the messages that hold text from outside, rising.
    outside: Vec<usize>,
    from: usize,
    summary: Option<String>,
    /// A summary of outside text is outside text.
    summary_outside: bool,
    /// What the provider counted, up to this index.
    measured: Option<(u64, usize)>,
    /// What the provider counted of a reply that is not in the history yet.
    measuring: Option<u64>,
    /// Tokens of every request beside the history: system prompt and tools.
    fixed: u64,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            messages: vec![],
            before: vec![0],
            outside: vec![],
            from: 0,
            summary: None,
            summary_outside: false,
            measured: None,
            measuring: None,
            fixed: 0,
        }
    }

    pub(super) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    pub(super) const fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) const fn from(&self) -> usize {
        self.from
    }

    pub(super) fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    pub(super) fn push(&mut self, message: Message, outside: bool) {
        if outside {
            self.outside.push(self.messages.len());
        }
        let is_reply = matches!(message, Message::Assistant { .. });
        self.before.push(self.total() + estimate(&message));
        self.messages.push(Arc::new(message));
        if is_reply && let Some(tokens) = self.measuring.take() {
            self.measured = Some((tokens, self.messages.len()));
        }
    }

    /// Takes in what a provider counted of a request that held the history up to `sent`.
    pub(super) fn measure(&mut self, usage: &Usage, sent: usize, has_reply: bool) {
        if usage.input == 0 {
            return;
        }
        self.fixed = usage.input.saturating_sub(self.summary_tokens() + self.tokens(self.from..sent));
        if has_reply {
            self.measuring = Some(usage.total());
        } else {
            self.measured = Some((usage.input, sent));
        }
    }

    /// Tokens of the next request, from what the provider last counted and an estimate of what was added.
    pub(super) fn next_request(&self) -> u64 {
        match self.measured {
            Some((tokens, upto)) => tokens + self.tokens(upto..self.len()),
            None => self.fixed + self.outgoing_tokens(),
        }
    }

    /// Estimated tokens of what goes to a provider.
    pub(super) fn outgoing_tokens(&self) -> u64 {
        self.summary_tokens() + self.tokens(self.from..self.len())
    }

    pub(super) fn tokens(&self, span: Range<usize>) -> u64 {
        let at = |index: usize| self.before[index.min(self.len())];
        at(span.end).saturating_sub(at(span.start))
    }

    /// Whether the outgoing history may begin at this index: pairs of calls and results stay whole.
    pub(super) fn is_boundary(&self, index: usize) -> bool {
        matches!(
            self.messages.get(index).map(|message| &**message),
            Some(Message::User { .. } | Message::Assistant { .. })
        )
    }

    /// Whether anything could be left out that still goes to a provider.
    pub(super) fn can_be_shortened(&self) -> bool {
        let says = |message: &&Arc<Message>| !matches!(***message, Message::Notice { .. });
        let first = self.messages[self.from..].iter().position(|message| says(&message));
        first.is_some_and(|first| (self.from + first + 1..self.len()).any(|index| self.is_boundary(index)))
    }

    pub(super) fn shorten(&mut self, until: usize, summary: &str) -> bool {
        if until <= self.from || !self.is_boundary(until) {
            return false;
        }
        self.summary_outside |= self.outside.iter().any(|index| (self.from..until).contains(index));
        self.from = until;
        self.summary = Some(summary.to_owned());
        self.measured = None;
        true
    }

    pub(super) fn holds_outside(&self) -> bool {
        self.summary_outside || self.outside.last().is_some_and(|newest| *newest >= self.from)
    }

    fn summary_tokens(&self) -> u64 {
        self.summary.as_deref().map_or(0, text_tokens)
    }

    fn total(&self) -> u64 {
        self.before.last().copied().unwrap_or_default()
    }
}

/// Three bytes a token: on the safe side for English, about right for code and most scripts.
fn text_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(3)
}

fn estimate(message: &Message) -> u64 {
    let pictures = |attachments: &[Attachment]| attachments.len() as u64 * ATTACHMENT_TOKENS;
    MESSAGE_TOKENS
        + match message {
            Message::User { input, .. } => text_tokens(&input.text) + pictures(&input.attachments),
            Message::Assistant { text, calls, .. } => {
                let calls = calls.iter().map(|call| text_tokens(&call.name) + text_tokens(&call.args.to_string()));
                text_tokens(text) + calls.sum::<u64>()
            }
            Message::Tool { text, images, .. } => text_tokens(text) + pictures(images),
            Message::Notice { .. } => return 0,
        }
}

fn plain<S: Serializer>(messages: &[Arc<Message>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(|message| &**message))
}
