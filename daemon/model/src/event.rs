use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::TaskName;

/// The store's number for an event; grows in the order of acceptance.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct EventId(pub i64);

/// What makes an event the same event again: unique per task, kept 90 days for deduplication.
///
/// `watch:<path>:<device>:<inode>:<size>:<mtime>`, `after:<run>`, `startup:<boot>`, `webhook:<hook>:<delivery>`, or the sender's own key.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct EventKey(pub String);

impl EventKey {
    /// What the keys begin with that owd makes itself. One of a sender's own would pass for such an event, and the real
    /// one for its double.
    pub const OWN: [&'static str; 7] = ["watch:", "after:", "startup:", "manual:", "webhook:", "mail:", "slack:"];
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What templates read as `event`: an object. All of it is outside content.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct EventPayload {
    /// `watch`, `after`, `startup`, `webhook`, `event`.
    pub kind: String,
    pub data: Value,
}

/// An event to be accepted for a task.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NewEvent {
    pub task: TaskName,
    pub key: EventKey,
    pub payload: EventPayload,
    /// How many causes stand before it: 0 from outside, one more than the run that caused it.
    pub depth: u32,
}

/// An accepted event that no run has taken yet.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingEvent {
    pub id: EventId,
    pub key: EventKey,
    pub depth: u32,
    pub received_at: Timestamp,
}
