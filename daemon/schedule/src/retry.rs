use jiff::Timestamp;
use ow_model::{Failure, ModelFailure, Outcome, TaskSpec};

/// Returns when a run is tried again after `attempt` (1 for the first) ended with `outcome`; none: it is not.
///
/// The wait is the task's backoff, doubled for each later retry. `had_side_effect`: something outside was changed, or may
/// have been; doing it again could do it twice.
#[must_use]
pub fn next_attempt(
    spec: &TaskSpec,
    attempt: u32,
    outcome: &Outcome,
    had_side_effect: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    let worth_it = match outcome {
        Outcome::Failed { failure, .. } => match failure {
            Failure::Step | Failure::Timeout | Failure::Unreachable | Failure::Internal => true,
            Failure::Model(why) => matches!(
                why,
                ModelFailure::RateLimit | ModelFailure::Unavailable | ModelFailure::Unreachable | ModelFailure::Garbage
            ),
            // The same text renders the same way, an unknown outcome is never repeated, and an agent that got nowhere
            // would get there again at the same price.
            Failure::Template
            | Failure::Unknown
            | Failure::Iterations
            | Failure::Loop
            | Failure::NoAnswer
            | Failure::Budget => false,
        },
        Outcome::Succeeded
        | Outcome::Refused { .. }
        | Outcome::Expired { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Missed { .. } => false,
    };
    if !worth_it || had_side_effect || attempt > spec.retry.attempts {
        return None;
    }
    let doubled = 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
    let wait = ow_model::Span::from_millis(spec.retry.backoff.millis().saturating_mul(doubled));
    now.checked_add(wait.signed()).ok()
}

/// Says whether an outcome counts toward the failures in a row that pause a task.
///
/// Outages do not count: the task is not at fault. Only a success ends the row; what a person refused or let expire
/// neither counts nor ends it.
#[must_use]
pub fn counts_toward_pause(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed { failure, .. } => match failure {
            Failure::Step
            | Failure::Timeout
            | Failure::Unknown
            | Failure::Template
            | Failure::Internal
            | Failure::Iterations
            | Failure::Loop
            | Failure::NoAnswer
            | Failure::Budget => true,
            Failure::Unreachable => false,
            Failure::Model(why) => matches!(
                why,
                ModelFailure::Auth | ModelFailure::Overflow | ModelFailure::Refusal | ModelFailure::BadRequest
            ),
        },
        Outcome::Succeeded
        | Outcome::Refused { .. }
        | Outcome::Expired { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Missed { .. } => false,
    }
}

/// Returns the failures in a row after a run that ended with `outcome`.
#[must_use]
pub fn failures_in_row(before: u32, outcome: &Outcome) -> u32 {
    match outcome {
        Outcome::Succeeded => 0,
        _ if counts_toward_pause(outcome) => before.saturating_add(1),
        _ => before,
    }
}
