use std::fmt;

use crate::Refusal;

/// The header fields of one request, in its order.
#[derive(Clone, Default)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    pub fn new<N: Into<String>, V: Into<Vec<u8>>>(fields: impl IntoIterator<Item = (N, V)>) -> Self {
        let lower = |name: N| {
            let mut name: String = name.into();
            name.make_ascii_lowercase();
            name
        };
        Self(fields.into_iter().map(|(name, value)| (lower(name), value.into())).collect())
    }

    /// The fields, their names in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The only value of this header. Two of them, or one that is no plain text, are an error: it could not be told which
    /// counts.
    pub(crate) fn maybe(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut values = self.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Refusal::Duplicate { header: name.into() });
        }
        let is_plain = !value.is_empty() && value.iter().all(|byte| (0x20..0x7f).contains(byte));
        match std::str::from_utf8(value) {
            Ok(text) if is_plain => Ok(Some(text)),
            _ => Err(Refusal::malformed(name, "not a plain text")),
        }
    }

    pub(crate) fn one(&self, name: &str) -> Result<&str, Refusal> {
        self.maybe(name)?.ok_or_else(|| Refusal::Missing { header: name.into() })
    }
}

impl fmt::Debug for Headers {
    /// Names alone: among the values are tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
