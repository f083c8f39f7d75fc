use ow_model::{
    AfterEnd, EventDelivery, ItemState, PauseReason, Rule, RuleId, RuleScope, RunState, TaskSource, TaskState, Trigger,
};

use super::Place;
use super::support::{anna, at, begin, call, cron, later, name, noon, park, rule_target, save, spec, take};
use crate::{ResolveError, SaveChange, SeenFile, TaskError};

pub async fn an_equal_definition_changes_nothing(place: &impl Place) {
    let store = place.open().await;
    let report = spec("report", vec![cron("0 6 * * *")]);
    let first = store.save_task(&report, TaskSource::File, "a", None, noon()).await.expect("saved");
    assert_eq!((first.revision, first.change), (1, SaveChange::Created));
    let before = store.task(&name("report")).await.expect("read").expect("there");
    drop(store);

    let store = place.open().await;
    let again = store.save_task(&report, TaskSource::File, "a", None, later(noon(), 60)).await.expect("saved");
    assert_eq!((again.revision, again.change), (1, SaveChange::Unchanged));
    assert_eq!(store.task(&name("report")).await.expect("read").expect("there"), before);
    assert_eq!(before.next_due, Some(at("2026-03-04T06:00:00Z")));
}

pub async fn a_stale_revision_is_refused(place: &impl Place) {
    let store = place.open().await;
    let mut report = spec("report", vec![]);
    save(&store, &report, noon()).await;
    report.title = Some("Report".into());
    let saved = store.save_task(&report, TaskSource::Store, "", Some(1), noon()).await.expect("saved");
    assert_eq!((saved.revision, saved.change), (2, SaveChange::Revised));
    report.title = None;
    let taken = store.save_task(&report, TaskSource::Store, "", Some(0), noon()).await;
    assert!(matches!(taken, Err(TaskError::Exists { .. })), "{taken:?}");
    let other = spec("new", vec![]);
    let (one, two) = tokio::join!(
        store.save_task(&other, TaskSource::Store, "", Some(0), noon()),
        store.save_task(&other, TaskSource::Store, "", Some(0), noon()),
    );
    assert!(one.is_ok() != two.is_ok(), "of two that make a task one does: {one:?} {two:?}");
    let stale = store.save_task(&report, TaskSource::Store, "", Some(1), noon()).await;
    assert!(matches!(stale, Err(TaskError::Revision { expected: 1, found: 2, .. })), "{stale:?}");
    let row = store.task(&name("report")).await.expect("read").expect("there");
    assert_eq!(row.spec.title.as_deref(), Some("Report"));
}

pub async fn a_task_belongs_to_where_it_was_made(place: &impl Place) {
    let store = place.open().await;
    let (mut filed, mut stored) = (spec("filed", vec![]), spec("stored", vec![]));
    store.save_task(&filed, TaskSource::File, "", None, noon()).await.expect("saved");
    store.save_task(&stored, TaskSource::Store, "", None, noon()).await.expect("saved");
    filed.title = Some("x".into());
    stored.title = Some("x".into());
    let refused = store.save_task(&filed, TaskSource::Store, "", None, noon()).await;
    assert!(matches!(refused, Err(TaskError::FromFile { .. })), "{refused:?}");
    let refused = store.save_task(&stored, TaskSource::File, "", None, noon()).await;
    assert!(matches!(refused, Err(TaskError::Refused { .. })), "{refused:?}");
    let refused = store.delete_task(&name("filed"), noon()).await;
    assert!(matches!(refused, Err(TaskError::FromFile { .. })), "{refused:?}");
    store.pause_task(&name("filed"), PauseReason::FileGone, noon()).await.expect("paused");
    store.delete_task(&name("filed"), noon()).await.expect("its file is gone");
}

pub async fn an_instant_in_the_past_is_refused(place: &impl Place) {
    let store = place.open().await;
    let soon = later(noon(), 60);
    let once = spec("once", vec![Trigger::At(soon)]);
    let late = store.save_task(&once, TaskSource::Store, "", None, later(soon, 1)).await;
    assert!(matches!(late, Err(TaskError::Refused { .. })), "{late:?}");
    assert_eq!(store.task(&name("once")).await.expect("read"), None, "nothing was stored");
    save(&store, &once, noon()).await;
    // One that stood before may stay when something else is edited.
    let edited = ow_model::TaskSpec { title: Some("x".into()), ..once };
    store.save_task(&edited, TaskSource::Store, "", None, later(soon, 60)).await.expect("it stood already");
}

pub async fn a_circle_of_after_is_refused(place: &impl Place) {
    let after = |task: &str| Trigger::After { task: name(task), on: AfterEnd::Any };
    let store = place.open().await;
    let own = store.save_task(&spec("a", vec![after("a")]), TaskSource::Store, "", None, noon()).await;
    assert!(matches!(own, Err(TaskError::Circle { .. })), "{own:?}");
    save(&store, &spec("a", vec![after("c")]), noon()).await;
    save(&store, &spec("b", vec![after("a")]), noon()).await;
    let closed = store.save_task(&spec("c", vec![after("b")]), TaskSource::Store, "", None, noon()).await;
    let Err(TaskError::Circle { circle, .. }) = closed else { panic!("{closed:?}") };
    for task in ["a", "b", "c"] {
        assert!(circle.contains(task), "{circle}");
    }
    assert_eq!(store.task(&name("c")).await.expect("read"), None);
    // Once an edge is gone, the same definition is none.
    save(&store, &spec("a", vec![]), noon()).await;
    save(&store, &spec("c", vec![after("b")]), noon()).await;
}

pub async fn a_deleted_task_leaves_records_and_nothing_else(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![]);
    job.events = EventDelivery::Each { max: 10 };
    let first = save(&store, &job, noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    let rule = Rule {
        id: RuleId::random(),
        scope: RuleScope::Task(name("job")),
        target: rule_target(),
        covers_outside: false,
        created_at: noon(),
        created_by: "anna".into(),
        expires_at: None,
        uses_left: None,
        used: 0,
    };
    store.add_rule(&rule).await.expect("added");
    let stopped = store.delete_task(&name("job"), noon()).await.expect("deleted");
    assert_eq!(stopped, [], "a parked run needs no stopping");
    drop(store);

    let store = place.open().await;
    assert_eq!(store.task(&name("job")).await.expect("read"), None);
    let run = store.run(taken.run.id).await.expect("read").expect("kept");
    assert_eq!(run.state.word(), "cancelled");
    let kept = store.item(item).await.expect("read").expect("kept");
    assert!(matches!(kept.state, ItemState::Withdrawn { .. }), "{kept:?}");
    let answered = store.resolve(item, &ow_model::Answer::Once, &anna(), noon()).await;
    assert!(matches!(answered, Err(ResolveError::Withdrawn { .. })), "{answered:?}");
    assert_eq!(store.slots(first, noon(), noon(), 10).await.expect("read").len(), 1);
    let second = save(&store, &job, noon()).await;
    assert_ne!(first, second, "a number is never used again");
    assert_eq!(store.rules(Some(&name("job")), noon()).await.expect("read"), [], "rights are not inherited by name");
}

pub async fn a_returning_file_resumes_its_task_unless_a_person_paused_it(place: &impl Place) {
    let store = place.open().await;
    for (task, person) in [("gone", false), ("held", true)] {
        let job = spec(task, vec![cron("* * * * *")]);
        store.save_task(&job, TaskSource::File, "", None, noon()).await.expect("saved");
        if person {
            store.pause_task(&name(task), PauseReason::Person, noon()).await.expect("paused");
        }
        store.pause_task(&name(task), PauseReason::FileGone, noon()).await.expect("paused");
        let row = store.task(&name(task)).await.expect("read").expect("there");
        assert!(matches!(row.state, TaskState::Paused { .. }) && row.next_due.is_none(), "{row:?}");
        store.save_task(&job, TaskSource::File, "", None, later(noon(), 90)).await.expect("saved");
        let row = store.task(&name(task)).await.expect("read").expect("there");
        assert_eq!(row.state == TaskState::Active, !person, "{row:?}");
    }
}

pub async fn a_run_keeps_the_definition_it_started_with(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![]);
    let task = save(&store, &job, noon()).await;
    let queued = store.run_now(&name("job"), "anna", None, noon()).await.expect("queued");
    job.title = Some("new".into());
    save(&store, &job, noon()).await;
    let taken = take(&store, noon()).await;
    assert_eq!((taken[0].run.id, taken[0].run.revision), (queued, 1));
    assert_eq!(taken[0].run.state, RunState::Running);
    assert_eq!(taken[0].spec.title, None);
    assert_eq!(store.revision(task, 1).await.expect("read").expect("kept").title, None);
    assert_eq!(store.revision(task, 2).await.expect("read"), Some(job));
}

pub async fn what_a_watch_has_seen_outlives_a_restart(place: &impl Place) {
    let file = |path: &[u8], size| SeenFile { path: path.to_vec(), inode: u64::MAX, size, modified: -5 };
    let store = place.open().await;
    let task = save(&store, &spec("job", vec![]), noon()).await;
    assert_eq!(store.watch_seen(task, "w").await.expect("read"), None, "it has never looked");
    store.note_watch_seen(task, "w", &[], &[]).await.expect("noted");
    assert_eq!(store.watch_seen(task, "w").await.expect("read"), Some(vec![]), "it has looked and seen nothing");
    let odd = [0xff, b'\n', b'a'];
    store.note_watch_seen(task, "w", &[file(&odd, 1), file(b"b", 1), file(b"", 1)], &[]).await.expect("noted");
    store.note_watch_seen(task, "w", &[file(b"b", 2)], &[odd.to_vec(), vec![]]).await.expect("noted");
    drop(store);
    let store = place.open().await;
    assert_eq!(store.watch_seen(task, "w").await.expect("read"), Some(vec![file(b"b", 2)]));
    assert_eq!(store.watch_seen(task, "other").await.expect("read"), None);
    store.note_watch_seen(task, "w", &[], &[b"b".to_vec()]).await.expect("noted");
    assert_eq!(store.watch_seen(task, "w").await.expect("read"), Some(vec![]), "it has looked for good");
    store.delete_task(&name("job"), noon()).await.expect("deleted");
    assert_eq!(store.watch_seen(task, "w").await.expect("read"), None);
}

pub async fn tasks_of_files_are_named(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("stored", vec![]), noon()).await;
    for task in ["b", "a", "gone"] {
        store.save_task(&spec(task, vec![]), TaskSource::File, "", None, noon()).await.expect("saved");
    }
    store.pause_task(&name("gone"), PauseReason::FileGone, noon()).await.expect("paused");
    assert_eq!(store.file_tasks().await.expect("read"), [name("a"), name("b")]);
}
