//! What people are told who answered an item, in the same words on every surface: pure.

use jiff::Timestamp;
use ow_model::{Answer, Item, ItemId, ItemKind, ItemState, Surface};
use ow_reply::Kind;
use ow_store::ResolveError;

use crate::wording;

/// To who may not answer.
pub const NOT_ENTITLED: &str = "Nothing was decided: you may not answer this. Whoever runs owd says who may.";
/// About an item that is gone.
pub const GONE: &str = "Nothing was decided: there is no such item any more.";

/// As what an answer to such an item is read.
#[must_use]
pub fn answered_as(kind: &ItemKind) -> Kind {
    match kind {
        ItemKind::Approval { .. } | ItemKind::Plan { .. } | ItemKind::Directory { .. } | ItemKind::Budget { .. } => {
            Kind::Approval
        }
        ItemKind::Question { questions } => {
            // A number would not tell of which question it is.
            let options = match questions.as_slice() {
                [one] => one.options.clone(),
                _ => vec![],
            };
            Kind::Question { options }
        }
        ItemKind::Notification { .. } => Kind::Notification,
    }
}

/// Whose answer counts.
#[must_use]
pub fn done(item: &Item, answer: &Answer) -> String {
    format!("Done: “{}” is {}.", wording::title(item), answer.word())
}

/// Why an item takes no answer any more; none: it waits for one.
#[must_use]
pub fn closed(item: &Item) -> Option<ResolveError> {
    let id = item.id;
    match &item.state {
        ItemState::Pending => None,
        ItemState::Resolved(resolution) => Some(ResolveError::Already {
            id,
            decision: resolution.answer.word(),
            by: resolution.by.clone(),
            at: resolution.at,
        }),
        ItemState::Expired { at } => Some(ResolveError::Expired { id, at: *at }),
        ItemState::Withdrawn { at, why } => Some(ResolveError::Withdrawn { id, at: *at, why: why.clone() }),
    }
}

/// Whose answer came too late, or is none that the item takes.
#[must_use]
pub fn refused(error: &ResolveError) -> String {
    let why = match error {
        ResolveError::Already { id: _, decision, by, at } => {
            format!("already {decision} by {} at {}", by.person.0, time(*at))
        }
        ResolveError::Expired { id: _, at } => format!("it expired at {}", time(*at)),
        ResolveError::Withdrawn { id: _, at, why } => format!("it was withdrawn at {}: {why}", time(*at)),
        ResolveError::Unknown { .. }
        | ResolveError::Misfit { .. }
        | ResolveError::BadEdit { .. }
        | ResolveError::NoRule { .. }
        | ResolveError::Store(_) => error.to_string(),
    };
    format!("Nothing was changed: {why}.")
}

/// Whose words were not understood; `why` says what was unclear.
#[must_use]
pub fn what_works(why: &str, kind: &Kind, surface: Surface) -> String {
    let by_mail = matches!(surface, Surface::Mail);
    let works = match kind {
        Kind::Approval => {
            let more = if matches!(surface, Surface::Slack) { " The buttons do the same." } else { "" };
            format!(
                "To allow it, reply `approve` and nothing else; to refuse it, `deny`, and a reason after a full stop if you \
                 like.{more}"
            )
        }
        Kind::Question { .. } => {
            let place = if by_mail { ", above the quote" } else { "" };
            format!("Reply with your answer, or with the number of an option{place}.")
        }
        Kind::Notification => "It needs no answer.".into(),
    };
    format!("Nothing was decided: {why}. {works}")
}

/// Who approved what the surface could not show whole.
#[must_use]
pub fn too_long(item: ItemId) -> String {
    format!(
        "Nothing was decided: this is too long to be shown here whole, so it is not approved here. Open it: owctl inbox \
         show {item}"
    )
}

/// An instant, for people.
#[must_use]
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use ow_model::{AnswerBy, Person};

    use super::*;

    #[test]
    fn whoever_comes_second_is_told_who_decided_when_and_what() {
        let at = "2026-03-03T12:00:00Z".parse().expect("an instant");
        let id: ItemId = "aaaaaaaaaaaaaaaa".parse().expect("an id");
        let by = AnswerBy { person: Person("ada".into()), surface: Surface::Mail };
        for (error, told) in [
            (
                ResolveError::Already { id, decision: "approved", by, at },
                "Nothing was changed: already approved by ada at 2026-03-03 12:00 UTC.",
            ),
            (ResolveError::Expired { id, at }, "Nothing was changed: it expired at 2026-03-03 12:00 UTC."),
            (
                ResolveError::Withdrawn { id, at, why: "the run was cancelled".into() },
                "Nothing was changed: it was withdrawn at 2026-03-03 12:00 UTC: the run was cancelled.",
            ),
        ] {
            assert_eq!(refused(&error), told);
        }
    }

    #[test]
    fn what_works_is_said_for_the_surface_and_the_kind() {
        let of = |kind: &Kind, surface| what_works("it holds a doubt", kind, surface);
        let approval = "Nothing was decided: it holds a doubt. To allow it, reply `approve` and nothing else; to refuse it, \
                        `deny`, and a reason after a full stop if you like.";
        assert_eq!(of(&Kind::Approval, Surface::Mail), approval);
        assert_eq!(of(&Kind::Approval, Surface::Slack), format!("{approval} The buttons do the same."));
        let question = Kind::Question { options: vec![] };
        assert!(of(&question, Surface::Mail).ends_with("or with the number of an option, above the quote."));
        assert!(of(&question, Surface::Slack).ends_with("or with the number of an option."));
    }
}
