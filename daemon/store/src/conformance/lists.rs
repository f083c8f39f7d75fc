use ow_model::{ItemId, Outcome, PauseReason, RunId, Trigger, WatchKind};

use super::Place;
use super::support::{begin, call, cron, end, failed, later, name, noon, notification, page, park, save, spec, take};
use crate::{ItemFilter, PageRequest, RunFilter, StoreError, TaskFilter};

pub async fn lists_page_by_cursor(place: &impl Place) {
    let store = place.open().await;
    for number in 0..7 {
        let task = format!("job-{number}");
        save(&store, &spec(&task, vec![cron("0 6 * * *")]), noon()).await;
        let taken = begin(&store, &task, noon()).await;
        end(&store, &taken, if number < 3 { failed("x") } else { Outcome::Succeeded }, noon()).await;
        store.notify(&notification("n"), &task, noon()).await.expect("told");
    }
    let mut after = None;
    let mut names = vec![];
    loop {
        let rows = store.tasks(&TaskFilter::default(), &PageRequest { after, limit: 3 }).await.expect("read");
        names.extend(rows.rows.iter().map(|row| row.spec.name.to_string()));
        after = rows.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, (0..7).map(|number| format!("job-{number}")).collect::<Vec<_>>());
    let mut after = None;
    let mut orders = vec![];
    loop {
        let rows = store.runs(&RunFilter::default(), &PageRequest { after, limit: 2 }).await.expect("read");
        orders.extend(rows.rows.iter().map(|run| run.order));
        after = rows.next;
        if after.is_none() {
            break;
        }
    }
    assert!(orders.len() == 7 && orders.is_sorted_by(|newer, older| newer > older), "{orders:?}");
    let failed = RunFilter { state: Some("failed".into()), ..RunFilter::default() };
    assert_eq!(store.runs(&failed, &page(10)).await.expect("read").rows.len(), 3);
    let open = RunFilter { open_only: true, ..RunFilter::default() };
    assert_eq!(store.runs(&open, &page(10)).await.expect("read").rows.len(), 0);
    let one = RunFilter { task: Some(name("job-1")), ..RunFilter::default() };
    assert_eq!(store.runs(&one, &page(10)).await.expect("read").rows.len(), 1);
    let all = store.items(&ItemFilter::default(), &page(100)).await.expect("read");
    assert_eq!((all.rows.len(), all.next), (10, None));
    let odd = store.items(&ItemFilter::default(), &PageRequest { after: Some("x".into()), limit: 1 }).await;
    assert!(matches!(odd, Err(StoreError::Cursor { .. })));

    let watch = Trigger::Watch {
        path: "/tmp".into(),
        glob: None,
        settle: ow_model::Span::from_secs(2),
        on: vec![WatchKind::Create],
    };
    save(&store, &spec("watcher", vec![watch]), noon()).await;
    store.pause_task(&name("job-2"), PauseReason::Person, noon()).await.expect("paused");
    for (filter, expected) in [
        (TaskFilter { with_watch: true, ..TaskFilter::default() }, vec!["watcher"]),
        (TaskFilter { paused: Some(true), ..TaskFilter::default() }, vec!["job-2"]),
        (TaskFilter { name_contains: Some("b-4".into()), ..TaskFilter::default() }, vec!["job-4"]),
    ] {
        let rows = store.tasks(&filter, &page(10)).await.expect("read").rows;
        let names: Vec<_> = rows.iter().map(|row| row.spec.name.as_str()).collect();
        assert_eq!(names, expected, "{filter:?}");
    }
}

pub async fn an_id_is_found_by_its_beginning(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    let run = taken.run.id.to_string();
    assert_eq!(store.runs_by_prefix(&run[..5], 10).await.expect("read"), [taken.run.id]);
    assert_eq!(store.runs_by_prefix(&run.to_uppercase(), 10).await.expect("read"), [taken.run.id]);
    assert_eq!(store.items_by_prefix(&item.to_string()[..5], 10).await.expect("read"), [item]);
    assert_eq!(store.items_by_prefix("", 10).await.expect("read"), [item]);
    assert_eq!(store.run(RunId::random()).await.expect("read"), None);
    assert_eq!(store.item(ItemId::random()).await.expect("read"), None);
}

pub async fn the_stream_tells_each_fact_once_it_is_durable(place: &impl Place) {
    let store = place.open().await;
    let head = *store.stream_head().borrow();
    let mut changes = store.stream_head();
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    store.resolve(item, &ow_model::Answer::Once, &super::support::anna(), noon()).await.expect("resolved");
    let again = take(&store, noon()).await.remove(0);
    end(&store, &again, Outcome::Succeeded, noon()).await;
    assert!(changes.has_changed().expect("open"), "watchers are woken");
    let events = store.stream(head, 100).await.expect("read").expect("not pruned");
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let expected = [
        "task.saved",
        "run.queued",
        "run.running",
        "item.created",
        "run.parked",
        "item.resolved",
        "run.queued",
        "run.running",
        "run.ended",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events.last().expect("some").position, *changes.borrow_and_update());
    assert_eq!(events.last().expect("some").target, format!("run:{}", taken.run.id));
    // A refused fact tells nothing.
    store.append(taken.run.id, 77, &[], None, noon()).await.expect_err("fenced");
    assert_eq!(store.stream(*changes.borrow(), 10).await.expect("read"), Some(vec![]));
    let last = *changes.borrow();
    drop(store);
    let store = place.open().await;
    assert_eq!(*store.stream_head().borrow(), last, "positions go on after a restart");
    assert_eq!(store.stream(head, 2).await.expect("read").expect("not pruned").len(), 2);
    assert_eq!(store.stream(last + 5, 2).await.expect("read"), None, "a position that was never given out");
}

pub async fn wake_times_name_the_earliest(place: &impl Place) {
    let store = place.open().await;
    let nothing = store.wake_times().await.expect("read");
    assert_eq!((nothing.earliest(), nothing.ready), (None, false));
    save(&store, &spec("late", vec![cron("0 15 * * *")]), noon()).await;
    save(&store, &spec("early", vec![cron("0 14 * * *")]), noon()).await;
    let wake = store.wake_times().await.expect("read");
    assert_eq!(wake.tasks, Some(later(noon(), 7200)));
    store.pause_task(&name("early"), PauseReason::Person, noon()).await.expect("paused");
    assert_eq!(store.wake_times().await.expect("read").tasks, Some(later(noon(), 3 * 3600)));
    let taken = begin(&store, "late", noon()).await;
    park(&store, &taken, &[call(0, "x")], noon()).await;
    let wake = store.wake_times().await.expect("read");
    assert_eq!((wake.items, wake.earliest()), (Some(later(noon(), 600)), Some(later(noon(), 600))));
    store.run_now(&name("early"), "anna", None, noon()).await.expect("a paused task may be run by hand");
    assert!(store.wake_times().await.expect("read").ready);
}
