//! The audit under hands that it was not made for.

use std::sync::Arc;

use ow_model::{CallResult, Fact, Intent};
use serde_json::json;

use super::support::Directory;
use crate::conformance::support::{begin, call, noon, page, save, spec};
use crate::{AuditFilter, SqliteStore, Store};

/// A store with this many entries of one run.
async fn filled(place: &Directory, entries: u32) {
    let store: Arc<dyn Store> = place.store();
    fill(&store, entries).await;
}

async fn fill(store: &Arc<dyn Store>, entries: u32) {
    save(store, &spec("job", vec![]), noon()).await;
    let run = begin(store, "job", noon()).await.run.id;
    for position in 0..entries {
        let call = call(position, "x");
        let facts = [
            Fact::Rendered { step: 0, call: call.clone(), holes: vec![] },
            Fact::Intended { position: call.position, hash: call.hash(), repeatable: false, intent: Intent::default() },
            Fact::Done { position: call.position, result: CallResult::ok(json!({})), took_ms: 1 },
        ];
        store.append(run, position * 3, &facts, None, noon()).await.expect("appended");
    }
}

/// Where the chain is broken, after somebody did this to the file.
async fn fault_after(sql: &str) -> Option<(u64, String)> {
    let place = Directory::new();
    filled(&place, 5).await;
    place.raw().execute_batch(sql).expect("tampered");
    let store: Arc<dyn Store> = place.store();
    store.check_audit().await.expect("read").fault.map(|fault| (fault.seq, fault.why))
}

#[tokio::test]
async fn whatever_is_done_to_an_entry_shows() {
    assert_eq!(fault_after("").await, None);
    let at = async |sql: &str| fault_after(sql).await.map(|(seq, _)| seq);
    let changed = "UPDATE audit SET entry = replace(entry, 'shell', 'sheel') WHERE seq = 3";
    assert_eq!(at(changed).await, Some(3));
    assert_eq!(at("DELETE FROM audit WHERE seq = 1").await, Some(1));
    assert_eq!(at("DELETE FROM audit WHERE seq = 3").await, Some(3));
    assert_eq!(at("DELETE FROM audit WHERE seq >= 4").await, Some(4), "its end is missing");
    assert_eq!(at("DELETE FROM audit").await, Some(1));
    let moved = "UPDATE audit SET seq = -3 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4;
                 UPDATE audit SET seq = 4 WHERE seq = -3";
    assert_eq!(at(moved).await, Some(3));
    let closed_up = "DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = seq - 1 WHERE seq > 3";
    assert_eq!(at(closed_up).await, Some(3));
    assert_eq!(at("UPDATE audit SET task = 'other' WHERE seq = 2").await, Some(2));
    assert_eq!(at("UPDATE audit SET run = NULL WHERE seq = 2").await, Some(2));
    let twice = "INSERT INTO audit SELECT seq + 1, task, run, position, entry, hash FROM audit WHERE seq = 5";
    assert_eq!(at(twice).await, Some(6));
}

#[tokio::test]
async fn the_chain_goes_on_after_damage_and_still_tells_of_it() {
    let place = Directory::new();
    filled(&place, 3).await;
    place.raw().execute_batch("UPDATE audit SET entry = '{' WHERE seq = 2").expect("torn");
    let store: Arc<dyn Store> = place.store();
    let rule = ow_model::Rule {
        id: ow_model::RuleId::random(),
        scope: ow_model::RuleScope::Everywhere,
        target: crate::conformance::support::rule_target(),
        covers_outside: false,
        created_at: noon(),
        created_by: "anna".into(),
        expires_at: None,
        uses_left: None,
        used: 0,
    };
    store.add_rule(&rule).await.expect("added");
    let rows = store.audit(&AuditFilter::default(), &page(10)).await.expect("read").rows;
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [4, 3, 1]);
    assert_eq!(store.check_audit().await.expect("read").fault.map(|fault| fault.seq), Some(2));
}

#[tokio::test]
async fn arguments_are_kept_only_when_asked_for_and_as_they_are_shown() {
    let place = Directory::new();
    let store: Arc<SqliteStore> = place.store();
    store.show_arguments(Some(Arc::new(|args| json!({ "shown": args["argv"][0] }))));
    let store: Arc<dyn Store> = store;
    fill(&store, 1).await;
    let rows = store.audit(&AuditFilter::default(), &page(10)).await.expect("read").rows;
    assert_eq!(rows[0].audited.arguments, Some(json!({ "shown": "echo" })));
}
