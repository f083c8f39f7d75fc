use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest mail in bytes that is handed over whole; of a larger one only the head is.
pub const LARGEST_MAIL: usize = 32 * 1024 * 1024;

/// `POST /v1/mail`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeliverRequest {
    /// The mail as it came, in base64.
    pub mail: String,
    /// Only its head is there, for it is larger than 32 MiB.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub head_only: bool,
}

/// What became of a mail that was handed over.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DeliveredView {
    /// `done`, `already-decided`, `expired`, `withdrawn`, `not-understood`, `not-entitled`, `no-item`, `no-answer`, `event`: tasks run on it, or
    /// `later`: nothing was decided, hand it over again.
    pub outcome: String,
    /// The item that it is about.
    pub item: Option<String>,
    /// `approve`, `deny`, `answer` or `none`.
    pub decision: String,
    /// Why, for the person whose owd this is.
    pub why: String,
    /// What its sender may be told; none: nothing, for a machine sent it, or nobody knows who did.
    pub told: Option<String>,
}
