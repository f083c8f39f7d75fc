//! Events are work: they wait, and are given to runs or refused, each once.

use expect_test::{Expect, expect};
use ow_model::{EventDelivery, EventId, EventKey, Overlap, TaskSpec, WaitingEvent, WhileParked};
use ow_schedule::{ActiveRun, Gate};

use crate::support::{Moment, at, cron, lines, parked, running, task};

fn event(number: i64, depth: u32) -> WaitingEvent {
    let received_at = at("2026-03-03T09:30:00Z");
    WaitingEvent { id: EventId(number), key: EventKey(format!("key{number}")), depth, received_at }
}

fn listening(change: impl FnOnce(&mut TaskSpec)) -> TaskSpec {
    let mut spec = task("UTC", vec![]);
    change(&mut spec);
    spec
}

fn check(spec: TaskSpec, active: Vec<ActiveRun>, waiting: Vec<WaitingEvent>, expect: &Expect) {
    let mut moment = Moment::new(spec, "2026-03-03T09:00:00Z", "2026-03-03T10:00:00Z").beside(active);
    moment.waiting = waiting;
    expect.assert_eq(&lines(&moment.plan()).join("\n"));
}

#[test]
fn a_batch_gives_all_that_wait_to_one_run() {
    check(
        listening(|_| {}),
        vec![],
        vec![event(1, 0), event(2, 3)],
        &expect![[r"
        run #101 event (2) for 2026-03-03T09:30:00Z events [1, 2]
        key1 fired #101
        key2 fired #101
        wake: never"]],
    );
}

#[test]
fn events_wait_while_a_run_is_open() {
    check(listening(|_| {}), vec![running(1)], vec![event(1, 0)], &expect!["wake: never"]);
    check(
        listening(|spec| spec.overlap = Overlap::Queue),
        vec![running(1)],
        vec![event(1, 0)],
        &expect!["wake: never"],
    );
    check(
        listening(|spec| spec.overlap = Overlap::CancelPrevious),
        vec![running(1)],
        vec![event(1, 0)],
        &expect!["wake: never"],
    );
    check(listening(|_| {}), vec![parked(1)], vec![event(1, 0)], &expect!["wake: never"]);
    check(
        listening(|spec| spec.overlap = Overlap::Allow { max: 2 }),
        vec![running(1)],
        vec![event(1, 0)],
        &expect![[r"
        run #101 event (1) for 2026-03-03T09:30:00Z events [1]
        key1 fired #101
        wake: never"]],
    );
    check(
        listening(|spec| spec.while_parked = WhileParked::Supersede),
        vec![parked(1)],
        vec![event(1, 0)],
        &expect![[r"
            run #101 event (1) for 2026-03-03T09:30:00Z events [1]
            key1 fired #101
            cancel #1: superseded by #101
            wake: never"]],
    );
}

#[test]
fn each_is_one_run_an_event_one_after_the_other() {
    let each = |overlap| {
        listening(|spec| {
            spec.events = EventDelivery::Each { max: 10 };
            spec.overlap = overlap;
        })
    };
    let waiting = || vec![event(1, 0), event(2, 0), event(3, 0)];
    check(
        each(Overlap::Skip),
        vec![],
        waiting(),
        &expect![[r"
        run #101 event (1) for 2026-03-03T09:30:00Z events [1]
        key1 fired #101
        wake: never"]],
    );
    check(
        each(Overlap::Allow { max: 2 }),
        vec![],
        waiting(),
        &expect![[r"
        run #101 event (1) for 2026-03-03T09:30:00Z events [1]
        run #102 event (1) for 2026-03-03T09:30:00Z events [2]
        key1 fired #101
        key2 fired #102
        wake: never"]],
    );
}

#[test]
fn more_than_may_wait_are_refused_with_a_record() {
    let spec = || listening(|spec| spec.events = EventDelivery::Batch { max: 2 });
    let waiting = || (1..=5).map(|number| event(number, 0)).collect::<Vec<_>>();
    check(
        spec(),
        vec![running(1)],
        waiting(),
        &expect![[r"
        key3 skipped: too many waiting
        key4 skipped: too many waiting
        key5 skipped: too many waiting
        refuse event 3: too many waiting
        refuse event 4: too many waiting
        refuse event 5: too many waiting
        wake: never"]],
    );
    // What the run takes makes room for what waits.
    check(
        spec(),
        vec![],
        waiting(),
        &expect![[r"
        run #101 event (2) for 2026-03-03T09:30:00Z events [1, 2]
        key1 fired #101
        key2 fired #101
        key5 skipped: too many waiting
        refuse event 5: too many waiting
        wake: never"]],
    );
}

#[test]
fn a_circle_of_causes_ends() {
    check(
        listening(|_| {}),
        vec![],
        vec![event(1, 9), event(2, 8)],
        &expect![[r"
        run #101 event (1) for 2026-03-03T09:30:00Z events [2]
        key2 fired #101
        key1 skipped: loop
        refuse event 1: loop
        wake: never"]],
    );
}

#[test]
fn the_next_run_takes_what_waits_whatever_began_it() {
    let mut moment = Moment::new(task("UTC", vec![cron("0 * * * *")]), "2026-03-03T09:30:00Z", "2026-03-03T10:00:00Z");
    moment.waiting = vec![event(1, 2)];
    let plan = moment.plan();
    let expect = [
        "run #101 schedule for 2026-03-03T10:00:00Z events [1]",
        "2026-03-03T10:00:00Z fired #101",
        "key1 fired #101",
        "wake: 2026-03-03T11:00:00Z",
    ];
    assert_eq!(lines(&plan), expect);
    assert_eq!(plan.runs[0].depth, 2);
}

#[test]
fn a_pause_keeps_events_waiting() {
    let mut moment = Moment::new(listening(|_| {}), "2026-03-03T09:30:00Z", "2026-03-03T10:00:00Z");
    moment.gate = Gate::Closed { why: "paused: all".into() };
    moment.waiting = vec![event(1, 0)];
    assert_eq!(lines(&moment.plan()), ["wake: never"]);
    moment.gate = Gate::Open;
    assert_eq!(moment.plan().runs.len(), 1);
}
