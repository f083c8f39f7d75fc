use jiff::Timestamp;
use ow_protocol::EventEnvelope;
use ow_store::StreamEvent;
use serde_json::{Value, json};

pub(crate) fn envelope(event: StreamEvent) -> EventEnvelope {
    let StreamEvent { position, at, kind, target, payload } = event;
    wrapped(position, at, kind, target, payload)
}

/// Tells a watcher that what stood between `after` and `head` cannot be told any more; it should look again at
/// whatever it watches.
pub(crate) fn gap(after: u64, head: u64, now: Timestamp) -> EventEnvelope {
    wrapped(head, now, "gap".into(), "owd".into(), json!({ "after": after, "until": head }))
}

fn wrapped(position: u64, at: Timestamp, kind: String, target: String, payload: Value) -> EventEnvelope {
    EventEnvelope {
        id: position.to_string(),
        kind,
        source: "owd".into(),
        target,
        payload,
        metadata: json!({}),
        timestamp: at.as_millisecond(),
        network: "local".into(),
        visibility: "private".into(),
    }
}
