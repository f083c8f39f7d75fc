use ow_model::{Answer, CallResult, Fact, ItemState, Outcome, Position, Span};
use serde_json::json;

use super::Place;
use super::support::{
    anna, begin, call, claim, cron, end, ending, event, later, name, noon, page, park, save, spec, started, take,
};
use crate::{Accepted, ResolveError, Retention, RunFilter};

const DAY: i64 = 86_400;

pub(crate) fn retention() -> Retention {
    Retention {
        runs: Span::from_secs(30 * 86_400),
        items: Span::from_secs(30 * 86_400),
        slots: Span::from_secs(30 * 86_400),
        event_keys: Span::from_secs(90 * 86_400),
        stream: 5,
        step: 3,
    }
}

pub async fn retention_keeps_marks_keys_and_decisions(place: &impl Place) {
    let store = place.open().await;
    let mut minute = spec("minute", vec![cron("* * * * *")]);
    minute.while_parked = ow_model::WhileParked::Release;
    let task = save(&store, &minute, noon()).await;
    for number in 1..=10 {
        let now = later(noon(), 60 * number);
        claim(&store, now, noon()).await;
        for taken in take(&store, now).await {
            end(&store, &taken, Outcome::Succeeded, now).await;
        }
    }
    store.accept_events(&[event("minute", "key")], later(noon(), 601)).await.expect("accepted");
    claim(&store, later(noon(), 601), noon()).await;
    let by_event = take(&store, later(noon(), 601)).await.remove(0);
    let item = park(&store, &by_event, &[call(0, "secret text")], later(noon(), 601)).await[0];
    store
        .resolve(item, &Answer::Deny { reason: Some("private".into()) }, &anna(), later(noon(), 602))
        .await
        .expect("ok");
    let denied = take(&store, later(noon(), 602)).await.remove(0);
    end(&store, &denied, Outcome::Refused { message: "no".into() }, later(noon(), 602)).await;
    let open = begin(&store, "minute", later(noon(), 603)).await;
    store.pause_task(&name("minute"), ow_model::PauseReason::Person, later(noon(), 604)).await.expect("paused");
    let before = store.task(&name("minute")).await.expect("read").expect("there");

    let now = later(noon(), 40 * DAY);
    let mut steps = 0;
    while store.retain(&retention(), now).await.expect("retained") {
        steps += 1;
        assert!(steps < 100, "each step removes something");
    }
    assert!(steps > 5, "small steps: {steps}");
    drop(store);
    let store = place.open().await;
    let runs = store.runs(&RunFilter::default(), &page(100)).await.expect("read").rows;
    assert!(runs.iter().any(|run| run.id == open.run.id), "an open run stays");
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(store.journal(denied.run.id).await.expect("read"), []);
    let row = store.task(&name("minute")).await.expect("read").expect("there");
    assert_eq!(row, before, "the mark stays");
    assert!(store.slots(task, noon(), later(noon(), 700), 100).await.expect("read").len() <= 1);
    let again = store.accept_events(&[event("minute", "key")], now).await.expect("accepted");
    assert_eq!(again, [Accepted::Duplicate], "keys are kept for 90 days");
    let kept = store.item(item).await.expect("read").expect("its decision stays");
    let ItemState::Resolved(resolution) = &kept.state else { panic!("{kept:?}") };
    assert_eq!((resolution.answer.word(), &resolution.by, resolution.at), ("denied", &anna(), later(noon(), 602)));
    assert!(!format!("{kept:?}").contains("secret text") && !format!("{kept:?}").contains("private"), "{kept:?}");
    let late = store.resolve(item, &Answer::Once, &anna(), now).await;
    assert!(matches!(late, Err(ResolveError::Already { .. })), "{late:?}");
    assert_eq!(store.stream(0, 100).await.expect("read"), None, "that position was pruned");
    let head = *store.stream_head().borrow();
    assert_eq!(store.stream(head - 5, 100).await.expect("read").expect("kept").len(), 5);

    let later_still = later(noon(), 100 * DAY);
    store.accept_events(&[event("minute", "new")], later_still).await.expect("accepted");
    while store.retain(&retention(), later_still).await.expect("retained") {}
    let again = store.accept_events(&[event("minute", "key")], later_still).await.expect("accepted");
    assert_eq!(again, [Accepted::New], "after that it is a new occasion");
}

pub async fn kept_bytes_outlive_a_restart_and_go_with_their_run(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let used = store.put_blob(b"a long output").await.expect("kept");
    assert_eq!(store.put_blob(b"a long output").await.expect("kept"), used);
    let loose = store.put_blob(b"nobody's").await.expect("kept");
    let result = CallResult { kept: vec![("stdout".into(), used)], ..CallResult::ok(json!({ "stdout": "a l…" })) };
    let done = Fact::Done { position: Position(0), result, took_ms: 1 };
    store.append(taken.run.id, 0, &[started(), done], None, noon()).await.expect("appended");
    store.end_run(&ending(taken.run.id, 2, Outcome::Succeeded), noon()).await.expect("ended");
    begin(&store, "job", noon()).await;
    drop(store);

    let store = place.open().await;
    assert_eq!(store.blob(used).await.expect("read").as_deref(), Some(b"a long output".as_slice()));
    while store.retain(&retention(), later(noon(), 60)).await.expect("retained") {}
    assert!(store.blob(loose).await.expect("read").is_some(), "its fact may still be on the way");
    while store.retain(&retention(), later(noon(), 2 * DAY)).await.expect("retained") {}
    assert_eq!(store.blob(loose).await.expect("read"), None);
    assert!(store.blob(used).await.expect("read").is_some());
    while store.retain(&retention(), later(noon(), 40 * DAY)).await.expect("retained") {}
    assert_eq!(store.blob(used).await.expect("read"), None);
    let back = store.put_blob(b"a long output").await.expect("kept");
    assert!(store.blob(back).await.expect("read").is_some());
}

pub async fn kept_bytes_that_an_event_names_wait_with_it(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let used = store.put_blob(b"an attachment").await.expect("kept");
    let mut mail = event("job", "mail:1");
    mail.payload.data = json!({ "attachments": [{ "hash": used.to_string() }] });
    store.accept_events(&[mail], noon()).await.expect("accepted");
    while store.retain(&retention(), later(noon(), 200 * DAY)).await.expect("retained") {}
    assert!(store.blob(used).await.expect("read").is_some(), "nothing has run on it yet");
    claim(&store, later(noon(), 200 * DAY), noon()).await;
    let run = take(&store, later(noon(), 200 * DAY)).await.remove(0);
    store.append(run.run.id, 0, &[started()], None, later(noon(), 200 * DAY)).await.expect("appended");
    let ended = later(noon(), 201 * DAY);
    store.end_run(&ending(run.run.id, 1, Outcome::Succeeded), ended).await.expect("ended");
    store.accept_events(&[event("job", "mail:2")], ended).await.expect("accepted");
    while store.retain(&retention(), later(noon(), 400 * DAY)).await.expect("retained") {}
    assert_eq!(store.blob(used).await.expect("read"), None, "and goes with it");
}
