use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use ow_model::{Answer, InboxBinding, InboxName, ItemId, Occasion, Span};

use super::Place;
use super::support::{Any, anna, approval, begin, bert, call, deny, later, noon, notification, page, park, save, spec};
use crate::{
    Attempted, Content, Conversation, Delivery, ItemFilter, NewReply, Reply, ResolveError, Retention, Route,
    RouteItems, Routing, TakenDeliveries, ToldIn,
};

fn ada() -> InboxBinding {
    InboxBinding::new("mail", "ada@example.org")
}

fn desk() -> InboxBinding {
    InboxBinding::desktop()
}

fn inbox(name: &str) -> InboxName {
    name.parse().expect("a name")
}

/// Tells of `default` by mail and on the desktop, and of `ops` by Slack.
fn bind(store: &Any) {
    route(store, |name, now| {
        let told = if *name == inbox("ops") { vec![InboxBinding::new("slack", "C1")] } else { vec![ada(), desk()] };
        Routing { told: told.into_iter().map(|binding| at_once(binding, now)).collect(), escalation: None }
    });
}

fn at_once(binding: InboxBinding, now: Timestamp) -> Route {
    Route { binding, due_at: now, digest: false }
}

fn route(store: &Any, route: impl Fn(&InboxName, Timestamp) -> Routing + Send + Sync + 'static) {
    store.route_items(Some(Arc::new(route) as Arc<RouteItems>));
}

async fn due(store: &Any, now: Timestamp) -> TakenDeliveries {
    store.take_deliveries(&BTreeSet::new(), 10, now).await.expect("taken")
}

/// What is due now for a binding, and nothing else.
async fn due_at(store: &Any, binding: &InboxBinding, now: Timestamp) -> Delivery {
    let found = due(store, now).await.deliveries;
    let mut found: Vec<Delivery> = found.into_iter().filter(|delivery| delivery.binding == *binding).collect();
    found.pop().unwrap_or_else(|| panic!("nothing is due for {binding}"))
}

fn told(delivery: &Delivery) -> Vec<(ItemId, Occasion)> {
    match &delivery.content {
        Content::Notices(notices) => notices.iter().map(|notice| (notice.item.id, notice.occasion)).collect(),
        Content::Reply(_) => vec![],
    }
}

fn sent(reference: &str) -> Attempted {
    Attempted::Sent { reference: Some(reference.into()) }
}

async fn record(store: &Any, delivery: &Delivery, attempted: Attempted, now: Timestamp) -> Option<Delivery> {
    store.record_delivery(delivery, &attempted, now).await.expect("recorded")
}

async fn states(store: &Any, item: ItemId) -> Vec<String> {
    let rows = store.deliveries(item).await.expect("read");
    rows.into_iter().map(|row| format!("{} {} {}", row.what, row.binding.kind(), row.state)).collect()
}

/// A task's run that waits for an answer.
async fn ask(store: &Any, task: &str, texts: &[&str], now: Timestamp) -> Vec<ItemId> {
    save(store, &spec(task, vec![]), now).await;
    let taken = begin(store, task, now).await;
    let calls: Vec<_> = (0..).zip(texts).map(|(position, text)| call(position, text)).collect();
    park(store, &taken, &calls, now).await
}

pub async fn where_nothing_is_bound_nothing_is_told(place: &impl Place) {
    let store = place.open().await;
    let changes = store.outbox_changes();
    let item = ask(&store, "job", &["x"], noon()).await[0];
    store.resolve(item, &Answer::Once, &anna(), noon()).await.expect("resolved");
    assert_eq!(due(&store, noon()).await, TakenDeliveries::default());
    assert_eq!(store.deliveries(item).await.expect("read"), []);
    assert!(!changes.has_changed().expect("open"), "nobody wakes");
}

pub async fn what_is_asked_together_is_one_message_a_binding(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let mut changes = store.outbox_changes();
    let items = ask(&store, "job", &["x", "y"], noon()).await;
    assert!(changes.has_changed().expect("open"), "who delivers is woken");
    changes.mark_unchanged();
    let taken = due(&store, noon()).await;
    let asked = vec![(items[0], Occasion::Asked), (items[1], Occasion::Asked)];
    let shown: Vec<_> = taken.deliveries.iter().map(|found| (found.binding.clone(), told(found))).collect();
    assert_eq!(shown, [(desk(), asked.clone()), (ada(), asked)]);
    assert_ne!(taken.deliveries[0].message_id, taken.deliveries[1].message_id);
    assert_eq!(due(&store, noon()).await, TakenDeliveries::default(), "it is handed out once");
    for delivery in &taken.deliveries {
        assert_eq!(record(&store, delivery, sent("r"), noon()).await, None);
    }
    let state = ["asked mail sent", "asked desktop sent"];
    assert_eq!(
        (states(&store, items[0]).await, states(&store, items[1]).await),
        (state.map(String::from).to_vec(), state.map(String::from).to_vec())
    );
}

pub async fn a_delivery_that_nobody_recorded_is_handed_out_again_under_its_name(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    drop(store);
    let store = place.open().await;
    let first = due_at(&store, &ada(), noon()).await;
    assert!(first.message_id.contains(&item.to_string()), "a message of one item names it");
    drop(store);
    let store = place.open().await;
    assert_eq!(due(&store, noon()).await.deliveries, [], "this life may not know yet that the one before is over");
    store.begin_life("second", noon()).await.expect("begun");
    let again = due_at(&store, &ada(), noon()).await;
    assert_eq!((&again.message_id, again.attempt), (&first.message_id, 2));
    record(&store, &again, sent("r"), noon()).await;
    drop(store);
    let store = place.open().await;
    store.begin_life("third", noon()).await.expect("begun");
    let left = due(&store, noon()).await.deliveries;
    assert!(left.iter().all(|delivery| delivery.binding != ada()), "what was sent is not sent again: {left:?}");
}

pub async fn a_delivery_that_failed_waits_and_holds_up_its_own_binding_alone(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let delivery = due_at(&store, &ada(), noon()).await;
    let again_at = later(noon(), 20);
    let why = Attempted::Later { at: again_at, why: "connection refused".into(), perhaps: false };
    assert_eq!(record(&store, &delivery, why, noon()).await, None);
    let taken = due(&store, later(noon(), 19)).await;
    assert_eq!((taken.deliveries.len(), taken.next), (0, Some(again_at)));
    let row = store.deliveries(item).await.expect("read").remove(0);
    assert_eq!((row.attempts, row.error.as_deref(), row.due_at), (1, Some("connection refused"), again_at));
    let closed = [ada()].into();
    let taken = store.take_deliveries(&closed, 10, again_at).await.expect("taken");
    assert_eq!(taken, TakenDeliveries::default(), "a closed binding is not looked at");
    let none = store.take_deliveries(&BTreeSet::new(), 0, again_at).await.expect("taken");
    assert_eq!((none.deliveries.len(), none.next), (0, Some(again_at)));
    assert_eq!(due_at(&store, &ada(), again_at).await.attempt, 2);
}

pub async fn what_was_answered_meanwhile_is_not_told_and_who_was_told_hears_the_end(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let asked = due(&store, noon()).await.deliveries;
    record(&store, &asked[1], sent("thread-1"), noon()).await;
    let again = Attempted::Later { at: later(noon(), 5), why: "no display".into(), perhaps: false };
    record(&store, &asked[0], again, noon()).await;
    store.tend_items(later(noon(), 600)).await.expect("reminded");
    store.resolve(item, &deny(), &anna(), later(noon(), 601)).await.expect("resolved");
    let now = later(noon(), 700);
    let end = due(&store, now).await.deliveries;
    assert_eq!(end.len(), 1, "neither the reminder nor the question that never arrived: {end:?}");
    assert_eq!((told(&end[0]), &end[0].binding), (vec![(item, Occasion::Settled)], &ada()));
    let Content::Notices(notices) = &end[0].content else { panic!("a notice") };
    let thread = notices[0].thread.clone().expect("it belongs to what was sent");
    assert_eq!((thread.message_id, thread.reference.as_deref()), (asked[1].message_id.clone(), Some("thread-1")));
    assert_eq!(notices[0].item.state.word(), "denied");
    let state = states(&store, item).await;
    let expected = [
        "asked mail sent",
        "asked desktop dropped",
        "reminded mail dropped",
        "reminded desktop dropped",
        "settled mail taken",
    ];
    assert_eq!(state, expected);
}

pub async fn what_was_under_way_when_it_was_answered_is_told_of_if_it_arrived(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let asked = due(&store, noon()).await.deliveries;
    store.resolve(item, &deny(), &anna(), noon()).await.expect("resolved");
    let now = later(noon(), 60);
    assert_eq!(due(&store, later(noon(), 1)).await.deliveries, [], "the end comes after the beginning");
    let end = record(&store, &asked[0], sent("r"), now).await.expect("the end follows at once");
    assert_eq!(told(&end), [(item, Occasion::Settled)]);
    let again = Attempted::Later { at: now, why: "connection refused".into(), perhaps: false };
    record(&store, &asked[1], again, now).await;
    let left = due(&store, later(now, 60)).await.deliveries;
    assert_eq!(left, [], "it never arrived, so it needs no end either");
}

pub async fn a_known_reply_is_one_message_and_stands_for_the_notice_of_the_end(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    for delivery in due(&store, noon()).await.deliveries {
        record(&store, &delivery, sent("r"), noon()).await;
    }
    store.resolve(item, &deny(), &anna(), noon()).await.expect("resolved");
    let text = Reply {
        subject: "Re: echo".into(),
        text: "denied".into(),
        in_reply_to: Some("<1@example.org>".into()),
        references: vec![],
    };
    let reply = NewReply { key: "<1@example.org>".into(), binding: ada(), item: Some(item), reply: text.clone() };
    assert!(store.enqueue_reply(&reply, noon()).await.expect("stored"));
    drop(store);
    let store = place.open().await;
    assert!(!store.enqueue_reply(&reply, noon()).await.expect("stored"), "it is one");
    let now = later(noon(), 60);
    let left = due(&store, now).await.deliveries;
    let shown: Vec<_> = left.iter().map(|delivery| (&delivery.binding, told(delivery))).collect();
    assert_eq!(shown, [(&desk(), vec![(item, Occasion::Settled)]), (&ada(), vec![])]);
    assert_eq!(left[1].content, Content::Reply(text));
    record(&store, &left[1], sent("r"), now).await;
    assert_eq!(due(&store, later(now, 60)).await.deliveries, []);
}

pub async fn what_is_given_up_is_told_once_by_other_bindings(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    for round in 0..2 {
        ask(&store, &format!("job-{round}"), &["x"], noon()).await;
    }
    let given_up =
        || Attempted::Failed { why: "no such mailbox".into(), notice: Box::new(notification("ada is not reached")) };
    let first = due_at(&store, &ada(), noon()).await;
    let second = record(&store, &first, given_up(), noon()).await.expect("the next of this binding");
    assert_eq!(record(&store, &second, given_up(), noon()).await, None, "the failure is not told by who failed");
    let filter = ItemFilter { pending_only: true, ..ItemFilter::default() };
    let items = store.items(&filter, &page(10)).await.expect("read").rows;
    let failures: Vec<_> = items.iter().filter(|item| item.title == "told").collect();
    assert_eq!(failures.len(), 1, "{items:?}");
    assert_eq!(states(&store, failures[0].id).await, ["asked desktop waiting"]);
    let stats = store.stats().await.expect("read");
    assert_eq!(stats.deliveries_failed, 2);
}

pub async fn an_unanswered_item_comes_to_the_next_inbox(place: &impl Place) {
    let store = place.open().await;
    let hour = Span::from_secs(3600);
    route(&store, move |name, now| {
        let (told, next) = match name.as_str() {
            "default" => (ada(), Some("ops")),
            "ops" => (InboxBinding::new("slack", "C1"), Some("boss")),
            _ => (desk(), None),
        };
        Routing {
            told: vec![at_once(told, now)],
            escalation: next.map(|next| (Span::from_secs(hour.millis() / 4000), inbox(next))),
        }
    });
    let item = ask(&store, "job", &["x"], noon()).await[0];
    store.notify(&notification("hello"), "k", noon()).await.expect("told");
    let first = later(noon(), 900);
    let items_due = |store: &Any| {
        let store = Arc::clone(store);
        async move { store.wake_times().await.expect("read").items }
    };
    store.tend_items(later(noon(), 600)).await.expect("reminded");
    assert_eq!(items_due(&store).await, Some(first));
    drop(store);
    let store = place.open().await;
    route(&store, move |name, now| Routing {
        told: vec![at_once(InboxBinding::new("slack", name.as_str()), now)],
        escalation: (name.as_str() == "ops").then(|| (hour, inbox("boss"))),
    });
    assert_eq!(store.tend_items(first).await.expect("tended").escalated, [item]);
    let found = store.item(item).await.expect("read").expect("kept");
    let names = |item: &ow_model::Item| item.inboxes().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&found), ["default", "ops"]);
    let told_now = due_at(&store, &InboxBinding::new("slack", "ops"), first).await;
    assert_eq!(told(&told_now), [(item, Occasion::Escalated)]);
    let kept = record(&store, &told_now, sent("r"), first).await;
    assert_eq!(kept, None);
    // It expires an hour after it was asked, before it would go on.
    store.resolve(item, &deny(), &anna(), later(first, 1)).await.expect("resolved");
    assert_eq!(store.tend_items(later(first, 7200)).await.expect("tended").escalated, []);
    let end = due_at(&store, &InboxBinding::new("slack", "ops"), later(first, 60)).await;
    assert_eq!(told(&end), [(item, Occasion::Settled)]);
}

pub async fn a_digest_gathers_what_comes_before_it_is_due(place: &impl Place) {
    let store = place.open().await;
    route(&store, |_, now| {
        let due_at = later(now, 600);
        Routing { told: vec![Route { binding: ada(), due_at, digest: true }], escalation: None }
    });
    let first = ask(&store, "one", &["x"], noon()).await[0];
    let second = ask(&store, "two", &["x"], later(noon(), 599)).await[0];
    let third = ask(&store, "three", &["x"], later(noon(), 600)).await[0];
    store.resolve(first, &deny(), &anna(), later(noon(), 600)).await.expect("resolved");
    let digest = due_at(&store, &ada(), later(noon(), 600)).await;
    assert_eq!(told(&digest), [(second, Occasion::Asked)], "what was answered meanwhile is left out");
    // An answer to it finds its item by this name.
    let named = format!("ow.{second}.");
    assert!(digest.message_id.starts_with(&named), "{}: not by what was left out", digest.message_id);
    let late = Attempted::Later { at: later(noon(), 700), why: "down".into(), perhaps: false };
    record(&store, &digest, late, later(noon(), 600)).await;
    let fourth = ask(&store, "four", &["x"], later(noon(), 650)).await[0];
    let again = due_at(&store, &ada(), later(noon(), 700)).await;
    assert_eq!((told(&again), &again.message_id), (vec![(second, Occasion::Asked)], &digest.message_id));
    record(&store, &again, sent("r"), later(noon(), 700)).await;
    let next = due_at(&store, &ada(), later(noon(), 1200)).await;
    assert_eq!(told(&next), [(third, Occasion::Asked), (fourth, Occasion::Asked)]);
}

pub async fn a_message_keeps_its_name_though_less_is_left_to_tell(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let items = ask(&store, "job", &["x", "y"], noon()).await;
    let first = due_at(&store, &ada(), noon()).await;
    assert_eq!(told(&first).len(), 2);
    assert!(!first.message_id.starts_with("ow."), "of several it names none: {}", first.message_id);
    // It may have arrived all the same.
    let late = Attempted::Later { at: later(noon(), 10), why: "no answer".into(), perhaps: false };
    record(&store, &first, late, noon()).await;
    store.resolve(items[0], &deny(), &anna(), later(noon(), 1)).await.expect("resolved");
    let again = due_at(&store, &ada(), later(noon(), 10)).await;
    assert_eq!((told(&again), &again.message_id), (vec![(items[1], Occasion::Asked)], &first.message_id));
}

pub async fn time_to_answer_is_counted_from_when_it_is_told(place: &impl Place) {
    let store = place.open().await;
    // It is night, and nothing is told for half an hour.
    let morning = later(noon(), 1800);
    route(&store, move |_, now| Routing {
        told: vec![at_once(ada(), now.max(morning))],
        escalation: Some((Span::from_secs(900), inbox("ops"))),
    });
    // It would be reminded of after ten minutes.
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let before = store.tend_items(later(morning, 599)).await.expect("tended");
    assert!(before.reminded.is_empty() && before.escalated.is_empty(), "{before:?}");
    assert_eq!(store.tend_items(later(morning, 600)).await.expect("tended").reminded, [item]);
    assert_eq!(store.tend_items(later(morning, 900)).await.expect("tended").escalated, [item]);
}

pub async fn of_what_waited_together_only_the_latest_is_told(place: &impl Place) {
    let store = place.open().await;
    let held = later(noon(), 1000);
    route(&store, move |_, now| Routing { told: vec![at_once(ada(), now)], escalation: None });
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let asked = due_at(&store, &ada(), noon()).await;
    record(&store, &asked, Attempted::Later { at: held, why: "down".into(), perhaps: false }, noon()).await;
    assert_eq!(store.tend_items(later(noon(), 600)).await.expect("tended").reminded, [item]);
    let now = due(&store, held).await.deliveries;
    assert_eq!(now.iter().map(told).collect::<Vec<_>>(), [vec![(item, Occasion::Reminded)]]);
    assert_eq!(record(&store, &now[0], sent("r"), held).await, None);
    assert_eq!(states(&store, item).await, ["asked mail dropped", "reminded mail sent"]);
}

pub async fn who_may_have_been_told_is_told_how_it_ended(place: &impl Place) {
    let store = place.open().await;
    route(&store, move |_, now| Routing { told: vec![at_once(ada(), now)], escalation: None });
    for (perhaps, ends) in
        [(false, vec!["asked mail dropped"]), (true, vec!["asked mail dropped", "settled mail waiting"])]
    {
        let item = ask(&store, if perhaps { "lost" } else { "late" }, &["x"], noon()).await[0];
        let asked = due_at(&store, &ada(), noon()).await;
        let late = Attempted::Later { at: later(noon(), 60), why: "no answer".into(), perhaps };
        record(&store, &asked, late, noon()).await;
        store.resolve(item, &deny(), &bert(), noon()).await.expect("resolved");
        assert_eq!(states(&store, item).await, ends, "{perhaps}");
    }
}

pub async fn what_is_too_long_to_stand_beside_others_has_a_message_of_its_own(place: &impl Place) {
    let store = place.open().await;
    let long = "x".repeat(2_000);
    for digest in [false, true] {
        route(&store, move |_, now| {
            let due_at = later(now, if digest { 600 } else { 0 });
            Routing { told: vec![Route { binding: ada(), due_at, digest }], escalation: None }
        });
        let task = if digest { "gathered" } else { "at-once" };
        let items = ask(&store, task, &["x", &long, "y"], noon()).await;
        let mut messages = vec![];
        let mut next = Some(due_at(&store, &ada(), later(noon(), 600)).await);
        while let Some(delivery) = next {
            messages.push(told(&delivery).into_iter().map(|(item, _)| item).collect::<Vec<_>>());
            next = record(&store, &delivery, sent("r"), later(noon(), 600)).await;
        }
        assert_eq!(messages, [vec![items[0], items[2]], vec![items[1]]], "{task}");
    }
}

pub async fn a_message_tells_of_ten_items_at_most(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let texts: Vec<String> = (0..25).map(|number| format!("x{number}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    ask(&store, "job", &texts, noon()).await;
    let mut told_of = vec![];
    let mut next = Some(due_at(&store, &ada(), noon()).await);
    while let Some(delivery) = next {
        told_of.push(told(&delivery).len());
        next = record(&store, &delivery, sent("r"), noon()).await;
    }
    assert_eq!(told_of, [10, 10, 5]);
}

pub async fn a_digest_tells_of_an_item_once(place: &impl Place) {
    let store = place.open().await;
    route(&store, |_, now| {
        let due_at = later(now, 1200);
        Routing { told: vec![Route { binding: ada(), due_at, digest: true }], escalation: None }
    });
    let item = ask(&store, "one", &["x"], noon()).await[0];
    // The other inbox is told by the same address.
    store.delegate(item, &inbox("ops"), &anna(), later(noon(), 600)).await.expect("handed on");
    let digest = due_at(&store, &ada(), later(noon(), 1200)).await;
    assert_eq!(told(&digest), [(item, Occasion::Delegated)]);
    assert_eq!(record(&store, &digest, sent("r"), later(noon(), 1200)).await, None);
    assert_eq!(states(&store, item).await, ["asked mail sent", "delegated mail sent"]);
}

pub async fn a_message_is_found_by_its_name(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let items = ask(&store, "job", &["x", "y"], noon()).await;
    let delivery = due_at(&store, &ada(), noon()).await;
    record(&store, &delivery, sent("1700000000.000100"), noon()).await;
    for name in [delivery.message_id.as_str(), "1700000000.000100"] {
        assert_eq!(store.items_told_as(name).await.expect("read"), items);
    }
    assert_eq!(store.items_told_as("ow.nothing").await.expect("read"), []);
}

pub async fn a_conversation_knows_what_it_was_told_of(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let conversation = |messages: &str| Conversation {
        messages: messages.into(),
        threads: format!("slack:{messages}"),
        bindings: vec![ada()],
    };
    let (here, elsewhere) = (conversation("D1/"), conversation("D2/"));
    assert_eq!(store.told_in(&here).await.expect("read"), ToldIn::default());
    let first = ask(&store, "one", &["x"], noon()).await[0];
    assert_eq!(store.told_in(&here).await.expect("read"), ToldIn::default(), "nobody was told yet");
    let delivery = due_at(&store, &ada(), noon()).await;
    let there = store.told_in(&here).await.expect("read");
    assert_eq!(there, ToldIn { waiting: vec![first], last: None }, "it may have arrived");
    record(&store, &delivery, sent("D1/1.1"), noon()).await;
    let second = ask(&store, "two", &["x"], later(noon(), 1)).await[0];
    let delivery = due_at(&store, &ada(), later(noon(), 1)).await;
    record(&store, &delivery, sent("D1/2.1"), later(noon(), 1)).await;
    let there = store.told_in(&here).await.expect("read");
    assert_eq!(there, ToldIn { waiting: vec![first, second], last: Some(second) });
    assert_eq!(store.told_in(&elsewhere).await.expect("read"), ToldIn::default());
    for item in [first, second] {
        store.resolve(item, &deny(), &anna(), later(noon(), 2)).await.expect("resolved");
    }
    let there = store.told_in(&here).await.expect("read");
    assert_eq!(there, ToldIn { waiting: vec![], last: Some(second) });
}

pub async fn an_item_is_told_of_where_its_inbox_is_bound(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let item = crate::NewItem { inbox: inbox("ops"), ..approval("job", taken.run.id, &call(0, "x")) };
    let request = crate::ParkRequest {
        run: taken.run.id,
        next: 0,
        facts: vec![],
        items: vec![(ow_model::Position(0), item)],
        ran_for_ms: 0,
    };
    let item = store.park(&request, noon()).await.expect("parked")[0];
    assert_eq!(states(&store, item).await, ["asked slack waiting"]);
    assert_eq!(store.item(item).await.expect("read").expect("kept").inbox, inbox("ops"));
    drop(store);
    let store = place.open().await;
    bind(&store);
    // What a run that failed is told of goes where its task's questions go.
    let ops = ow_model::TaskSpec { inbox: inbox("ops"), ..spec("watch", vec![]) };
    save(&store, &ops, noon()).await;
    let taken = begin(&store, "watch", noon()).await;
    super::support::end(&store, &taken, super::support::failed("no"), noon()).await;
    let newest = store.items(&ItemFilter::default(), &page(1)).await.expect("read").rows.remove(0);
    assert_eq!((newest.inbox, states(&store, newest.id).await), (inbox("ops"), vec!["asked slack waiting".to_owned()]));
}

pub async fn an_item_that_is_handed_on_is_in_both_inboxes(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let ops = inbox("ops");
    let handed = store.delegate(item, &ops, &anna(), noon()).await.expect("handed on");
    assert_eq!(handed.also, std::slice::from_ref(&ops));
    drop(store);
    let store = place.open().await;
    bind(&store);
    assert_eq!(store.item(item).await.expect("read").expect("kept"), handed);
    let slack = InboxBinding::new("slack", "C1");
    assert_eq!(told(&due_at(&store, &slack, noon()).await), [(item, Occasion::Delegated)]);
    assert_eq!(store.delegate(item, &ops, &anna(), noon()).await.expect("it is there"), handed);
    assert_eq!(states(&store, item).await.len(), 3, "nobody is told twice");
    store.resolve(item, &deny(), &bert(), noon()).await.expect("resolved");
    let late = store.delegate(item, &inbox("boss"), &anna(), noon()).await;
    assert!(matches!(late, Err(ResolveError::Already { .. })), "{late:?}");
    let unknown = store.delegate(ItemId::random(), &ops, &anna(), noon()).await;
    assert!(matches!(unknown, Err(ResolveError::Unknown { .. })), "{unknown:?}");
}

pub async fn who_was_told_of_an_item_is_told_that_it_was_handed_on(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let delivery = due_at(&store, &ada(), noon()).await;
    record(&store, &delivery, sent("<1@example.net>"), noon()).await;
    let ops = inbox("ops");
    store.delegate(item, &ops, &anna(), noon()).await.expect("handed on");
    let slack = InboxBinding::new("slack", "C1");
    let deliveries = due(&store, noon()).await.deliveries;
    let mut all: Vec<_> = deliveries.iter().map(|delivery| (delivery.binding.clone(), told(delivery))).collect();
    all.sort_by(|left, right| left.0.as_str().cmp(right.0.as_str()));
    let (on, to) = (vec![(item, Occasion::HandedOn)], vec![(item, Occasion::Delegated)]);
    assert_eq!(all, [(desk(), on.clone()), (ada(), on), (slack, to)]);
    let before = states(&store, item).await;
    assert_eq!(before.iter().filter(|state| state.starts_with("handed-on")).count(), 2, "{before:?}");
    store.delegate(item, &ops, &anna(), noon()).await.expect("it is there");
    assert_eq!(states(&store, item).await, before, "once");
}

pub async fn an_answer_and_what_its_sender_is_told_are_one_fact(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let item = ask(&store, "job", &["x"], noon()).await[0];
    let reply = |text: &str, key: &str| crate::NewReply {
        key: key.into(),
        binding: ada(),
        item: Some(item),
        reply: Reply { subject: "s".into(), text: text.into(), in_reply_to: None, references: vec![] },
    };
    let first = reply("Done.", "mail:1");
    store.resolve_and_tell(item, &deny(), &bert(), &first, noon()).await.expect("resolved");
    drop(store);
    // What handles the same mail again after a crash finds that it is told.
    let store = place.open().await;
    bind(&store);
    let again = store.resolve_and_tell(item, &deny(), &bert(), &first, noon()).await;
    assert!(matches!(again, Err(ResolveError::Already { .. })), "{again:?}");
    assert!(!store.enqueue_reply(&reply("It was decided already.", "mail:1"), noon()).await.expect("written"));
    let late = store.resolve_and_tell(item, &deny(), &bert(), &reply("Done.", "mail:2"), noon()).await;
    assert!(late.is_err(), "{late:?}");
    let replies = states(&store, item).await.into_iter().filter(|state| state.starts_with("reply")).count();
    assert_eq!(replies, 1, "an answer that does not count is told nothing by this");
}

pub async fn what_a_chat_asks_is_told_elsewhere_a_minute_later(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let session = super::sessions::create(&store).await;
    super::sessions::say(&store, session, "hello").await;
    let taken = store.take_chats(1, noon()).await.expect("taken").remove(0);
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    let soon = due(&store, later(noon(), 59)).await;
    assert_eq!((soon.deliveries.len(), soon.next), (0, Some(later(noon(), 60))), "whoever is there answers there");
    assert_eq!(told(&due_at(&store, &ada(), later(noon(), 60)).await), [(item, Occasion::Asked)]);
}

pub async fn what_was_told_goes_with_its_item(place: &impl Place) {
    let store = place.open().await;
    bind(&store);
    let items = ask(&store, "job", &["x", "y"], noon()).await;
    for delivery in due(&store, noon()).await.deliveries {
        record(&store, &delivery, sent("r"), noon()).await;
    }
    store.resolve(items[0], &deny(), &anna(), later(noon(), 1)).await.expect("resolved");
    let day = Span::from_secs(86_400);
    let retention = Retention { runs: day, items: day, slots: day, event_keys: day, stream: 1000, step: 100 };
    let now = later(noon(), 86_400 + 10);
    while store.retain(&retention, now).await.expect("kept clean") {}
    assert_eq!(states(&store, items[1]).await, ["asked mail sent", "asked desktop sent"], "it is open still");
    assert_eq!(states(&store, items[0]).await, ["settled mail waiting", "settled desktop waiting"]);
}
