use ow_model::{
    Answer, Artifact, BlobHash, CallResult, Cause, Fact, Failure, ItemKind, ItemState, Need, Outcome, Overlap,
    PauseReason, Position, RefusedAddress, RunState, Span, TaskState,
};

use serde_json::json;

use super::Place;
use super::support::{
    Any, anna, at, begin, call, claim, cron, end, ending, event, failed, later, name, noon, page, park, save, spec,
    started, take,
};
use crate::{EndRequest, FreeHands, ItemFilter, RunFilter, StoreError, TaskError};

async fn pending_texts(store: &Any) -> Vec<String> {
    let filter = ItemFilter { pending_only: true, ..ItemFilter::default() };
    let items = store.items(&filter, &page(100)).await.expect("read").rows;
    let text = |item: ow_model::Item| match item.kind {
        ItemKind::Notification { text } => format!("{}: {text}", item.title),
        other => format!("{other:?}"),
    };
    items.into_iter().map(text).collect()
}

pub async fn answered_runs_go_before_new_ones(place: &impl Place) {
    let store = place.open().await;
    for task in ["asks", "new-1", "new-2"] {
        save(&store, &spec(task, vec![]), noon()).await;
    }
    let asking = begin(&store, "asks", noon()).await;
    let item = park(&store, &asking, &[call(0, "x")], noon()).await[0];
    let first = store.run_now(&name("new-1"), "anna", None, noon()).await.expect("queued");
    let second = store.run_now(&name("new-2"), "anna", None, noon()).await.expect("queued");
    store.resolve(item, &Answer::Once, &anna(), noon()).await.expect("resolved");
    let none_answered = store.take_runs(0, 1, true, noon()).await.expect("taken");
    assert_eq!(none_answered[0].run.id, first, "the oldest of the new ones");
    let taken: Vec<_> = take(&store, noon()).await.into_iter().map(|taken| taken.run.id).collect();
    assert_eq!(taken, [asking.run.id, second]);
}

pub async fn a_run_waits_for_its_group_and_its_task(place: &impl Place) {
    let store = place.open().await;
    for task in ["a", "b"] {
        let mut job = spec(task, vec![]);
        job.concurrency = Some("disk".into());
        job.overlap = Overlap::Queue;
        save(&store, &job, noon()).await;
    }
    let mut wide = spec("wide", vec![]);
    wide.overlap = Overlap::Allow { max: 2 };
    save(&store, &wide, noon()).await;
    for task in ["a", "b", "wide", "wide"] {
        store.run_now(&name(task), "anna", None, noon()).await.expect("queued");
    }
    let taken = take(&store, noon()).await;
    let names: Vec<_> = taken.iter().map(|taken| taken.run.task_name.as_str()).collect();
    assert_eq!(names, ["a", "wide", "wide"], "b waits for the group");
    store.run_now(&name("a"), "anna", None, noon()).await.expect("one may wait");
    assert!(!store.wake_times().await.expect("read").ready, "nothing could start now");
    assert_eq!(take(&store, noon()).await.len(), 0);
    end(&store, &taken[0], Outcome::Succeeded, noon()).await;
    assert!(store.wake_times().await.expect("read").ready);
    assert_eq!(take(&store, noon()).await[0].run.task_name, name("b"));
}

pub async fn a_run_waits_for_the_network(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![]);
    job.needs = vec![Need::Network];
    save(&store, &job, noon()).await;
    store.run_now(&name("job"), "anna", None, noon()).await.expect("queued");
    assert_eq!(store.take_runs(1, 1, false, noon()).await.expect("asked").len(), 0);
    assert!(!store.wake_times().await.expect("read").ready, "asking again at once would spin");
    assert_eq!(store.take_runs(1, 1, true, noon()).await.expect("asked").len(), 1);
}

pub async fn a_late_run_is_missed(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![cron("0 13 * * *")]);
    job.start_deadline = Some(Span::from_secs(60));
    let task = save(&store, &job, noon()).await;
    let due = at("2026-03-03T13:00:00Z");
    assert_eq!(claim(&store, due, noon()).await.created, 1);
    assert_eq!(take(&store, later(due, 61)).await.len(), 0);
    let runs = store.runs(&RunFilter { state: Some("missed".into()), ..RunFilter::default() }, &page(10)).await;
    assert_eq!(runs.expect("read").rows.len(), 1);
    let slots = store.slots(task, due, due, 10).await.expect("read");
    assert!(matches!(slots[..], [ref one] if matches!(one.disposition, ow_model::Disposition::Missed { .. })));
    assert_eq!(pending_texts(&store).await.len(), 1, "the person is told");
}

pub async fn a_start_deadline_counts_from_when_a_slot_is_due(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![cron("0 13 * * *")]);
    (job.start_deadline, job.jitter) = (Some(Span::from_secs(60)), Span::from_secs(3000));
    let task = save(&store, &job, noon()).await;
    let due = store.task(&job.name).await.expect("read").expect("saved").next_due.expect("it has a next slot");
    assert!(due > at("2026-03-03T13:02:00Z"), "the jitter of this name is long: {due}");
    assert_eq!(claim(&store, due, noon()).await.created, 1);
    let taken = take(&store, later(due, 59)).await;
    assert_eq!(taken.len(), 1, "a jittered slot is not late");
    end(&store, &taken[0], Outcome::Succeeded, later(due, 60)).await;
    let again = later(due, 86_400);
    assert_eq!(claim(&store, again, noon()).await.created, 1);
    assert_eq!(take(&store, later(again, 61)).await.len(), 0);
    let slots = store.slots(task, noon(), later(again, 0), 10).await.expect("read");
    let missed: Vec<_> =
        slots.iter().map(|slot| matches!(slot.disposition, ow_model::Disposition::Missed { .. })).collect();
    assert_eq!(missed, [false, true]);
}

pub async fn a_stale_worker_is_fenced(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let run = taken.run.id;
    assert_eq!(store.append(run, 0, &[started()], None, noon()).await.expect("appended"), 1);
    drop(store);
    let store = place.open().await;
    for next in [0, 2] {
        let refused = store.append(run, next, &[started()], None, noon()).await;
        assert!(matches!(refused, Err(StoreError::Fenced { found: 1, .. })), "{refused:?}");
    }
    let refused = store.end_run(&ending(run, 0, Outcome::Succeeded), noon()).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    assert_eq!(store.journal(run).await.expect("read").len(), 1);
    let skipped = vec![Fact::StepSkipped { step: 0 }];
    let end = EndRequest { facts: skipped, ..ending(run, 1, Outcome::Succeeded) };
    store.end_run(&end, noon()).await.expect("ended");
    let refused = store.append(run, 2, &[started()], None, noon()).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "it has ended: {refused:?}");
    let sequence: Vec<u32> = store.journal(run).await.expect("read").iter().map(|fact| fact.seq).collect();
    assert_eq!(sequence, [0, 1, 2]);
    let facts = store.journal(run).await.expect("read");
    assert!(matches!((&facts[1].fact, &facts[2].fact), (Fact::StepSkipped { .. }, Fact::Ended { .. })), "{facts:?}");
}

pub async fn what_was_running_goes_on_in_the_next_life(place: &impl Place) {
    let store = place.open().await;
    for task in ["killed", "stopped", "parked"] {
        save(&store, &spec(task, vec![]), noon()).await;
    }
    let killed = begin(&store, "killed", noon()).await;
    store.append(killed.run.id, 0, &[started()], None, later(noon(), 40)).await.expect("appended");
    let stopped = begin(&store, "stopped", noon()).await;
    let facts = [started(), ow_model::Fact::Stopped { position: Position(0) }];
    store.interrupt_run(stopped.run.id, 0, &facts, 1234, noon()).await.expect("interrupted");
    let parked = begin(&store, "parked", noon()).await;
    let items = park(&store, &parked, &[call(0, "x")], noon()).await;
    assert_eq!(take(&store, noon()).await.len(), 0, "an interrupted run waits for the next life");
    drop(store);

    let store = place.open().await;
    let start = store.begin_life("2", later(noon(), 60)).await.expect("begun");
    assert_eq!((start.interrupted, start.last_seen, start.paused_all), (2, Some(noon()), false));
    let taken = take(&store, later(noon(), 60)).await;
    let ids: Vec<_> = taken.iter().map(|taken| taken.run.id).collect();
    assert_eq!(ids, [killed.run.id, stopped.run.id], "the same runs, not new ones");
    assert_eq!((taken[0].journal.len(), taken[1].journal.len()), (1, 2));
    assert_eq!(taken[0].run.ran_for_ms, 40_000, "as far as it is on record");
    assert_eq!(taken[1].run.ran_for_ms, 1234);
    let run = store.run(parked.run.id).await.expect("read").expect("kept");
    assert_eq!(run.state, RunState::Parked { items, holds: true }, "the same question stands");
}

pub async fn the_kill_switch_starts_nothing(place: &impl Place) {
    let store = place.open().await;
    let task = save(&store, &spec("minute", vec![cron("* * * * *")]), noon()).await;
    save(&store, &spec("job", vec![]), noon()).await;
    let running = begin(&store, "job", noon()).await;
    store.pause_all("anna", later(noon(), 1)).await.expect("paused");
    store.accept_events(&[event("minute", "1")], later(noon(), 2)).await.expect("accepted");
    store.interrupt_run(running.run.id, 0, &[], 5, later(noon(), 2)).await.expect("stopped");
    drop(store);
    let store = place.open().await;
    let start = store.begin_life("2", later(noon(), 30)).await.expect("begun");
    assert!(start.paused_all, "the switch outlives a restart");
    assert_eq!(claim(&store, later(noon(), 60), later(noon(), 30)).await.created, 0);
    assert_eq!(take(&store, later(noon(), 60)).await.len(), 0);
    let by_hand = store.run_now(&name("job"), "anna", None, later(noon(), 61)).await;
    assert!(matches!(by_hand, Err(TaskError::Refused { .. })), "{by_hand:?}");
    assert_eq!(store.stats().await.expect("read").paused_all.as_deref(), Some("anna"));

    let resumed = later(noon(), 90);
    store.resume_all(resumed).await.expect("resumed");
    assert_eq!(claim(&store, resumed, noon()).await.created, 1, "the event that waited");
    let taken = take(&store, resumed).await;
    let names: Vec<_> = taken.iter().map(|taken| taken.run.task_name.as_str()).collect();
    assert_eq!(names, ["job", "minute"]);
    let slots = store.slots(task, later(noon(), 60), later(noon(), 60), 10).await.expect("read");
    assert!(
        matches!(&slots[0].disposition, ow_model::Disposition::Skipped { why } if why == "paused: all"),
        "{slots:?}"
    );
    // A run that stands still only after the switch was opened again goes on at once.
    store.pause_all("anna", later(resumed, 1)).await.expect("paused");
    store.resume_all(later(resumed, 2)).await.expect("resumed");
    store.interrupt_run(taken[0].run.id, 0, &[], 5, later(resumed, 3)).await.expect("stopped");
    assert_eq!(take(&store, later(resumed, 3)).await.len(), 1);
}

pub async fn a_failed_run_is_told_and_equal_ones_fold(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    for message in ["no disk", "no disk", "other"] {
        let taken = begin(&store, "job", noon()).await;
        end(&store, &taken, failed(message), noon()).await;
    }
    let taken = begin(&store, "job", noon()).await;
    end(&store, &taken, Outcome::Cancelled { why: "by anna".into() }, noon()).await;
    let taken = begin(&store, "job", noon()).await;
    end(&store, &taken, Outcome::Succeeded, noon()).await;
    let texts = pending_texts(&store).await;
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert_eq!(texts[0], "job failed: other");
    assert!(texts[1].starts_with("job failed: no disk (2 times"), "{texts:?}");
}

pub async fn the_notice_of_a_failed_run_lists_what_it_had_made(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    for _ in 0..2 {
        let taken = begin(&store, "job", noon()).await;
        let made = vec![
            Artifact::File { path: "/r/a.md".into(), bytes: 12, hash: BlobHash::of(b"a") },
            Artifact::Message { to: "inbox".into(), id: "1".into() },
        ];
        let result = CallResult { artifacts: made, ..CallResult::ok(json!({})) };
        let done = Fact::Done { position: Position(0), result, took_ms: 1 };
        store.append(taken.run.id, 0, &[started(), done], None, noon()).await.expect("appended");
        store.end_run(&ending(taken.run.id, 2, failed("no disk")), noon()).await.expect("ended");
    }
    let texts = pending_texts(&store).await;
    let made = "\nIt had made:\n1. /r/a.md (12 bytes)\n2. a message to inbox";
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(
        texts[0].starts_with("job failed: no disk (2 times, the last at ") && texts[0].ends_with(made),
        "{texts:?}"
    );
}

pub async fn a_refused_address_is_counted_and_told_once_a_run(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let refused = |hop: u32| Fact::AddressRefused {
        position: Position(0),
        address: RefusedAddress { url: format!("http://10.0.0.{hop}/"), hop, why: "not public".into() },
    };
    for _ in 0..2 {
        let taken = begin(&store, "job", noon()).await;
        store.append(taken.run.id, 0, &[started(), refused(0)], None, noon()).await.expect("appended");
        let notice = store.items(&ItemFilter { pending_only: true, ..ItemFilter::default() }, &page(10)).await;
        let notice = notice.expect("read").rows.remove(0);
        assert_eq!(notice.run, Some(taken.run.id));
        store.resolve(notice.id, &Answer::Acknowledge, &anna(), noon()).await.expect("seen");
        store.append(taken.run.id, 2, &[refused(1)], None, noon()).await.expect("appended");
        store.end_run(&ending(taken.run.id, 3, Outcome::Succeeded), noon()).await.expect("ended");
    }
    assert_eq!(pending_texts(&store).await, [""; 0], "once a run, also when it was seen meanwhile");
    assert_eq!(store.stats().await.expect("read").addresses_refused, 4);
    drop(store);
    let store = place.open().await;
    assert_eq!(store.stats().await.expect("read").addresses_refused, 4);
}

pub async fn a_task_that_keeps_failing_pauses_itself(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![cron("0 6 * * *")]);
    job.auto_pause_after = 2;
    save(&store, &job, noon()).await;
    let outage = Outcome::Failed { failure: Failure::Unreachable, message: "no route".into() };
    for (outcome, failures) in
        [(failed("x"), 1), (Outcome::Succeeded, 0), (failed("x"), 1), (outage, 1), (failed("y"), 2)]
    {
        let taken = begin(&store, "job", noon()).await;
        end(&store, &taken, outcome, noon()).await;
        let row = store.task(&name("job")).await.expect("read").expect("there");
        assert_eq!(row.failures_in_row, failures);
        let paused = matches!(row.state, TaskState::Paused { reason: PauseReason::Failures(2), .. });
        assert_eq!(paused, failures == 2, "{row:?}");
    }
    assert!(pending_texts(&store).await.iter().any(|text| text.starts_with("job was paused")));
    store.resume_task(&name("job"), noon()).await.expect("resumed");
    let row = store.task(&name("job")).await.expect("read").expect("there");
    assert_eq!((row.state, row.failures_in_row), (TaskState::Active, 0));
}

pub async fn a_retry_waits_for_its_time_and_keeps_its_events(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    store.accept_events(&[event("job", "1")], noon()).await.expect("accepted");
    claim(&store, noon(), noon()).await;
    let first = take(&store, noon()).await.remove(0);
    let retry_at = later(noon(), 60);
    store
        .end_run(&EndRequest { retry_at: Some(retry_at), ..ending(first.run.id, 0, failed("x")) }, noon())
        .await
        .expect("ended");
    assert_eq!(pending_texts(&store).await, Vec::<String>::new(), "the work has not ended yet");
    assert_eq!(store.wake_times().await.expect("read").runs, Some(retry_at));
    drop(store);
    let store = place.open().await;
    assert_eq!(take(&store, later(noon(), 59)).await.len(), 0);
    let second = take(&store, retry_at).await.remove(0);
    assert_eq!((second.run.attempt, second.run.retry_of), (2, Some(first.run.id)));
    assert_eq!(second.run.cause, Cause::Retry { of: first.run.id, by: None });
    assert_eq!(store.run_events(second.run.id).await.expect("read").len(), 1);
    end(&store, &second, failed("x"), retry_at).await;
    assert_eq!(pending_texts(&store).await.len(), 1);
    // By hand: the present revision, the same events.
    let third = store.retry_run(second.run.id, "anna", retry_at).await.expect("queued");
    assert_eq!(store.run_events(third).await.expect("read").len(), 1);
    let by_hand = store.run(third).await.expect("read").expect("kept").cause;
    assert_eq!(by_hand, Cause::Retry { of: second.run.id, by: Some("anna".into()) });
    let open = store.retry_run(third, "anna", retry_at).await;
    assert!(matches!(open, Err(TaskError::Open { .. })), "{open:?}");
}

pub async fn a_run_by_hand_respects_overlap(place: &impl Place) {
    let store = place.open().await;
    let cases = [
        ("skip", Overlap::Skip, [true, false, false]),
        ("queue", Overlap::Queue, [true, true, false]),
        ("allow", Overlap::Allow { max: 2 }, [true, true, false]),
        ("cancel", Overlap::CancelPrevious, [true, true, true]),
    ];
    for (task, overlap, expected) in cases {
        let mut job = spec(task, vec![cron("0 6 * * *")]);
        job.overlap = overlap;
        save(&store, &job, noon()).await;
        let mut accepted = vec![];
        for _ in 0..3 {
            let queued = store.run_now(&name(task), "anna", Some(serde_json::json!({ "x": 1 })), noon()).await;
            accepted.push(queued.is_ok());
            take(&store, noon()).await;
        }
        assert_eq!(accepted, expected, "{task}");
        let row = store.task(&name(task)).await.expect("read").expect("there");
        assert_eq!(row.next_due, Some(at("2026-03-04T06:00:00Z")), "the next slot stays");
        assert_eq!(row.waiting, 0, "its payload is no event that waits");
    }
}

pub async fn a_run_that_must_stop_is_told_once(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![]);
    job.overlap = Overlap::CancelPrevious;
    save(&store, &job, noon()).await;
    let old = begin(&store, "job", noon()).await;
    let new = store.run_now(&name("job"), "anna", None, later(noon(), 1)).await.expect("queued");
    assert_eq!(take(&store, later(noon(), 1)).await.len(), 0, "the old one still runs");
    let wake = store.wake_times().await.expect("read").tasks.expect("someone must be told");
    assert!(wake <= later(noon(), 1));
    let told = claim(&store, later(noon(), 1), noon()).await.stop;
    assert_eq!(told, [(old.run.id, "overlap: cancel-previous".to_owned())]);
    assert_eq!(claim(&store, later(noon(), 1), noon()).await.stop, []);
    drop(store);
    // The one that was to stop does not go on after a crash.
    let store = place.open().await;
    store.begin_life("2", later(noon(), 2)).await.expect("begun");
    let ended = store.run(old.run.id).await.expect("read").expect("kept");
    assert_eq!(ended.state.word(), "cancelled");
    assert_eq!(take(&store, later(noon(), 2)).await[0].run.id, new);
    assert!(store.cancel_run(new, "by anna", later(noon(), 2)).await.expect("asked"), "it runs: the engine stops it");
}

pub async fn a_cancelled_run_withdraws_its_questions(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    assert!(!store.cancel_run(taken.run.id, "by anna", noon()).await.expect("cancelled"));
    let item = store.item(item).await.expect("read").expect("kept");
    assert!(matches!(item.state, ItemState::Withdrawn { .. }));
    let again = store.cancel_run(taken.run.id, "by anna", noon()).await;
    assert!(matches!(again, Err(TaskError::Ended { .. })), "{again:?}");
    let facts = store.journal(taken.run.id).await.expect("read");
    assert!(matches!(facts.last().expect("some").fact, ow_model::Fact::Ended { .. }));
    let answered = facts.iter().filter(|fact| matches!(fact.fact, ow_model::Fact::Answered { .. })).count();
    assert_eq!(answered, 1, "each parked call has its end");
}

/// Hands of each kind.
const fn hands(any: usize, kept: usize) -> FreeHands {
    FreeHands { any, kept, chats: 0 }
}

pub async fn what_becomes_ready_is_handed_to_free_hands_by_the_same_fact(place: &impl Place) {
    let store = place.open().await;
    store.begin_life("first", noon()).await.expect("begun");
    save(&store, &spec("asks", vec![]), noon()).await;
    save(&store, &spec("due", vec![cron("0 13 * * *")]), noon()).await;
    let asking = begin(&store, "asks", noon()).await;
    let item = park(&store, &asking, &[call(0, "x")], noon()).await[0];
    store.leave_hands(hands(1, 1));
    store.resolve(item, &Answer::Once, &anna(), noon()).await.expect("resolved");
    let run = store.run(asking.run.id).await.expect("read").expect("there");
    assert_eq!(run.state, RunState::Running, "it is nowhere ready and not taken");
    let given = store.handed_out().await;
    assert_eq!((given.answered[0].run.id, given.fresh.len()), (asking.run.id, 0));
    assert!(given.answered[0].journal.iter().any(|fact| matches!(fact.fact, Fact::Answered { .. })));
    assert_eq!(claim(&store, at("2026-03-03T13:00:00Z"), noon()).await.created, 1);
    let given = store.take_back_hands().await;
    assert_eq!(given.fresh[0].run.task_name, name("due"));
    drop(store);
    let store = place.open().await;
    assert_eq!(store.begin_life("second", later(noon(), 7200)).await.expect("begun").interrupted, 2);
}

pub async fn hands_are_given_what_they_can_hold_and_nothing_once_taken_back(place: &impl Place) {
    let store = place.open().await;
    let mut wide = spec("wide", vec![]);
    wide.overlap = Overlap::Allow { max: 9 };
    save(&store, &wide, noon()).await;
    let run = async || store.run_now(&name("wide"), "anna", None, noon()).await.expect("queued");
    store.leave_hands(hands(1, 1));
    let first = run().await;
    let second = run().await;
    let given = store.take_back_hands().await;
    assert_eq!(
        given.fresh.iter().map(|taken| taken.run.id).collect::<Vec<_>>(),
        [first],
        "the kept one is for answers"
    );
    let third = run().await;
    assert!(store.take_back_hands().await.is_empty());
    let left: Vec<_> = take(&store, noon()).await.into_iter().map(|taken| taken.run.id).collect();
    assert_eq!(left, [second, third]);
}

pub async fn hands_are_given_nothing_while_all_is_paused_and_nothing_that_needs_the_network(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![]);
    job.needs = vec![Need::Network];
    save(&store, &job, noon()).await;
    save(&store, &spec("asks", vec![]), noon()).await;
    let asking = begin(&store, "asks", noon()).await;
    let item = park(&store, &asking, &[call(0, "x")], noon()).await[0];
    store.leave_hands(hands(5, 5));
    store.run_now(&name("job"), "anna", None, noon()).await.expect("queued");
    store.pause_all("anna", noon()).await.expect("paused");
    store.resolve(item, &Answer::Once, &anna(), noon()).await.expect("resolved");
    assert!(store.take_back_hands().await.is_empty());
    store.resume_all(noon()).await.expect("resumed");
    assert_eq!(take(&store, noon()).await.len(), 2);
}

pub async fn a_fact_that_is_undone_hands_nothing_out(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("asks", vec![]), noon()).await;
    let asking = begin(&store, "asks", noon()).await;
    let item = park(&store, &asking, &[call(0, "x")], noon()).await[0];
    store.leave_hands(hands(1, 1));
    store.resolve(item, &Answer::Acknowledge, &anna(), noon()).await.expect_err("an approval takes no such answer");
    assert!(store.take_back_hands().await.is_empty());
    assert!(matches!(store.run(asking.run.id).await.expect("read").expect("there").state, RunState::Parked { .. }));
}

pub async fn of_many_that_become_ready_at_once_some_are_handed_out_and_none_is_forgotten(place: &impl Place) {
    let store = place.open().await;
    for index in 0..20 {
        save(&store, &spec(&format!("due-{index}"), vec![cron("0 13 * * *")]), noon()).await;
    }
    store.leave_hands(hands(20, 2));
    let due = at("2026-03-03T13:00:00Z");
    assert_eq!(claim(&store, due, noon()).await.created, 20);
    let given = store.take_back_hands().await.fresh.len();
    assert!((1..20).contains(&given), "{given}: what is due together does not wait until all are handed out");
    assert!(store.wake_times().await.expect("read").ready);
    assert_eq!(given + take(&store, due).await.len(), 20);
}
