//! Every case of `scheduler-scenarios.json`, on both flavours of the runtime.

use jiff::SignedDuration;
use ow_model::{Cause, RunState};
use ow_store::Store;
use serde_json::Value;

use super::world::{Act, FLAVOURS, Flavour, World, at, causes, fates, name, task, words};

const CASES: &str = include_str!("../../../../tests/cases/scheduler-scenarios.json");

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("`{key}` in {value}"))
}

/// A task of the case's schedule and zone.
fn cron(given: &Value, more: &str) -> String {
    let zone = text(given, "tz");
    task(&format!("{more}\n[[trigger]]\ncron = \"{}\"", text(given, "schedule")))
        .replace("timezone = \"UTC\"", &format!("timezone = \"{zone}\""))
}

#[test]
fn every_scenario_of_the_cases_holds() {
    let cases: Value = serde_json::from_str(CASES).expect("cases");
    for case in cases["cases"].as_array().expect("a list") {
        for flavour in FLAVOURS {
            let (given, expect) = (&case["given"], &case["expect"]);
            match text(case, "id") {
                "sched-01" => missed_while_down(flavour, given, expect),
                "sched-02" => restart_over_a_slot(flavour, given, expect),
                "sched-03" => crash_after_the_run_began(flavour, given),
                "sched-05" => one_shot_missed(flavour, given),
                "sched-06" => one_shot_in_the_past(flavour, given, expect),
                "sched-09" => zone_changed(flavour, given, expect),
                "sched-11" => edits_leave_one_timer(flavour, given, expect),
                "sched-12" => interval_survives_restarts(flavour, given),
                "sched-17" => two_hundred_missed(flavour, given, expect),
                "sched-18" => overlap_skips(flavour, given, expect),
                "sched-19" => crash_does_not_wedge(flavour, given, expect),
                "sched-22" => catch_up_switched_off(flavour, given, expect),
                other => panic!("no test for case {other}"),
            }
        }
    }
}

fn missed_while_down(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, "2026-03-02T10:00Z");
    let life = world.live();
    life.save("job", &cron(given, ""));
    life.advance(text(given, "last_run"));
    assert_eq!(causes(&life.until_ended("job", 1)), ["schedule"]);
    life.advance("2026-03-03T10:00Z");
    life.stop();

    world.hand.set(at(text(&expect["runs"][0], "at")));
    let life = world.live();
    let runs = life.until_ended("job", 2);
    assert_eq!(causes(&runs), ["schedule", text(&expect["runs"][0], "trigger")]);
    assert_eq!(runs[1].created_at, at(text(&expect["runs"][0], "at")));
    let Cause::CatchUp { count, from, until } = runs[1].cause else { panic!("a catch-up") };
    assert_eq!((count, from, until), (4, at("2026-03-03T11:00Z"), at("2026-03-06T11:00Z")));
    assert_eq!(life.row("job").next_due, Some(at(text(expect, "next"))));
    assert!(fates(&life.slots("job")).iter().any(|fate| fate == "caught up"), "{:?}", life.slots("job"));
    life.stop();
}

fn restart_over_a_slot(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, "2026-03-02T08:00Z");
    let life = world.live();
    life.save("job", &cron(given, ""));
    life.advance(text(given, "last_run"));
    life.advance("2026-03-03T08:29:47Z");
    life.stop();
    world.hand.set(at("2026-03-03T08:30:05Z"));
    let life = world.live();
    let runs = life.until_ended("job", 2);
    assert_eq!(causes(&runs), ["schedule", "catchup"]);
    assert_eq!(runs[1].created_at, at(text(&expect["runs"][0], "at")));
    assert_eq!(life.row("job").next_due, Some(at(text(expect, "next"))));
    life.stop();
}

fn crash_after_the_run_began(flavour: Flavour, given: &Value) {
    let world = World::of(flavour, "2026-03-03T08:00Z");
    world.act("job", Act::Hang);
    let life = world.live();
    life.save("job", &cron(given, ""));
    life.advance("2026-03-03T09:00:00Z");
    life.until("the run began", async || world.begun("job") == 1);
    world.hand.set(at("2026-03-03T09:00:02Z"));
    life.crash();

    world.hand.set(at("2026-03-03T09:00:10Z"));
    world.act("job", Act::Succeed);
    let life = world.live();
    let runs = life.until_ended("job", 1);
    assert_eq!((causes(&runs), words(&runs)), (vec!["schedule"], vec!["succeeded"]));
    assert_eq!(runs[0].scheduled_for, at("2026-03-03T09:00Z"));
    assert_eq!(life.row("job").next_due, Some(at("2026-03-04T09:00Z")));
    life.stop();
}

fn one_shot_missed(flavour: Flavour, given: &Value) {
    let world = World::of(flavour, "2026-03-03T08:00Z");
    let life = world.live();
    life.save("job", &task(&format!("[[trigger]]\nat = \"{}\"", text(given, "once"))));
    life.advance("2026-03-03T08:55Z");
    life.stop();
    world.hand.set(at("2026-03-03T14:00Z"));
    let life = world.live();
    let runs = life.until_ended("job", 1);
    assert_eq!(causes(&runs), ["catchup"]);
    assert_eq!(runs[0].created_at, at("2026-03-03T14:00Z"));
    assert_eq!(life.row("job").next_due, None);
    life.advance("2027-03-03T14:00Z");
    assert_eq!(life.runs("job").len(), 1);
    life.stop();
}

fn one_shot_in_the_past(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, text(given, "now"));
    let life = world.live();
    let saved = life.try_save("job", &task(&format!("[[trigger]]\nat = \"{}\"", text(given, "once"))));
    assert_eq!(saved.is_err(), expect["error"].as_bool().expect("a flag"));
    assert!(saved.expect_err("refused").contains("past"));
    assert_eq!(life.block_on(life.store.task(&name("job"))).expect("a store"), None);
    life.stop();
}

fn zone_changed(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, text(given, "now"));
    let life = world.live();
    let definition = |zone: &str| {
        let head = format!("[[trigger]]\ncron = \"{}\"", text(given, "schedule"));
        task(&head).replace("timezone = \"UTC\"", &format!("timezone = \"{zone}\""))
    };
    life.save("job", &definition(text(given, "tz_before")));
    assert_eq!(life.row("job").next_due, Some(at("2026-05-20T11:00Z")));
    life.save("job", &definition(text(given, "tz_after")));
    assert_eq!(life.row("job").next_due, Some(at(text(expect, "next"))));
    life.advance("2026-05-19T18:59:59Z");
    assert_eq!(life.runs("job").len() as u64, expect["runs_before_next"].as_u64().expect("a count"));
    life.advance(text(expect, "next"));
    assert_eq!(causes(&life.until_ended("job", 1)), ["schedule"]);
    life.stop();
}

fn edits_leave_one_timer(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, "2026-03-03T08:01Z");
    let life = world.live();
    let definition = cron(given, "");
    life.save("job", &definition);
    life.save("job", &definition);
    life.save("job", &cron(given, "title = \"edited\""));
    let (store, now) = (&life.store, world.clock.now());
    life.block_on(store.pause_task(&name("job"), ow_model::PauseReason::Person, now)).expect("paused");
    life.block_on(store.resume_task(&name("job"), now)).expect("resumed");
    life.handle().wake();
    life.pass("2026-03-03T08:15Z", SignedDuration::from_mins(1));
    let runs = life.until_ended("job", 3);
    let per_slot = usize::try_from(expect["runs_per_slot"].as_u64().expect("a count")).expect("small");
    assert_eq!(runs.len(), 3 * per_slot);
    life.stop();
}

fn interval_survives_restarts(flavour: Flavour, given: &Value) {
    let world = World::of(flavour, text(given, "created"));
    let mut life = world.live();
    life.save("job", &task(&format!("[[trigger]]\nevery = \"{}\"", text(given, "every"))));
    for _ in 0..5 {
        let up_until = world.clock.now() + SignedDuration::from_hours(4) - SignedDuration::from_secs(1);
        life.pass(&up_until.to_string(), SignedDuration::from_mins(30));
        life.stop();
        world.hand.set(up_until + SignedDuration::from_hours(1) + SignedDuration::from_secs(1));
        life = world.live();
    }
    // The first three slots came while owd was up, the fourth fell into a stop.
    let runs = life.until_ended("job", 4);
    assert_eq!(causes(&runs), ["schedule", "schedule", "schedule", "catchup"]);
    let slots: Vec<_> = runs.iter().map(|run| run.scheduled_for).collect();
    let expected = ["03T06:00Z", "03T12:00Z", "03T18:00Z", "04T00:00Z"].map(|slot| at(&format!("2026-03-{slot}")));
    assert_eq!(slots, expected);
    assert_eq!(life.row("job").next_due, Some(at("2026-03-04T06:00Z")));
    life.stop();
}

fn two_hundred_missed(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, "2026-03-02T23:59:30Z");
    let life = world.live();
    life.save("job", &cron(given, ""));
    life.advance(text(given, "last_run"));
    life.until_ended("job", 1);
    life.stop();
    world.hand.set(at("2026-03-03T03:20:30Z"));
    let life = world.live();
    let runs = life.until_ended("job", 2);
    assert_eq!(causes(&runs), ["schedule", text(&expect["runs"][0], "trigger")]);
    assert!(matches!(runs[1].cause, Cause::CatchUp { count: 200, .. }), "{:?}", runs[1].cause);
    life.advance("2026-03-03T03:21:00Z");
    assert_eq!(causes(&life.until_ended("job", 3))[2], "schedule");
    life.stop();
}

fn overlap_skips(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, "2026-03-03T07:59:30Z");
    world.act("job", Act::Hold);
    let life = world.live();
    life.save("job", &cron(given, ""));
    life.pass("2026-03-03T08:02:30Z", SignedDuration::from_secs(30));
    world.act("job", Act::Succeed);
    world.release(1);
    life.until_ended("job", 1);
    life.pass("2026-03-03T08:04:00Z", SignedDuration::from_secs(30));
    let runs = life.until_ended("job", 3);
    let slots: Vec<_> = runs.iter().map(|run| run.scheduled_for).collect();
    assert_eq!(slots, ["08:00Z", "08:03Z", "08:04Z"].map(|slot| at(&format!("2026-03-03T{slot}"))));
    assert_eq!(Some(world.most_at_once() as u64), expect["max_parallel"].as_u64());
    let fates = fates(&life.slots("job"));
    assert!(fates.iter().any(|fate| fate.starts_with("skipped: overlap")), "{fates:?}");
    life.stop();
}

fn crash_does_not_wedge(flavour: Flavour, given: &Value, expect: &Value) {
    let world = World::of(flavour, "2026-03-03T09:59:00Z");
    world.act("job", Act::Hang);
    let life = world.live();
    life.save("job", &cron(given, ""));
    life.advance("2026-03-03T10:00:00Z");
    life.until("the run began", async || world.begun("job") == 1);
    world.hand.set(at("2026-03-03T10:00:05Z"));
    life.crash();

    world.hand.set(at("2026-03-03T10:00:30Z"));
    world.act("job", Act::Succeed);
    let life = world.live();
    life.until_ended("job", 1);
    assert_eq!(life.row("job").next_due, Some(at(&format!("2026-03-03T{}", text(expect, "next")))));
    life.block_on(life.store.run_now(&name("job"), "ann", None, world.clock.now())).expect("works at once");
    life.handle().wake();
    life.until_ended("job", 2);
    life.advance("2026-03-03T10:10:00Z");
    let runs = life.until_ended("job", 3);
    assert_eq!(causes(&runs), ["schedule", "manual", "schedule"]);
    let at_ten = runs.iter().filter(|run| run.scheduled_for == at("2026-03-03T10:10Z")).count();
    assert_eq!(Some(at_ten as u64), expect["runs_at_10_10"].as_u64());
    life.stop();
}

fn catch_up_switched_off(flavour: Flavour, given: &Value, expect: &Value) {
    // 11:00 in Shanghai is 03:00 UTC.
    let world = World::of(flavour, "2026-03-03T02:00Z");
    let life = world.live();
    assert_eq!(given["catchup"], false);
    life.save("job", &cron(given, "catch-up = \"none\""));
    life.stop();
    world.hand.set(at("2026-03-03T14:00Z"));
    let life = world.live();
    life.rest();
    let runs = life.runs("job");
    assert_eq!(Some(runs.len() as u64), expect["runs"].as_u64());
    let fates = fates(&life.slots("job"));
    assert!(fates.len() == 1 && fates[0].starts_with(text(expect, "history")), "{fates:?}");
    assert!(!runs.iter().any(|run| matches!(run.state, RunState::Queued { .. })));
    assert_eq!(life.row("job").next_due, Some(at("2026-03-04T03:00Z")));
    life.stop();
}
