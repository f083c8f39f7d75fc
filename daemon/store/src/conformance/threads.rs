use ow_model::SessionId;

use super::Place;
use super::sessions::{chat, heard, input, rest, turn_ended};
use super::support::{Any, later, noon};
use crate::ThreadRow;

pub async fn a_thread_is_one_session_however_often_it_is_said(place: &impl Place) {
    let store = place.open().await;
    let first = store.say_in_thread("slack:C1/1.1", &chat(), &input("go"), "k1", noon()).await.expect("said");
    assert!(first.begun && first.new);
    let again = store.say_in_thread("slack:C1/1.1", &chat(), &input("go"), "k1", noon()).await.expect("said");
    assert_eq!((again.session, again.begun, again.new), (first.session, false, false));
    drop(store);
    let store = place.open().await;
    let more = store.say_in_thread("slack:C1/1.1", &chat(), &input("and?"), "k2", noon()).await.expect("said");
    assert_eq!((more.session, more.begun, more.new), (first.session, false, true));
    let other = store.say_in_thread("slack:C1/2.1", &chat(), &input("go"), "k3", noon()).await.expect("said");
    assert_ne!(other.session, first.session);
    assert_eq!(store.inputs(first.session).await.expect("read").len(), 2);
    let open = store.open_threads("slack:").await.expect("read");
    assert_eq!(open.iter().map(|thread| thread.name.as_str()).collect::<Vec<_>>(), ["slack:C1/1.1", "slack:C1/2.1"]);
    assert_eq!(store.open_threads("other:").await.expect("read"), []);
}

pub async fn a_thread_that_is_told_is_closed_until_more_is_said(place: &impl Place) {
    let store = place.open().await;
    let said = store.say_in_thread("slack:C1/1.1", &chat(), &input("go"), "k1", noon()).await.expect("said");
    rests_after(&store, said.session, 0, 1).await;
    let told = ThreadRow { name: "slack:C1/1.1".into(), session: said.session, told: 2 };
    store.note_thread(&told, false).await.expect("noted");
    drop(store);
    let store = place.open().await;
    assert_eq!(store.open_threads("slack:").await.expect("read"), []);
    assert_eq!(store.thread("slack:C1/1.1").await.expect("read"), Some(told.clone()));
    store.say_in_thread("slack:C1/1.1", &chat(), &input("more"), "k2", later(noon(), 1)).await.expect("said");
    assert_eq!(store.open_threads("slack:").await.expect("read"), [told]);
}

pub async fn a_thread_is_not_closed_over_what_was_just_said(place: &impl Place) {
    let store = place.open().await;
    let said = store.say_in_thread("slack:C1/1.1", &chat(), &input("go"), "k1", noon()).await.expect("said");
    let told = |told: u32| ThreadRow { name: "slack:C1/1.1".into(), session: said.session, told };
    let is_open = async || !store.open_threads("slack:").await.expect("read").is_empty();
    rests_after(&store, said.session, 0, 1).await;
    store.note_thread(&told(1), false).await.expect("noted");
    assert!(is_open().await, "one fact is not told");
    store.note_thread(&told(2), false).await.expect("noted");
    assert!(!is_open().await);
    // Who tells has seen it idle; then something is said, and they close it.
    store.say_in_thread("slack:C1/1.1", &chat(), &input("more"), "k2", noon()).await.expect("said");
    store.note_thread(&told(2), false).await.expect("noted");
    assert!(is_open().await);
    store.take_chats(1, noon()).await.expect("taken");
    store.append(said.session, 2, &[heard(2, "more")], None, noon()).await.expect("appended");
    store.note_thread(&told(3), false).await.expect("noted");
    assert!(is_open().await, "its turn goes on");
}

/// Its message was heard and its turn is over: two facts more.
async fn rests_after(store: &Any, session: SessionId, next: u32, number: u64) {
    store.take_chats(1, noon()).await.expect("taken");
    store.idle_run(&rest(session, next, vec![heard(number, "go"), turn_ended()]), noon()).await.expect("idle");
}

pub async fn a_thread_whose_session_is_over_gets_another(place: &impl Place) {
    let store = place.open().await;
    let said = store.say_in_thread("slack:C1/1.1", &chat(), &input("go"), "k1", noon()).await.expect("said");
    store.remove_session(said.session, "test", noon()).await.expect("removed");
    let next = store.say_in_thread("slack:C1/1.1", &chat(), &input("go"), "k2", later(noon(), 1)).await.expect("said");
    assert!(next.begun && next.session != said.session);
    let thread = store.thread("slack:C1/1.1").await.expect("read").expect("there");
    assert_eq!((thread.session, thread.told), (next.session, 0));
    // Who still tells of the session before changes nothing.
    let old = ThreadRow { session: said.session, told: 9, ..thread.clone() };
    store.note_thread(&old, false).await.expect("noted");
    assert_eq!(store.open_threads("slack:").await.expect("read"), [thread]);
}
