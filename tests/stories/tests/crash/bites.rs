//! The matrix proves nothing unless its checker sees what is broken: here everything is, one by one.

use std::fs;

use ow_test_support::{FaultAction, FaultCall};
use rusqlite::Connection;

use crate::checker::{Findings, check};
use crate::kills::fault;
use crate::records::Records;
use crate::world::{Fate, World};

type Kind = fn(&Findings) -> &Vec<String>;

const DUPLICATES: Kind = |found| &found.duplicates;
const LOSSES: Kind = |found| &found.losses;
const UNASKED: Kind = |found| &found.unasked;
const CONTRADICTIONS: Kind = |found| &found.contradictions;

/// What is done to a sound store, and which kind of finding must come of it.
const HARMS: [(&str, Kind); 15] = [
    ("DELETE FROM tasks WHERE name = 'added'", LOSSES),
    ("UPDATE revisions SET text = '' WHERE task = (SELECT id FROM tasks WHERE name = 'added')", LOSSES),
    ("DELETE FROM runs WHERE task_name = 'added'", LOSSES),
    ("DELETE FROM slots WHERE id = (SELECT min(id) FROM slots WHERE kind = 0)", LOSSES),
    (
        "UPDATE slots SET starts = starts + 500000, ends = ends + 500000 WHERE kind = 0 AND starts = (SELECT max(starts) FROM slots WHERE kind = 0)",
        LOSSES,
    ),
    ("UPDATE tasks SET accounted_until = accounted_until + 5000000 WHERE name = 'tick'", LOSSES),
    ("DELETE FROM events WHERE key = 'k2'", LOSSES),
    ("DELETE FROM events WHERE task = (SELECT id FROM tasks WHERE name = 'later')", LOSSES),
    ("DELETE FROM run_events", LOSSES),
    ("INSERT INTO run_events SELECT (SELECT max(ord) FROM runs), id FROM events WHERE key = 'k2'", DUPLICATES),
    ("UPDATE items SET state_json = replace(state_json, '\"once\"', '\"deny\"')", LOSSES),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"intended\"%'", CONTRADICTIONS),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"done\"%'", UNASKED),
    (
        "UPDATE journal SET fact = replace(fact, 'succeeded', 'failed') WHERE fact LIKE '{\"fact\":\"ended\"%'",
        CONTRADICTIONS,
    ),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"answered\"%'", CONTRADICTIONS),
];

fn sound() -> World {
    let mut world = World::new();
    let owd = world.scratch.start();
    world.load();
    assert_eq!(world.quiet(3), Fate::Lives);
    world.finish(owd);
    world
}

#[test]
fn the_checker_sees_each_harm_that_is_done_to_a_store() {
    let world = sound();
    let none = check(&world, &Records::read(&world.scratch));
    assert_eq!(format!("{none:?}"), format!("{:?}", Findings::default()), "a sound store has no findings");
    let (file, copy) = (world.file("data/owd.db"), world.file("sound.db"));
    fs::copy(&file, &copy).expect("a copy");
    for (harm, kind) in HARMS {
        fs::copy(&copy, &file).expect("a copy");
        let db = Connection::open(&file).expect("a store");
        assert!(db.execute(harm, []).expect(harm) > 0, "{harm}: nothing was harmed");
        drop(db);
        let found = check(&world, &Records::read(&world.scratch));
        assert!(!kind(&found).is_empty(), "{harm}: {found:#?}");
    }
    fs::copy(&copy, &file).expect("a copy");
    let effects = world.scratch.work().join("effects");
    let counted = fs::read_to_string(&effects).expect("the counter");
    let twice = format!("{counted}{}", counted.lines().next().expect("a line").to_owned() + "\n");
    fs::write(&effects, twice).expect("a file");
    assert!(!check(&world, &Records::read(&world.scratch)).duplicates.is_empty(), "an effect came twice");
    fs::write(&effects, "").expect("a file");
    assert!(!check(&world, &Records::read(&world.scratch)).losses.is_empty(), "no effect came");
}

#[test]
fn a_disk_that_lies_about_syncs_is_seen_to_lose_what_was_acknowledged() {
    let mut world = World::new();
    world.scratch.start().stop();
    let fault = fault(&world, FaultCall::Sync, FaultAction::Lie, 30);
    let owd = world.scratch.start_with(|command| fault.apply(command));
    world.load();
    world.quiet(1);
    owd.kill();
    assert!(fault.calls() >= 30, "the fault came");
    let owd = world.scratch.start();
    world.finish(owd);
    let found = check(&world, &Records::read(&world.scratch));
    assert!(!found.losses.is_empty(), "{found:#?}");
}
