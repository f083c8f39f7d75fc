use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ring::hmac;
use serde_json::{Value, json};

use crate::{Profile, Scheme, keys};

/// A request that a sender of some profile might make, not signed yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sample {
    pub body: Vec<u8>,
    pub event: &'static str,
}

/// A small body as the profile's senders write it, or the given one with the time that must stand inside it.
#[must_use]
pub fn sample(profile: Profile, body: Option<Vec<u8>>, id: &str, now: Timestamp) -> Sample {
    let (event, small) = match profile {
        Profile::Github => ("ping", json!({ "zen": "Keep it logically awesome.", "hook": { "type": "Repository" } })),
        Profile::Gitlab => ("Push Hook", json!({ "object_kind": "push", "ref": "refs/heads/main" })),
        Profile::Stripe => ("test", json!({ "id": id, "object": "event", "type": "test", "data": { "object": {} } })),
        Profile::Slack => (
            "event_callback",
            json!({ "type": "event_callback", "event_id": id, "event": { "type": "test", "text": "hello" } }),
        ),
        Profile::Linear => ("Issue", json!({ "action": "create", "type": "Issue", "data": { "title": "hello" } })),
        Profile::Standard => ("test", json!({ "type": "test", "data": { "text": "hello" } })),
        Profile::Generic | Profile::Bearer => ("test", json!({ "test": true, "text": "hello" })),
    };
    let mut body = body.unwrap_or_else(|| small.to_string().into_bytes());
    if profile == Profile::Linear
        && let Ok(Value::Object(mut fields)) = serde_json::from_slice(&body)
    {
        fields.insert("webhookTimestamp".into(), now.as_millisecond().into());
        body = Value::Object(fields).to_string().into_bytes();
    }
    Sample { body, event }
}

/// The headers by which a sender who knows the secret proves this delivery.
#[must_use]
pub fn sign(
    scheme: &Scheme,
    secret: &str,
    body: &[u8],
    id: &str,
    event: Option<&str>,
    now: Timestamp,
) -> Vec<(String, String)> {
    let seconds = now.as_second().to_string();
    let mac = |parts: &[&[u8]]| hmac::sign(&keys::raw(secret), &parts.concat());
    let of_time =
        |before: &str, between: &[u8]| hex(mac(&[before.as_bytes(), seconds.as_bytes(), between, body]).as_ref());
    let (proof, id_header, event_header) = match scheme.profile {
        Profile::Github => (
            vec![("X-Hub-Signature-256", format!("sha256={}", hex(mac(&[body]).as_ref())))],
            Some("X-GitHub-Delivery"),
            Some("X-GitHub-Event"),
        ),
        Profile::Gitlab => {
            let proof = match keys::standard(secret) {
                Some(key) => standard(&key, id, &seconds, body),
                None => vec![("X-Gitlab-Token", secret.to_owned())],
            };
            (proof, Some("Idempotency-Key"), Some("X-Gitlab-Event"))
        }
        Profile::Stripe => (vec![("Stripe-Signature", format!("t={seconds},v1={}", of_time("", b".")))], None, None),
        Profile::Slack => (
            vec![
                ("X-Slack-Signature", format!("v0={}", of_time("v0:", b":"))),
                ("X-Slack-Request-Timestamp", seconds.clone()),
            ],
            None,
            None,
        ),
        Profile::Linear => {
            (vec![("Linear-Signature", hex(mac(&[body]).as_ref()))], Some("Linear-Delivery"), Some("Linear-Event"))
        }
        Profile::Standard => {
            // A secret that spells no key proves nothing, and signs as little.
            let key = keys::standard(secret).unwrap_or_else(|| keys::raw(secret));
            (standard(&key, id, &seconds, body), None, None)
        }
        Profile::Generic => (
            vec![
                (scheme.signature_header.as_str(), of_time("", b".")),
                (scheme.timestamp_header.as_str(), seconds.clone()),
            ],
            scheme.id_header.as_deref(),
            scheme.event_header.as_deref(),
        ),
        Profile::Bearer => (
            vec![("Authorization", format!("Bearer {secret}"))],
            scheme.id_header.as_deref(),
            scheme.event_header.as_deref(),
        ),
    };
    let named = id_header.map(|header| (header, id.to_owned()));
    let told = event_header.zip(event.map(str::to_owned));
    proof.into_iter().chain(named).chain(told).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn standard(key: &hmac::Key, id: &str, seconds: &str, body: &[u8]) -> Vec<(&'static str, String)> {
    let mac = hmac::sign(key, &[id.as_bytes(), b".", seconds.as_bytes(), b".", body].concat());
    vec![
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", seconds.to_owned()),
        ("webhook-signature", format!("v1,{}", STANDARD.encode(mac.as_ref()))),
    ]
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}
