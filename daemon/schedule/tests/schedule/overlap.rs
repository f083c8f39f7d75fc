//! Overlap, catch-up and parked runs, one moment each.

use expect_test::{Expect, expect};
use ow_model::{CatchUp, Overlap, Span, TaskSpec, WhileParked};
use ow_schedule::{ActiveRun, ActiveState, by_hand, may_begin};

use crate::support::{Moment, cron, lines, parked, parked_on_unknown, queued, run, running, task};

fn hourly(change: impl FnOnce(&mut TaskSpec)) -> TaskSpec {
    let mut spec = task("UTC", vec![cron("0 * * * *")]);
    change(&mut spec);
    spec
}

/// At 10:00:01 the 10:00 slot is due, on time.
fn on_time(spec: TaskSpec, active: Vec<ActiveRun>, expect: &Expect) {
    let moment = Moment::new(spec, "2026-03-03T09:00:00Z", "2026-03-03T10:00:01Z").beside(active);
    expect.assert_eq(&lines(&moment.plan()).join("\n"));
}

/// At 10:00:01 after a sleep since 05:30: 06:00 to 10:00 were missed.
fn after_sleep(spec: TaskSpec, active: Vec<ActiveRun>, expect: &Expect) {
    let moment = Moment::new(spec, "2026-03-03T05:00:00Z", "2026-03-03T10:00:01Z").asleep().beside(active);
    expect.assert_eq(&lines(&moment.plan()).join("\n"));
}

/// At 10:00:01, awake all the time but kept from planning since 06:00.
fn held_up(spec: TaskSpec, active: Vec<ActiveRun>, expect: &Expect) {
    let moment = Moment::new(spec, "2026-03-03T06:00:00Z", "2026-03-03T10:00:01Z").beside(active);
    expect.assert_eq(&lines(&moment.plan()).join("\n"));
}

#[test]
fn skip_records_the_slot_that_found_a_run() {
    for active in [queued(1), running(1)] {
        on_time(
            hourly(|_| {}),
            vec![active],
            &expect![[r"
            2026-03-03T10:00:00Z skipped: overlap
            wake: 2026-03-03T11:00:00Z"]],
        );
    }
}

#[test]
fn queue_lets_one_wait() {
    let spec = || hourly(|spec| spec.overlap = Overlap::Queue);
    on_time(
        spec(),
        vec![running(1)],
        &expect![[r"
        run #101 schedule for 2026-03-03T10:00:00Z
        2026-03-03T10:00:00Z fired #101
        wake: 2026-03-03T11:00:00Z"]],
    );
    on_time(
        spec(),
        vec![running(1), queued(2)],
        &expect![[r"
        2026-03-03T10:00:00Z skipped: queue full
        wake: 2026-03-03T11:00:00Z"]],
    );
    assert!(!may_begin(&spec(), &[ActiveState::Running]));
    assert!(may_begin(&spec(), &[ActiveState::Queued]));
}

#[test]
fn cancel_previous_cancels_what_runs_and_waits() {
    on_time(
        hourly(|spec| spec.overlap = Overlap::CancelPrevious),
        vec![running(1), queued(2)],
        &expect![[r"
        run #101 schedule for 2026-03-03T10:00:00Z
        2026-03-03T10:00:00Z fired #101
        cancel #1: overlap: cancel-previous
        cancel #2: overlap: cancel-previous
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn allow_runs_beside_up_to_its_limit() {
    let spec = || hourly(|spec| spec.overlap = Overlap::Allow { max: 2 });
    on_time(
        spec(),
        vec![running(1)],
        &expect![[r"
        run #101 schedule for 2026-03-03T10:00:00Z
        2026-03-03T10:00:00Z fired #101
        wake: 2026-03-03T11:00:00Z"]],
    );
    on_time(
        spec(),
        vec![running(1), running(2)],
        &expect![[r"
        2026-03-03T10:00:00Z skipped: overlap
        wake: 2026-03-03T11:00:00Z"]],
    );
    assert!(may_begin(&spec(), &[ActiveState::Running]));
}

#[test]
fn a_run_that_waits_for_a_person_holds_slots_back_and_its_item_says_so() {
    on_time(
        hourly(|_| {}),
        vec![parked(1)],
        &expect![[r"
        2026-03-03T10:00:00Z skipped: held by #1
        #1 holds back 1
        wake: 2026-03-03T11:00:00Z"]],
    );
    after_sleep(
        hourly(|_| {}),
        vec![parked(1)],
        &expect![[r"
        2026-03-03T06:00:00Z..2026-03-03T10:00:00Z (5) skipped: held by #1
        #1 holds back 5
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn release_lets_new_runs_go_on_beside_a_parked_one() {
    on_time(
        hourly(|spec| spec.while_parked = WhileParked::Release),
        vec![parked(1), parked(2)],
        &expect![[r"
        run #101 schedule for 2026-03-03T10:00:00Z
        2026-03-03T10:00:00Z fired #101
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn supersede_withdraws_the_older_request_only_when_a_newer_run_begins() {
    let spec = || hourly(|spec| spec.while_parked = WhileParked::Supersede);
    on_time(
        spec(),
        vec![parked(1)],
        &expect![[r"
        run #101 schedule for 2026-03-03T10:00:00Z
        2026-03-03T10:00:00Z fired #101
        cancel #1: superseded by #101
        wake: 2026-03-03T11:00:00Z"]],
    );
    on_time(
        spec(),
        vec![parked(1), running(2)],
        &expect![[r"
        2026-03-03T10:00:00Z skipped: overlap
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn a_run_parked_for_an_unknown_outcome_holds_nothing_and_is_left_alone() {
    for (overlap, while_parked) in [
        (Overlap::Skip, WhileParked::Hold),
        (Overlap::CancelPrevious, WhileParked::Hold),
        (Overlap::Skip, WhileParked::Supersede),
    ] {
        let spec = hourly(|spec| (spec.overlap, spec.while_parked) = (overlap, while_parked));
        on_time(
            spec,
            vec![parked_on_unknown(1)],
            &expect![[r"
            run #101 schedule for 2026-03-03T10:00:00Z
            2026-03-03T10:00:00Z fired #101
            wake: 2026-03-03T11:00:00Z"]],
        );
    }
}

#[test]
fn catch_up_once_folds_all_into_one_run() {
    after_sleep(
        hourly(|_| {}),
        vec![],
        &expect![[r"
        run #101 catch-up 2026-03-03T06:00:00Z..2026-03-03T10:00:00Z (5) for 2026-03-03T10:00:00Z
        2026-03-03T06:00:00Z..2026-03-03T10:00:00Z (5) missed: down -> #101
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn catch_up_all_runs_the_newest_one_behind_the_other() {
    let spec = || hourly(|spec| spec.catch_up = CatchUp::All { max: 2 });
    after_sleep(
        spec(),
        vec![],
        &expect![[r"
        run #101 catch-up 2026-03-03T09:00:00Z..2026-03-03T09:00:00Z (1) for 2026-03-03T09:00:00Z
        run #102 catch-up 2026-03-03T10:00:00Z..2026-03-03T10:00:00Z (1) for 2026-03-03T10:00:00Z
        2026-03-03T06:00:00Z..2026-03-03T08:00:00Z (3) missed: down: more than 2 to catch up
        2026-03-03T09:00:00Z missed: down -> #101
        2026-03-03T10:00:00Z missed: down -> #102
        wake: 2026-03-03T11:00:00Z"]],
    );
    assert!(!may_begin(&spec(), &[ActiveState::Running, ActiveState::Queued]));
}

#[test]
fn catch_up_all_cancels_what_ran_before_and_not_itself() {
    let spec = hourly(|spec| (spec.catch_up, spec.overlap) = (CatchUp::All { max: 2 }, Overlap::CancelPrevious));
    let mut moment = Moment::new(spec, "2026-03-03T08:00:00Z", "2026-03-03T10:00:01Z").asleep();
    moment.active = vec![running(1)];
    expect![[r"
        run #101 catch-up 2026-03-03T09:00:00Z..2026-03-03T09:00:00Z (1) for 2026-03-03T09:00:00Z
        run #102 catch-up 2026-03-03T10:00:00Z..2026-03-03T10:00:00Z (1) for 2026-03-03T10:00:00Z
        2026-03-03T09:00:00Z missed: down -> #101
        2026-03-03T10:00:00Z missed: down -> #102
        cancel #1: overlap: cancel-previous
        wake: 2026-03-03T11:00:00Z"]]
    .assert_eq(&lines(&moment.plan()).join("\n"));
}

#[test]
fn a_catch_up_that_finds_a_run_is_skipped_like_any_slot() {
    after_sleep(
        hourly(|_| {}),
        vec![running(1)],
        &expect![[r"
        2026-03-03T06:00:00Z..2026-03-03T10:00:00Z (5) skipped: overlap
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn a_slot_later_than_its_deadline_is_missed_with_a_record() {
    let spec = || hourly(|spec| spec.start_deadline = Some(Span::from_secs(90 * 60)));
    after_sleep(
        spec(),
        vec![],
        &expect![[r"
        run #101 catch-up 2026-03-03T09:00:00Z..2026-03-03T10:00:00Z (2) for 2026-03-03T10:00:00Z
        2026-03-03T06:00:00Z..2026-03-03T08:00:00Z (3) missed: start deadline
        2026-03-03T09:00:00Z..2026-03-03T10:00:00Z (2) missed: down -> #101
        wake: 2026-03-03T11:00:00Z"]],
    );
    held_up(
        spec(),
        vec![],
        &expect![[r"
        run #101 schedule for 2026-03-03T09:00:00Z
        2026-03-03T07:00:00Z..2026-03-03T08:00:00Z (2) missed: start deadline
        2026-03-03T09:00:00Z fired #101
        2026-03-03T10:00:00Z skipped: overlap
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn slots_that_come_due_together_are_met_in_their_order() {
    held_up(
        hourly(|spec| spec.overlap = Overlap::Queue),
        vec![],
        &expect![[r"
        run #101 schedule for 2026-03-03T07:00:00Z
        run #102 schedule for 2026-03-03T08:00:00Z
        2026-03-03T07:00:00Z fired #101
        2026-03-03T08:00:00Z fired #102
        2026-03-03T09:00:00Z..2026-03-03T10:00:00Z (2) skipped: queue full
        wake: 2026-03-03T11:00:00Z"]],
    );
    held_up(
        hourly(|spec| spec.overlap = Overlap::CancelPrevious),
        vec![running(1)],
        &expect![[r"
        run #101 schedule for 2026-03-03T10:00:00Z
        2026-03-03T07:00:00Z..2026-03-03T09:00:00Z (3) superseded: overlap: cancel-previous by #101
        2026-03-03T10:00:00Z fired #101
        cancel #1: overlap: cancel-previous
        wake: 2026-03-03T11:00:00Z"]],
    );
}

#[test]
fn awake_at_the_very_instant_is_on_time_and_a_moment_later_is_not() {
    for (awake_since, kind) in [("2026-03-03T10:00:00Z", "schedule"), ("2026-03-03T10:00:00.001Z", "catch-up")] {
        let mut moment = Moment::new(hourly(|_| {}), "2026-03-03T09:00:00Z", "2026-03-03T10:00:01Z");
        moment.awake_since = awake_since.parse().expect("an instant");
        assert!(lines(&moment.plan())[0].contains(kind), "{awake_since}");
    }
}

#[test]
fn jitter_delays_the_slot_and_what_counts_as_awake() {
    let spec = hourly(|spec| spec.jitter = Span::from_secs(600));
    let mut moment = Moment::new(spec, "2026-03-03T09:00:00Z", "2026-03-03T10:00:00Z");
    let due = moment.schedule.due(moment.now);
    assert!(due > moment.now);
    assert_eq!(lines(&moment.plan()), [format!("wake: {due}")]);
    // Awake since after the instant but before it was due: on time.
    (moment.now, moment.awake_since) = (due, due);
    assert_eq!(
        lines(&moment.plan())[..2],
        ["run #101 schedule for 2026-03-03T10:00:00Z", "2026-03-03T10:00:00Z fired #101"]
    );
}

#[test]
fn a_run_by_hand_respects_overlap() {
    let allowed = |overlap, active: &[ActiveRun]| {
        by_hand(&hourly(|spec| spec.overlap = overlap), active, run(9)).map_err(|busy| busy.why)
    };
    assert_eq!(allowed(Overlap::Skip, &[]), Ok(vec![]));
    assert_eq!(allowed(Overlap::Skip, &[running(1)]), Err("overlap".into()));
    assert_eq!(allowed(Overlap::Queue, &[running(1)]), Ok(vec![]));
    assert_eq!(allowed(Overlap::Queue, &[running(1), queued(2)]), Err("queue full".into()));
    assert_eq!(allowed(Overlap::Allow { max: 2 }, &[running(1)]), Ok(vec![]));
    let cancelled = vec![(run(1), "overlap: cancel-previous".to_owned())];
    assert_eq!(allowed(Overlap::CancelPrevious, &[running(1)]), Ok(cancelled));
}
