use std::sync::Arc;

use ow_model::{Outcome, PauseReason};

use super::support::Directory;
use crate::conformance::support::{
    begin, call, claim, cron, end, event, later, name, noon, page, park, save, spec, started, take,
};
use crate::{ItemFilter, RunFilter, SaveChange, Store, TaskFilter};

/// Waits until what readers found is set aside: it is done without being waited for.
async fn damaged(store: &Arc<dyn Store>) -> Vec<String> {
    // A fact of our own queues behind the reader's note.
    store.withdraw_item(ow_model::ItemId::random(), "x", noon()).await.expect_err("there is none");
    let mut tables: Vec<String> = store.damage().await.expect("read").into_iter().map(|damage| damage.table).collect();
    tables.sort();
    tables
}

#[tokio::test]
async fn a_damaged_definition_stops_no_other_task_and_can_be_saved_again() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    for task in ["bad", "good"] {
        save(&store, &spec(task, vec![cron("* * * * *")]), noon()).await;
    }
    drop(store);
    place.raw().execute_batch("UPDATE revisions SET spec = '{\"half\":' WHERE task = 1").expect("torn");

    let store: Arc<dyn Store> = place.store();
    store.begin_life("2", noon()).await.expect("begun");
    assert_eq!(claim(&store, later(noon(), 60), noon()).await.created, 1);
    assert_eq!(damaged(&store).await, ["revisions"]);
    assert_eq!(store.wake_times().await.expect("read").tasks, Some(later(noon(), 120)), "it does not spin");
    let rows = store.tasks(&TaskFilter::default(), &page(10)).await.expect("read").rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(store.task(&name("bad")).await.expect("read"), None);
    let saved = store
        .save_task(&spec("bad", vec![cron("* * * * *")]), ow_model::TaskSource::Store, "", None, later(noon(), 61))
        .await
        .expect("saved");
    assert_eq!(saved.change, SaveChange::Revised);
    assert_eq!(claim(&store, later(noon(), 120), noon()).await.created, 1, "good still runs; bad runs again");
    assert_eq!(damaged(&store).await, ["revisions"], "reported once");
}

#[tokio::test]
async fn damaged_records_are_set_aside_and_reported() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    for task in ["run", "item", "journal", "event", "fine"] {
        save(&store, &spec(task, vec![]), noon()).await;
    }
    let torn_run = begin(&store, "run", noon()).await;
    let asking = begin(&store, "item", noon()).await;
    let item = park(&store, &asking, &[call(0, "x")], noon()).await[0];
    let journal = begin(&store, "journal", noon()).await;
    store.append(journal.run.id, 0, &[started()], None, noon()).await.expect("appended");
    store.pause_task(&name("event"), PauseReason::Person, noon()).await.expect("paused");
    store.accept_events(&[event("event", "1"), event("event", "2")], noon()).await.expect("accepted");
    store.notify(&crate::conformance::support::notification("n"), "k", noon()).await.expect("told");
    drop(store);
    place
        .raw()
        .execute_batch(&format!(
            "UPDATE runs SET cause = 'x' WHERE id = '{}';
             UPDATE items SET kind = '{{}}' WHERE id = '{item}';
             UPDATE journal SET fact = '[]' WHERE run = {};
             UPDATE events SET depth = -1 WHERE key = '1';
             UPDATE stream SET payload = '' WHERE position = 1;",
            torn_run.run.id, journal.run.order
        ))
        .expect("torn");

    let store: Arc<dyn Store> = place.store();
    store.begin_life("2", noon()).await.expect("the start goes on");
    let runs = store.runs(&RunFilter::default(), &page(10)).await.expect("read").rows;
    assert!(runs.iter().all(|run| run.id != torn_run.run.id), "{runs:?}");
    store.items(&ItemFilter::default(), &page(10)).await.expect("read");
    store.stream(0, 100).await.expect("read");
    store.resume_task(&name("event"), noon()).await.expect("resumed");
    claim(&store, noon(), noon()).await;
    damaged(&store).await;

    // The run whose question is gone asks anew; the one whose journal is gone ends, and says so.
    let taken = take(&store, noon()).await;
    let mut names: Vec<_> = taken.iter().map(|taken| taken.run.task_name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["event", "item"]);
    let ended = store.run(journal.run.id).await.expect("read").expect("kept");
    assert_eq!(ended.state.word(), "failed");
    assert_eq!(damaged(&store).await, ["events", "items", "journal", "runs", "stream"]);
    let by_event = taken.iter().find(|taken| taken.run.task_name == name("event")).expect("just seen");
    assert_eq!(store.run_events(by_event.run.id).await.expect("read").len(), 1);
    // What the damaged run stood in the way of runs again.
    let again = begin(&store, "run", noon()).await;
    end(&store, &again, Outcome::Succeeded, noon()).await;
}

/// SQLite keeps no checksums: it takes a changed byte of an index, or of what is indexed, for what it says.
#[tokio::test]
async fn a_task_that_a_changed_byte_takes_out_of_its_index_is_told_of() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    for task in ["plum-tree", "good"] {
        save(&store, &spec(task, vec![cron("* * * * *")]), noon()).await;
    }
    drop(store);
    place.raw().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("in the file");
    let file = place.file();
    let sound = std::fs::read(&file).expect("a store");
    let places: Vec<usize> = (0..sound.len()).filter(|at| sound[*at..].starts_with(b"plum-tree")).collect();
    assert!(places.len() > 2, "in the row, in its index, in its definition");
    let mut told_of = 0;
    for at in places {
        let mut changed = sound.clone();
        changed[at] = b'q';
        std::fs::write(&file, changed).expect("written");
        let store = place.store();
        store.begin_life("2", noon()).await.expect("the start goes on");
        store.look_over(noon()).await.expect("looked over");
        let store: Arc<dyn Store> = store;
        let told = damaged(&store).await;
        let found = store.task(&name("plum-tree")).await.expect("read");
        assert!(found.is_some() || !told.is_empty(), "byte {at}: it is gone, and nobody is told");
        told_of += usize::from(told.contains(&"tasks".to_owned()));
        assert!(store.task(&name("good")).await.expect("read").is_some());
        drop(store);
        for beside in ["owd.db-wal", "owd.db-shm"] {
            drop(std::fs::remove_file(place.data().join(beside)));
        }
    }
    assert!(told_of >= 2, "the row and its index: {told_of}");
}
