//! How often a sender is told what became of a mail that decided nothing.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use ow_model::ItemId;

use crate::desk::{Outcome, Taken};

/// A sender is told so often of one item within [`SPAN`].
const MOST: usize = 3;
/// And so often of all items: two programs that answer each other come to an end.
const MOST_OF_ALL: usize = 100;
const SPAN: SignedDuration = SignedDuration::from_hours(1);
/// Senders that are remembered; of more, those that were told longest ago are forgotten.
const SENDERS: usize = 1_000;

/// When each address was told of late and of what, oldest first.
#[derive(Debug, Default)]
pub struct Said(HashMap<String, Vec<Note>>);

/// What a sender is told of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Saying {
    item: Option<ItemId>,
    /// How the item ended, before this answer came.
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    saying: Saying,
    at: Timestamp,
}

impl Saying {
    /// What is told of this mail; none: that it is done, which is told with the answer and always.
    #[must_use]
    pub fn of(taken: &Taken) -> Option<Self> {
        let ended = match taken.outcome {
            Outcome::Done => return None,
            Outcome::AlreadyDecided | Outcome::Expired | Outcome::Withdrawn => true,
            Outcome::NotUnderstood
            | Outcome::NotEntitled
            | Outcome::NoItem
            | Outcome::NoAnswer
            | Outcome::Event
            | Outcome::Later => false,
        };
        Some(Self { item: taken.item, ended })
    }
}

impl Said {
    /// Whether this address may be told this. How an item ended is told once, however much was told of it before.
    #[must_use]
    pub fn may_say(&self, address: &str, saying: Saying, now: Timestamp) -> bool {
        let Some(notes) = self.0.get(address) else { return true };
        let recent: Vec<Saying> = notes.iter().filter(|note| is_recent(note.at, now)).map(|note| note.saying).collect();
        let of_item = recent.iter().filter(|said| said.item == saying.item).count();
        recent.len() < MOST_OF_ALL && (of_item < MOST || (saying.ended && !recent.contains(&saying)))
    }

    pub fn note(&mut self, address: String, saying: Saying, now: Timestamp) {
        for notes in self.0.values_mut() {
            notes.retain(|note| is_recent(note.at, now));
        }
        self.0.retain(|_, notes| !notes.is_empty());
        if self.0.len() >= SENDERS
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, notes)| notes.last().map(|note| note.at)).map(|(known, _)| known.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.entry(address).or_default().push(Note { saying, at: now });
    }
}

/// A clock that was set back counts as no time at all.
fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < SPAN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        "2026-03-03T09:00:00Z".parse().expect("a time")
    }

    fn minutes(minutes: i64) -> Timestamp {
        start() + SignedDuration::from_mins(minutes)
    }

    fn of(number: u8, ended: bool) -> Saying {
        Saying { item: Some(ItemId::from_bytes([number; 10])), ended }
    }

    #[test]
    fn a_sender_is_told_three_times_an_hour_and_others_are_not_kept_from_it() {
        let (mut said, saying) = (Said::default(), Saying { item: None, ended: false });
        for now in (0..3).map(minutes) {
            assert!(said.may_say("loop@example.org", saying, now));
            said.note("loop@example.org".into(), saying, now);
        }
        let later = minutes(59);
        assert!(!said.may_say("loop@example.org", saying, later));
        assert!(said.may_say("ada@example.org", saying, later));
        assert!(said.may_say("loop@example.org", saying, minutes(60)));
        for number in 0..2 * SENDERS {
            said.note(format!("{number}@example.org"), saying, later);
        }
        assert!(said.0.len() <= SENDERS);
    }

    #[test]
    fn each_late_answer_is_told_how_its_item_ended_and_a_loop_comes_to_an_end() {
        let (mut said, ada) = (Said::default(), "ada@example.org");
        for number in 0..20 {
            assert!(said.may_say(ada, of(number, true), start()), "each item has its own");
            said.note(ada.into(), of(number, true), start());
        }
        for _ in 0..3 {
            said.note(ada.into(), of(30, false), start());
        }
        assert!(!said.may_say(ada, of(30, false), start()));
        assert!(said.may_say(ada, of(30, true), start()), "it was not understood thrice, and then decided elsewhere");
        said.note(ada.into(), of(30, true), start());
        assert!(!said.may_say(ada, of(30, true), start()), "once");
        let mut told = 24;
        for number in (0..=255).cycle().take(10_000) {
            if said.may_say(ada, of(number, true), start()) {
                said.note(ada.into(), of(number, true), start());
                told += 1;
            }
        }
        assert_eq!(told, MOST_OF_ALL);
    }
}
