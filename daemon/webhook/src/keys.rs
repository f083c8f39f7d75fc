use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{self, HMAC_SHA256};

/// What the secrets of Standard Webhooks begin with; the rest is the key in base64.
const STANDARD_PREFIX: &str = "whsec_";

/// The secrets of one hook: any of them proves a sender, so that one can be replaced by the next without a gap.
#[derive(Clone, Default)]
pub struct Keys(Vec<Key>);

#[derive(Clone)]
struct Key {
    /// The secret's own bytes.
    raw: hmac::Key,
    /// What a token that is equal to the secret comes to under `raw`.
    token: hmac::Tag,
    /// The key that a secret of Standard Webhooks spells.
    standard: Option<hmac::Key>,
}

impl Keys {
    /// Empty secrets are left out: nobody proves anything by them.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let is_there = |secret: &S| !secret.as_ref().trim().is_empty();
        Self(secrets.into_iter().filter(is_there).map(|secret| Key::new(secret.as_ref())).collect())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the secrets made this MAC of these parts, one after the other. In constant time.
    pub(crate) fn made(&self, parts: &[&[u8]], mac: &[u8]) -> bool {
        let message = parts.concat();
        self.0.iter().any(|key| hmac::verify(&key.raw, &message, mac).is_ok())
    }

    /// The same for the keys that secrets of Standard Webhooks spell.
    pub(crate) fn made_standard(&self, parts: &[&[u8]], mac: &[u8]) -> bool {
        let message = parts.concat();
        let mut keys = self.0.iter().filter_map(|key| key.standard.as_ref());
        keys.any(|key| hmac::verify(key, &message, mac).is_ok())
    }

    /// Whether this is one of the secrets. In constant time, whatever its length: MACs are compared, not texts.
    pub(crate) fn contain(&self, token: &str) -> bool {
        self.0.iter().any(|key| hmac::verify(&key.raw, token.as_bytes(), key.token.as_ref()).is_ok())
    }
}

impl Key {
    fn new(secret: &str) -> Self {
        let raw = hmac::Key::new(HMAC_SHA256, secret.as_bytes());
        Self { token: hmac::sign(&raw, secret.as_bytes()), standard: standard(secret), raw }
    }
}

pub(crate) fn raw(secret: &str) -> hmac::Key {
    hmac::Key::new(HMAC_SHA256, secret.as_bytes())
}

pub(crate) fn standard(secret: &str) -> Option<hmac::Key> {
    let key = STANDARD.decode(secret.strip_prefix(STANDARD_PREFIX)?).ok()?;
    (!key.is_empty()).then(|| hmac::Key::new(HMAC_SHA256, &key))
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({} [redacted])", self.0.len())
    }
}
