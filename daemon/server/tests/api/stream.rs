use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use ow_model::Span;
use ow_store::{Retention, Store};
use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::Daemon;

const WAIT: Duration = Duration::from_secs(20);

pub(crate) struct Watcher {
    body: Incoming,
    text: String,
    _client: Client,
}

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Watcher {
    pub(crate) async fn open(mut client: Client, path: &str, last_seen: Option<&str>) -> Self {
        let headers: Vec<_> = last_seen.iter().map(|last| ("last-event-id", *last)).collect();
        let response = client.open("GET", path, &headers, Bytes::new()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert!(response.headers().contains_key("x-request-id"));
        Self { body: response.into_body(), text: String::new(), _client: client }
    }

    /// The next frame; none at the stream's end.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let mut read = Frame { id: String::new(), event: String::new(), data: Value::Null };
                for line in frame.lines() {
                    let (field, value) = line.split_once(':').unwrap();
                    let value = value.trim_start();
                    match field {
                        "id" => read.id = value.into(),
                        "event" => read.event = value.into(),
                        "data" => read.data = serde_json::from_str(value).unwrap(),
                        other => panic!("{other} is not expected: idle means asleep"),
                    }
                }
                self.text = rest.into();
                return Some(read);
            }
            let chunk = tokio::time::timeout(WAIT, self.body.frame()).await.expect("something comes")?;
            self.text.push_str(std::str::from_utf8(chunk.unwrap().data_ref().unwrap()).unwrap());
        }
    }

    async fn event(&mut self) -> Frame {
        loop {
            let frame = self.frame().await.expect("the stream goes on");
            if !frame.event.is_empty() {
                assert_eq!(frame.data["id"], frame.id);
                assert_eq!(frame.data["type"], frame.event);
                return frame;
            }
        }
    }
}

#[tokio::test]
async fn a_watcher_sees_what_happens_from_now_on_in_the_networks_envelope() {
    let daemon = Daemon::start();
    daemon.save("before", |_| {}).await;
    let mut watcher = Watcher::open(daemon.client().await, "/v1/stream", None).await;
    daemon.save("reports", |_| {}).await;
    let Frame { data, .. } = watcher.event().await;
    assert_eq!((&data["type"], &data["target"]), (&json!("task.saved"), &json!("task:reports")));
    assert_eq!(
        (&data["source"], &data["network"], &data["visibility"]),
        (&json!("owd"), &json!("local"), &json!("private"))
    );
    assert_eq!(data["timestamp"], daemon.now().as_millisecond());
}

#[tokio::test]
async fn a_watcher_that_comes_back_misses_nothing_and_sees_nothing_twice() {
    let daemon = Daemon::start();
    let mut watcher = Watcher::open(daemon.client().await, "/v1/stream", None).await;
    // Its place is known before its first event.
    let place = watcher.frame().await.unwrap();
    assert_eq!((place.event.as_str(), place.data), ("", Value::Null));
    drop(watcher);
    for index in 0..600 {
        daemon.notification(&format!("notice {index}")).await;
    }
    let mut watcher = Watcher::open(daemon.client().await, "/v1/stream", Some(&place.id)).await;
    let mut seen = vec![];
    for _ in 0..300 {
        seen.push(watcher.event().await.id.parse::<u64>().unwrap());
    }
    drop(watcher);
    let last = seen.last().unwrap().to_string();
    let mut watcher = Watcher::open(daemon.client().await, &format!("/v1/stream?after={last}"), None).await;
    for _ in 0..300 {
        seen.push(watcher.event().await.id.parse::<u64>().unwrap());
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(seen.len(), 600);
    // The header is newer than the address.
    let mut watcher = Watcher::open(daemon.client().await, "/v1/stream?after=0", Some(&last)).await;
    assert_eq!(watcher.event().await.id.parse::<u64>().unwrap(), seen[300]);
}

#[tokio::test]
async fn a_watcher_of_one_thing_is_told_of_nothing_else() {
    let daemon = Daemon::start();
    let mut one = Watcher::open(daemon.client().await, "/v1/stream?target=task:reports", None).await;
    let mut items = Watcher::open(daemon.web().await, "/v1/stream?target=item", None).await;
    daemon.save("other", |_| {}).await;
    daemon.save("reports", |_| {}).await;
    let item = daemon.notification("told").await;
    assert_eq!(one.event().await.data["target"], "task:reports");
    assert_eq!(items.event().await.data["target"], format!("item:{item}"));
}

#[tokio::test]
async fn a_position_that_is_gone_or_not_yet_there_is_a_gap() {
    let daemon = Daemon::start();
    for index in 0..50 {
        daemon.notification(&format!("notice {index}")).await;
    }
    let retention = Retention {
        runs: Span::from_secs(1),
        items: Span::from_secs(1),
        slots: Span::from_secs(1),
        event_keys: Span::from_secs(1),
        stream: 10,
        step: 1000,
    };
    while daemon.store.retain(&retention, daemon.now()).await.unwrap() {}
    let head = *daemon.store.stream_head().borrow();
    for after in ["1".to_owned(), (head + 1).to_string(), u64::MAX.to_string()] {
        let mut watcher = Watcher::open(daemon.client().await, "/v1/stream", Some(&after)).await;
        let gap = watcher.event().await;
        assert_eq!((gap.event.as_str(), gap.id), ("gap", head.to_string()), "{after}");
    }
    let mut watcher = Watcher::open(daemon.client().await, &format!("/v1/stream?after={}", head - 3), None).await;
    assert_eq!(watcher.event().await.id, (head - 2).to_string(), "what is kept is still told");
}

#[tokio::test]
async fn streams_end_when_owd_stops() {
    let mut daemon = Daemon::start();
    let mut watchers = vec![];
    for _ in 0..10 {
        watchers.push(Watcher::open(daemon.client().await, "/v1/stream", None).await);
        watchers.push(Watcher::open(daemon.web().await, "/v1/stream", None).await);
    }
    tokio::time::timeout(WAIT, daemon.stop()).await.expect("it does not wait for watchers");
    for mut watcher in watchers {
        while watcher.frame().await.is_some() {}
    }
}
