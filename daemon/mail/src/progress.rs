//! How a mailbox is read: which mail comes next, what is remembered, and when one that failed is tried again.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use ow_store::{MailAgain, MailboxMark};

/// A mail that failed is tried again after this, then after twice the time, and so on.
const FIRST: SignedDuration = SignedDuration::from_secs(2);

/// But never later than this.
const LONGEST: SignedDuration = SignedDuration::from_hours(4);

/// After so many attempts, in some 28 hours, a mail is given up.
const ATTEMPTS: u32 = 20;

/// Mails that wait to be tried again; one more, and the oldest of them is given up.
const AGAIN: usize = 1000;

/// Where a mailbox stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Progress {
    mark: MailboxMark,
    /// Mails that nobody has looked at yet, in order.
    new: VecDeque<u32>,
}

/// Which mails are to be looked for once a mailbox is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Look {
    /// Those with higher numbers.
    After(u32),
    /// The numbers mean other mails than before: those that came since. Handling one twice changes nothing.
    Since(Timestamp),
    /// It was never open before: those that came after owd was told to read it.
    Arrived(Timestamp),
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    Handle(u32),
    /// Nothing before that instant, unless a mail comes.
    Wait(Option<Timestamp>),
}

/// What became of a mail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handled {
    /// It is handled for good, or is not there any more.
    Done,
    /// It is to be tried again.
    Failed,
}

impl Progress {
    /// What is remembered of a mailbox that is to be read from now on, before it was ever open.
    #[must_use]
    pub fn wanted(now: Timestamp) -> MailboxMark {
        MailboxMark { validity: 0, seen: 0, at: now, again: vec![] }
    }

    /// Where a mailbox stands that was just opened: `next` is the number that its next mail will have. One that was never
    /// read before is read from now on.
    #[must_use]
    pub fn opened(before: Option<MailboxMark>, validity: u32, next: u32, now: Timestamp) -> (Self, Look) {
        let last = next.saturating_sub(1);
        let (mark, look) = match before {
            None => (MailboxMark { validity, seen: last, at: now, again: vec![] }, Look::After(last)),
            Some(mark) if (mark.validity, mark.seen) == (0, 0) => {
                let look = Look::Arrived(mark.at);
                (MailboxMark { validity, ..mark }, look)
            }
            Some(mark) if mark.validity == validity => {
                let look = Look::After(mark.seen);
                (mark, look)
            }
            // A day earlier, for days begin elsewhere at other times, and clocks differ.
            Some(mark) => {
                let since = mark.at.checked_sub(SignedDuration::from_hours(24)).unwrap_or(mark.at);
                (MailboxMark { validity, seen: 0, at: mark.at, again: vec![] }, Look::Since(since))
            }
        };
        (Self { mark, new: VecDeque::new() }, look)
    }

    /// What is to be remembered.
    #[must_use]
    pub fn mark(&self) -> &MailboxMark {
        &self.mark
    }

    /// The mails that were found; those that are known already are left out.
    pub fn found(&mut self, uids: &[u32]) {
        let last = self.new.back().copied().unwrap_or(self.mark.seen);
        let mut uids: Vec<u32> = uids.iter().copied().filter(|uid| *uid > last).collect();
        uids.sort_unstable();
        uids.dedup();
        self.new.extend(uids);
    }

    /// After a search by date: what it did not find counts as seen, up to the mail before `next`.
    pub fn found_all(&mut self, uids: &[u32], next: u32) {
        self.found(uids);
        if self.new.is_empty() {
            self.mark.seen = next.saturating_sub(1);
        }
    }

    /// New mails come first: one that failed holds up no other.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Next {
        if let Some(uid) = self.new.front() {
            return Next::Handle(*uid);
        }
        let soonest = self.mark.again.iter().min_by_key(|again| (again.at, again.uid));
        match soonest {
            Some(again) if again.at <= now => Next::Handle(again.uid),
            soonest => Next::Wait(soonest.map(|again| again.at)),
        }
    }

    /// Notes what became of a mail; returns those that are given up.
    pub fn handled(&mut self, uid: u32, handled: Handled, now: Timestamp) -> Vec<u32> {
        if self.new.front() == Some(&uid) {
            self.new.pop_front();
        }
        self.mark.seen = self.mark.seen.max(uid);
        let before = self.mark.again.iter().position(|again| again.uid == uid).map(|at| self.mark.again.remove(at));
        let attempts = before.map_or(1, |before| before.attempts + 1);
        let mut given_up = vec![];
        if handled == Handled::Failed && attempts >= ATTEMPTS {
            given_up.push(uid);
        } else if handled == Handled::Failed {
            let after = FIRST.saturating_mul(1 << (attempts - 1).min(20)).min(LONGEST);
            self.mark.again.push(MailAgain { uid, attempts, at: now.checked_add(after).unwrap_or(Timestamp::MAX) });
            while self.mark.again.len() > AGAIN {
                given_up.push(self.mark.again.remove(0).uid);
            }
        }
        // What still waits may have come at any time before: by this instant it is found if the numbers change.
        if self.new.is_empty() && self.mark.again.is_empty() {
            self.mark.at = self.mark.at.max(now);
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_772_000_000 + second).expect("an instant")
    }

    fn mark(validity: u32, seen: u32) -> MailboxMark {
        MailboxMark { validity, seen, at: at(0), again: vec![] }
    }

    #[test]
    fn a_mailbox_that_was_never_read_is_read_from_now_on() {
        let (mut progress, look) = Progress::opened(None, 7, 5001, at(0));
        assert_eq!(look, Look::After(5000));
        progress.found(&[1, 4999, 5000]);
        assert_eq!(progress.next(at(0)), Next::Wait(None));
        progress.found(&[5001]);
        assert_eq!(progress.next(at(0)), Next::Handle(5001));
        let (empty, look) = Progress::opened(None, 7, 1, at(0));
        assert_eq!((look, empty.mark().seen), (Look::After(0), 0));
    }

    #[test]
    fn a_mail_that_failed_is_tried_again_while_others_go_on() {
        let (mut progress, _) = Progress::opened(Some(mark(7, 10)), 7, 13, at(0));
        progress.found(&[11, 12]);
        assert!(progress.handled(11, Handled::Failed, at(1)).is_empty());
        assert_eq!(progress.next(at(1)), Next::Handle(12));
        progress.handled(12, Handled::Done, at(1));
        assert_eq!(progress.mark().seen, 12);
        assert_eq!(progress.next(at(1)), Next::Wait(Some(at(3))));
        let (mut again, look) = Progress::opened(Some(progress.mark().clone()), 7, 13, at(2));
        assert_eq!(look, Look::After(12), "a new life remembers it");
        assert_eq!(again.next(at(3)), Next::Handle(11));
        again.handled(11, Handled::Done, at(3));
        assert_eq!((again.next(at(99)), again.mark().again.len()), (Next::Wait(None), 0));
    }

    #[test]
    fn a_mail_that_always_fails_is_given_up_in_the_end() {
        let (mut progress, _) = Progress::opened(Some(mark(7, 10)), 7, 12, at(0));
        progress.found(&[11]);
        let mut now = at(0);
        let mut tries = 0;
        loop {
            match progress.next(now) {
                Next::Handle(uid) => {
                    tries += 1;
                    if progress.handled(uid, Handled::Failed, now) == [11] {
                        break;
                    }
                }
                Next::Wait(Some(next)) => now = next,
                Next::Wait(None) => panic!("it is forgotten"),
            }
        }
        assert_eq!(tries, ATTEMPTS);
        assert!(now.duration_since(at(0)) > SignedDuration::from_hours(24), "{now}");
        assert_eq!(progress.next(Timestamp::MAX), Next::Wait(None));
    }

    #[test]
    fn other_numbers_mean_other_mails_and_those_since_are_read() {
        let (mut progress, look) = Progress::opened(Some(mark(7, 900)), 8, 40, at(0));
        assert_eq!(look, Look::Since(at(-86_400)));
        progress.found_all(&[31, 30], 40);
        assert_eq!(progress.next(at(0)), Next::Handle(30));
        progress.handled(30, Handled::Done, at(0));
        assert_eq!(Progress::opened(Some(progress.mark().clone()), 8, 40, at(0)).1, Look::After(30));
        let (mut none, _) = Progress::opened(Some(mark(7, 900)), 8, 40, at(0));
        none.found_all(&[], 40);
        assert_eq!(none.mark().seen, 39);
    }

    #[test]
    fn mail_that_waited_is_found_under_its_new_number_however_long_it_waited() {
        const WEEK: i64 = 7 * 86_400;
        // It came while owd was down.
        let (mut progress, _) = Progress::opened(Some(mark(7, 10)), 7, 13, at(WEEK));
        progress.found(&[11, 12]);
        progress.handled(11, Handled::Done, at(WEEK));
        let since = |progress: &Progress| Progress::opened(Some(progress.mark().clone()), 8, 40, at(WEEK)).1;
        assert_eq!(since(&progress), Look::Since(at(-86_400)), "nobody has looked at the other one");
        progress.handled(12, Handled::Failed, at(WEEK));
        assert_eq!(since(&progress), Look::Since(at(-86_400)), "it is to be tried again");
        let (again, _) = Progress::opened(Some(progress.mark().clone()), 8, 40, at(WEEK));
        assert_eq!(again.mark().again, vec![], "its old number means another mail");
        progress.handled(12, Handled::Done, at(WEEK));
        assert_eq!(since(&progress), Look::Since(at(WEEK - 86_400)));
    }

    #[test]
    fn a_mailbox_that_could_not_be_opened_at_first_is_read_from_when_it_was_wanted() {
        let (mut progress, look) = Progress::opened(Some(Progress::wanted(at(0))), 7, 41, at(900));
        assert_eq!(look, Look::Arrived(at(0)));
        progress.found_all(&[38, 40], 41);
        assert_eq!(progress.next(at(900)), Next::Handle(38));
        progress.handled(38, Handled::Done, at(900));
        assert_eq!(Progress::opened(Some(progress.mark().clone()), 7, 41, at(901)).1, Look::After(38));
        let (mut none, _) = Progress::opened(Some(Progress::wanted(at(0))), 7, 41, at(900));
        none.found_all(&[], 41);
        assert_eq!(Progress::opened(Some(none.mark().clone()), 7, 41, at(901)).1, Look::After(40));
    }

    proptest! {
        /// Whatever fails and whenever owd ends, each mail is handled, and none again once it is done.
        #[test]
        fn each_mail_is_handled_to_its_end(steps in prop::collection::vec((0_u8..4, 1_u32..4), 1..80)) {
            let (mut progress, _) = Progress::opened(None, 1, 1, at(0));
            let (mut last, mut now) = (0_u32, at(0));
            let mut done = std::collections::BTreeSet::new();
            let mut saved = progress.mark().clone();
            let handle = |progress: &mut Progress, saved: &mut MailboxMark, done: &mut std::collections::BTreeSet<u32>, now, fails| {
                if let Next::Handle(uid) = progress.next(now) {
                    prop_assert!(!done.contains(&uid));
                    let handled = if fails { Handled::Failed } else { Handled::Done };
                    prop_assert_eq!(progress.handled(uid, handled, now), Vec::<u32>::new());
                    if !fails {
                        done.insert(uid);
                    }
                    *saved = progress.mark().clone();
                }
                Ok(())
            };
            for (what, count) in steps {
                match what {
                    0 => last += count,
                    1 => {
                        // owd ends and starts.
                        let (opened, look) = Progress::opened(Some(saved.clone()), 1, last + 1, now);
                        progress = opened;
                        prop_assert_eq!(look, Look::After(saved.seen));
                    }
                    2 => handle(&mut progress, &mut saved, &mut done, now, count == 1)?,
                    _ => now = now.checked_add(SignedDuration::from_hours(5)).expect("an instant"),
                }
                progress.found(&(1..=last).collect::<Vec<_>>());
            }
            for _ in 0..=last {
                now = now.checked_add(SignedDuration::from_hours(5)).expect("an instant");
                handle(&mut progress, &mut saved, &mut done, now, false)?;
            }
            prop_assert_eq!(done, (1..=last).collect());
        }

        /// However the server numbers the mails anew, each is handled.
        #[test]
        fn no_mail_is_lost_by_new_numbers(steps in prop::collection::vec((0_u8..6, 1_u32..4), 1..60)) {
            // When each mail came; its number is its place and the numbering's first.
            let mut came: Vec<Timestamp> = vec![];
            let (mut first, mut validity, mut now) = (1, 1, at(0));
            let (mut progress, _) = Progress::opened(None, validity, first, now);
            let mut done = std::collections::BTreeSet::new();
            for (what, count) in steps {
                let next = |came: &[Timestamp], first| first + u32::try_from(came.len()).expect("few");
                match what {
                    0 => came.extend(std::iter::repeat_n(now, count as usize)),
                    1 => now = now.checked_add(SignedDuration::from_hours(i64::from(count) * 40)).expect("an instant"),
                    // A new life, in which the server may number anew.
                    2 | 3 => {
                        if what == 3 {
                            (validity, first) = (validity + 1, first * 2 + count);
                        }
                        let (opened, look) =
                            Progress::opened(Some(progress.mark().clone()), validity, next(&came, first), now);
                        progress = opened;
                        if let Look::Since(since) = look {
                            let found: Vec<u32> =
                                (first..).zip(&came).filter(|(_, at)| **at >= since).map(|(uid, _)| uid).collect();
                            progress.found_all(&found, next(&came, first));
                        }
                    }
                    _ => {
                        if let Next::Handle(uid) = progress.next(now) {
                            let handled = if count == 1 { Handled::Failed } else { Handled::Done };
                            for uid in progress.handled(uid, handled, now).into_iter().chain((count > 1).then_some(uid)) {
                                done.insert(uid - first);
                            }
                        }
                    }
                }
                progress.found(&(first..next(&came, first)).collect::<Vec<_>>());
            }
            loop {
                match progress.next(now) {
                    Next::Handle(uid) => {
                        progress.handled(uid, Handled::Done, now);
                        done.insert(uid - first);
                    }
                    Next::Wait(Some(until)) => now = until,
                    Next::Wait(None) => break,
                }
            }
            prop_assert_eq!(done.len(), came.len());
        }
    }
}
