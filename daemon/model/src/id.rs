use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Lower-case base32 without the look-alikes `i`, `l`, `o` and `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LENGTH: usize = 16;

/// Why a text is not an identifier.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum IdError {
    #[error("`{text}` is not an id: expected 16 letters and digits, found {found}")]
    Length { text: String, found: usize },
    #[error("`{text}` is not an id: `{found}` is not one of its letters")]
    Letter { text: String, found: char },
    #[error("`{text}` is not a content hash: expected 64 hexadecimal digits")]
    Hash { text: String },
}

/// 80 bits, written as 16 characters of base32. Says nothing of order; that is a column of its own.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Bits80([u8; 10]);

impl Bits80 {
    fn random() -> Self {
        let mut bytes = [0; 10];
        getrandom::fill(&mut bytes).expect("the system has a source of randomness");
        Self(bytes)
    }
}

impl fmt::Display for Bits80 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0_u8; TEXT_LENGTH];
        let bits = self.0.iter().fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
        for (index, letter) in text.iter_mut().enumerate() {
            *letter = ALPHABET[((bits >> (75 - 5 * index)) & 31) as usize];
        }
        f.pad(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

impl FromStr for Bits80 {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let found = text.chars().count();
        if found != TEXT_LENGTH {
            return Err(IdError::Length { text: text.into(), found });
        }
        let mut bits = 0_u128;
        for letter in text.chars() {
            let folded = match letter.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            };
            let digit = ALPHABET.iter().position(|known| char::from(*known) == folded);
            let digit = digit.ok_or_else(|| IdError::Letter { text: text.into(), found: letter })?;
            bits = (bits << 5) | digit as u128;
        }
        let bytes = bits.to_be_bytes();
        Ok(Self(bytes[6..].try_into().expect("16 minus 6 is 10 bytes")))
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Bits80);

        impl $name {
            /// Makes a new one from the system's randomness.
            #[must_use]
            pub fn random() -> Self {
                Self(Bits80::random())
            }

            /// Makes the one with these bits, for tests and for derived ids.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 10]) -> Self {
                Self(Bits80(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.parse().map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id! {
    /// Identifies one Inbox item; the text inside its `[ow:…]` token. It names an item, it does not authorise.
    ItemId
}
id! {
    /// Identifies one run.
    RunId
}
id! {
    /// Identifies one standing rule.
    RuleId
}

impl ItemId {
    /// The token that a notice carries and by which a reply finds this item: `[ow:<id>]`.
    #[must_use]
    pub fn token(&self) -> String {
        format!("[ow:{self}]")
    }
}

/// Identifies a session: a history with one journal. Every run has exactly one, so it shares the run's id.
pub type SessionId = RunId;

/// Names a content-addressed file: BLAKE3 of its bytes, written as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct BlobHash([u8; 32]);

impl BlobHash {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// Hashes bytes as they come. A clone goes on by itself, so that what many texts begin with is hashed once.
#[derive(Clone, Debug, Default)]
pub struct BlobHasher(blake3::Hasher);

impl BlobHasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    #[must_use]
    pub fn hash(&self) -> BlobHash {
        BlobHash(*self.0.finalize().as_bytes())
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl FromStr for BlobHash {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let hash = blake3::Hash::from_hex(text).map_err(|_| IdError::Hash { text: text.into() })?;
        Ok(Self(*hash.as_bytes()))
    }
}

impl Serialize for BlobHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_reads_back_from_its_text_in_either_case(bytes: [u8; 10]) {
            let id = ItemId::from_bytes(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        }
    }

    #[test]
    fn a_prefix_is_not_an_id() {
        assert_eq!("abc".parse::<ItemId>(), Err(IdError::Length { text: "abc".into(), found: 3 }));
        assert!("abcdefgh!bcdefgh".parse::<ItemId>().is_err());
    }
}
