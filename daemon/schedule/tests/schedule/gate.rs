//! A paused task.

use ow_model::{Disposition, SlotKey};
use ow_schedule::{Gate, close};

use crate::support::{Moment, at, cron, lines, running, task};

fn paused(accounted_until: &str, now: &str) -> Moment {
    let mut moment = Moment::new(task("UTC", vec![cron("0 * * * *")]), accounted_until, now);
    moment.gate = Gate::Closed { why: "paused".into() };
    moment
}

#[test]
fn the_slots_of_a_pause_are_one_skipped_range_and_never_caught_up() {
    for moment in [
        paused("2026-03-03T00:30:00Z", "2026-03-10T00:30:00Z"),
        paused("2026-03-03T00:30:00Z", "2026-03-10T00:30:00Z").asleep(),
        paused("2026-03-03T00:30:00Z", "2026-03-10T00:30:00Z").beside(vec![running(1)]),
    ] {
        let expect = ["2026-03-03T01:00:00Z..2026-03-10T00:00:00Z (168) skipped: paused", "wake: never"];
        let plan = moment.plan();
        assert_eq!(lines(&plan), expect);
        let resumed = Moment::new(task("UTC", vec![cron("0 * * * *")]), "2026-03-10T00:30:00Z", "2026-03-10T00:30:00Z");
        assert_eq!(plan.accounted_until, Some(resumed.accounted_until));
        assert_eq!(lines(&resumed.plan()), ["wake: 2026-03-10T01:00:00Z"]);
    }
}

#[test]
fn a_pause_without_a_slot_leaves_no_record() {
    assert_eq!(lines(&paused("2026-03-03T00:10:00Z", "2026-03-03T00:50:00Z").plan()), ["wake: never"]);
}

#[test]
fn what_a_closed_definition_still_owed_is_superseded() {
    let moment = paused("2026-03-03T00:30:00Z", "2026-03-03T03:30:00Z");
    let closed = close(&moment.schedule, moment.accounted_until, &[at("2026-03-03T02:00:00Z")], "edited", moment.now);
    let superseded = || Disposition::Superseded { by: None, why: "edited".into() };
    let expect = [
        (SlotKey::Instant(at("2026-03-03T01:00:00Z")), superseded()),
        (SlotKey::Instant(at("2026-03-03T03:00:00Z")), superseded()),
    ];
    assert_eq!(closed, expect);
}
