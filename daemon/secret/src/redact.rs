use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::SecretValue;

/// What stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// An encoded piece of a secret shorter than this says too little to look for, and would be found by chance.
const SHORTEST_PIECE: usize = 8;
/// A line of a secret of several lines is looked for by itself when it is at least this long.
const SHORTEST_LINE: usize = 12;

/// Takes known values out of text: as they are, percent-encoded, as JSON writes them, in base64 and in hexadecimal.
///
/// In base64 a value is found wherever it stands in what was encoded, as in a basic-authentication header.
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: Arc<Patterns>,
}

#[derive(Default)]
struct Patterns {
    /// Longest first, so that the longest match at a place wins.
    texts: Vec<Zeroizing<Vec<u8>>>,
    /// Whether any pattern begins with a byte; empty when there is no pattern.
    begins: Vec<bool>,
    longest: usize,
}

impl Redactor {
    pub fn new<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        let mut texts: Vec<Zeroizing<Vec<u8>>> = values.into_iter().flat_map(|value| forms(value.expose())).collect();
        texts.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        texts.dedup();
        let longest = texts.first().map_or(0, |text| text.len());
        let mut begins = vec![false; 256];
        for text in &texts {
            begins[usize::from(text[0])] = true;
        }
        Self { patterns: Arc::new(Patterns { texts, begins, longest }) }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.texts.is_empty()
    }

    /// The text without any value; borrowed when it held none.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.holds_secret(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        // A pattern can begin or end inside a character only if the text holds the secret's bytes by
        // chance; what is left is then mended.
        Cow::Owned(String::from_utf8_lossy(&self.redact_bytes(text.as_bytes())).into_owned())
    }

    #[must_use]
    pub fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.stream();
        let mut clean = stream.push(bytes);
        clean.extend(stream.finish());
        clean
    }

    #[must_use]
    pub fn holds_secret(&self, bytes: &[u8]) -> bool {
        !self.is_empty() && (0..bytes.len()).any(|at| self.patterns.at(&bytes[at..]).is_some())
    }

    /// A redactor for bytes that arrive in pieces; a value across a border is found as well.
    #[must_use]
    pub fn stream(&self) -> RedactStream {
        RedactStream { redactor: self.clone(), held: Zeroizing::new(Vec::new()) }
    }
}

impl Patterns {
    /// Whether these bytes may be the beginning of a longer pattern.
    fn may_follow(&self, bytes: &[u8]) -> bool {
        bytes.len() < self.longest
            && self.begins[usize::from(bytes[0])]
            && self.texts.iter().any(|text| text.len() > bytes.len() && text.starts_with(bytes))
    }

    fn at(&self, bytes: &[u8]) -> Option<usize> {
        if !self.begins[usize::from(bytes[0])] {
            return None;
        }
        self.texts.iter().find(|text| bytes.starts_with(text)).map(|text| text.len())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("patterns", &self.patterns.texts.len()).finish()
    }
}

/// Redacts a stream. Holds back no more bytes than the longest form of a secret has.
#[derive(Debug)]
pub struct RedactStream {
    redactor: Redactor,
    held: Zeroizing<Vec<u8>>,
}

impl RedactStream {
    /// Takes the next piece and returns what is certain to hold no part of a value.
    #[must_use = "this is the clean text"]
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        if self.redactor.is_empty() {
            return piece.to_vec();
        }
        self.held.extend_from_slice(piece);
        self.take(Rest::Follows)
    }

    /// Returns what was held back.
    #[must_use = "this is the end of the clean text"]
    pub fn finish(mut self) -> Vec<u8> {
        self.take(Rest::None)
    }

    fn take(&mut self, rest: Rest) -> Vec<u8> {
        let patterns = &self.redactor.patterns;
        let mut clean = Vec::with_capacity(self.held.len());
        let mut at = 0;
        while at < self.held.len() {
            let ahead = &self.held[at..];
            // A longer match may still be coming: it must be seen whole before a shorter one is taken.
            if rest == Rest::Follows && patterns.may_follow(ahead) {
                break;
            }
            if let Some(length) = patterns.at(ahead) {
                clean.extend_from_slice(REDACTED.as_bytes());
                at += length;
            } else {
                clean.push(ahead[0]);
                at += 1;
            }
        }
        self.held.drain(..at);
        clean
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Rest {
    Follows,
    None,
}

fn forms(value: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut forms = vec![Zeroizing::new(value.as_bytes().to_vec())];
    let mut add = |form: Vec<u8>| {
        let form = Zeroizing::new(form);
        if form.len() >= SHORTEST_PIECE {
            forms.push(form);
        }
    };
    for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
        add(percent_encoded(value, digits, b"%20"));
        add(percent_encoded(value, digits, b"+"));
        add(value.bytes().flat_map(|byte| hex(byte, digits)).collect());
    }
    add(as_json(value));
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            add(base64_core(value.as_bytes(), offset, alphabet));
        }
    }
    for line in value.lines().filter(|line| line.len() >= SHORTEST_LINE && line.len() < value.len()) {
        // The first and last line of a PEM file say nothing that is secret.
        if !line.starts_with("-----") {
            add(line.as_bytes().to_vec());
        }
    }
    forms
}

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

fn percent_encoded(value: &str, digits: &[u8; 16], space: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(byte),
            b' ' => text.extend_from_slice(space),
            _ => {
                text.push(b'%');
                text.extend(hex(byte, digits));
            }
        }
    }
    text
}

fn as_json(value: &str) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', byte]),
            b'\n' => text.extend(b"\\n"),
            b'\r' => text.extend(b"\\r"),
            b'\t' => text.extend(b"\\t"),
            _ => text.push(byte),
        }
    }
    text
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters of base64 that `value` alone decides when `offset` bytes, modulo 3, stand before it.
fn base64_core(value: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bit = |index: usize| value[index / 8] >> (7 - index % 8) & 1;
    // The first letter that begins inside the value: letters begin every 6 bits of the whole.
    let first = (offset * 8).div_ceil(6) * 6 - offset * 8;
    let mut text = Vec::new();
    let mut at = first;
    while at + 6 <= value.len() * 8 {
        let letter = (at..at + 6).fold(0, |bits, index| bits << 1 | bit(index));
        text.push(alphabet[usize::from(letter)]);
        at += 6;
    }
    text
}

#[cfg(test)]
mod tests;
