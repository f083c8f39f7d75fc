use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event for watchers, as the data of a server-sent event whose `id` is `position`.
///
/// The envelope is the event network's, so that the network later is another door to the same stream.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct EventEnvelope {
    /// The stream position as text: what `Last-Event-ID` takes.
    pub id: String,
    /// `run.ended`, `item.created`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// `owd`.
    pub source: String,
    /// `task:<name>`, `run:<id>`, `item:<id>`, `session:<id>` or `owd`.
    pub target: String,
    pub payload: Value,
    pub metadata: Value,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// `local`.
    pub network: String,
    /// `private`.
    pub visibility: String,
}

/// `POST /v1/events`: durable once answered.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewEvents {
    pub events: Vec<NewEventView>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewEventView {
    pub task: String,
    /// The same key twice for a task is one event, for 90 days.
    pub key: String,
    /// What templates read as `event`; outside content.
    #[serde(default)]
    pub data: Value,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct AcceptedEvents {
    pub accepted: u64,
    pub duplicates: u64,
}
