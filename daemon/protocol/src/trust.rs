use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a workspace brings in its folder `.owd`, and what of it is trusted.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TrustView {
    /// Links followed, where the folder is there.
    pub path: String,
    pub trusted_by: Option<String>,
    pub trusted_at: Option<String>,
    /// Commands that it forbids; trust is not asked for these.
    pub deny: Vec<String>,
    /// Keys that would allow something, and have no effect.
    pub ignored: Vec<String>,
    /// What is wrong with its file; until it is mended no call in it does more than read.
    pub faults: Vec<String>,
    pub hooks: Vec<TrustHookView>,
}

/// A hook that a workspace brings.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TrustHookView {
    pub event: String,
    /// A pattern of names of tools; none: all.
    pub matcher: Option<String>,
    /// Below the folder `.owd/hooks`.
    pub command: String,
    /// `trusted` (it runs), `untrusted` or `broken`.
    pub state: String,
    /// Of what it says and of its program's bytes.
    pub hash: Option<String>,
    /// Why it is broken.
    pub why: Option<String>,
}

/// Trust in the hooks of a workspace, as they were shown.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NewTrust {
    /// Absolute.
    pub path: String,
    /// The hashes of the hooks that the person saw.
    pub hooks: Vec<String>,
}

/// Whose trust is meant.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TrustQuery {
    /// A workspace's folder, absolute; none: all that are trusted.
    pub path: Option<String>,
}
