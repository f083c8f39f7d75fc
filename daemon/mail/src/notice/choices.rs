use lettre::Address;
use ow_inbox::told;
use ow_model::{Item, ItemKind, escape};
use ow_reply::{Decision, Kind, Phrases, read};

use crate::notice::render::{Link, encoded};
use crate::notice::subject;

/// Letters of an option that its link shows.
const LABEL: usize = 80;

/// Options beyond so many have no links.
const OPTIONS: usize = 20;

/// Whether all that is asked was shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shown {
    Whole,
    Cut,
}

/// The mails that would answer the item, each of which was read as its answer is read.
pub(crate) fn links(item: &Item, shown: Shown, to: &Address) -> Vec<Link> {
    let kind = told::answered_as(&item.kind);
    let offers: Vec<(String, String, Decision)> = match &kind {
        Kind::Approval => {
            let approve = ("Approve".to_owned(), "approve".to_owned(), Decision::Approve);
            let deny = ("Deny".to_owned(), "deny".to_owned(), Decision::Deny);
            if shown == Shown::Whole { vec![approve, deny] } else { vec![deny] }
        }
        Kind::Question { options } => options
            .iter()
            .enumerate()
            .take(OPTIONS)
            .filter_map(|(at, option)| {
                let body = answering(option, at + 1, &kind)?;
                Some((format!("{}. {}", at + 1, label(option)), body, Decision::Answer))
            })
            .collect(),
        Kind::Notification => vec![],
    };
    let subject = encoded(&format!("Re: {}", subject(item)));
    let usable = |(_, body, decision): &(String, String, Decision)| {
        read(body, &kind, &[], &Phrases::default()).decision == *decision
    };
    let link = |(label, body, _): (String, String, Decision)| Link {
        label,
        address: format!("mailto:{}?subject={subject}&body={}", address(to), encoded(&body)),
    };
    offers.into_iter().filter(usable).map(link).collect()
}

/// What a mail must say to choose this option: its number, its label where the number means another.
fn answering(option: &str, number: usize, kind: &Kind) -> Option<String> {
    let chooses = |body: &String| read(body, kind, &[], &Phrases::default()).answer.as_deref() == Some(option);
    [number.to_string(), option.to_owned()].into_iter().find(chooses)
}

fn label(option: &str) -> String {
    let safe = escape::line(option);
    if safe.chars().count() <= LABEL {
        safe.into_owned()
    } else {
        format!("{}…", safe.chars().take(LABEL).collect::<String>())
    }
}

/// Its `@` stays as it is, for some programs read no other.
fn address(to: &Address) -> String {
    format!("{}@{}", encoded(to.user()), encoded(to.domain()))
}

/// What would work, in words.
pub(crate) fn in_words(item: &Item, shown: Shown) -> String {
    let id = item.id;
    match (&item.kind, shown) {
        (ItemKind::Notification { .. }, _) => format!("It needs no answer. Seen? owctl inbox approve {id}"),
        (ItemKind::Question { questions }, _) if questions.len() > 1 => {
            "Reply with your answers above the quote, one line for each question.".into()
        }
        (ItemKind::Question { questions }, _) if questions.iter().any(|question| !question.options.is_empty()) => {
            "Reply with the number of an option, or with an answer of your own, above the quote.".into()
        }
        (ItemKind::Question { .. }, _) => "Reply with your answer above the quote.".into(),
        (_, Shown::Whole) => {
            "To allow it, reply with `approve` and nothing else. To refuse it, reply with `deny`, and a reason \
                              after a full stop if you like."
                .into()
        }
        (_, Shown::Cut) => format!(
            "It is too long to be shown whole in a mail, so it cannot be approved by one. Open it: owctl inbox show {id}\n\
             To refuse it, reply with `deny`, and a reason after a full stop if you like."
        ),
    }
}
