use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use ow_secret::SecretValue;

use crate::Intake;
use crate::posted::{Posted, payload};

/// What Slack posts over HTTP: proven by its signature, stored, then acknowledged.
pub struct Door {
    secret: SecretValue,
    intake: Arc<OnceLock<Arc<Intake>>>,
}

/// What is answered: a status, and a text to go with it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answered {
    pub status: u16,
    pub text: String,
}

impl Answered {
    fn of(status: u16) -> Self {
        Self { status, text: String::new() }
    }
}

impl Door {
    /// `intake`: there once Slack has said who the app is; until then Slack is asked to come again.
    #[must_use]
    pub fn new(secret: SecretValue, intake: Arc<OnceLock<Arc<Intake>>>) -> Self {
        Self { secret, intake }
    }

    /// Takes a request for `/slack/events` or `/slack/interactivity`.
    pub async fn take(&self, posted: &Posted<'_>, now: Timestamp) -> Answered {
        if !posted.is_slacks(&self.secret, now) {
            return Answered::of(401);
        }
        let Some(payload) = payload(posted.body) else { return Answered::of(400) };
        if payload["type"] == "url_verification" {
            let text = payload["challenge"].as_str().unwrap_or_default().to_owned();
            return Answered { status: 200, text };
        }
        let Some(intake) = self.intake.get() else { return Answered::of(503) };
        match intake.take(&payload, now).await {
            Ok(()) => Answered::of(200),
            // Not stored: not acknowledged, so that it comes again.
            Err(error) => {
                tracing::warn!(%error, "what Slack sent could not be stored");
                Answered::of(503)
            }
        }
    }
}
