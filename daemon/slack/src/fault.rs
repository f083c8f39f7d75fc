use std::time::Duration;

/// Why a call of Slack's Web API failed, by what its caller can do.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Fault {
    /// It may work later, not before `after` if Slack said so.
    #[error("{why}")]
    Later { after: Option<Duration>, why: String },
    /// It was sent, and no answer came that says whether it was done.
    #[error("{why}")]
    Lost { why: String },
    /// It will not work until a person changes something: `error` is Slack's word for it.
    #[error("Slack refuses {method}: {error}{}", remedy(error).map(|remedy| format!("; {remedy}")).unwrap_or_default())]
    Never { method: &'static str, error: String },
}

impl Fault {
    /// Whether a person can change something so that the same call would be taken.
    pub(crate) fn is_mendable(&self) -> bool {
        self.error().is_some_and(|error| remedy(error).is_some())
    }

    /// Slack's word for a refusal.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Later { .. } | Self::Lost { .. } => None,
            Self::Never { error, .. } => Some(error),
        }
    }
}

/// What a person can do about a refusal.
fn remedy(error: &str) -> Option<&'static str> {
    // What Slack says more of it stands after a colon.
    Some(match error.split(':').next().unwrap_or(error) {
        "not_in_channel" | "channel_not_found" => "invite the app to the channel: /invite @owd",
        "missing_scope" => "add the scope under OAuth & Permissions and install the app again",
        "not_authed" | "invalid_auth" | "token_revoked" | "token_expired" | "account_inactive" => {
            "store the token again with `owctl secret set`, and look that the app is installed"
        }
        "not_allowed_token_type" => "app-token must be the one that begins with xapp-, bot-token that with xoxb-",
        _ => return None,
    })
}

/// Whether it may have been done all the same: something broke on the way.
pub(crate) fn is_doubtful(error: &str) -> bool {
    matches!(error, "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout")
}

/// Whether a refusal is one of the moment.
pub(crate) fn is_passing(error: &str) -> bool {
    matches!(
        error,
        "ratelimited" | "rate_limited" | "team_added_to_org" | "org_login_required" | "message_limit_exceeded"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_the_app_is_not_in_is_refused_with_what_to_do() {
        for error in ["not_in_channel", "channel_not_found"] {
            assert!(remedy(error).is_some_and(|remedy| remedy.contains("/invite @owd")), "{error}");
        }
        assert_eq!(remedy("missing_scope: chat:write"), remedy("missing_scope"));
        assert_eq!(remedy("something_new"), None);
    }
}
