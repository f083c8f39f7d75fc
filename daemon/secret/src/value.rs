use std::fmt;
use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

/// Names a secret. Case does not matter and `-` is `_`, so that a name can be an environment variable's.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SecretName(String);

/// Why a text is not a secret's name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{text}` is not a secret's name; use 1 to 64 letters, digits, `_`, `-` and `.`")]
pub struct SecretNameError {
    pub text: String,
}

const NAME_LIMIT: usize = 64;

impl SecretName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretName {
    type Err = SecretNameError;

    fn from_str(text: &str) -> Result<Self, SecretNameError> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if text.is_empty() || text.len() > NAME_LIMIT || !text.chars().all(plain) {
            return Err(SecretNameError { text: text.chars().take(NAME_LIMIT).collect() });
        }
        Ok(Self(text.to_ascii_lowercase().replace('-', "_")))
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A secret's value. It prints as `[redacted]` and is wiped from memory when dropped.
#[derive(Clone)]
pub struct SecretValue(SecretString);

impl SecretValue {
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(value.into())
    }

    /// Gives out the value itself. Whoever calls this must neither print nor store it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(crate::REDACTED)
    }
}
