use std::fmt::{self, Write};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Why a text is not a span of time.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SpanError {
    #[error("`{text}` is not a duration; write a number and a unit, as in `90s`, `15m`, `6h`, `2d` or `1h 30m`")]
    Form { text: String },
    #[error("`{text}` is too long a duration; write a shorter one")]
    TooLong { text: String },
}

/// A positive span of elapsed time, in whole milliseconds; a day is 24 hours.
///
/// Written as numbers with units `ms`, `s`, `m`, `h`, `d`, `w`: `90s`, `1h 30m`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Span(u64);

const UNITS: [(&str, u64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Span {
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }

    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The span as a signed duration for arithmetic on timestamps.
    #[must_use]
    pub fn signed(self) -> jiff::SignedDuration {
        jiff::SignedDuration::from_millis(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let bad = || SpanError::Form { text: text.into() };
        let too_long = || SpanError::TooLong { text: text.into() };
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(bad());
        }
        let mut total = Some(0_u64);
        while !rest.is_empty() {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(bad)?;
            if digits == 0 {
                return Err(bad());
            }
            // Digits alone: only a number too large does not parse. What follows it must be right all the same.
            let number: Option<u64> = rest[..digits].parse().ok();
            rest = rest[digits..].trim_start();
            let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
            let (_, factor) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end]).ok_or_else(bad)?;
            let part = number.and_then(|number| number.checked_mul(*factor));
            total = total.zip(part).and_then(|(total, part)| total.checked_add(part));
            rest = rest[end..].trim_start();
        }
        let total = total.filter(|total| i64::try_from(*total).is_ok());
        total.map(Self).ok_or_else(too_long)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut text = String::new();
        for (unit, factor) in UNITS {
            if rest >= factor {
                text.push_str(if text.is_empty() { "" } else { " " });
                write!(text, "{}{unit}", rest / factor)?;
                rest %= factor;
            }
        }
        f.pad(if text.is_empty() { "0s" } else { &text })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_add_up() {
        assert_eq!("1h 30m".parse(), Ok(Span::from_secs(5400)));
        assert_eq!("2s".parse(), Ok(Span::from_secs(2)));
        for bad in ["", "5", "h", "1 fortnight", "-1s", "1.5h", "1h,2m", "99999999999999999999x"] {
            assert_eq!(bad.parse::<Span>(), Err(SpanError::Form { text: bad.into() }));
        }
        for long in ["99999999999999999999s", "9999999999999w", "9223372036854775807ms 1s"] {
            assert_eq!(long.parse::<Span>(), Err(SpanError::TooLong { text: long.into() }));
        }
    }

    proptest! {
        #[test]
        fn a_span_reads_back(millis in 0..u64::from(u32::MAX)) {
            prop_assert_eq!(Span(millis).to_string().parse(), Ok(Span(millis)));
        }
    }
}
