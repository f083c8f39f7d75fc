//! How often a sender is told that nothing was decided.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

/// A sender is told so often within [`SPAN`].
const MOST: usize = 3;
const SPAN: SignedDuration = SignedDuration::from_hours(1);
/// Senders that are remembered; of more, those that were told longest ago are forgotten.
const SENDERS: usize = 1_000;

/// When each address was told of late, oldest first.
#[derive(Debug, Default)]
pub struct Said(HashMap<String, Vec<Timestamp>>);

impl Said {
    /// Whether this address may be told once more.
    #[must_use]
    pub fn may_say(&self, address: &str, now: Timestamp) -> bool {
        self.0.get(address).is_none_or(|times| times.iter().filter(|at| is_recent(**at, now)).count() < MOST)
    }

    pub fn note(&mut self, address: String, now: Timestamp) {
        for times in self.0.values_mut() {
            times.retain(|at| is_recent(*at, now));
        }
        self.0.retain(|_, times| !times.is_empty());
        if self.0.len() >= SENDERS
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, times)| times.last().copied()).map(|(known, _)| known.clone())
        {
            self.0.remove(&oldest);
        }
        self.0.entry(address).or_default().push(now);
    }
}

/// A clock that was set back counts as no time at all.
fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < SPAN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_told_three_times_an_hour_and_others_are_not_kept_from_it() {
        let start: Timestamp = "2026-03-03T09:00:00Z".parse().expect("a time");
        let mut said = Said::default();
        for minutes in 0..3 {
            let now = start + SignedDuration::from_mins(minutes);
            assert!(said.may_say("loop@example.org", now));
            said.note("loop@example.org".into(), now);
        }
        let later = start + SignedDuration::from_mins(59);
        assert!(!said.may_say("loop@example.org", later));
        assert!(said.may_say("ada@example.org", later));
        assert!(said.may_say("loop@example.org", start + SignedDuration::from_mins(60)));
        for number in 0..2 * SENDERS {
            said.note(format!("{number}@example.org"), later);
        }
        assert!(said.0.len() <= SENDERS);
    }
}
