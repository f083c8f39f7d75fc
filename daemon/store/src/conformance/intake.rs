use serde_json::json;

use super::Place;
use super::retention::retention;
use super::support::{later, noon};
use crate::{Accepted, TakenIn};

const DAY: i64 = 86_400;

pub async fn what_was_taken_in_waits_until_it_is_worked_off(place: &impl Place) {
    let store = place.open().await;
    for (key, text) in [("a", "one"), ("b", "two")] {
        let taken = store.take_in("slack", key, &json!({ "text": text }), noon()).await.expect("taken");
        assert_eq!(taken, Accepted::New);
    }
    store.take_in("other", "a", &json!("another's"), noon()).await.expect("taken");
    drop(store);
    let store = place.open().await;
    let waiting = store.taken_in("slack", 10).await.expect("read");
    let keys: Vec<&str> = waiting.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["a", "b"], "in the order of their coming");
    assert_eq!(waiting[0].payload, json!({ "text": "one" }));
    assert_eq!(waiting[0].received_at, noon());
    assert_eq!(store.taken_in("slack", 1).await.expect("read").len(), 1);
    store.worked_off(waiting[0].id).await.expect("done");
    drop(store);
    let store = place.open().await;
    let left: Vec<TakenIn> = store.taken_in("slack", 10).await.expect("read");
    assert_eq!(left, waiting[1..]);
}

pub async fn what_is_sent_again_is_taken_in_once_for_90_days(place: &impl Place) {
    let store = place.open().await;
    let take = async |store: &dyn crate::Store, days: i64| {
        let now = later(noon(), days * DAY);
        while store.retain(&retention(), now).await.expect("retained") {}
        store.take_in("slack", "a", &json!({}), now).await.expect("taken")
    };
    assert_eq!(take(&*store, 0).await, Accepted::New);
    assert_eq!(take(&*store, 0).await, Accepted::Duplicate);
    assert_eq!(take(&*store, 100).await, Accepted::Duplicate, "it still waits");
    let id = store.taken_in("slack", 1).await.expect("read")[0].id;
    store.worked_off(id).await.expect("done");
    assert_eq!(take(&*store, 89).await, Accepted::Duplicate);
    drop(store);
    let store = place.open().await;
    assert_eq!(store.taken_in("slack", 10).await.expect("read"), []);
    assert_eq!(take(&*store, 89).await, Accepted::Duplicate);
    assert_eq!(take(&*store, 91).await, Accepted::New);
}
