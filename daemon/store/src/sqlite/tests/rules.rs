use std::sync::Arc;

use ow_model::{Rule, RuleId, RuleScope};

use super::support::Directory;
use crate::Store;
use crate::conformance::support::{noon, rule_target};

fn rule() -> Rule {
    Rule {
        id: RuleId::random(),
        scope: RuleScope::Everywhere,
        target: rule_target(),
        covers_outside: false,
        created_at: noon(),
        created_by: "anna".into(),
        expires_at: None,
        uses_left: None,
        used: 0,
    }
}

/// Where there is none, nothing is read; that must not outlive the first.
#[tokio::test]
async fn the_first_rule_is_found_as_soon_as_it_is_added() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    let task = "any".parse().expect("a name");
    for _ in 0..3 {
        let found = async || store.rules(Some(&task), noon()).await.expect("read");
        assert_eq!(found().await, []);
        assert_eq!(found().await, []);
        let rule = rule();
        store.add_rule(&rule).await.expect("added");
        assert_eq!(found().await, std::slice::from_ref(&rule));
        store.remove_rule(rule.id).await.expect("removed");
    }
    drop(store);
    let rule = rule();
    let store: Arc<dyn Store> = place.store();
    store.add_rule(&rule).await.expect("added");
    drop(store);
    let store: Arc<dyn Store> = place.store();
    assert_eq!(store.rules(Some(&task), noon()).await.expect("read"), [rule], "a new life knows nothing yet");
}
