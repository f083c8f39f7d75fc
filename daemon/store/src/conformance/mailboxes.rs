use super::Place;
use super::support::noon;
use crate::{MailAgain, MailboxMark};

pub async fn how_far_a_mailbox_was_read_outlives_a_restart(place: &impl Place) {
    let store = place.open().await;
    assert_eq!(store.mailbox("ada@mx INBOX").await.expect("read"), None);
    let again =
        vec![MailAgain { uid: 7, attempts: 2, at: noon() }, MailAgain { uid: u32::MAX, attempts: 1, at: noon() }];
    let mark = MailboxMark { validity: u32::MAX, seen: 9, at: noon(), again };
    store.note_mailbox("ada@mx INBOX", &mark).await.expect("noted");
    drop(store);
    let store = place.open().await;
    assert_eq!(store.mailbox("ada@mx INBOX").await.expect("read"), Some(mark.clone()));
    assert_eq!(store.mailbox("ada@mx Owd").await.expect("read"), None);
    let next = MailboxMark { seen: 10, again: vec![], ..mark };
    store.note_mailbox("ada@mx INBOX", &next).await.expect("noted");
    assert_eq!(store.mailbox("ada@mx INBOX").await.expect("read"), Some(next));
}
