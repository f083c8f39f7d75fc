//! Backup of a running store, and what a restore makes of the time since.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use ow_stories::{asking, executions};
use ow_test_support::{Answer, Owd, Scratch, id, until};

/// Backs up, lets `since` happen, and puts the backup in the store's place.
fn restored(scratch: &Scratch, owd: Owd, since: impl FnOnce(&Owd)) -> Owd {
    let into = scratch.path().join("backup");
    owd.owctl.ok(&["backup", &into.to_string_lossy()]);
    since(&owd);
    owd.stop();
    let restored = Answer::within_limit(scratch.command().arg("restore").arg(&into));
    assert_eq!(restored.code, 0, "{}", restored.stderr);
    scratch.start()
}

#[test]
fn open_questions_are_withdrawn_and_asked_anew() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let epoch = owd.owctl.json(&["status"])["epoch"].as_u64().expect("an epoch");
    let owd = restored(&scratch, owd, |_| ());
    let anew = until("it is asked anew", || owd.items().into_iter().find(|item| item["kind"] == "approval"));
    assert_ne!(id(&anew), item);
    let old = owd.owctl.run(&["inbox", "approve", &item]);
    assert_eq!(old.code, 5, "{}", old.stderr);
    assert!(old.stderr.contains("withdrawn"), "{}", old.stderr);
    assert!(owd.owctl.json(&["status"])["epoch"].as_u64().expect("an epoch") > epoch);
    assert_eq!(executions(&scratch), 0);
    owd.owctl.ok(&["inbox", "approve", &id(&anew)]);
    owd.run_in("asking", "succeeded");
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn a_call_that_was_approved_after_the_backup_is_asked_about_and_not_repeated() {
    let scratch = asking();
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let owd = restored(&scratch, owd, |owd| {
        owd.owctl.ok(&["inbox", "approve", &item]);
        owd.run_in("asking", "succeeded");
    });
    until("it is asked about", || owd.items().into_iter().find(|item| item["kind"] == "approval"));
    assert_eq!(executions(&scratch), 1);
}

#[test]
fn slots_since_the_backup_are_missed_and_say_so() {
    let scratch = Scratch::new();
    scratch
        .task("tick", "[[trigger]]\ncron = \"* * * * * *\"\n[[step]]\ntool = \"shell\"\nargs = { argv = [\"pwd\"] }\n");
    let owd = scratch.start();
    owd.run_in("tick", "succeeded");
    let owd = restored(&scratch, owd, |owd| {
        let before = owd.runs("tick").len();
        until("it fires after the backup", || (owd.runs("tick").len() > before + 1).then_some(()));
    });
    until("the slots in between are on record", || {
        let why = owd.owctl.json(&["why", "tick"]);
        let records = why["records"].as_array()?.clone();
        let missed = records.into_iter().find(|record| record["disposition"] == "missed")?;
        missed["why"].as_str().is_some_and(|why| why.contains("restored")).then_some(())
    });
}

#[test]
fn a_backup_replaces_nothing_and_a_restore_needs_the_store_for_itself() {
    let scratch = asking();
    let owd = scratch.start();
    let into = scratch.path().join("there");
    fs::create_dir(&into).expect("a folder");
    fs::write(into.join("mine"), "1").expect("a file");
    let refused = owd.owctl.run(&["backup", &into.to_string_lossy()]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("there"), "{}", refused.stderr);
    assert_eq!(fs::read_dir(&into).expect("the folder").count(), 1);

    let into = scratch.path().join("backup");
    owd.owctl.ok(&["backup", &into.to_string_lossy()]);
    let refused = Answer::within_limit(scratch.command().arg("restore").arg(&into));
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains(&format!("pid {}", owd.pid())), "{}", refused.stderr);
    owd.owctl.ok(&["status"]);
    owd.stop();
    let nothing = Answer::within_limit(scratch.command().arg("restore").arg(scratch.work()));
    assert_ne!(nothing.code, 0, "a folder that is no backup");
    let owd = scratch.start();
    assert_eq!(owd.owctl.json(&["task", "show", "asking"])["revision"], 1);
}

#[test]
fn the_store_that_was_there_is_kept_and_named() {
    let scratch = asking();
    let owd = scratch.start();
    let into = scratch.path().join("backup");
    owd.owctl.ok(&["backup", &into.to_string_lossy()]);
    owd.stop();
    let restored = Answer::within_limit(scratch.command().arg("restore").arg(&into).stdout(Stdio::piped()));
    let kept = restored.stdout.lines().find_map(|line| line.split_once("kept as ")).map(|(_, path)| path);
    let kept = kept.unwrap_or_else(|| panic!("{restored:?}")).trim_end_matches('.');
    assert!(Path::new(kept).exists(), "{kept}");
}
