use std::fmt;

use serde::{Deserialize, Serialize};

/// How one kind of sender proves who it is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// `X-Hub-Signature-256: sha256=<hex>` over the body.
    Github,
    /// The secret itself in `X-Gitlab-Token`, or, where the hook has a signing token, as [`Profile::Standard`].
    Gitlab,
    /// `Stripe-Signature: t=<seconds>,v1=<hex>` over `<seconds>.<body>`.
    Stripe,
    /// `X-Slack-Signature: v0=<hex>` over `v0:<seconds>:<body>`.
    Slack,
    /// `Linear-Signature: <hex>` over the body, which holds the time.
    Linear,
    /// Standard Webhooks: `webhook-signature: v1,<base64>` over `<id>.<seconds>.<body>`.
    Standard,
    /// `X-Signature: <hex>` over `<seconds>.<body>`, the seconds in `X-Timestamp`; the names can be changed.
    Generic,
    /// The secret itself as `Authorization: Bearer …` or in `X-Auth-Token`, for senders that cannot sign.
    Bearer,
}

impl Profile {
    pub const ALL: [Self; 8] = [
        Self::Github,
        Self::Gitlab,
        Self::Stripe,
        Self::Slack,
        Self::Linear,
        Self::Standard,
        Self::Generic,
        Self::Bearer,
    ];

    /// As in the configuration.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Linear => "linear",
            Self::Standard => "standard",
            Self::Generic => "generic",
            Self::Bearer => "bearer",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A profile with the names of headers that its senders use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Scheme {
    pub profile: Profile,
    /// Of the profile `generic` only: what the signature stands in.
    pub signature_header: String,
    /// Likewise the time.
    pub timestamp_header: String,
    /// What a delivery's id stands in, for `generic` and `bearer`. No signature covers it. None: deliveries of
    /// `generic` are told apart by time and body, those of `bearer` not at all.
    pub id_header: Option<String>,
    /// Likewise what kind of event it is.
    pub event_header: Option<String>,
    /// For `github`, whose signature covers neither an id nor a time.
    pub told_apart: ToldApart,
}

/// By what deliveries are told apart that nothing signed tells apart.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToldApart {
    /// By the sender's own name for each. Who has recorded a request can make it again under another.
    #[default]
    ById,
    /// By the body: two events that say the same count as one.
    ByBody,
}

impl Scheme {
    /// The profile with its senders' customary headers.
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        Self {
            profile,
            signature_header: "X-Signature".into(),
            timestamp_header: "X-Timestamp".into(),
            id_header: None,
            event_header: None,
            told_apart: ToldApart::ById,
        }
    }
}
