use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use ow_model::{
    Answer, CallHash, CallResult, Disposition, EventKey, Fact, InboxBinding, Intent, ItemKind, ItemState, Outcome,
    Position, RunState, SlotKey, Span, Trigger, WatchKind,
};
use serde_json::json;

use super::support::{Directory, contents};
use crate::conformance::support::{
    anna, at, begin, call, claim, cron, end, event, later, name, noon, page, park, save, spec, started, take,
};
use crate::{
    Accepted, Content, EventFate, ItemFilter, MailboxMark, NewReply, NewSession, Reply, ResolveError, SeenFile,
    SqliteStore, Store, StoreError, restore,
};

fn intended(position: u32) -> Fact {
    Fact::Intended {
        position: Position(position),
        hash: CallHash(ow_model::BlobHash::of(b"x")),
        repeatable: false,
        intent: Intent::default(),
    }
}

#[tokio::test]
async fn a_restored_store_repeats_nothing_and_asks_again() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    store.begin_life("1", noon()).await.expect("begun");
    let hourly = save(&store, &spec("hourly", vec![cron("0 * * * *")]), noon()).await;
    for task in ["asks", "in-a-call", "between", "waits"] {
        let mut job = spec(task, vec![]);
        job.concurrency = (task == "waits" || task == "between").then(|| "one".into());
        save(&store, &job, noon()).await;
    }
    let asking = begin(&store, "asks", noon()).await;
    let item = park(&store, &asking, &[call(0, "x")], noon()).await[0];
    let in_a_call = begin(&store, "in-a-call", noon()).await;
    store.append(in_a_call.run.id, 0, &[started(), intended(0)], None, noon()).await.expect("appended");
    let between = begin(&store, "between", noon()).await;
    let kept = store.put_blob(b"long output").await.expect("kept");
    let result = CallResult { kept: vec![("stdout".into(), kept)], ..CallResult::ok(json!({})) };
    let done = Fact::Done { position: Position(0), result, took_ms: 1 };
    store.append(between.run.id, 0, &[started(), intended(0), done], None, noon()).await.expect("appended");
    let waiting = store.run_now(&name("waits"), "anna", None, noon()).await.expect("queued");

    let report = store.backup(&place.beside("backup")).await.expect("backed up");
    assert_eq!((report.into.clone(), report.blobs), (place.beside("backup"), 1));
    let twice = store.backup(&place.beside("backup")).await;
    assert!(matches!(twice, Err(StoreError::BackupExists { .. })), "{twice:?}");

    // Life goes on, and none of this is in the backup.
    store.resolve(item, &Answer::Once, &anna(), later(noon(), 10)).await.expect("resolved");
    assert_eq!(claim(&store, later(noon(), 3600), noon()).await.created, 1);
    let lost_head = *store.stream_head().borrow();
    let in_use = restore(&place.beside("backup"), &place.data());
    assert!(matches!(in_use, Err(StoreError::InUse { .. })), "{in_use:?}");
    drop(store);
    fs::remove_dir_all(place.data().join("blobs")).expect("lost");

    let report = restore(&place.beside("backup"), &place.data()).expect("restored");
    assert_eq!((report.epoch, report.blobs), (2, 1));
    let old = report.kept.expect("the old store is kept");
    assert!(old.join("owd.db").exists(), "{old:?}");

    let store: Arc<dyn Store> = place.store();
    let now = at("2026-03-03T15:30:00Z");
    let start = store.begin_life("2", now).await.expect("begun");
    assert_eq!(start.epoch, 2);
    assert!(*store.stream_head().borrow() > lost_head, "no position means two events");
    assert_eq!(store.stream(lost_head, 10).await.expect("read"), None, "watchers begin anew");

    let late = store.resolve(item, &Answer::Once, &anna(), now).await;
    assert!(matches!(late, Err(ResolveError::Withdrawn { .. })), "an old token opens nothing: {late:?}");
    assert!(matches!(store.item(item).await.expect("read").expect("kept").state, ItemState::Withdrawn { .. }));
    let state = async |run| store.run(run).await.expect("read").expect("kept").state;
    assert_eq!(state(asking.run.id).await, RunState::Queued { not_before: None, answered: true }, "asks again");
    assert_eq!(state(in_a_call.run.id).await.word(), "queued", "goes on, to find out about its call");
    assert!(
        matches!(state(between.run.id).await, RunState::Ended(ended)
            if matches!(ended.outcome, Outcome::Failed { failure: ow_model::Failure::Unknown, .. })),
        "what it did since is not known"
    );
    assert_eq!(state(waiting).await.word(), "missed");
    let slots = store.slots(hourly, noon(), now, 10).await.expect("read");
    assert!(
        matches!(&slots[..], [record]
            if matches!(record.key, SlotKey::Range { count: 3, .. })
            && record.disposition == Disposition::Missed { why: "restored".into(), folded_into: None }),
        "{slots:?}"
    );
    claim(&store, now, now).await;
    let row = store.task(&name("hourly")).await.expect("read").expect("there");
    assert_eq!(row.next_due, Some(at("2026-03-03T16:00:00Z")));
    assert_eq!(store.blob(kept).await.expect("read").as_deref(), Some(b"long output".as_slice()));
    let filter = ItemFilter { pending_only: true, ..ItemFilter::default() };
    let told = store.items(&filter, &page(10)).await.expect("read").rows;
    assert!(told.iter().any(|item| item.title == "The store was restored"), "{told:?}");
    // It is dealt with once.
    drop(store);
    let store: Arc<dyn Store> = place.store();
    store.begin_life("3", now).await.expect("begun");
    let names: Vec<_> = take(&store, now).await.into_iter().map(|taken| taken.run.task_name.to_string()).collect();
    assert_eq!(names, ["asks", "in-a-call"]);
}

#[tokio::test]
async fn what_came_in_before_a_backup_or_since_runs_nothing_again() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    store.begin_life("1", noon()).await.expect("begun");
    let task = save(&store, &spec("hears", vec![]), noon()).await;
    store.accept_events(&[event("hears", "mail:1")], noon()).await.expect("accepted");
    store.take_in("slack", "E1", &json!({ "text": "go" }), noon()).await.expect("taken");
    let mark = MailboxMark { validity: 1, seen: 7, at: noon(), again: vec![] };
    store.note_mailbox("box", &mark).await.expect("noted");
    let file = SeenFile { path: b"a".to_vec(), inode: 1, size: 1, modified: 1 };
    store.note_watch_seen(task, "w", &[file], &[]).await.expect("noted");
    let reply = |key: &str| NewReply {
        key: key.into(),
        binding: InboxBinding::new("mail", "ada@example.org"),
        item: None,
        reply: Reply { subject: "Re".into(), text: "done".into(), in_reply_to: None, references: vec![] },
    };
    store.enqueue_reply(&reply("taken"), noon()).await.expect("written");
    assert_eq!(store.take_deliveries(&BTreeSet::new(), 9, noon()).await.expect("taken").deliveries.len(), 1);
    store.enqueue_reply(&reply("waiting"), noon()).await.expect("written");
    store.backup(&place.beside("backup")).await.expect("backed up");
    drop(store);
    restore(&place.beside("backup"), &place.data()).expect("restored");

    let store: Arc<dyn Store> = place.store();
    let now = later(noon(), 600);
    store.begin_life("2", now).await.expect("begun");
    claim(&store, now, now).await;
    assert!(take(&store, now).await.is_empty(), "the event ran after the backup");
    let missed = Disposition::Missed { why: "restored".into(), folded_into: None };
    assert_eq!(
        store.event_fate(task, &EventKey("mail:1".into())).await.expect("read"),
        Some(EventFate::Recorded(missed)),
        "and is on record"
    );
    assert_eq!(store.mailbox("box").await.expect("read"), None, "it is read from now on");
    assert_eq!(store.watch_seen(task, "w").await.expect("read"), None, "and watched from now on");
    assert_eq!(store.taken_in("slack", 9).await.expect("read"), vec![]);
    assert_eq!(
        store.take_in("slack", "E1", &json!({ "text": "go" }), now).await.expect("asked"),
        Accepted::Duplicate,
        "but known"
    );
    let due = store.take_deliveries(&BTreeSet::new(), 9, now).await.expect("taken").deliveries;
    assert!(!due.iter().any(|delivery| matches!(delivery.content, Content::Reply(_))), "{due:?}");
    let told = store.items(&ItemFilter::default(), &page(10)).await.expect("read").rows;
    let notice = told.iter().find(|item| item.title == "The store was restored").expect("told");
    let ItemKind::Notification { text } = &notice.kind else { panic!("{notice:?}") };
    assert!(text.contains("1 events") && text.contains("Mailboxes"), "{text}");
}

/// What a watch has to know so as to take for seen what changed since the backup.
#[tokio::test]
async fn a_restored_watch_is_as_new_as_the_restored_store() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    let path = "/in".into();
    let watch = Trigger::Watch { path, glob: None, settle: Span::from_secs(1), on: vec![WatchKind::Create] };
    save(&store, &spec("watches", vec![watch]), noon()).await;
    save(&store, &spec("other", vec![]), noon()).await;
    store.backup(&place.beside("backup")).await.expect("backed up");
    drop(store);
    restore(&place.beside("backup"), &place.data()).expect("restored");
    let store: Arc<dyn Store> = place.store();
    store.begin_life("2", later(noon(), 600)).await.expect("begun");
    let since = async |task| store.task(&name(task)).await.expect("read").expect("there").updated_at;
    assert_eq!((since("watches").await, since("other").await), (later(noon(), 600), noon()));
}

#[tokio::test]
async fn a_restored_chat_waits_for_its_person() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    let mut chat = spec("unnamed", vec![]);
    chat.agent = Some(ow_model::AgentSpec::default());
    let new = NewSession { spec: chat, title: None, by: "anna".into() };
    let (middle, queued) =
        (store.create_session(&new, noon()).await.expect("created"), store.create_session(&new, noon()).await);
    let queued = queued.expect("created");
    let person = ow_model::Source::Person { person: ow_model::Person("anna".into()) };
    let input = ow_model::Input { text: "go".into(), attachments: vec![], source: person };
    store.say(middle, &input, None, noon()).await.expect("said");
    store.take_chats(1, noon()).await.expect("taken");
    let heard = Fact::Input { number: Some(1), input: input.clone() };
    store.append(middle, 0, &[heard], None, noon()).await.expect("appended");
    store.say(queued, &input, None, noon()).await.expect("said");
    store.backup(&place.beside("backup")).await.expect("backed up");
    drop(store);
    restore(&place.beside("backup"), &place.data()).expect("restored");
    let store: Arc<dyn Store> = place.store();
    store.begin_life("2", noon()).await.expect("begun");
    for session in [middle, queued] {
        assert_eq!(store.run(session).await.expect("read").expect("kept").state, RunState::Idle);
    }
    let last = store.journal(middle).await.expect("read").pop().expect("kept");
    assert!(matches!(last.fact, Fact::TurnEnded { .. }), "{last:?}");
    assert_eq!(store.inputs(queued).await.expect("read").len(), 1, "what was said is not lost");
}

#[tokio::test]
async fn a_broken_backup_changes_nothing() {
    let place = Directory::new();
    let store: Arc<dyn Store> = place.store();
    for number in 0..100 {
        save(&store, &spec(&format!("job-{number}"), vec![]), noon()).await;
    }
    let taken = begin(&store, "job-1", noon()).await;
    end(&store, &taken, Outcome::Succeeded, noon()).await;
    store.backup(&place.beside("whole")).await.expect("backed up");
    drop(store);
    let before = contents(&place.data());
    let nothing = restore(&place.beside("nothing"), &place.data());
    assert!(nothing.is_err(), "{nothing:?}");
    let file = place.beside("whole").join("owd.db");
    let bytes = fs::read(&file).expect("readable");
    fs::write(&file, &bytes[..bytes.len() / 2]).expect("cut");
    let half = restore(&place.beside("whole"), &place.data());
    assert!(matches!(half, Err(StoreError::Damaged { .. })), "{half:?}");
    let after = contents(&place.data());
    assert!(before.iter().all(|file| after.contains(file)), "the store stands as it was");
    let store: Arc<dyn Store> = place.store();
    assert_eq!(store.stats().await.expect("read").tasks, 100);
    drop(store);
    // Into an empty place, a whole one makes a store.
    fs::write(&file, &bytes).expect("whole again");
    let report = restore(&place.beside("whole"), &place.beside("new")).expect("restored");
    assert_eq!(report.kept, None);
    let store: Arc<dyn Store> = SqliteStore::open(&place.beside("new")).expect("opens");
    assert_eq!(store.stats().await.expect("read").tasks, 100);
}

#[tokio::test]
async fn an_interrupted_restore_is_not_begun_anew() {
    let place = Directory::new();
    drop(place.store());
    fs::rename(place.file(), place.data().join("owd.db.restored")).expect("moved");
    let opened = SqliteStore::open(&place.data());
    assert!(matches!(opened, Err(StoreError::Damaged { .. })), "{opened:?}");
}
