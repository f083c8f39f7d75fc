use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A webhook: who may deliver, to which tasks, and what has come since owd started.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct WebhookView {
    pub name: String,
    /// How its senders prove who they are: `github`, `gitlab`, `stripe`, `slack`, `linear`, `standard`, `generic`, `bearer`.
    pub profile: String,
    /// What to enter at the sender; none: owd has no listener.
    pub url: Option<String>,
    /// The names of its secrets.
    pub secrets: Vec<WebhookSecretView>,
    /// The tasks that run on its deliveries.
    pub tasks: Vec<String>,
    /// The largest body, in bytes.
    pub body_limit: u64,
    /// Deliveries that are taken in a minute.
    pub per_minute: u32,
    pub accepted: u64,
    /// Deliveries that came again.
    pub known: u64,
    /// Requests that proved nothing, or were too large or no JSON.
    pub refused: u64,
    /// Deliveries that came too fast.
    pub limited: u64,
    pub last_refused_at: Option<String>,
    /// Why; its sender was not told.
    pub last_refused_why: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct WebhookSecretView {
    pub name: String,
    /// Whether it has a value.
    pub known: bool,
}

/// `POST /v1/webhooks/{name}/sample`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SampleRequest {
    /// The body to sign, in base64; none: a small one as the profile's senders write it.
    #[serde(default)]
    pub body: Option<String>,
    /// The kind of event, where the profile's senders say it in a header; none: that of the small one.
    #[serde(default)]
    pub event: Option<String>,
}

/// A delivery as a sender who knows the secret would make it now. It counts for a few minutes.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SampleView {
    /// Where the listener is on this machine: address and port.
    pub address: String,
    pub path: String,
    /// Name and value of each header.
    pub headers: Vec<(String, String)>,
    /// In base64.
    pub body: String,
    /// What the delivery is known by; none: it cannot be told from others.
    pub key: Option<String>,
}

/// What became of a delivery for one task.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DeliveryFateView {
    pub task: String,
    /// `unknown`, `waiting`, `fired`, `skipped`, `missed`, `superseded` or `voided`.
    pub fate: String,
    /// The run that has it.
    pub run: Option<String>,
    pub why: Option<String>,
}
