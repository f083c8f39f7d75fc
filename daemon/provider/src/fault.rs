//! What a provider's error means.
//!
//! Source: the error pages of the vendors' API references; phrases as the servers send them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use ow_model::ModelFailure;
use serde_json::Value;

/// An error that a provider answered with, read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    pub(crate) kind: ModelFailure,
    /// The provider's own words, on one line, bounded.
    pub(crate) message: String,
    /// Its `type` or `code`, for a person who wants to look it up.
    pub(crate) code: String,
    /// The parameter at fault, where it is named.
    pub(crate) parameter: String,
}

const LONGEST_MESSAGE: usize = 500;

/// The request is longer than the model's window.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "context limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "input token count",
    "too many tokens",
    "maximum number of tokens",
    "reduce the length",
    "max_model_len",
    "exceed_context_size",
    "exceeds the model's maximum",
    "maximum prompt length",
    "request_too_large",
    "tokens_limit_reached",
];

/// Nothing is left to pay with.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient quota",
    "insufficient balance",
    "insufficient_balance",
    "insufficient credits",
    "insufficient funds",
    "credit balance",
    "exceeded_current_quota",
    "billing_hard_limit",
    "billing_not_active",
    "payment required",
    "out of credits",
    "quota_exceeded",
    "spending limit",
    "arrearage",
];

const AUTH: &[&str] = &[
    "invalid_api_key",
    "api_key_invalid",
    "api key not valid",
    "incorrect api key",
    "invalid api key",
    "invalid x-api-key",
    "authentication_error",
    "model_not_found",
    "does not have access",
    "do not have access",
];

const REFUSAL: &[&str] = &[
    "content_filter",
    "content_policy",
    "content management policy",
    "content exists risk",
    "data_inspection_failed",
    "sensitive content",
    "invalid_prompt",
    "flagged",
    "moderation",
    "safety system",
    "usage policy",
    "usage policies",
];

const UNAVAILABLE: &[&str] =
    &["overloaded", "server_error", "api_error", "engine_overloaded", "temporarily unavailable"];

const RATE: &[&str] = &["rate_limit", "rate limit", "too many requests", "resource_exhausted", "throttl"];

impl Answer {
    /// An answer with a status other than success.
    pub(crate) fn of_status(status: u16, body: &[u8]) -> Self {
        let words = Words::of(body);
        let known = words.all();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| known.contains(phrase));
        let kind = match status {
            402 => ModelFailure::Quota,
            403 if says(QUOTA) => ModelFailure::Quota,
            403 if says(REFUSAL) => ModelFailure::Refusal,
            401 | 403 => ModelFailure::Auth,
            413 => ModelFailure::Overflow,
            // Google says `quota` of limits by the minute as well, and tells when to come back.
            429 if says(QUOTA) && !known.contains("retrydelay") => ModelFailure::Quota,
            408 | 409 | 425 if !says(OVERFLOW) => ModelFailure::Unavailable,
            429 => ModelFailure::RateLimit,
            500.. if says(OVERFLOW) => ModelFailure::Overflow,
            500.. => ModelFailure::Unavailable,
            _ if says(OVERFLOW) => ModelFailure::Overflow,
            _ if says(QUOTA) => ModelFailure::Quota,
            _ if says(AUTH) => ModelFailure::Auth,
            404 if known.contains("model") => ModelFailure::Auth,
            _ if says(REFUSAL) => ModelFailure::Refusal,
            400..500 => ModelFailure::BadRequest,
            // A redirect, or a success that is none.
            _ => ModelFailure::Garbage,
        };
        words.answer(kind)
    }

    /// An error in the middle of a stream, or in an answer whose status says success.
    pub(crate) fn of_stream(value: &Value) -> Self {
        let words = Words::of_value(value);
        let known = words.all();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| known.contains(phrase));
        let status = [&value["error"]["code"], &value["error"]["status"], &value["code"]]
            .into_iter()
            .find_map(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()))
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code));
        if let Some(status) = status {
            return Self::of_status(status, value.to_string().as_bytes());
        }
        let kind = if says(OVERFLOW) {
            ModelFailure::Overflow
        } else if says(QUOTA) {
            ModelFailure::Quota
        } else if says(AUTH) {
            ModelFailure::Auth
        } else if says(RATE) {
            ModelFailure::RateLimit
        } else if says(UNAVAILABLE) {
            ModelFailure::Unavailable
        } else if says(REFUSAL) {
            ModelFailure::Refusal
        } else if known.contains("invalid_request") {
            ModelFailure::BadRequest
        } else {
            ModelFailure::Unavailable
        };
        words.answer(kind)
    }
}

/// The texts of an error body, in any of the forms that servers use.
#[derive(Debug, Default)]
struct Words {
    message: String,
    code: String,
    parameter: String,
    /// Further text that tells kinds apart but is not shown.
    rest: String,
}

impl Words {
    fn of(body: &[u8]) -> Self {
        if let Ok(value) = serde_json::from_slice::<Value>(body) {
            return Self::of_value(&value);
        }
        let text = String::from_utf8_lossy(body);
        let is_page = text.trim_start().starts_with('<');
        let message = if is_page { "a web page instead of an answer".into() } else { text.into_owned() };
        Self { message, ..Self::default() }
    }

    fn of_value(value: &Value) -> Self {
        // Google wraps the error in a list.
        let value = value.get(0).unwrap_or(value);
        let error = if value["error"].is_object() { &value["error"] } else { value };
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let message = [&error["message"], &value["error"], &value["message"], &value["detail"], &error["msg"]]
            .into_iter()
            .map(text)
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        let code = [&error["code"], &error["type"], &error["status"]]
            .into_iter()
            .map(text)
            .filter(|text| !text.is_empty() && text.parse::<u32>().is_err())
            .collect::<Vec<_>>()
            .join(", ");
        Self {
            message,
            code,
            parameter: text(&error["param"]),
            rest: text(&error["metadata"]) + &text(&error["details"]),
        }
    }

    fn all(&self) -> String {
        format!("{} {} {}", self.message, self.code, self.rest).to_ascii_lowercase()
    }

    fn answer(self, kind: ModelFailure) -> Answer {
        let Self { message, code, parameter, rest: _ } = self;
        Answer { kind, message: shown(&message), code: shown(&code), parameter }
    }
}

/// On one line, bounded, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let line = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = line.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_MESSAGE {
        return line;
    }
    line.chars().take(LONGEST_MESSAGE).chain(['…']).collect()
}

/// How long to wait by the header `retry-after` (seconds, or a date of HTTP) or `retry-after-ms`.
///
/// `date` is the server's own clock, where it told it: a date counts from there, so that no skew of clocks matters.
pub(crate) fn retry_after(
    value: Option<&str>,
    millis: Option<&str>,
    date: Option<&str>,
    now: Timestamp,
) -> Option<Duration> {
    if let Some(millis) = millis.and_then(|millis| millis.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = value?.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let instant = |text: &str| rfc2822::parse(text.trim()).ok().map(|zoned| zoned.timestamp());
    let until = instant(value)?;
    let now = date.and_then(instant).unwrap_or(now);
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests;
