use ow_store::Store;
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::daemon::Daemon;

#[tokio::test]
async fn an_event_is_accepted_once() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    daemon.save("mails", |_| {}).await;
    let mut client = daemon.client().await;
    let events = json!({ "events": [
        { "task": "reports", "key": "a", "data": { "path": "/in/a" } },
        { "task": "reports", "key": "b" },
        { "task": "mails", "key": "a", "data": "text" },
        { "task": "reports", "key": "a", "data": { "path": "/in/other" } },
    ] });
    assert_eq!(client.post("/v1/events", &events).await.ok(), json!({ "accepted": 3, "duplicates": 1 }));
    assert_eq!(daemon.control.script().wakes, 1);
    assert_eq!(client.post("/v1/events", &events).await.ok(), json!({ "accepted": 0, "duplicates": 4 }));
    assert_eq!(daemon.control.script().wakes, 1, "nothing new, nobody to wake");
    assert_eq!(client.get("/v1/tasks/reports").await.ok()["events_waiting"], 2);
    assert_eq!(client.post("/v1/events", &json!({ "events": [] })).await.ok()["accepted"], 0);
}

#[tokio::test]
async fn a_batch_with_a_wrong_event_changes_nothing() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let mut client = daemon.client().await;
    let good = json!({ "task": "reports", "key": "good" });
    for (wrong, status, code) in [
        (json!({ "task": "none", "key": "k" }), 404, "not_found"),
        (json!({ "task": "A", "key": "k" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "k".repeat(1025) }), 422, "invalid"),
        // A key that would make owd take its own event for a double.
        (json!({ "task": "reports", "key": "after:0123456789abcdef" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "watch:/in/a" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "startup:1" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "manual:0123456789abcdef" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "webhook:ci:id:d-1" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "mail:<1@example.org>" }), 422, "invalid"),
        (json!({ "task": "reports", "key": "slack:C1/1.1" }), 422, "invalid"),
    ] {
        client.post("/v1/events", &json!({ "events": [good, wrong] })).await.error(status, code);
    }
    let many: Vec<_> = (0..10_001).map(|index| json!({ "task": "reports", "key": format!("k{index}") })).collect();
    client.post("/v1/events", &json!({ "events": many })).await.error(413, "too_large");
    assert_eq!(client.get("/v1/tasks/reports").await.ok()["events_waiting"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_many_clients_are_all_kept() {
    let daemon = Daemon::start();
    daemon.save("reports", |_| {}).await;
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let socket = daemon.socket.clone();
        clients.spawn(async move {
            let mut connection = Client::unix(&socket).await;
            for index in 0..50 {
                let events = json!({ "events": [{ "task": "reports", "key": format!("{client}-{index}") }] });
                assert_eq!(connection.post("/v1/events", &events).await.ok()["accepted"], 1);
            }
        });
    }
    clients.join_all().await;
    assert_eq!(daemon.store.stats().await.unwrap().events_waiting, 400);
}
