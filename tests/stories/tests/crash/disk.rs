use std::fs;

use ow_test_support::{Answer, FaultAction, FaultCall, id, until};
use serde_json::json;

use crate::kills::{fault, recover};
use crate::tally::{Tally, points, rounds};
use crate::world::{Fate, World};

/// Whether an error says what is wrong with the disk.
fn names_the_cause(text: &str, action: FaultAction) -> bool {
    let text = text.to_lowercase();
    match action {
        FaultAction::NoSpace => text.contains("full") || text.contains("no space"),
        _ => text.contains("i/o error") || text.contains("input/output error"),
    }
}

/// How many calls of a kind the load comes to.
fn calls(call: FaultCall) -> u64 {
    let mut world = World::new();
    let fault = fault(&world, call, FaultAction::NoSpace, 0);
    let owd = world.scratch.start_with(|command| fault.apply(command));
    world.load();
    assert_eq!(world.quiet(0), Fate::Lives);
    owd.kill();
    fault.calls()
}

/// From one call on, all fail. Then either the fault passes, and owd goes on; or owd is killed and started again.
fn fail_from(call: FaultCall, action: FaultAction, number: u64, tally: &mut Tally) {
    let mut world = World::new();
    let fault = fault(&world, call, action, number);
    let name = format!("{action:?} {call:?} {number}");
    if let Some(owd) = world.scratch.try_start_with(|command| fault.apply(command)) {
        world.load();
        for refusal in world.said.refusals.drain(..) {
            let told = format!("{}{}", refusal.stdout, refusal.stderr);
            assert!(refusal.code == 1 && names_the_cause(&told, action) || is_consequence(&refusal), "{name}: {told}");
        }
        if number.is_multiple_of(2) {
            fs::write(&fault.until, "").expect("a file");
            // Everything is written again, and owd goes on by itself.
            world.load();
            world.settle(&owd);
            assert!(world.said.refusals.iter().all(is_consequence), "{name}: {:?}", world.said.refusals);
            world.finish(owd);
            tally.check(&format!("{name}, passed"), &world);
            return;
        }
        owd.kill();
        tally.kills += 1;
    } else {
        let told = world.scratch.stderr();
        assert!(names_the_cause(&told, action), "{name}: {told}");
    }
    recover(&name, &mut world, tally);
}

/// What was to be run or answered is not there, as its making was refused before; or is there already.
fn is_consequence(refusal: &Answer) -> bool {
    matches!(refusal.code, 4 | 5) || refusal.stdout.contains("already") || refusal.stderr.contains("already")
}

#[test]
fn a_store_that_cannot_write_says_so_and_loses_nothing() {
    let last = calls(FaultCall::Write);
    let sample = points(last, 3).into_iter().map(|number| (FaultAction::NoSpace, number));
    let sample = sample.chain(points(last, 3).into_iter().map(|number| (FaultAction::InputOutput, number)));
    let tally = rounds(sample, |(action, number), tally| fail_from(FaultCall::Write, action, number, tally));
    tally.conclude(&format!("failing writes (of {last})"));
}

#[test]
fn a_store_that_cannot_sync_says_so_and_loses_nothing() {
    let last = calls(FaultCall::Sync);
    let sample = points(last, 3).into_iter().map(|number| (FaultAction::NoSpace, number));
    let sample = sample.chain(points(last, 3).into_iter().map(|number| (FaultAction::InputOutput, number)));
    let tally = rounds(sample, |(action, number), tally| fail_from(FaultCall::Sync, action, number, tally));
    tally.conclude(&format!("failing syncs (of {last})"));
}

#[test]
fn a_full_disk_is_named_to_whoever_asks_for_something_and_work_goes_on_when_there_is_room() {
    let mut world = World::new();
    let fault = fault(&world, FaultCall::Write, FaultAction::NoSpace, 1);
    // There is room until the file is taken away.
    fs::write(&fault.until, "").expect("a file");
    let owd = world.scratch.start_with(|command| fault.apply(command));
    world.run_task("asks");
    let item = until("it asks", || world.pending().into_iter().next());
    fs::remove_file(&fault.until).expect("it is there");

    let file = world.file("more.toml");
    fs::write(&file, "[[step]]\ntool = \"list_dir\"\nargs = { path = \"/\" }\n").expect("a file");
    let file = file.to_string_lossy().into_owned();
    let item_id = id(&item);
    let acts: [&[&str]; 5] = [
        &["task", "add", &file],
        &["task", "run", "effects"],
        &["task", "pause", "effects"],
        &["inbox", "approve", &item_id],
        &["inbox", "deny", &item_id],
    ];
    for act in acts {
        let answer = owd.owctl.run(act);
        assert_eq!(answer.code, 1, "{act:?}: {}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains("disk is full") && answer.stderr.contains("make room"), "{}", answer.stderr);
        let error = owd.owctl.json(act)["error"].clone();
        assert_eq!(error["code"], "unavailable", "{error}");
    }
    let event = json!({ "events": [{ "task": "posted", "key": "k9" }] }).to_string();
    assert_eq!(world.door().send("POST", "/v1/events", &[], &event).status, 503);
    // What only reads goes on.
    assert_eq!(world.pending().len(), 1);
    owd.owctl.ok(&["task", "list"]);
    owd.owctl.ok(&["status"]);

    fs::write(&fault.until, "").expect("a file");
    world.load();
    world.settle(&owd);
    assert!(world.said.refusals.is_empty(), "{:?}", world.said.refusals);
    world.finish(owd);
    let mut tally = Tally::default();
    tally.check("a full disk", &world);
    tally.conclude("a full disk");
}

#[test]
fn a_task_file_that_a_failing_disk_refused_is_taken_by_itself_once_the_disk_works() {
    let world = World::new();
    let fault = fault(&world, FaultCall::Write, FaultAction::InputOutput, 1);
    fs::write(&fault.until, "").expect("a file");
    let owd = world.scratch.start_with(|command| fault.apply(command));
    fs::remove_file(&fault.until).expect("it is there");
    world.scratch.task("fresh", "[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n");
    let warning = until("the refused file is told of", || {
        let status = owd.owctl.json(&["status"]);
        let warnings = status["warnings"].as_array().cloned().unwrap_or_default();
        warnings.into_iter().find(|warning| warning["about"].to_string().contains("fresh.toml"))
    });
    assert!(warning["message"].to_string().contains("failing"), "{warning}");
    assert!(warning["hint"].to_string().contains("by itself"), "{warning}");
    fs::write(&fault.until, "").expect("a file");
    until("the task is there", || (owd.owctl.run(&["task", "show", "fresh"]).code == 0).then_some(()));
    until("nothing is told of any more", || (owd.owctl.json(&["status"])["warnings"] == json!([])).then_some(()));
    owd.owctl.ok(&["task", "run", "fresh", "--wait"]);
    owd.stop();
}
