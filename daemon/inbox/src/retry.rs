//! What comes of an attempt to deliver: pure.

use jiff::Timestamp;
use ow_model::{InboxName, ItemKind, Span};
use ow_store::{Attempted, Content, Delivery, NewItem};

use crate::{Delivered, Fault};

/// Before the second attempt; doubled before each later one.
const FIRST_PAUSE: Span = Span::from_secs(10);
const LAST_PAUSE: Span = Span::from_secs(3600);
/// However long the other side wants to be left alone.
const LONGEST_NAMED: Span = Span::from_secs(86_400);
/// A message that is older than this is given up, unless it was never tried.
const GIVE_UP_AFTER: Span = Span::from_secs(2 * 86_400);
/// Bytes of a fault that are kept.
const WHY_LIMIT: usize = 1000;

/// What to record of an attempt that ended at `now`.
pub(crate) fn attempted(delivery: &Delivery, result: Result<Delivered, Fault>, now: Timestamp) -> Attempted {
    let (after, why, perhaps) = match result {
        Ok(Delivered { reference }) => return Attempted::Sent { reference },
        Err(Fault::Never { why }) => return failed(delivery, &why),
        Err(Fault::Later { after, why }) => (after, why, false),
        Err(Fault::Lost { why }) => (None, why, true),
    };
    let pause = pause(delivery.attempt).max(after.unwrap_or(Span::from_millis(0)).min(LONGEST_NAMED));
    let at = now.saturating_add(pause.signed()).unwrap_or(Timestamp::MAX);
    let last = delivery.created_at.saturating_add(GIVE_UP_AFTER.signed()).unwrap_or(Timestamp::MAX);
    // What had to wait for its hour has its attempts all the same.
    if delivery.attempt > FULL_PAUSES && at > last {
        failed(delivery, &why)
    } else {
        Attempted::Later { at, why: short(&why).into(), perhaps }
    }
}

/// Attempts until the pauses are at their longest.
const FULL_PAUSES: u32 = 10;

fn pause(attempt: u32) -> Span {
    let doubled = FIRST_PAUSE.millis().saturating_mul(1 << attempt.saturating_sub(1).min(20));
    Span::from_millis(doubled).min(LAST_PAUSE)
}

fn failed(delivery: &Delivery, why: &str) -> Attempted {
    let why = short(why);
    let binding = delivery.binding.shown();
    let (what, inbox) = match &delivery.content {
        Content::Notices(notices) => {
            let tokens: Vec<String> = notices.iter().map(|notice| notice.item.id.token()).collect();
            let inbox = notices.first().map(|notice| notice.item.inbox.clone());
            (format!("the notice of {}", tokens.join(", ")), inbox)
        }
        Content::Reply(_) => ("a reply".into(), None),
    };
    let notice = NewItem {
        task: None,
        run: None,
        title: format!("{binding} cannot be reached"),
        kind: ItemKind::Notification {
            text: format!("{what} was given up after {} attempts: {why}", delivery.attempt),
        },
        expires_in: None,
        remind_after: None,
        inbox: inbox.unwrap_or_else(InboxName::default),
    };
    Attempted::Failed { why: why.into(), notice: Box::new(notice) }
}

fn short(why: &str) -> &str {
    &why[..why.floor_char_boundary(WHY_LIMIT)]
}

#[cfg(test)]
mod tests {
    use ow_model::InboxBinding;
    use ow_store::{DeliveryId, Reply};

    use super::*;

    fn delivery(attempt: u32) -> Delivery {
        let reply = Reply { subject: String::new(), text: String::new(), in_reply_to: None, references: vec![] };
        Delivery {
            id: DeliveryId(1),
            binding: InboxBinding::new("mail", "ada@example.org"),
            message_id: "ow.reply.1".into(),
            created_at: Timestamp::UNIX_EPOCH,
            attempt,
            content: Content::Reply(reply),
        }
    }

    fn seconds(at: &Attempted) -> i64 {
        let Attempted::Later { at, .. } = at else { panic!("{at:?}") };
        at.as_second()
    }

    #[test]
    fn attempts_come_after_twice_the_time_up_to_an_hour() {
        let pauses: Vec<i64> = [1, 2, 3, 9, 10, 40]
            .into_iter()
            .map(|attempt| seconds(&attempted(&delivery(attempt), Err(Fault::later("down")), Timestamp::UNIX_EPOCH)))
            .collect();
        assert_eq!(pauses, [10, 20, 40, 2560, 3600, 3600]);
    }

    #[test]
    fn a_time_that_the_other_side_names_is_kept() {
        for (named, pause) in [(5, 10), (7200, 7200), (1_000_000, 86_400)] {
            let fault = Fault::Later { after: Some(Span::from_secs(named)), why: "busy".into() };
            assert_eq!(seconds(&attempted(&delivery(1), Err(fault), Timestamp::UNIX_EPOCH)), pause);
        }
    }

    #[test]
    fn what_stays_undeliverable_is_given_up_and_told() {
        let late = Timestamp::from_second(2 * 86_400).expect("an instant");
        let given_up = attempted(&delivery(57), Err(Fault::later("connection refused")), late);
        let Attempted::Failed { why, notice } = given_up else { panic!("{given_up:?}") };
        assert_eq!(why, "connection refused");
        assert_eq!(notice.title, "mail:ada@example.org cannot be reached");
        let ItemKind::Notification { text } = &notice.kind else { panic!("{notice:?}") };
        assert_eq!(text, "a reply was given up after 57 attempts: connection refused");
        assert!(matches!(attempted(&delivery(1), Err(Fault::never("no such user")), late), Attempted::Failed { .. }));
        let first = attempted(&delivery(1), Err(Fault::later("down")), late);
        assert!(matches!(first, Attempted::Later { .. }), "it waited for its hour, and was tried once: {first:?}");
    }

    #[test]
    fn what_may_have_arrived_is_tried_again_and_remembered_as_that() {
        let result = |fault| attempted(&delivery(1), Err(fault), Timestamp::UNIX_EPOCH);
        assert!(matches!(result(Fault::lost("no answer")), Attempted::Later { perhaps: true, .. }));
        assert!(matches!(result(Fault::later("refused")), Attempted::Later { perhaps: false, .. }));
    }

    #[test]
    fn a_long_fault_is_cut_between_letters() {
        let why = "ä".repeat(2000);
        let Attempted::Later { why, .. } = attempted(&delivery(1), Err(Fault::later(why)), Timestamp::UNIX_EPOCH)
        else {
            panic!("it is tried again")
        };
        assert_eq!(why.len(), WHY_LIMIT);
    }
}
