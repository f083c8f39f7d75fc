use std::collections::BTreeMap;

use jiff::Timestamp;
use ow_model::{
    AfterEnd, CatchUp, Cause, Disposition, EventKey, Failure, Outcome, PauseReason, RunState, SlotKey, SlotRecord,
    TaskSource, Trigger,
};

use super::Place;
use super::support::{at, begin, claim, cron, end, event, failed, later, name, noon, save, spec, take};
use crate::{Accepted, Claim, EventFate, Offer, Offered, RunFilter, TaskRow};

fn is_fired(record: &SlotRecord) -> bool {
    matches!(record.disposition, Disposition::Fired { .. })
}

pub async fn each_slot_fires_once_whatever_is_dropped(place: &impl Place) {
    let mut now = noon();
    let store = place.open().await;
    let task = save(&store, &spec("minute", vec![cron("* * * * *")]), now).await;
    drop(store);
    for minute in 1..=10 {
        now = later(noon(), 60 * minute);
        let store = place.open().await;
        store.begin_life(&format!("life {minute}"), later(now, -1)).await.expect("begun");
        assert_eq!(claim(&store, now, later(now, -1)).await.created, 1, "minute {minute}");
        assert_eq!(claim(&store, now, later(now, -1)).await.created, 0, "claimed already");
        if minute % 2 == 0 {
            drop(store);
            let store = place.open().await;
            store.begin_life("again", now).await.expect("begun");
            assert_eq!(claim(&store, now, now).await.created, 0, "claimed before the crash");
            for taken in take(&store, now).await {
                end(&store, &taken, Outcome::Succeeded, now).await;
            }
        } else {
            for taken in take(&store, now).await {
                end(&store, &taken, Outcome::Succeeded, now).await;
            }
        }
    }
    let store = place.open().await;
    let records = store.slots(task, noon(), now, 100).await.expect("read");
    let mut seen = BTreeMap::new();
    for record in &records {
        let SlotKey::Instant(instant) = record.key else { panic!("{record:?}") };
        *seen.entry(instant).or_insert(0) += 1;
        assert!(is_fired(record), "{record:?}");
    }
    assert_eq!(seen.len(), 10);
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
}

pub async fn an_overdue_task_is_accounted_for_before_its_edit(place: &impl Place) {
    let store = place.open().await;
    let mut job = spec("job", vec![cron("0 * * * *")]);
    job.catch_up = CatchUp::None;
    let task = save(&store, &job, noon()).await;
    job.triggers = vec![cron("30 * * * *")];
    let edited = later(noon(), 3600 + 2400);
    save(&store, &job, edited).await;
    let records = store.slots(task, noon(), edited, 10).await.expect("read");
    assert_eq!(records.len(), 1, "13:00 by the old definition and 13:30 by none: {records:?}");
    let row = store.task(&name("job")).await.expect("read").expect("there");
    assert_eq!(row.next_due, Some(at("2026-03-03T14:30:00Z")));
    assert!(row.accounted_until >= edited);
}

pub async fn a_pause_is_one_skipped_range(place: &impl Place) {
    let store = place.open().await;
    let task = save(&store, &spec("minute", vec![cron("* * * * *")]), noon()).await;
    store.pause_task(&name("minute"), PauseReason::Person, later(noon(), 30)).await.expect("paused");
    assert_eq!(claim(&store, later(noon(), 200), noon()).await.created, 0);
    drop(store);
    let store = place.open().await;
    let resumed = later(noon(), 630);
    store.resume_task(&name("minute"), resumed).await.expect("resumed");
    let records = store.slots(task, noon(), resumed, 100).await.expect("read");
    let [SlotRecord { key: SlotKey::Range { from, until, count }, disposition, .. }] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!((*from, *until, *count), (later(noon(), 60), later(noon(), 600), 10));
    assert!(matches!(disposition, Disposition::Skipped { why } if why == "paused"), "{disposition:?}");
    let row = store.task(&name("minute")).await.expect("read").expect("there");
    assert_eq!(row.next_due, Some(later(noon(), 660)));
}

pub async fn a_clock_set_back_fires_nothing_twice(place: &impl Place) {
    let store = place.open().await;
    let task = save(&store, &spec("minute", vec![cron("* * * * *")]), noon()).await;
    let mut fired = 0;
    for minute in 1..=5 {
        let now = later(noon(), 60 * minute);
        fired += claim(&store, now, noon()).await.created;
        for taken in take(&store, now).await {
            end(&store, &taken, Outcome::Succeeded, now).await;
        }
    }
    assert_eq!(fired, 5);
    let back = later(noon(), 90);
    store.clock_changed(back).await.expect("told");
    let row = store.task(&name("minute")).await.expect("read").expect("there");
    assert!(row.accounted_until <= back, "the mark returns");
    for minute in 2..=6 {
        let now = later(noon(), 60 * minute);
        let created = claim(&store, now, back).await.created;
        assert_eq!(created, u64::from(minute == 6), "minute {minute}");
    }
    let records = store.slots(task, noon(), later(noon(), 400), 100).await.expect("read");
    let instants: Vec<Timestamp> = records
        .iter()
        .filter(|record| is_fired(record))
        .filter_map(|record| if let SlotKey::Instant(at) = record.key { Some(at) } else { None })
        .collect();
    assert_eq!(instants.len(), 6, "{records:?}");
}

pub async fn an_event_is_accepted_once(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("a", vec![]), noon()).await;
    save(&store, &spec("b", vec![]), noon()).await;
    let batch = [event("a", "1"), event("a", "2"), event("a", "1"), event("b", "1")];
    let accepted = store.accept_events(&batch, noon()).await.expect("accepted");
    assert_eq!(accepted, [Accepted::New, Accepted::New, Accepted::Duplicate, Accepted::New]);
    drop(store);
    let store = place.open().await;
    assert_eq!(store.accept_events(&batch[..1], noon()).await.expect("accepted"), [Accepted::Duplicate]);
    let unknown = store.accept_events(&[event("a", "3"), event("nobody", "1")], noon()).await;
    assert!(unknown.is_err(), "{unknown:?}");
    assert_eq!(store.task(&name("a")).await.expect("read").expect("there").waiting, 2, "all or none");
}

pub async fn an_unwanted_event_has_its_record_and_is_new_once_it_is_wanted(place: &impl Place) {
    let store = place.open().await;
    let on = |hook: &str| Trigger::Webhook { hook: hook.parse().expect("a name"), when: None };
    let task = save(&store, &spec("a", vec![on("ci"), on("ci")]), noon()).await;
    save(&store, &spec("b", vec![on("other")]), noon()).await;
    let listening = |rows: Vec<TaskRow>| rows.into_iter().map(|row| row.spec.name.to_string()).collect::<Vec<_>>();
    assert_eq!(listening(store.tasks_on("webhook:ci").await.expect("read")), ["a"]);

    let offer = |task: &str, key: &str, unwanted: Option<&str>| Offer {
        event: event(task, key),
        unwanted: unwanted.map(str::to_owned),
        twin: None,
    };
    let first = [offer("a", "1", Some("`when` is false")), offer("gone", "1", None), offer("a", "2", None)];
    let accepted = store.offer_events(&first, noon()).await.expect("offered");
    assert_eq!(accepted, [Offered::Unwanted, Offered::New]);
    let fate = async |key: &str| store.event_fate(task, &EventKey(key.into())).await.expect("read");
    let why = "not wanted: `when` is false".to_owned();
    assert_eq!(fate("1").await, Some(EventFate::Recorded(Disposition::Skipped { why })));
    assert_eq!((fate("2").await, fate("3").await), (Some(EventFate::Waiting), None));
    assert_eq!(store.task(&name("a")).await.expect("read").expect("there").waiting, 1);

    let again = store.offer_events(&first, noon()).await.expect("offered");
    assert_eq!(again, [Offered::Known, Offered::Known]);
    let wanted = store.offer_events(&[offer("a", "1", None)], later(noon(), 1)).await.expect("offered");
    assert_eq!(wanted, [Offered::New]);
    assert_eq!(fate("1").await, Some(EventFate::Waiting));
    claim(&store, later(noon(), 2), noon()).await;
    assert!(matches!(fate("1").await, Some(EventFate::Recorded(Disposition::Fired { .. }))));
    let refused = store.offer_events(&[offer("a", "1", Some("no"))], later(noon(), 3)).await.expect("offered");
    assert_eq!(refused, [Offered::Known]);

    store.delete_task(&name("a"), later(noon(), 4)).await.expect("deleted");
    assert_eq!(listening(store.tasks_on("webhook:ci").await.expect("read")), Vec::<String>::new());
}

pub async fn an_event_that_is_another_one_again_is_skipped_with_a_record(place: &impl Place) {
    let store = place.open().await;
    let on = |hook: &str| Trigger::Webhook { hook: hook.parse().expect("a name"), when: None };
    let task = save(&store, &spec("a", vec![on("ci")]), noon()).await;
    save(&store, &spec("b", vec![on("ci")]), noon()).await;
    let offer = |task: &str, key: &str, twin: &str| Offer {
        event: event(task, key),
        unwanted: None,
        twin: Some(twin.to_owned()),
    };
    let offered = store.offer_events(&[offer("a", "1", "x"), offer("b", "1", "x")], noon()).await.expect("offered");
    assert_eq!(offered, [Offered::New, Offered::New], "each task has it once");
    let again = [offer("a", "1", "x"), offer("a", "2", "x"), offer("a", "3", "y")];
    let offered = store.offer_events(&again, later(noon(), 1)).await.expect("offered");
    assert_eq!(offered, [Offered::Known, Offered::Repeated, Offered::New]);
    let fate = store.event_fate(task, &EventKey("2".into())).await.expect("read");
    let Some(EventFate::Recorded(Disposition::Skipped { why })) = fate else { panic!("{fate:?}") };
    assert!(why.contains("under another id"), "{why}");
    let offered = store.offer_events(&again, later(noon(), 2)).await.expect("offered");
    assert_eq!(offered, [Offered::Known; 3]);
}

pub async fn events_wait_for_a_running_run_and_go_to_the_next_together(place: &impl Place) {
    let store = place.open().await;
    let task = save(&store, &spec("job", vec![]), noon()).await;
    store.accept_events(&[event("job", "1")], noon()).await.expect("accepted");
    assert_eq!(claim(&store, noon(), noon()).await.created, 1);
    let first = take(&store, noon()).await.remove(0);
    store.accept_events(&[event("job", "2"), event("job", "3")], noon()).await.expect("accepted");
    assert_eq!(claim(&store, noon(), noon()).await.created, 0, "the first run still runs");
    end(&store, &first, Outcome::Succeeded, later(noon(), 1)).await;
    let wake = store.wake_times().await.expect("read").tasks.expect("events wait");
    assert!(wake <= later(noon(), 1), "{wake}");
    assert_eq!(claim(&store, later(noon(), 1), noon()).await.created, 1);
    let second = take(&store, later(noon(), 1)).await.remove(0);
    assert_eq!(second.run.cause, Cause::Event { count: 2 });
    let keys = |events: Vec<ow_model::NewEvent>| events.into_iter().map(|event| event.key.0).collect::<Vec<_>>();
    assert_eq!(keys(store.run_events(first.run.id).await.expect("read")), ["1"]);
    assert_eq!(keys(store.run_events(second.run.id).await.expect("read")), ["2", "3"]);
    let records = store.slots(task, noon(), later(noon(), 1), 10).await.expect("read");
    let events = records.iter().filter(|record| matches!(record.key, SlotKey::Event(_)) && is_fired(record)).count();
    assert_eq!(events, 3, "one record an event: {records:?}");
}

pub async fn events_outlive_a_restart_and_a_pause(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    store.pause_task(&name("job"), PauseReason::Person, noon()).await.expect("paused");
    store.accept_events(&[event("job", "1")], noon()).await.expect("accepted");
    assert_eq!(claim(&store, noon(), noon()).await.created, 0);
    drop(store);
    let store = place.open().await;
    store.begin_life("2", noon()).await.expect("begun");
    store.resume_task(&name("job"), noon()).await.expect("resumed");
    claim(&store, noon(), noon()).await;
    let taken = take(&store, noon()).await;
    assert_eq!(taken.len(), 1, "work is never skipped");
    assert_eq!(store.run_events(taken[0].run.id).await.expect("read").len(), 1);
}

pub async fn startup_fires_once_a_life(place: &impl Place) {
    for life in ["one", "one", "two"] {
        let store = place.open().await;
        save(&store, &spec("job", vec![Trigger::Startup]), noon()).await;
        store.begin_life(life, noon()).await.expect("begun");
        claim(&store, noon(), noon()).await;
        assert_eq!(take(&store, noon()).await.len(), 0, "a file may have another definition by now");
        store.fire_startup(life, noon()).await.expect("fired");
        claim(&store, noon(), noon()).await;
        for taken in take(&store, noon()).await {
            assert_eq!(store.run_events(taken.run.id).await.expect("read")[0].payload.kind, "startup");
            end(&store, &taken, Outcome::Succeeded, noon()).await;
        }
    }
    let store = place.open().await;
    let runs = store.runs(&RunFilter::default(), &super::support::page(10)).await.expect("read");
    assert_eq!(runs.rows.len(), 2, "{:?}", runs.rows);
}

pub async fn the_end_of_a_task_is_an_event_of_those_after_it(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("first", vec![]), noon()).await;
    for (task, on) in [("good", AfterEnd::Success), ("bad", AfterEnd::Failure), ("any", AfterEnd::Any)] {
        save(&store, &spec(task, vec![Trigger::After { task: name("first"), on }]), noon()).await;
    }
    let internal = Outcome::Failed { failure: Failure::Internal, message: "x".into() };
    for (outcome, expected) in [
        (Outcome::Succeeded, ["any", "good"].as_slice()),
        (internal, &["any", "bad"]),
        (Outcome::Cancelled { why: "x".into() }, &["any"]),
    ] {
        let taken = begin(&store, "first", noon()).await;
        end(&store, &taken, outcome.clone(), noon()).await;
        claim(&store, noon(), noon()).await;
        let mut followers = vec![];
        for follower in take(&store, noon()).await {
            followers.push(follower.run.task_name.to_string());
            assert_eq!(follower.run.depth, 1);
            let events = store.run_events(follower.run.id).await.expect("read");
            assert_eq!(events[0].key.0, format!("after:{}", taken.run.id));
            end(&store, &follower, Outcome::Succeeded, noon()).await;
        }
        followers.sort();
        assert_eq!(followers, expected, "after {outcome:?}");
    }
}

pub async fn slots_are_found_by_overlap(place: &impl Place) {
    let store = place.open().await;
    let task = save(&store, &spec("minute", vec![cron("* * * * *")]), noon()).await;
    claim(&store, later(noon(), 60), noon()).await;
    store.pause_task(&name("minute"), PauseReason::Person, later(noon(), 61)).await.expect("paused");
    store.resume_task(&name("minute"), later(noon(), 601)).await.expect("resumed");
    claim(&store, later(noon(), 660), noon()).await;
    let found = async |from: i64, until: i64| {
        let slots = store.slots(task, later(noon(), from), later(noon(), until), 10).await.expect("read");
        slots.iter().map(|record| record.key.clone()).collect::<Vec<_>>()
    };
    let one = SlotKey::Instant(later(noon(), 60));
    let range = SlotKey::Range { from: later(noon(), 120), until: later(noon(), 600), count: 9 };
    let last = SlotKey::Instant(later(noon(), 660));
    assert_eq!(found(0, 59).await, []);
    assert_eq!(found(60, 60).await, std::slice::from_ref(&one));
    assert_eq!(found(300, 301).await, std::slice::from_ref(&range), "inside the range");
    assert_eq!(found(0, 1000).await, [one, range, last], "oldest first");
}

pub async fn a_hundred_due_tasks_are_claimed_in_steps(place: &impl Place) {
    let store = place.open().await;
    for number in 0..100 {
        save(&store, &spec(&format!("job-{number:03}"), vec![cron("1 12 * * *")]), noon()).await;
    }
    let due = later(noon(), 60);
    assert_eq!(store.wake_times().await.expect("read").tasks, Some(due));
    let step = store.claim_due(&Claim { now: due, awake_since: noon(), limit: 70 }).await.expect("claimed");
    assert_eq!((step.created, step.more), (70, true));
    let step = store.claim_due(&Claim { now: due, awake_since: noon(), limit: 70 }).await.expect("claimed");
    assert_eq!((step.created, step.more), (30, false));
    assert_eq!(store.stats().await.expect("read").runs_queued, 100);
    let one = store.take_runs(1, 1, true, due).await.expect("taken");
    assert_eq!(one.len(), 1);
    end(&store, &one[0], failed("x"), due).await;
    let run = store.run(one[0].run.id).await.expect("read").expect("kept");
    assert!(matches!(run.state, RunState::Ended(_)) && run.scheduled_for == due, "{run:?}");
    let saved = store.save_task(&one[0].spec, TaskSource::Store, "", None, due).await.expect("saved");
    assert_eq!(saved.revision, 1);
}
