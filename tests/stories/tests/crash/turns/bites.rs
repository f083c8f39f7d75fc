//! What the checker of turns must see: here everything is broken, one by one.

use std::fs;

use ow_stories::Door;
use rusqlite::Connection;
use serde_json::json;

use super::kills::under;
use super::verdicts::check;
use super::world::Agents;
use crate::checker::Findings;
use crate::records::Records;

type Kind = fn(&Findings) -> &Vec<String>;

const DUPLICATES: Kind = |found| &found.duplicates;
const LOSSES: Kind = |found| &found.losses;
const UNASKED: Kind = |found| &found.unasked;
const CONTRADICTIONS: Kind = |found| &found.contradictions;

const HARMS: [(&str, Kind); 9] = [
    ("DELETE FROM runs WHERE task_name = 'works'", LOSSES),
    ("UPDATE items SET state_json = replace(state_json, '\"once\"', '\"deny\"')", LOSSES),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"input\"%'", LOSSES),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"replied\"%'", LOSSES),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"intended\"%'", CONTRADICTIONS),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"done\"%'", UNASKED),
    ("DELETE FROM journal WHERE fact LIKE '{\"fact\":\"answered\"%'", CONTRADICTIONS),
    (
        "UPDATE journal SET fact = replace(fact, 'succeeded', 'failed') WHERE fact LIKE '{\"fact\":\"ended\"%'",
        CONTRADICTIONS,
    ),
    ("UPDATE runs SET outcome = replace(outcome, 'succeeded', 'cancelled')", CONTRADICTIONS),
];

#[test]
fn the_checker_of_turns_sees_each_harm_that_is_done_to_a_store_or_a_request() {
    let mut agents = Agents::new();
    let owd = under(&mut agents, None).expect("nothing kills it");
    agents.settle();
    owd.stop();
    let found = |agents: &Agents| check(agents, &Records::read(&agents.scratch));
    assert_eq!(format!("{:?}", found(&agents)), format!("{:?}", Findings::default()), "a sound store has no findings");
    let (file, copy) = (agents.scratch.path().join("data/owd.db"), agents.scratch.path().join("sound.db"));
    fs::copy(&file, &copy).expect("a copy");
    for (harm, kind) in HARMS {
        fs::copy(&copy, &file).expect("a copy");
        let db = Connection::open(&file).expect("a store");
        assert!(db.execute(harm, []).expect(harm) > 0, "{harm}: nothing was harmed");
        drop(db);
        let found = found(&agents);
        assert!(!kind(&found).is_empty(), "{harm}: {found:#?}");
    }
    fs::copy(&copy, &file).expect("a copy");

    let effects = agents.scratch.work().join("effects");
    let counted = fs::read_to_string(&effects).expect("the counter");
    fs::write(&effects, format!("{counted}{counted}")).expect("a file");
    assert!(!DUPLICATES(&found(&agents)).is_empty(), "effects came twice");
    fs::write(&effects, "").expect("a file");
    assert!(!CONTRADICTIONS(&found(&agents)).is_empty(), "models were told of effects that never came");
    fs::write(&effects, counted).expect("a file");

    // A history that has lost a result, and one that says something else than before.
    let last = agents.model.last().json();
    let mut orphan = last.clone();
    orphan["messages"].as_array_mut().expect("messages").retain(|message| message["role"] != "tool");
    let mut changed = last;
    for message in changed["messages"].as_array_mut().expect("messages") {
        if message["role"] == "tool" {
            message["content"] = json!("something else");
        }
    }
    let door = Door::Tcp { address: agents.model.address().to_string(), key: String::new() };
    for (what, body) in [("an orphan", orphan), ("a change", changed)] {
        let before = CONTRADICTIONS(&found(&agents)).len();
        drop(door.send("POST", "/v1/chat/completions", &[], &body.to_string()));
        assert!(CONTRADICTIONS(&found(&agents)).len() > before, "{what}");
    }
}
