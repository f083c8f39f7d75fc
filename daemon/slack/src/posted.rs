//! What Slack posts over HTTP, before anything is done with it: whose it is, and what it says.

use jiff::Timestamp;
use ow_secret::SecretValue;
use ow_webhook::{Headers, Keys, Profile, Scheme, verify};
use serde_json::Value;

/// A request as it came.
#[derive(Clone, Copy, Debug)]
pub struct Posted<'a> {
    /// `x-slack-request-timestamp`
    pub timestamp: Option<&'a str>,
    /// `x-slack-signature`
    pub signature: Option<&'a str>,
    pub body: &'a [u8],
}

impl Posted<'_> {
    /// Whether Slack signed it just now.
    #[must_use]
    pub fn is_slacks(&self, secret: &SecretValue, now: Timestamp) -> bool {
        let headers = [("X-Slack-Request-Timestamp", self.timestamp), ("X-Slack-Signature", self.signature)];
        let headers = Headers::new(headers.into_iter().filter_map(|(name, value)| Some((name, value?))));
        verify(&Scheme::of(Profile::Slack), &Keys::new([secret.expose().trim()]), &headers, self.body, now).is_ok()
    }
}

/// Reads a body: an event is JSON, an interaction JSON in a form's field.
#[must_use]
pub fn payload(body: &[u8]) -> Option<Value> {
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

    /// The same signature, if a sign counted as a digit: `+3` for `03`.
    const SIGNED: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b5+3";

    #[test]
    fn only_what_slack_signed_just_now_counts() {
        let secret = SecretValue::new(SECRET.into());
        let at = |second: i64| Timestamp::from_second(second).expect("an instant");
        let good = Posted { timestamp: Some("1531420618"), signature: Some(SIGNATURE), body: BODY };
        assert!(good.is_slacks(&secret, at(1_531_420_618)));
        assert!(good.is_slacks(&secret, at(1_531_420_618 + 299)));
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
            ("a sign for a digit", Posted { signature: Some(SIGNED), ..good }, 1_531_420_618),
            ("another version", Posted { signature: Some(&SIGNATURE[3..]), ..good }, 1_531_420_618),
        ] {
            assert!(!posted.is_slacks(&secret, at(now)), "{what}");
        }
        assert!(
            !good.is_slacks(&SecretValue::new(" ".into()), at(1_531_420_618)),
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
