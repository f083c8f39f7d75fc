use std::collections::BTreeSet;
use std::sync::Arc;

use ow_model::{InboxBinding, Outcome, Position};

use super::support::Directory;
use crate::conformance::support::{approval, begin, call, end, ending, event, name, noon, save, spec, started};
use crate::{Accepted, ParkRequest, Route, Routing, SqliteStore, Store, StoreError, TakenDeliveries, TaskError};

/// Lets the store's file grow by no more than this many pages.
async fn limit(store: &SqliteStore, pages: i64) {
    let limited: Result<(), StoreError> = store
        .writer
        .write(move |tx| {
            let used: i64 = tx.db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            tx.db.query_row(&format!("PRAGMA max_page_count = {}", used + pages), [], |_| Ok(()))?;
            Ok(())
        })
        .await;
    limited.expect("limited");
}

#[tokio::test]
async fn a_full_disk_refuses_facts_and_the_store_goes_on_when_there_is_room() {
    let place = Directory::new();
    let sqlite = place.store();
    let store: Arc<dyn Store> = sqlite.clone();
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let head = *store.stream_head().borrow();
    limit(&sqlite, 2).await;

    let long = "x".repeat(2000);
    let mut accepted = 0;
    let refused = loop {
        match store.accept_events(&[event("job", &format!("{accepted}-{long}"))], noon()).await {
            Ok(_) => accepted += 1,
            Err(refused) => break refused,
        }
        assert!(accepted < 1000, "the limit holds");
    };
    let TaskError::Store(StoreError::Full { file }) = refused else { panic!("{refused:?}") };
    assert_eq!(file, place.file(), "the error names the file");
    let large = ow_model::Fact::StepSkipped { step: 1 };
    let facts = vec![large; 2000];
    let refused = store.append(taken.run.id, 0, &facts, None, noon()).await;
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
    assert_eq!(*store.stream_head().borrow(), head, "nothing is told that is not there");
    assert_eq!(store.journal(taken.run.id).await.expect("reading goes on").len(), 0);

    limit(&sqlite, 10_000).await;
    let key = format!("{accepted}-{long}");
    let again = store.accept_events(&[event("job", &key)], noon()).await.expect("there is room");
    assert_eq!(again, [Accepted::New], "a refused one left nothing behind");
    assert_eq!(store.append(taken.run.id, 0, &[started()], None, noon()).await.expect("appended"), 1);
    store.end_run(&ending(taken.run.id, 1, Outcome::Succeeded), noon()).await.expect("ended");
    drop(store);
    drop(sqlite);
    let store: Arc<dyn Store> = place.store();
    let row = store.task(&name("job")).await.expect("read").expect("there");
    assert_eq!(u64::from(row.waiting), accepted + 1, "what was answered is there");
}

#[tokio::test]
async fn a_question_that_could_not_be_kept_is_not_told_of_and_one_that_was_is() {
    let place = Directory::new();
    let sqlite = place.store();
    let store: Arc<dyn Store> = sqlite.clone();
    store.route_items(Some(Arc::new(|_, now| Routing {
        told: vec![Route { binding: InboxBinding::desktop(), due_at: now, digest: false }],
        escalation: None,
    })));
    save(&store, &spec("job", vec![]), noon()).await;
    let run = begin(&store, "job", noon()).await.run.id;
    let item = approval("job", run, &call(0, &"x".repeat(100_000)));
    let request = ParkRequest { run, next: 0, facts: vec![], items: vec![(Position(0), item)], ran_for_ms: 0 };
    limit(&sqlite, 2).await;
    let refused = store.park(&request, noon()).await;
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
    let none = TakenDeliveries::default();
    assert_eq!(store.take_deliveries(&BTreeSet::new(), 10, noon()).await.expect("taken"), none);
    limit(&sqlite, 10_000).await;
    let item = store.park(&request, noon()).await.expect("there is room")[0];
    let told = store.take_deliveries(&BTreeSet::new(), 10, noon()).await.expect("taken").deliveries;
    assert_eq!(told.len(), 1);
    assert_eq!(store.deliveries(item).await.expect("read").len(), 1);
}

#[tokio::test]
async fn a_fact_that_fails_undoes_only_itself() {
    let place = Directory::new();
    let sqlite = place.store();
    let store: Arc<dyn Store> = sqlite.clone();
    save(&store, &spec("job", vec![]), noon()).await;
    let gate = Arc::new(std::sync::Barrier::new(2));
    let held = {
        // Keeps the writer busy, so that what follows is one group.
        let gate = gate.clone();
        let sqlite = sqlite.clone();
        async move {
            let held: Result<(), StoreError> = sqlite
                .writer
                .write(move |_| {
                    gate.wait();
                    Ok(())
                })
                .await;
            held.expect("performed");
        }
    };
    let panics = async {
        let panicked: Result<(), StoreError> = sqlite
            .writer
            .write(|tx| {
                tx.change("UPDATE tasks SET name = 'gone'", [])?;
                panic!("a fault")
            })
            .await;
        assert!(matches!(panicked, Err(StoreError::Failed { .. })), "{panicked:?}");
    };
    let (one, two) = ([event("job", "1")], [event("nobody", "1"), event("job", "2")]);
    let accept = |events| store.accept_events(events, noon());
    let release = async {
        gate.wait();
    };
    let ((), first, refused, (), ()) = tokio::join!(held, accept(&one), accept(&two), panics, release);
    assert_eq!(first.expect("accepted"), [Accepted::New]);
    assert!(matches!(refused, Err(TaskError::Unknown { .. })), "{refused:?}");
    let taken = begin(&store, "job", noon()).await;
    end(&store, &taken, Outcome::Succeeded, noon()).await;
    assert_eq!(store.task(&name("job")).await.expect("read").expect("still its name").waiting, 1);
}
