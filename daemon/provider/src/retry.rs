use std::time::Duration;

use ow_model::ModelFailure;

use crate::ModelError;

/// How often and after what waits a failed completion is repeated. Pure: chance is an argument.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryPolicy {
    /// Attempts at one model in all.
    pub attempts: u32,
    /// The same while another model of the failover list is left.
    pub attempts_before_failover: u32,
    /// The first wait; each later one is twice as long.
    pub first: Duration,
    /// No wait of our own is longer.
    pub longest: Duration,
    /// A provider that wants to be left alone for longer is given up.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            attempts_before_failover: 2,
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            patience: Duration::from_mins(5),
        }
    }
}

/// What comes after a failed attempt at a model.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    Wait(Duration),
    /// The next model of the list, if there is one.
    GiveUp,
    /// No other model would make it better, or none may: the failure is the outcome.
    End,
}

impl RetryPolicy {
    /// How long to wait before the next attempt; none: this was the last one. `made` counts the attempts so far, from
    /// 1; `random` lies in `0.0..1.0`.
    ///
    /// A wait is never shorter than the provider asked for.
    #[must_use]
    pub fn next(&self, made: u32, error: &ModelError, random: f64) -> Option<Duration> {
        self.wait(made, self.attempts, error, random)
    }

    pub(crate) fn decide(&self, made: u32, has_other: bool, error: &ModelError, random: f64) -> Next {
        if !is_transient(error.kind) {
            return Next::End;
        }
        let attempts = if has_other { self.attempts_before_failover.min(self.attempts) } else { self.attempts };
        self.wait(made, attempts, error, random).map_or(Next::GiveUp, Next::Wait)
    }

    fn wait(&self, made: u32, attempts: u32, error: &ModelError, random: f64) -> Option<Duration> {
        let attempts = match error.kind {
            // What is no answer rarely becomes one.
            ModelFailure::Garbage => attempts.min(2),
            // All of it was paid for.
            ModelFailure::TooLarge => 1,
            _ => attempts,
        };
        if !is_transient(error.kind) || made >= attempts {
            return None;
        }
        let own = self.first.saturating_mul(1 << made.saturating_sub(1).min(16)).min(self.longest);
        match error.retry_after {
            Some(asked) if asked > self.patience => None,
            // A little later than asked, so that not all who were told the same come back at once.
            Some(asked) => Some(asked.max(own / 2) + own.mul_f64(random / 4.0)),
            None => Some(own.mul_f64(0.5 + random / 2.0)),
        }
    }
}

/// Whether the same request may be answered later, or by another model. Keys, quotas, windows and refusals end as what
/// they are.
const fn is_transient(kind: ModelFailure) -> bool {
    match kind {
        ModelFailure::RateLimit
        | ModelFailure::Unavailable
        | ModelFailure::Unreachable
        | ModelFailure::Garbage
        | ModelFailure::TooLarge => true,
        ModelFailure::Auth
        | ModelFailure::Quota
        | ModelFailure::Overflow
        | ModelFailure::Refusal
        | ModelFailure::BadRequest => false,
    }
}

#[cfg(test)]
mod tests;
