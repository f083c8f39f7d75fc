//! Who decided what about which call, and what came of it; and that nobody can change that unseen.

use ow_stories::asking;
use ow_test_support::{id, rows};
use serde_json::Value;

fn effects(entries: &[Value]) -> Vec<&str> {
    entries.iter().rev().map(|entry| entry["effect"].as_str().unwrap_or("-")).collect()
}

#[test]
fn each_call_has_its_record_and_a_changed_record_shows() {
    let scratch = asking();
    let owd = scratch.start();
    for answer in ["approve", "deny"] {
        owd.owctl.ok(&["task", "run", "asking"]);
        owd.owctl.ok(&["inbox", answer, &id(&owd.item())]);
        owd.run_in("asking", if answer == "approve" { "succeeded" } else { "refused" });
    }
    let records = rows(&owd.owctl.json(&["audit", "show", "--task", "asking"]));
    assert_eq!(records.len(), 2, "one record a call: {records:?}");
    let (denied, approved) = (&records[0], &records[1]);
    let words = |record: &Value| -> Vec<String> {
        let entries = record["entries"].as_array().expect("entries").iter();
        let decided = entries.flat_map(|entry| entry["decided"].as_array().cloned().unwrap_or_default());
        decided.map(|decided| decided["answer"].as_str().or(decided["what"].as_str()).unwrap_or("").into()).collect()
    };
    assert_eq!(words(approved), ["ask", "once", "allow"]);
    assert_eq!(words(denied), ["ask", "deny"]);
    let entries = rows(&owd.owctl.json(&["audit", "show", "--entries", "--run", &id(&owd.runs("asking")[1])]));
    let effects = effects(&entries);
    assert_eq!(effects.first().zip(effects.last()), Some((&"-", &"done")), "{effects:?}");
    assert!(effects.contains(&"begun"), "{effects:?}");
    assert!(!serde_json::to_string(&entries).expect("JSON").contains("count.sh"), "no arguments in clear");
    let shown = owd.owctl.ok(&["audit", "show"]);
    assert!(shown.contains("shell") && shown.contains("deny by"), "{shown}");

    let check = owd.owctl.json(&["audit", "verify"]);
    assert_eq!(check["intact"], true, "{check}");
    let (last, head) = (check["entries"].as_u64().expect("a number"), check["head"].as_str().expect("a head"));
    owd.owctl.ok(&["audit", "verify", "--head", head]);
    assert_eq!(owd.owctl.run(&["audit", "verify", "--head", &"0".repeat(64)]).code, 1);
    owd.stop();

    let store = rusqlite::Connection::open(scratch.path().join("data/owd.db")).expect("the store opens");
    let change = "UPDATE audit SET entry = replace(entry, '\"deny\"', '\"once\"') WHERE seq = ?1";
    assert_eq!(store.execute(change, [last.cast_signed()]).expect("changed"), 1);
    drop(store);
    let owd = scratch.start();
    let verify = owd.owctl.run(&["audit", "verify"]);
    assert_eq!(verify.code, 1, "{}", verify.stdout);
    assert!(verify.stdout.contains(&format!("broken at entry {last}")), "{}", verify.stdout);
}

#[test]
fn arguments_are_in_the_audit_when_the_configuration_asks_for_them() {
    let scratch = asking();
    scratch.config("[audit]\narguments = true\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "asking"]);
    owd.item();
    let entries = rows(&owd.owctl.json(&["audit", "show", "--entries"]));
    assert_eq!(entries[0]["arguments"]["argv"][0], "sh");
}
