use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ow_model::Message;

use crate::wire::{Piece, Profile};
use crate::{Attachments, wire};

/// A request may be encoded for this many kinds of model at a time: the one in use and the next of a failover list.
const ENCODINGS: usize = 2;
/// So many pictures that tools returned stay in a request; older ones become a line of text.
const TOOL_PICTURES: usize = 5;

/// A session's history on its way to models: append-only, and encoded piece by piece as it grows.
#[derive(Clone, Debug)]
pub struct Prompt {
    history: Arc<History>,
    /// The index of the first message that is still sent, in the session's whole history.
    begins: usize,
    length: usize,
    size: usize,
    summary: Option<Arc<str>>,
}

/// A prompt as it stood at one moment; what is pushed later is not in it.
#[derive(Clone, Debug)]
pub struct View {
    history: Arc<History>,
    length: usize,
    summary: Option<Arc<str>>,
}

struct History {
    /// Messages are only pushed, and pieces are what the messages of the same index are encoded to.
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    messages: Vec<Arc<Message>>,
    /// Newest use first.
    encodings: Vec<Encoding>,
}

struct Encoding {
    profile: Profile,
    pieces: Vec<Encoded>,
}

struct Encoded {
    piece: Piece,
    /// How many of a tool's pictures are shown in it.
    pictures: usize,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("messages", &self.lock().messages.len()).finish_non_exhaustive()
    }
}

impl Default for Prompt {
    fn default() -> Self {
        Self::new()
    }
}

impl Prompt {
    #[must_use]
    pub fn new() -> Self {
        Self { history: History::of(vec![]), begins: 0, length: 0, size: 0, summary: None }
    }

    /// Adds the next message of the session's history; notices too, so that indices agree.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        let message = message.into();
        let mut inner = self.history.lock();
        if inner.messages.len() > self.length {
            // A clone of this prompt has gone another way.
            let messages = inner.messages[..self.length].to_vec();
            drop(inner);
            self.history = History::of(messages);
            inner = self.history.lock();
        }
        self.size += size(&message);
        self.length += 1;
        inner.messages.push(message);
    }

    /// The number of messages pushed, those before the beginning included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.begins + self.length
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of text in what is sent; for an estimate before a provider has counted tokens.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Sends `summary` instead of all messages before `index`, and lets go of these.
    ///
    /// An index before the present beginning only changes the summary: what was let go of does not come back.
    pub fn begin_at(&mut self, index: usize, summary: Option<&str>) {
        let skipped = index.saturating_sub(self.begins).min(self.length);
        let messages = self.history.lock().messages[skipped..self.length].to_vec();
        self.summary = summary.filter(|summary| !summary.trim().is_empty()).map(Arc::from);
        self.begins += skipped;
        self.length = messages.len();
        self.size =
            messages.iter().map(|message| size(message)).sum::<usize>() + self.summary.as_ref().map_or(0, |s| s.len());
        self.history = History::of(messages);
    }

    #[must_use]
    pub fn view(&self) -> View {
        View { history: Arc::clone(&self.history), length: self.length, summary: self.summary.clone() }
    }

    /// Lets go of the encoded pieces, as for a session that will be idle: the next request encodes anew.
    pub fn forget_encodings(&self) {
        self.history.lock().encodings = vec![];
    }
}

impl FromIterator<Message> for Prompt {
    fn from_iter<T: IntoIterator<Item = Message>>(messages: T) -> Self {
        let mut prompt = Self::new();
        messages.into_iter().for_each(|message| prompt.push(message));
        prompt
    }
}

impl View {
    /// The messages in it, without what the summary stands for.
    #[must_use]
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.history.lock().messages[..self.length].to_vec()
    }

    #[must_use]
    pub fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// Gives the messages with their pieces to `write`, encoding those that are not yet.
    pub(crate) fn encoded<T>(
        &self,
        profile: &Profile,
        attachments: &dyn Attachments,
        write: impl FnOnce(&[Arc<Message>], &mut dyn Iterator<Item = &Piece>) -> T,
    ) -> T {
        let mut inner = self.history.lock();
        let Inner { messages, encodings } = &mut *inner;
        let messages = &messages[..self.length];
        let encoding = recent(encodings, profile);
        // Whether a tool's pictures are shown depends on how many came after them.
        let mut room = TOOL_PICTURES;
        let mut shown = vec![];
        for (index, message) in messages.iter().enumerate().rev() {
            if let Message::Tool { images, .. } = &**message
                && !images.is_empty()
            {
                let pictures = images.len().min(room);
                room -= pictures;
                shown.push((index, pictures));
            }
        }
        for (index, pictures) in &shown {
            if let Some(encoded) = encoding.pieces.get_mut(*index)
                && encoded.pictures != *pictures
            {
                let piece = wire::encode(&messages[*index], *pictures, attachments, profile);
                *encoded = Encoded { piece, pictures: *pictures };
            }
        }
        for (index, message) in messages.iter().enumerate().skip(encoding.pieces.len()) {
            let pictures = shown.iter().find(|(at, _)| *at == index).map_or(0, |(_, pictures)| *pictures);
            let piece = wire::encode(message, pictures, attachments, profile);
            encoding.pieces.push(Encoded { piece, pictures });
        }
        write(messages, &mut encoding.pieces[..self.length].iter().map(|encoded| &encoded.piece))
    }
}

/// The pieces for this profile, made the newest.
fn recent<'e>(encodings: &'e mut Vec<Encoding>, profile: &Profile) -> &'e mut Encoding {
    match encodings.iter().position(|encoding| encoding.profile == *profile) {
        Some(0) => {}
        Some(at) => encodings[..=at].rotate_right(1),
        None => {
            encodings.truncate(ENCODINGS - 1);
            encodings.insert(0, Encoding { profile: profile.clone(), pieces: vec![] });
        }
    }
    &mut encodings[0]
}

impl History {
    fn of(messages: Vec<Arc<Message>>) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::new(Inner { messages, encodings: vec![] }) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(message: &Message) -> usize {
    match message {
        Message::User { input, .. } => input.text.len(),
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| call.name.len() + call.args.to_string().len());
            text.len() + calls.sum::<usize>()
        }
        Message::Tool { text, .. } => text.len(),
        Message::Notice { .. } => 0,
    }
}

#[cfg(test)]
mod tests;
