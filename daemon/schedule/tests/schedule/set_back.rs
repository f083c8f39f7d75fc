//! The wall clock is set back.

use ow_model::{Disposition, SlotKey};
use ow_schedule::{Rewind, rewind};

use crate::support::{Moment, at, cron, lines, run, task};

fn hourly() -> Moment {
    Moment::new(task("UTC", vec![cron("0 * * * *")]), "2026-03-03T05:30:00Z", "2026-03-03T05:30:00Z")
}

#[test]
fn nothing_that_fired_fires_again_and_nothing_bursts() {
    // 06:00 to 08:00 fired; then the clock went back to 05:30.
    let mut moment = hourly();
    moment.fired_ahead = ["06", "07", "08"].map(|hour| at(&format!("2026-03-03T{hour}:00:00Z"))).to_vec();
    assert_eq!(lines(&moment.plan()), ["wake: 2026-03-03T09:00:00Z"]);
    // Even when owd then sleeps over all of it.
    moment.now = at("2026-03-03T10:30:00Z");
    let expect = [
        "run #101 catch-up 2026-03-03T09:00:00Z..2026-03-03T10:00:00Z (2) for 2026-03-03T10:00:00Z",
        "2026-03-03T09:00:00Z..2026-03-03T10:00:00Z (2) missed: down -> #101",
        "wake: 2026-03-03T11:00:00Z",
    ];
    assert_eq!(lines(&moment.asleep().plan()), expect);
}

#[test]
fn a_range_never_spans_an_instant_that_has_its_own_record() {
    let mut moment = hourly();
    moment.fired_ahead = vec![at("2026-03-03T08:00:00Z")];
    moment.now = at("2026-03-03T10:30:00Z");
    let expect = [
        "run #101 catch-up 2026-03-03T06:00:00Z..2026-03-03T10:00:00Z (4) for 2026-03-03T10:00:00Z",
        "2026-03-03T06:00:00Z..2026-03-03T07:00:00Z (2) missed: down -> #101",
        "2026-03-03T09:00:00Z..2026-03-03T10:00:00Z (2) missed: down -> #101",
        "wake: 2026-03-03T11:00:00Z",
    ];
    assert_eq!(lines(&moment.asleep().plan()), expect);
}

#[test]
fn a_record_later_than_the_new_time_is_voided_unless_it_fired() {
    let schedule = hourly().schedule;
    let now = at("2026-03-03T08:30:00Z");
    let skipped = Disposition::Skipped { why: "overlap".into() };
    let instant = |hour: &str| SlotKey::Instant(at(&format!("2026-03-03T{hour}:00:00Z")));
    let range = |from: &str, until: &str, count| SlotKey::Range {
        from: at(&format!("2026-03-03T{from}:00:00Z")),
        until: at(&format!("2026-03-03T{until}:00:00Z")),
        count,
    };
    let told = |key: &SlotKey, disposition: &Disposition| rewind(&schedule, key, disposition, now);
    assert_eq!(told(&instant("09"), &Disposition::Fired { run: run(1) }), Rewind::Keep);
    assert_eq!(told(&instant("09"), &skipped), Rewind::Void);
    assert_eq!(told(&instant("08"), &skipped), Rewind::Keep);
    assert_eq!(told(&range("06", "08", 3), &skipped), Rewind::Keep);
    assert_eq!(told(&range("09", "11", 3), &skipped), Rewind::Void);
    assert_eq!(
        told(&range("06", "09", 4), &skipped),
        Rewind::Split { keep: range("06", "08", 3), void: instant("09") }
    );
    // A range that the present definition would count otherwise is left whole: nothing is counted twice.
    assert_eq!(told(&range("06", "09", 40), &skipped), Rewind::Keep);
}
