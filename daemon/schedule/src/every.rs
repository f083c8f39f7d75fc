use jiff::{SignedDuration, Timestamp};
use ow_model::Span;

use crate::ScheduleError;

const LEAST: Span = Span::from_secs(1);
/// 400 years of 365 days: longer periods fire once in a lifetime and would only make the arithmetic overflow.
const MOST: Span = Span::from_secs(400 * 365 * 86_400);

/// The instants `first + k * step`, in nanoseconds of Unix time, for whole `k >= 0`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Every {
    first: i128,
    step: i128,
}

/// How far into its step a row is at a midnight.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Phase {
    NotBegun,
    At(i128),
}

impl Every {
    pub(crate) fn new(period: Span, anchor: Timestamp) -> Result<Self, ScheduleError> {
        if period < LEAST || period > MOST {
            return Err(ScheduleError::Period { period, least: LEAST, most: MOST });
        }
        let step = i128::from(period.millis()) * 1_000_000;
        Ok(Self { first: anchor.as_nanosecond() + step, step })
    }

    pub(crate) fn next_after(self, after: Timestamp) -> Option<Timestamp> {
        let passed = (after.as_nanosecond() - self.first).div_euclid(self.step);
        Timestamp::from_nanosecond(self.first + (passed + 1).max(0) * self.step).ok()
    }

    pub(crate) fn contains(self, at: Timestamp) -> bool {
        let since = at.as_nanosecond() - self.first;
        since >= 0 && since % self.step == 0
    }

    /// Those that are whole seconds of Unix time.
    pub(crate) fn on_whole_seconds(self) -> Option<Self> {
        let second = 1_000_000_000;
        self.common(Self { first: i128::from(Timestamp::MIN.as_second()) * second, step: second })
    }

    /// Where the row stands in the day that begins at `midnight`: days alike have the same of it. None: it begins
    /// within that day, and no other is like it.
    pub(crate) fn phase(self, midnight: Timestamp) -> Option<Phase> {
        let since = midnight.as_nanosecond() - self.first;
        if since >= 0 {
            return Some(Phase::At(since % self.step));
        }
        (since < -86_400_000_000_000).then_some(Phase::NotBegun)
    }

    /// How many lie in `(after, until]`.
    fn count(self, after: i128, until: i128) -> i128 {
        let up_to = |limit: i128| ((limit - self.first).div_euclid(self.step) + 1).max(0);
        (up_to(until) - up_to(after)).max(0)
    }

    /// The instants that both have, which are such a row again.
    fn common(self, other: Self) -> Option<Self> {
        // The larger step stands still while the other is solved for: `base.first + t * base.step = rest.first (mod
        // rest.step)`. Only a row from the configuration is ever `rest`, so the products stay within 128 bits.
        let (base, rest) = (self, other);
        let (divisor, inverse) = gcd_and_inverse(base.step, rest.step);
        let distance = rest.first - base.first;
        if distance % divisor != 0 {
            return None;
        }
        let modulus = rest.step / divisor;
        let times = (distance / divisor).rem_euclid(modulus) * inverse.rem_euclid(modulus) % modulus;
        // A step too long to be written leaves at most one common instant.
        let step = base.step.saturating_mul(modulus);
        let mut first = base.first.checked_add(base.step.checked_mul(times)?)?;
        let least = base.first.max(rest.first);
        if first < least {
            first = first.checked_add(((least - first - 1) / step + 1).checked_mul(step)?)?;
        }
        // Beyond the last instant that can be written nothing is common.
        (first <= Timestamp::MAX.as_nanosecond()).then_some(Self { first, step })
    }
}

/// How many instants of `(after, until]` are in any of the rows: inclusion and exclusion.
pub(crate) fn count_any(rows: &[Every], after: Timestamp, until: Timestamp) -> u64 {
    let count = signed_count(rows, None, after.as_nanosecond(), until.as_nanosecond());
    u64::try_from(count).expect("a period is at least a second and the timeline has fewer than 2^64")
}

fn signed_count(rows: &[Every], within: Option<Every>, after: i128, until: i128) -> i128 {
    let mut total = 0;
    for (index, row) in rows.iter().enumerate() {
        let row = match within {
            None => Some(*row),
            Some(within) => within.common(*row),
        };
        if let Some(row) = row {
            let own = row.count(after, until);
            if own > 0 {
                total += own - signed_count(&rows[index + 1..], Some(row), after, until);
            }
        }
    }
    total
}

/// The greatest common divisor of `a` and `b`, and `x` with `a * x = divisor (mod b)`.
fn gcd_and_inverse(a: i128, b: i128) -> (i128, i128) {
    let (mut old, mut now) = ((a, 1_i128), (b, 0_i128));
    while now.0 != 0 {
        let quotient = old.0 / now.0;
        (old, now) = (now, (old.0 - quotient * now.0, old.1 - quotient * now.1));
    }
    old
}

/// Drops what a span cannot express.
pub(crate) fn whole_millisecond(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

/// One tick of a timestamp.
pub(crate) const TICK: SignedDuration = SignedDuration::from_nanos(1);
