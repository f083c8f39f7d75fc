//! Retries, auto-pause and circles of `after`.

use ow_model::{Failure, ItemId, Outcome, Retry, Span, TaskName};
use ow_schedule::{AfterEdge, circle, counts_toward_pause, failures_in_row, next_attempt};
use proptest::prelude::*;

use crate::support::{at, seconds, task};

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure, message: String::new() }
}

fn others() -> [Outcome; 5] {
    [
        Outcome::Succeeded,
        Outcome::Refused { message: String::new() },
        Outcome::Expired { item: ItemId::from_bytes([0; 10]) },
        Outcome::Cancelled { why: String::new() },
        Outcome::Missed { why: String::new() },
    ]
}

#[test]
fn a_retry_waits_twice_as_long_each_time_and_only_without_a_side_effect() {
    let now = at("2026-03-03T10:00:00Z");
    let mut spec = task("UTC", vec![]);
    spec.retry = Retry { attempts: 3, backoff: Span::from_secs(10) };
    let step = failed(Failure::Step);
    let waits: Vec<_> = (1..=4).map(|attempt| next_attempt(&spec, attempt, &step, false, now)).collect();
    assert_eq!(waits, [Some(now + seconds(10)), Some(now + seconds(20)), Some(now + seconds(40)), None]);
    assert_eq!(next_attempt(&spec, 1, &step, true, now), None);
    for failure in [Failure::Timeout, Failure::Unreachable, Failure::Internal] {
        assert!(next_attempt(&spec, 1, &failed(failure), false, now).is_some(), "{failure:?}");
    }
    for outcome in others().into_iter().chain([failed(Failure::Template), failed(Failure::Unknown)]) {
        assert_eq!(next_attempt(&spec, 1, &outcome, false, now), None, "{outcome:?}");
    }
    spec.retry = Retry { attempts: u32::MAX, backoff: Span::from_secs(1) };
    assert_eq!(next_attempt(&spec, 70, &step, false, now), None, "a wait beyond the end of time is none");
}

#[test]
fn outages_do_not_pause_a_task_and_only_success_ends_a_row() {
    assert!(!counts_toward_pause(&failed(Failure::Unreachable)));
    assert!(others().iter().all(|outcome| !counts_toward_pause(outcome)));
    let row = [failed(Failure::Step), failed(Failure::Unreachable), failed(Failure::Timeout)];
    assert_eq!(row.iter().fold(0, failures_in_row), 2);
    assert_eq!(failures_in_row(2, &Outcome::Cancelled { why: String::new() }), 2);
    assert_eq!(failures_in_row(2, &Outcome::Succeeded), 0);
}

fn name(number: usize) -> TaskName {
    format!("task{number}").parse().expect("a name")
}

fn edges(pairs: &[(usize, usize)]) -> Vec<AfterEdge> {
    pairs.iter().map(|(task, after)| AfterEdge { task: name(*task), after: name(*after) }).collect()
}

#[test]
fn a_circle_is_told_as_a_path() {
    assert_eq!(circle(&edges(&[(1, 2), (2, 3), (1, 3)])), None);
    assert_eq!(circle(&edges(&[(1, 1)])), Some(vec![name(1), name(1)]));
    assert_eq!(circle(&edges(&[(0, 1), (1, 2), (2, 3), (3, 1)])), Some(vec![name(1), name(2), name(3), name(1)]));
    let long: Vec<_> = (0..100_000).map(|number| (number, number + 1)).collect();
    assert_eq!(circle(&edges(&long[..20_000])), None);
}

proptest! {
    #[test]
    fn there_is_a_circle_exactly_when_the_tasks_cannot_be_put_in_order(
        pairs in prop::collection::vec((0_usize..8, 0_usize..8), 0..12),
    ) {
        let mut left = pairs.clone();
        // Take away what comes after nothing, until nothing changes.
        loop {
            let before = left.len();
            let tasks: Vec<usize> = left.iter().map(|(task, _)| *task).collect();
            left.retain(|(_, after)| tasks.contains(after));
            if left.len() == before {
                break;
            }
        }
        let found = circle(&edges(&pairs));
        prop_assert_eq!(found.is_some(), !left.is_empty());
        if let Some(round) = found {
            prop_assert_eq!(round.first(), round.last());
            for step in round.windows(2) {
                prop_assert!(pairs.iter().any(|(task, after)| name(*task) == step[0] && name(*after) == step[1]));
            }
        }
    }
}
