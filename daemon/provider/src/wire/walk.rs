use std::borrow::Cow;
use std::sync::Arc;

use ow_model::{Message, Position};

use super::{Piece, escaped};

/// Stands before a history that begins with the assistant: every vendor wants the user first.
const OPENING: &str = "[The conversation begins here.]";
/// Stands after a history that ends with the assistant, which some vendors take for a prefilled answer and refuse.
const GO_ON: &str = "Go on.";
/// The result of a call that has none: vendors refuse a history that holds such a call, for good.
pub(super) const NO_RESULT: &str = "[interrupted: what became of this call is not known]";

/// What stands in a request's list of messages, in order.
pub(crate) enum Item<'a> {
    /// Written by the vendor's format: a message or a block.
    Result(Cow<'a, str>),
    /// Escaped.
    UserText(Cow<'a, str>),
    /// Parts with commas between them.
    UserParts(&'a str),
    Assistant {
        text: &'a str,
        body: &'a str,
        fields: &'a str,
    },
    /// Up to here the next request will be the same.
    Stable,
}

/// Puts a history in the order that every vendor takes, whatever it holds: each call has one result right after it,
/// each result its call, and the user speaks first and last.
pub(crate) struct Walk<'a> {
    items: Vec<Item<'a>>,
    /// Calls of the assistant message before that have no result yet.
    open: Vec<Position>,
    /// What must wait until the results are complete.
    after_results: Vec<Item<'a>>,
    no_result: &'a dyn Fn(Position) -> String,
}

impl<'a> Walk<'a> {
    pub(crate) fn items(
        messages: &[Arc<Message>],
        pieces: &[&'a Piece],
        summary: Option<&str>,
        tail: Option<&str>,
        no_result: &'a dyn Fn(Position) -> String,
    ) -> Vec<Item<'a>> {
        let mut walk =
            Self { items: Vec::with_capacity(pieces.len() + 8), open: vec![], after_results: vec![], no_result };
        if let Some(summary) = summary {
            walk.items.push(Item::UserText(escaped(summary).into()));
        }
        let last_said = pieces.iter().rposition(|piece| matches!(piece, Piece::UserText(_) | Piece::UserParts(_)));
        let mut tail = tail.filter(|tail| !tail.trim().is_empty());
        for (index, piece) in pieces.iter().enumerate() {
            walk.piece(piece, &messages[index]);
            if Some(index) == last_said
                && let Some(tail) = tail.take()
            {
                walk.items.extend([Item::Stable, Item::UserText(escaped(tail).into())]);
            }
        }
        walk.close();
        if let Some(tail) = tail {
            walk.items.extend([Item::Stable, Item::UserText(escaped(tail).into())]);
        }
        let first = walk.items.iter().find(|item| !matches!(item, Item::Stable));
        if !matches!(first, Some(Item::UserText(_) | Item::UserParts(_))) {
            walk.items.insert(0, Item::UserText(OPENING.into()));
        }
        if matches!(walk.items.last(), Some(Item::Assistant { .. })) {
            walk.items.push(Item::UserText(GO_ON.into()));
        }
        walk.items
    }

    fn piece(&mut self, piece: &'a Piece, message: &Message) {
        match piece {
            Piece::Nothing => {}
            Piece::UserText(text) => {
                self.close();
                self.items.push(Item::UserText(Cow::Borrowed(text)));
            }
            Piece::UserParts(parts) => {
                self.close();
                self.items.push(Item::UserParts(parts));
            }
            Piece::Assistant { text, body, fields, calls } => {
                self.close();
                self.items.push(Item::Assistant { text, body, fields });
                self.open.extend_from_slice(calls);
            }
            Piece::Result { position, body, pictures } => {
                let Some(at) = self.open.iter().position(|open| open == position) else {
                    // Its call is not sent any more: what it brought still counts.
                    if let Message::Tool { text, .. } = message {
                        let text = escaped(&format!("[result of an earlier call]\n{text}"));
                        self.after_results.push(Item::UserText(text.into()));
                    }
                    return;
                };
                self.open.remove(at);
                self.items.push(Item::Result(Cow::Borrowed(body)));
                if !pictures.is_empty() {
                    self.after_results.push(Item::UserParts(pictures));
                }
            }
        }
    }

    /// Completes the results of the calls before.
    fn close(&mut self) {
        for position in self.open.drain(..) {
            self.items.push(Item::Result((self.no_result)(position).into()));
        }
        self.items.append(&mut self.after_results);
    }
}
