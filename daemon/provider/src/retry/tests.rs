use proptest::prelude::*;

use super::*;

fn error(kind: ModelFailure) -> ModelError {
    ModelError::new(kind, "")
}

#[test]
fn waits_double_and_end() {
    let policy = RetryPolicy::default();
    let busy = error(ModelFailure::Unavailable);
    let waits: Vec<_> = (1..=5).map(|made| policy.next(made, &busy, 0.5)).collect();
    let expected = [Some(750), Some(1500), Some(3000), None, None];
    assert_eq!(waits, expected.map(|millis| millis.map(Duration::from_millis)));
}

#[test]
fn only_what_may_pass_is_tried_again() {
    let policy = RetryPolicy::default();
    for (kind, expected) in [
        (ModelFailure::RateLimit, true),
        (ModelFailure::Unavailable, true),
        (ModelFailure::Unreachable, true),
        (ModelFailure::Garbage, true),
        (ModelFailure::Auth, false),
        (ModelFailure::Quota, false),
        (ModelFailure::Overflow, false),
        (ModelFailure::Refusal, false),
        (ModelFailure::BadRequest, false),
    ] {
        assert_eq!(policy.next(1, &error(kind), 0.0).is_some(), expected, "{kind:?}");
        let next = policy.decide(1, true, &error(kind), 0.0);
        assert_eq!(next == Next::End, !expected, "{kind:?}");
    }
}

#[test]
fn another_model_is_not_kept_waiting() {
    let policy = RetryPolicy::default();
    let busy = error(ModelFailure::Unavailable);
    assert!(matches!(policy.decide(1, true, &busy, 0.0), Next::Wait(_)));
    assert_eq!(policy.decide(2, true, &busy, 0.0), Next::GiveUp);
    assert!(matches!(policy.decide(2, false, &busy, 0.0), Next::Wait(_)));
}

#[test]
fn a_provider_that_wants_to_be_left_alone_for_too_long_is_given_up() {
    let policy = RetryPolicy::default();
    let limited =
        |seconds| ModelError { retry_after: Some(Duration::from_secs(seconds)), ..error(ModelFailure::RateLimit) };
    assert!(policy.next(1, &limited(300), 0.0).is_some());
    assert_eq!(policy.next(1, &limited(301), 0.0), None);
}

proptest! {
    #[test]
    fn a_wait_is_never_shorter_than_was_asked_for_and_never_without_bound(
        made in 1_u32..10, asked in prop::option::of(0_u64..300), random in 0.0..1.0_f64,
    ) {
        let policy = RetryPolicy { attempts: 20, ..RetryPolicy::default() };
        let asked = asked.map(Duration::from_secs);
        let limited = ModelError { retry_after: asked, ..error(ModelFailure::RateLimit) };
        let wait = policy.next(made, &limited, random).expect("it is tried again");
        prop_assert!(wait >= asked.unwrap_or_default());
        prop_assert!(wait <= asked.unwrap_or_default() + policy.longest);
        prop_assert!(wait > Duration::ZERO);
    }
}
