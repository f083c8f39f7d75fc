use std::sync::{Arc, OnceLock};

use jiff::{SignedDuration, Timestamp};
use ow_secret::SecretValue;
use ring::hmac;
use serde_json::Value;

use crate::Intake;

/// An older request, or one from the future, may be somebody else's who has recorded it.
const WINDOW: SignedDuration = SignedDuration::from_mins(5);

/// What Slack posts over HTTP: proven by its signature, stored, then acknowledged.
pub struct Door {
    secret: SecretValue,
    intake: Arc<OnceLock<Arc<Intake>>>,
}

/// A request as it came.
#[derive(Clone, Copy, Debug)]
pub struct Posted<'a> {
    /// `x-slack-request-timestamp`
    pub timestamp: Option<&'a str>,
    /// `x-slack-signature`
    pub signature: Option<&'a str>,
    pub body: &'a [u8],
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
        if !is_slacks(&self.secret, posted, now) {
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

/// Whether Slack signed the request just now.
fn is_slacks(secret: &SecretValue, posted: &Posted<'_>, now: Timestamp) -> bool {
    let (Some(timestamp), Some(signature)) = (posted.timestamp, posted.signature) else { return false };
    let fresh = timestamp
        .parse::<i64>()
        .ok()
        .and_then(|second| Timestamp::from_second(second).ok())
        .is_some_and(|at| at.duration_since(now).abs() <= WINDOW);
    let Some(tag) = signature.strip_prefix("v0=").and_then(bytes) else { return false };
    let secret = secret.expose().trim();
    if !fresh || secret.is_empty() {
        return false;
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signed = [b"v0:", timestamp.as_bytes(), b":", posted.body].concat();
    hmac::verify(&key, &signed, &tag).is_ok()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok()).collect()
}

/// An event is JSON, an interaction JSON in a form's field.
fn payload(body: &[u8]) -> Option<Value> {
    if let Ok(payload @ Value::Object(_)) = serde_json::from_slice(body) {
        return Some(payload);
    }
    let (_, payload) = url::form_urlencoded::parse(body).find(|(name, _)| name == "payload")?;
    serde_json::from_str(&payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const BODY: &[u8] =
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                        channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                        response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F\
                        96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    #[test]
    fn only_what_slack_signed_just_now_counts() {
        let secret = SecretValue::new(SECRET.into());
        let at = |second: i64| Timestamp::from_second(second).expect("an instant");
        let good = Posted { timestamp: Some("1531420618"), signature: Some(SIGNATURE), body: BODY };
        assert!(is_slacks(&secret, &good, at(1_531_420_618)));
        assert!(is_slacks(&secret, &good, at(1_531_420_618 + 299)));
        for (what, posted, now) in [
            ("old", good, 1_531_420_618 + 301),
            ("of the future", good, 1_531_420_618 - 301),
            ("another time", Posted { timestamp: Some("1531420619"), ..good }, 1_531_420_618),
            ("no time", Posted { timestamp: None, ..good }, 1_531_420_618),
            ("no number", Posted { timestamp: Some("now"), ..good }, 1_531_420_618),
            ("another body", Posted { body: b"token=x", ..good }, 1_531_420_618),
            ("no signature", Posted { signature: None, ..good }, 1_531_420_618),
            ("an empty one", Posted { signature: Some("v0="), ..good }, 1_531_420_618),
            ("no hex", Posted { signature: Some("v0=zz"), ..good }, 1_531_420_618),
            ("another version", Posted { signature: Some(&SIGNATURE[3..]), ..good }, 1_531_420_618),
        ] {
            assert!(!is_slacks(&secret, &posted, at(now)), "{what}");
        }
        assert!(
            !is_slacks(&SecretValue::new(" ".into()), &good, at(1_531_420_618)),
            "without a secret nothing is proven"
        );
    }

    #[test]
    fn a_payload_is_json_or_a_field_of_a_form() {
        assert_eq!(payload(br#"{"type":"x"}"#).map(|payload| payload["type"].clone()), Some("x".into()));
        let form = b"payload=%7B%22type%22%3A%22block_actions%22%7D";
        assert_eq!(payload(form).map(|payload| payload["type"].clone()), Some("block_actions".into()));
        assert_eq!(payload(b"nothing"), None);
    }
}
