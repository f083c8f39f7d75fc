use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use ow_test_support::rows;
use serde_json::Value;

use crate::records::Records;
use crate::tally::{Chance, is_full, rounds};
use crate::world::{Fate, World};

#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Stopped,
}

/// A store with some history, as an owd that was stopped, or killed, leaves it behind.
fn lived_in(end: End) -> BTreeMap<String, Vec<u8>> {
    let mut world = World::new();
    let owd = world.scratch.start();
    world.load();
    assert_eq!(world.quiet(0), Fate::Lives);
    match end {
        End::Killed => owd.kill(),
        End::Stopped => owd.stop(),
    }
    store_files(&world)
}

/// The files of the store, by name. The index beside them is made anew by whoever opens it.
fn store_files(world: &World) -> BTreeMap<String, Vec<u8>> {
    let data = world.file("data");
    let names = ["owd.db", "owd.db-wal"].into_iter().filter(|name| data.join(name).is_file());
    names.map(|name| (name.to_owned(), fs::read(data.join(name)).expect("a file"))).collect()
}

/// Starts owd on these files: it refuses and keeps them, or it runs and loses nothing silently.
fn start_on(name: &str, files: &BTreeMap<String, Vec<u8>>) -> Start {
    let world = World::new();
    fs::create_dir_all(world.file("data")).expect("a folder");
    for (file, bytes) in files {
        fs::write(world.file("data").join(file), bytes).expect("a file");
    }
    let Some(owd) = world.scratch.try_start_with(|_| {}) else {
        let told = world.scratch.stderr();
        assert!(!told.contains("panicked"), "{name}: {told}");
        assert!(told.contains("owd.db") && told.contains("damaged"), "{name}: {told}");
        assert_eq!(store_files(&world), *files, "{name}: what was there is kept");
        return Start::Refused;
    };
    let told = owd.owctl.json(&["status"])["warnings"].clone();
    let tasks = owd.owctl.run(&["task", "list", "--json", "--limit", "500"]);
    let found = serde_json::from_str::<Value>(&tasks.stdout).expect("JSON");
    // Tasks from files come back by themselves; the added one is only in the store.
    let mut is_there = rows(&found).iter().any(|task| task["name"] == "added");
    let is_told = tasks.code != 0 || told.as_array().is_some_and(|told| !told.is_empty());
    for read in [["run", "list"], ["inbox", "list"], ["rule", "list"], ["why", "tick"]] {
        let answer = owd.owctl.run(&read);
        assert!(
            matches!(answer.code, 0 | 1 | 4),
            "{name}: {read:?}: {}{}\n{}",
            answer.stdout,
            answer.stderr,
            world.scratch.stderr()
        );
        is_there &= answer.code != 4;
    }
    owd.kill();
    let log = world.scratch.stderr();
    assert!(!log.contains("panicked"), "{name}: {log}");
    let is_told = is_told || log.contains("damaged") || log.contains("cannot be read");
    if is_there || is_told { Start::Runs } else { Start::Loses }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Start {
    Runs,
    Refused,
    /// It runs, a task is gone, and nobody is told.
    Loses,
}

#[test]
fn a_store_cut_to_any_length_is_never_taken_for_an_empty_one() {
    let files = lived_in(End::Stopped);
    let length = files["owd.db"].len();
    for cut in [length / 2, length - 1, length - 4096, 4096, 100, 99, 1] {
        let mut files = files.clone();
        files.get_mut("owd.db").expect("the store").truncate(cut);
        let name = format!("cut to {cut} of {length}");
        assert_ne!(start_on(&name, &files), Start::Loses, "{name}");
    }
    let mut empty = files;
    empty.get_mut("owd.db").expect("the store").clear();
    assert_eq!(start_on("emptied", &empty), Start::Refused);
}

/// SQLite keeps no checksums: a flipped byte may make another sound value, or another root of a table, and a task with
/// it go unseen. That is counted and printed; whatever is flipped, owd neither panics nor stops answering.
#[test]
fn flipped_bytes_of_the_store_are_told_or_taken_for_what_they_say() {
    let files = lived_in(End::Stopped);
    let length = files["owd.db"].len() as u64;
    let count = if is_full() { 1000 } else { 16 };
    let unseen = AtomicU64::new(0);
    let tally = rounds(0..count, |number, tally| {
        let mut chance = Chance::of(number + 1);
        let mut files = files.clone();
        let store = files.get_mut("owd.db").expect("the store");
        for _ in 0..=chance.below(8) {
            let at = usize::try_from(chance.below(length)).expect("in the file");
            store[at] ^= u8::try_from(1 + chance.below(255)).expect("a byte");
        }
        if start_on(&format!("flips {number}"), &files) == Start::Loses {
            unseen.fetch_add(1, Ordering::Relaxed);
        }
        tally.rounds += 1;
    });
    tally.conclude(&format!("flipped bytes ({} times a task was gone unseen)", unseen.into_inner()));
}

/// What stood behind the damage is lost, and nobody is told: SQLite takes it for the end of a write that a crash
/// broke off. What stands before it is whole, and owd works on it.
#[test]
fn a_log_cut_or_flipped_anywhere_is_read_up_to_there_and_worked_on() {
    let files = lived_in(End::Killed);
    let length = files["owd.db-wal"].len() as u64;
    let count = if is_full() { 300 } else { 8 };
    let tally = rounds(0..count, |number, tally| {
        let mut chance = Chance::of(number + 1);
        let mut files = files.clone();
        let log = files.get_mut("owd.db-wal").expect("a log");
        let at = usize::try_from(chance.below(length)).expect("in the file");
        if number % 2 == 0 {
            log.truncate(at);
        } else {
            log[at] ^= u8::try_from(1 + chance.below(255)).expect("a byte");
        }
        let name = format!("log {number} at {at} of {length}");
        let mut world = World::new();
        fs::create_dir_all(world.file("data")).expect("a folder");
        for (file, bytes) in &files {
            fs::write(world.file("data").join(file), bytes).expect("a file");
        }
        let owd = world.scratch.start();
        world.run_task("posted");
        assert_eq!(world.said.runs.len(), 1, "{name}: {:?}", world.said.refusals);
        world.settle(&owd);
        owd.stop();
        assert!(!world.scratch.stderr().contains("panicked"), "{name}: {}", world.scratch.stderr());
        let records = Records::read(&world.scratch);
        assert_eq!(records.integrity, "ok", "{name}");
        assert!(world.said.runs.iter().all(|run| records.runs[run].outcome["outcome"] == "succeeded"), "{name}");
        tally.rounds += 1;
    });
    tally.conclude("a damaged log");
}
