use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use thiserror::Error;
use url::form_urlencoded;

use crate::json::unambiguous;
use crate::{Delivery, Headers, Keys, Profile, Scheme};

/// Headers that prove something, and nothing else; a task has no use for them.
const PROOFS: &[&str] = &[
    "authorization",
    "cookie",
    "linear-signature",
    "proxy-authorization",
    "stripe-signature",
    "webhook-signature",
    "x-auth-token",
    "x-gitlab-token",
    "x-hub-signature",
    "x-hub-signature-256",
    "x-signature",
    "x-slack-signature",
];

/// What a delivery says.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The body as JSON; a form's fields; null for anything else.
    pub value: Value,
    /// The body as it came.
    pub body: Body,
}

/// A body's bytes in an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Body {
    Text(String),
    /// In base64: it is no UTF-8.
    Bytes(String),
}

/// Why a body is not taken.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PayloadError {
    #[error("the body is not the JSON that its content type says: {why}")]
    NotJson { why: String },
    #[error("the body is JSON that not all readers read alike: {why}")]
    Ambiguous { why: String },
}

/// Reads a body by its content type: a form, JSON, or, of any other type, JSON if it is some.
///
/// A number that JSON's readers would round becomes its digits as a text. A form whose only field is `payload` is
/// the JSON in that field, as GitHub and Slack send it. JSON in which a name stands twice in one object is refused
/// wherever it stands.
pub fn payload(headers: &Headers, body: &[u8]) -> Result<Payload, PayloadError> {
    let kind = headers.iter().find(|(name, _)| *name == "content-type").map(|(_, value)| value).unwrap_or_default();
    let kind = String::from_utf8_lossy(kind);
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let value = if kind == "application/x-www-form-urlencoded" {
        form(body)?
    } else {
        match json(body) {
            Err(PayloadError::NotJson { .. }) if kind != "application/json" && !kind.ends_with("+json") => Value::Null,
            read => read?,
        }
    };
    let body = match std::str::from_utf8(body) {
        Ok(text) => Body::Text(text.into()),
        Err(_) => Body::Bytes(STANDARD.encode(body)),
    };
    Ok(Payload { value, body })
}

impl Payload {
    /// What templates read as `event`: `hook`, `id`, `name`, `payload`, `headers` (names in lower case with `_`), and the
    /// body as it came in `body`, or in `body_base64`. Without what proves the sender.
    #[must_use]
    pub fn into_event(
        self,
        hook: &str,
        delivery: &Delivery,
        headers: &Headers,
        (scheme, keys): (&Scheme, &Keys),
    ) -> Value {
        let mut shown = Map::new();
        for (name, value) in headers.iter() {
            let value = String::from_utf8_lossy(value);
            let is_token = keys.contain(value.strip_prefix("Bearer ").unwrap_or(&value));
            // The header that the hook's own senders sign in may have any name.
            let is_proof = PROOFS.contains(&name)
                || scheme.profile == Profile::Generic && scheme.signature_header.eq_ignore_ascii_case(name);
            if is_proof || is_token {
                continue;
            }
            match shown.entry(name.replace('-', "_")).or_insert_with(|| Value::String(String::new())) {
                Value::String(known) if known.is_empty() => *known = value.into_owned(),
                Value::String(known) => {
                    known.push_str(", ");
                    known.push_str(&value);
                }
                _ => {}
            }
        }
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
        let mut event = Map::from_iter([
            ("hook".to_owned(), Value::String(hook.into())),
            ("id".to_owned(), text(&delivery.id)),
            ("name".to_owned(), text(&delivery.event)),
            ("payload".to_owned(), self.value),
            ("headers".to_owned(), Value::Object(shown)),
        ]);
        match self.body {
            Body::Text(text) => event.insert("body".into(), Value::String(text)),
            Body::Bytes(text) => event.insert("body_base64".into(), Value::String(text)),
        };
        Value::Object(event)
    }
}

fn form(body: &[u8]) -> Result<Value, PayloadError> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(body) {
        let value = Value::String(value.into_owned());
        match fields.get_mut(name.as_ref()) {
            None => drop(fields.insert(name.into_owned(), value)),
            Some(Value::Array(known)) => known.push(value),
            Some(known) => *known = Value::Array(vec![known.take(), value]),
        }
    }
    if let (1, Some(Value::String(text))) = (fields.len(), fields.get("payload")) {
        match json(text.as_bytes()) {
            Err(PayloadError::NotJson { .. }) => {}
            read => return read,
        }
    }
    Ok(Value::Object(fields))
}

fn json(body: &[u8]) -> Result<Value, PayloadError> {
    // The text is JSON before it is walked, so that its strings and numbers are where they seem to be.
    let _: IgnoredAny =
        serde_json::from_slice(body).map_err(|error| PayloadError::NotJson { why: error.to_string() })?;
    let rewritten = with_exact_numbers(body);
    unambiguous(rewritten.as_deref().unwrap_or(body)).map_err(|error| {
        let why = error.to_string();
        // What may be skipped need not be what can be kept: half of a surrogate pair.
        if error.is_data() { PayloadError::Ambiguous { why } } else { PayloadError::NotJson { why } }
    })
}

/// The same JSON with quotes around each number that would be rounded; none: there is no such number.
fn with_exact_numbers(json: &[u8]) -> Option<Vec<u8>> {
    let mut rewritten: Option<Vec<u8>> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(inside) = json.get(at).filter(|inside| **inside != b'"') {
                    at += if *inside == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let rest = &json[at..];
                let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
                let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                let number = &rest[..length];
                if !is_exact(number) {
                    let out = rewritten.get_or_insert_default();
                    out.extend_from_slice(&json[copied..at]);
                    out.push(b'"');
                    out.extend_from_slice(number);
                    out.push(b'"');
                    copied = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    rewritten.map(|mut out| {
        out.extend_from_slice(&json[copied..]);
        out
    })
}

/// Whether a number is kept: an integer of 64 bits, or a decimal that is one exact double times or by another.
fn is_exact(number: &[u8]) -> bool {
    const DIGITS: usize = 15;
    const EXPONENT: i64 = 22;
    let text = std::str::from_utf8(number).unwrap_or_default();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
    let (Ok(exponent), Ok(fraction)) = (exponent.parse::<i64>(), i64::try_from(fraction)) else { return false };
    digits <= DIGITS && exponent.saturating_sub(fraction).saturating_abs() <= EXPONENT
}

#[cfg(test)]
mod tests;
