//! `scheduler-scenarios.json`, as far as the core decides them.

use jiff::Timestamp;
use ow_model::{CatchUp, Overlap, Span, Trigger, ZoneName};
use ow_schedule::{Schedule, by_hand, check_triggers};
use serde_json::Value;

use crate::support::{Moment, at, cases, cron, every, lines, run, running, seconds, task, text};

fn case(id: &str) -> Value {
    let cases = cases("scheduler-scenarios.json");
    let found = cases["cases"].as_array().expect("cases").iter().find(|case| case["id"] == id);
    found.unwrap_or_else(|| panic!("no case {id}")).clone()
}

/// The task of a case with a cron schedule.
fn given(case: &Value) -> ow_model::TaskSpec {
    task(text(&case["given"], "tz"), vec![cron(text(&case["given"], "schedule"))])
}

#[test]
fn missed_while_down_runs_once() {
    let case = case("sched-01");
    let expect = &case["expect"];
    let run_at = text(&expect["runs"][0], "at");
    let plan = Moment::new(given(&case), text(&case["given"], "last_run"), run_at).asleep().plan();
    let expect = [
        "run #101 catch-up 2026-03-03T11:00:00Z..2026-03-06T11:00:00Z (4) for 2026-03-06T11:00:00Z".to_owned(),
        "2026-03-03T11:00:00Z..2026-03-06T11:00:00Z (4) missed: down -> #101".to_owned(),
        format!("wake: {}", at(text(expect, "next"))),
    ];
    assert_eq!(lines(&plan), expect);
}

#[test]
fn a_restart_of_seconds_over_the_slot_is_caught_up_too() {
    let case = case("sched-02");
    let expect = &case["expect"];
    let run_at = text(&expect["runs"][0], "at");
    let plan = Moment::new(given(&case), text(&case["given"], "last_run"), run_at).asleep().plan();
    assert_eq!(plan.runs.len(), 1);
    assert_eq!(plan.runs[0].scheduled_for, at("2026-03-03T08:30:00Z"));
    assert_eq!(plan.wake_at, Some(at(text(expect, "next"))));
}

#[test]
fn a_claimed_slot_is_never_claimed_again_after_a_crash() {
    for (id, fired, crash_over, next) in [
        ("sched-03", "2026-03-03T09:00:00Z", "2026-03-03T09:00:10Z", "2026-03-04T09:00:00Z"),
        ("sched-19", "2026-03-03T10:00:00Z", "2026-03-03T10:00:30Z", "2026-03-03T10:10:00Z"),
    ] {
        // The mark says that the slot was claimed; its run is interrupted and goes on.
        let moment = Moment::new(given(&case(id)), fired, crash_over).asleep().beside(vec![running(1)]);
        assert_eq!(lines(&moment.plan()), [format!("wake: {next}")], "{id}");
    }
    // The run of the dead process has ended; the next slot starts one run, and run-now works at once.
    let spec = given(&case("sched-19"));
    let plan = Moment::new(spec.clone(), "2026-03-03T10:00:00Z", "2026-03-03T10:10:00Z").plan();
    assert_eq!(plan.runs.len(), 1);
    assert_eq!(by_hand(&spec, &[], run(7)), Ok(vec![]));
}

#[test]
fn a_one_shot_missed_while_down_runs_late_and_is_done() {
    let case = case("sched-05");
    let spec = task("UTC", vec![Trigger::At(at(text(&case["given"], "once")))]);
    let plan = Moment::new(spec, "2026-03-03T08:00:00Z", "2026-03-03T14:00:00Z").asleep().plan();
    let expect = [
        "run #101 catch-up 2026-03-03T09:00:00Z..2026-03-03T09:00:00Z (1) for 2026-03-03T09:00:00Z",
        "2026-03-03T09:00:00Z missed: down -> #101",
        "wake: never",
    ];
    assert_eq!(lines(&plan), expect);
}

#[test]
fn a_one_shot_in_the_past_is_refused() {
    let case = case("sched-06");
    let spec = task("UTC", vec![Trigger::At(at(text(&case["given"], "once")))]);
    assert!(check_triggers(&spec, at(text(&case["given"], "now"))).is_err());
}

#[test]
fn a_changed_zone_counts_from_now() {
    let case = case("sched-09");
    let now = text(&case["given"], "now");
    let mut spec = task(text(&case["given"], "tz_before"), vec![cron(text(&case["given"], "schedule"))]);
    let before = Moment::new(spec.clone(), now, now).plan();
    assert_eq!(before.wake_at, Some(at("2026-05-20T11:00:00Z")));
    spec.timezone = ZoneName(text(&case["given"], "tz_after").into());
    assert_eq!(lines(&Moment::new(spec, now, now).plan()), [format!("wake: {}", text(&case["expect"], "next"))]);
}

#[test]
fn planning_again_changes_nothing() {
    let spec = given(&case("sched-11"));
    let first = Moment::new(spec.clone(), "2026-03-03T10:00:00Z", "2026-03-03T10:05:00Z").plan();
    assert_eq!(first.runs.len(), 1);
    let mut again = Moment::new(spec, "2026-03-03T10:00:00Z", "2026-03-03T10:05:00Z");
    again.accounted_until = first.accounted_until.expect("the mark moved");
    assert_eq!(lines(&again.plan()), ["wake: 2026-03-03T10:10:00Z"]);
}

#[test]
fn an_interval_survives_restarts() {
    let created = at(text(&case("sched-12")["given"], "created"));
    let spec = task("UTC", vec![every(Span::from_secs(6 * 3600))]);
    let (mut mark, mut now) = (created, created);
    let mut runs: Vec<(Timestamp, Timestamp)> = Vec::new();
    for _ in 0..5 {
        let awake_since = now;
        let stop = now + seconds(4 * 3600);
        loop {
            let mut moment = Moment::new(spec.clone(), "2026-03-03T00:00:00Z", "2026-03-03T00:00:00Z");
            (moment.now, moment.awake_since, moment.accounted_until) = (now, awake_since, mark);
            let plan = moment.plan();
            runs.extend(plan.runs.iter().map(|run| (run.scheduled_for, now)));
            mark = plan.accounted_until.unwrap_or(mark);
            match plan.wake_at {
                Some(wake) if wake <= stop => now = wake,
                _ => break,
            }
        }
        now = stop + seconds(3600);
    }
    let hours: Vec<(i64, i64)> = runs
        .iter()
        .map(|(slot, at)| (slot.duration_since(created).as_hours(), at.duration_since(created).as_hours()))
        .collect();
    // Up 0-4, 5-9, 10-14, 15-19, 20-24: every slot of 6 h falls into an up time but none is counted from a restart.
    assert_eq!(hours, [(6, 6), (12, 12), (18, 18), (24, 24)]);
}

#[test]
fn any_number_of_missed_slots_is_one_run_and_the_schedule_goes_on() {
    let case = case("sched-17");
    for (now, count) in [("2026-03-03T03:20:30Z", 200), ("2036-03-03T00:00:30Z", 5_260_320)] {
        let plan = Moment::new(given(&case), text(&case["given"], "last_run"), now).asleep().plan();
        assert_eq!((plan.runs.len(), plan.records.len()), (1, 1));
        let ow_model::Cause::CatchUp { count: missed, .. } = plan.runs[0].cause else { panic!("{plan:?}") };
        assert_eq!(missed, count);
        assert_eq!(plan.wake_at, Some(at(now) + seconds(30)));
    }
}

#[test]
fn overlap_skip_keeps_one_run_and_records_the_rest() {
    let case = case("sched-18");
    let spec = given(&case);
    assert_eq!(spec.overlap, Overlap::Skip);
    let mut mark = at("2026-03-03T00:00:00Z");
    let mut ends: Option<Timestamp> = None;
    let mut told = Vec::new();
    for minute in 1..=5 {
        let now = at("2026-03-03T00:00:00Z") + seconds(60 * minute);
        ends = ends.filter(|ends| *ends > now);
        let mut moment = Moment::new(spec.clone(), "2026-03-03T00:00:00Z", "2026-03-03T00:00:00Z");
        (moment.now, moment.accounted_until) = (now, mark);
        moment.active = ends.iter().map(|_| running(1)).collect();
        let plan = moment.plan();
        mark = plan.accounted_until.expect("the mark moves");
        if !plan.runs.is_empty() {
            ends = Some(now + seconds(150));
        }
        told.push(lines(&plan).into_iter().find(|line| line.starts_with("2026")).expect("a record"));
    }
    let expect = [
        "2026-03-03T00:01:00Z fired #101",
        "2026-03-03T00:02:00Z skipped: overlap",
        "2026-03-03T00:03:00Z skipped: overlap",
        "2026-03-03T00:04:00Z fired #101",
        "2026-03-03T00:05:00Z skipped: overlap",
    ];
    assert_eq!(told, expect);
}

#[test]
fn catch_up_can_be_switched_off() {
    let case = case("sched-22");
    let mut spec = given(&case);
    assert_eq!(case["given"]["catchup"], false);
    spec.catch_up = CatchUp::None;
    let schedule = Schedule::compile(&spec, at("2026-03-02T00:00:00Z")).expect("a schedule");
    let slot = schedule.next_after(at("2026-03-03T00:00:00Z")).expect("a slot");
    let later = (slot + seconds(11 * 3600)).to_string();
    let plan = Moment::new(spec, "2026-03-03T00:00:00Z", &later).asleep().plan();
    assert_eq!(lines(&plan), [format!("{slot} missed: down"), "wake: 2026-03-04T03:00:00Z".to_owned()]);
}
