use std::fmt;
use std::hint::black_box;

use thiserror::Error;

/// The shortest key, in characters.
const SHORTEST: usize = 16;
const LONGEST: usize = 512;

/// Why a text is not a key. It does not repeat the text.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum KeyError {
    #[error("the key is {found} characters long; use {SHORTEST} to {LONGEST} random ones")]
    Length { found: usize },
    #[error("the key holds a character that a header cannot carry; use visible ASCII without spaces")]
    Letter,
}

/// The bearer key of the TCP listener. It cannot be printed, and it is compared in a time that tells nothing of it.
#[derive(Clone)]
pub struct Key(Box<[u8]>);

impl Key {
    pub fn new(text: &str) -> Result<Self, KeyError> {
        if !(SHORTEST..=LONGEST).contains(&text.len()) {
            return Err(KeyError::Length { found: text.chars().count() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Letter);
        }
        Ok(Self(text.as_bytes().into()))
    }

    /// Whether `offered` is this key. Only the length of `offered`, which its sender knows, shows in the time it takes.
    pub(crate) fn opens_for(&self, offered: &[u8]) -> bool {
        let mut difference = u8::from(offered.len() != self.0.len());
        for (index, byte) in offered.iter().enumerate() {
            difference |= black_box(byte ^ self.0[index % self.0.len()]);
        }
        black_box(difference) == 0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_opens() {
        let key = Key::new("0123456789abcdef").expect("long enough");
        assert!(key.opens_for(b"0123456789abcdef"));
        for wrong in
            ["", "0", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeF", "0123456789abcdef0123456789abcdef"]
        {
            assert!(!key.opens_for(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_long_printable_and_never_printed() {
        assert_eq!(Key::new("short").err(), Some(KeyError::Length { found: 5 }));
        assert_eq!(Key::new("0123456789 abcdef").err(), Some(KeyError::Letter));
        assert_eq!(format!("{:?}", Key::new("0123456789abcdef").expect("long enough")), "[redacted]");
    }
}
