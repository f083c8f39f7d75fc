//! What the sender of an answer is told.

use ow_model::{Answer, Item, ItemId};
use ow_reply::Kind;

pub(crate) fn done(item: &Item, answer: &Answer) -> String {
    format!("Done: “{}” is {}.", item.title, answer.word())
}

/// What would be understood.
pub(crate) fn what_works(why: &str, kind: &Kind) -> String {
    let works = match kind {
        Kind::Approval => {
            "To allow it, reply with `approve` and nothing else; to refuse it, with `deny`, and a reason after a full stop \
             if you like."
        }
        Kind::Question { .. } => "Reply with your answer, or with the number of an option, above the quote.",
        Kind::Notification => "It needs no answer.",
    };
    format!("Nothing was decided: {why}. {works}")
}

pub(crate) const NOT_ENTITLED: &str = "Nothing was decided: you may not answer this. Whoever runs owd says who may.";

pub(crate) const TOO_LARGE: &str =
    "Nothing was decided: your mail is too large to be read here. Answer with a short one, without its attachments.";

pub(crate) fn no_item(why: &str) -> String {
    format!("Nothing was decided: {why}. Reply to the notice of the item itself, and leave its subject as it is.")
}

pub(crate) fn too_long(why: &str, item: Option<ItemId>) -> String {
    let id = item.map_or(String::new(), |id| format!(" {id}"));
    format!("Nothing was decided: {why}, so it is not approved by one. Open it: owctl inbox show{id}")
}
