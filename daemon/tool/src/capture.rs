//! Takes in a text of any length, without secrets, in bounded memory.

use std::collections::VecDeque;

use ow_model::CallResult;
use ow_secret::{RedactStream, Redactor};
use serde_json::Value;

use crate::Limits;

/// What a call ended with, and the whole texts that its output had to cut.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) result: CallResult,
    pub(crate) kept: Vec<(String, Vec<u8>)>,
}

impl From<CallResult> for Finished {
    fn from(result: CallResult) -> Self {
        Self { result, kept: vec![] }
    }
}

/// Collects one stream: its beginning, its end and its length.
#[derive(Debug)]
pub(crate) struct Capture {
    redact: RedactStream,
    shown: usize,
    most: usize,
    /// The first `most` bytes.
    beginning: Vec<u8>,
    /// The last `shown / 2` bytes.
    end: VecDeque<u8>,
    total: u64,
}

/// A text as a result can hold it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Captured {
    pub(crate) text: String,
    /// What is kept aside; none: `text` is all there was.
    pub(crate) whole: Option<Vec<u8>>,
    /// Length of the whole, in bytes.
    pub(crate) total: u64,
}

impl Capture {
    pub(crate) fn new(limits: &Limits, redactor: &Redactor) -> Self {
        Self {
            redact: redactor.stream(),
            shown: limits.output_bytes,
            most: limits.kept_bytes.max(limits.output_bytes),
            beginning: Vec::new(),
            end: VecDeque::new(),
            total: 0,
        }
    }

    /// Takes in the next piece, and returns what is certain by now to hold no part of a secret.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let clean = self.redact.push(piece);
        self.take(&clean);
        clean
    }

    pub(crate) fn finish(mut self) -> Captured {
        let last = std::mem::replace(&mut self.redact, Redactor::default().stream()).finish();
        self.take(&last);
        let Self { shown, most, beginning, end, total, .. } = self;
        let total_length = usize::try_from(total).unwrap_or(usize::MAX);
        if total_length <= shown {
            return Captured { text: String::from_utf8_lossy(&beginning).into_owned(), whole: None, total };
        }
        let end: Vec<u8> = end.into();
        let text = joined(&beginning[..shown / 2], &end, total);
        let whole = if total_length <= most { beginning } else { joined(&beginning, &end, total).into_bytes() };
        Captured { text, whole: Some(whole), total }
    }

    fn take(&mut self, clean: &[u8]) {
        self.total += clean.len() as u64;
        let room = self.most - self.beginning.len();
        self.beginning.extend_from_slice(&clean[..clean.len().min(room)]);
        let half = self.shown / 2;
        let tail = &clean[clean.len().saturating_sub(half)..];
        let surplus = (self.end.len() + tail.len()).saturating_sub(half);
        self.end.drain(..surplus.min(self.end.len()));
        self.end.extend(tail);
    }
}

/// Captures a text that is at hand.
pub(crate) fn capture(bytes: &[u8], limits: &Limits, redactor: &Redactor) -> Captured {
    let mut capture = Capture::new(limits, redactor);
    capture.push(bytes);
    capture.finish()
}

/// Takes secrets out of whatever a result says.
pub(crate) fn redact(finished: &mut Finished, redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    redact_value(&mut finished.result.output, redactor);
    if let Some(error) = &mut finished.result.error {
        error.message = redactor.redact(&error.message).into_owned();
    }
    for (_, whole) in &mut finished.kept {
        if redactor.holds_secret(whole) {
            *whole = redactor.redact_bytes(whole);
        }
    }
}

fn redact_value(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact(text).into_owned(),
        Value::Array(list) => list.iter_mut().for_each(|value| redact_value(value, redactor)),
        Value::Object(map) => map.values_mut().for_each(|value| redact_value(value, redactor)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Beginning and end with a word on what is missing, cut between characters.
fn joined(beginning: &[u8], end: &[u8], total: u64) -> String {
    let begun = match std::str::from_utf8(beginning) {
        Err(error) if error.error_len().is_none() => &beginning[..error.valid_up_to()],
        _ => beginning,
    };
    let inside = end.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    let ended = &end[inside..];
    let left_out = total.saturating_sub((begun.len() + ended.len()) as u64);
    format!("{}\n[… {left_out} bytes left out …]\n{}", String::from_utf8_lossy(begun), String::from_utf8_lossy(ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(output_bytes: usize, kept_bytes: usize) -> Limits {
        Limits { output_bytes, kept_bytes, ..Limits::default() }
    }

    fn none() -> Redactor {
        Redactor::default()
    }

    #[test]
    fn a_short_text_is_whole() {
        let captured = capture("däta".as_bytes(), &limits(8, 8), &none());
        assert_eq!(captured, Captured { text: "däta".into(), whole: None, total: 5 });
    }

    #[test]
    fn a_long_text_shows_beginning_and_end_and_is_kept_aside() {
        let captured = capture(b"0123456789abcdef", &limits(8, 100), &none());
        assert_eq!(captured.text, "0123\n[… 8 bytes left out …]\ncdef");
        assert_eq!(captured.whole.as_deref(), Some(&b"0123456789abcdef"[..]));
        assert_eq!(captured.total, 16);
    }

    #[test]
    fn what_is_kept_is_bounded_too() {
        let mut capture = Capture::new(&limits(8, 10), &none());
        for _ in 0..1000 {
            capture.push(b"abcdefghij");
        }
        assert!(capture.beginning.len() == 10 && capture.end.len() == 4);
        let captured = capture.finish();
        assert_eq!(captured.total, 10_000);
        let whole = String::from_utf8(captured.whole.expect("it was cut")).expect("ASCII");
        assert_eq!(whole, "abcdefghij\n[… 9986 bytes left out …]\nghij");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let captured = capture("ééééééééé".as_bytes(), &limits(6, 100), &none());
        assert!(!captured.text.contains('\u{fffd}'), "{}", captured.text);
    }

    #[test]
    fn a_secret_across_pieces_and_across_the_cut_is_taken_out() {
        let redactor = ow_secret::Secrets::from_pairs([("a", "s3cr3t-value")]).expect("well-formed").redactor();
        let mut capture = Capture::new(&limits(40, 1000), &redactor);
        for byte in b"0123456789abc s3cr3t-value 0123456789 s3cr3t-value 0123456789" {
            capture.push(&[*byte]);
        }
        let captured = capture.finish();
        let whole = String::from_utf8(captured.whole.expect("it was cut")).expect("ASCII");
        assert!(!captured.text.contains("s3cr") && !captured.text.contains("value"), "{}", captured.text);
        assert_eq!(whole, "0123456789abc [redacted] 0123456789 [redacted] 0123456789");
    }
}
