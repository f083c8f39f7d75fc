use ow_model::{
    Answer, Answered, Category, Fact, ItemKind, ItemState, Position, Rule, RuleId, RuleScope, RunState, Span,
};

use super::Place;
use super::support::{
    anna, approval, begin, bert, call, deny, ending, later, name, noon, notification, page, park, rule_target, save,
    spec, started, take,
};
use crate::{ItemFilter, NewItem, ParkRequest, ResolveError, StoreError, Tended};

pub async fn a_parked_run_goes_on_when_all_is_answered(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let items = park(&store, &taken, &[call(0, "x"), call(1, "y")], noon()).await;
    drop(store);
    let store = place.open().await;
    let run = store.run(taken.run.id).await.expect("read").expect("kept");
    assert_eq!(run.state, RunState::Parked { items: items.clone(), holds: true });
    assert_eq!(run.ran_for_ms, 7);
    store.resolve(items[1], &Answer::Once, &anna(), later(noon(), 1)).await.expect("resolved");
    let run = store.run(taken.run.id).await.expect("read").expect("kept");
    assert_eq!(run.state, RunState::Parked { items: vec![items[0]], holds: true });
    drop(store);
    let store = place.open().await;
    store.resolve(items[0], &deny(), &bert(), later(noon(), 2)).await.expect("resolved");
    let run = store.run(taken.run.id).await.expect("read").expect("kept");
    assert_eq!(run.state, RunState::Queued { not_before: None, answered: true });
    drop(store);
    let store = place.open().await;
    let again = take(&store, later(noon(), 2)).await.remove(0);
    let answers: Vec<(Position, &str)> = again
        .journal
        .iter()
        .filter_map(|recorded| match &recorded.fact {
            Fact::Answered { position, answered: Answered::Resolved(resolution), .. } => {
                Some((*position, resolution.answer.word()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(answers, [(Position(1), "approved"), (Position(0), "denied")]);
}

pub async fn an_equal_question_of_a_run_is_the_same_item(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let twin = ow_model::Call { position: Position(1), ..call(0, "x") };
    let items = park(&store, &taken, &[call(0, "x"), twin, call(2, "y")], noon()).await;
    assert_eq!(items[0], items[1]);
    assert_ne!(items[0], items[2]);
    store.resolve(items[0], &Answer::Once, &anna(), noon()).await.expect("resolved");
    store.resolve(items[2], &Answer::Once, &anna(), noon()).await.expect("resolved");
    let facts = store.journal(taken.run.id).await.expect("read");
    let answered = facts.iter().filter(|recorded| matches!(recorded.fact, Fact::Answered { .. })).count();
    assert_eq!(answered, 3, "each call has its answer");
    let again = take(&store, noon()).await.remove(0);
    let next = u32::try_from(again.journal.len()).expect("short");
    let nothing = ParkRequest { run: again.run.id, next, facts: vec![], items: vec![], ran_for_ms: 0 };
    let refused = store.park(&nothing, noon()).await;
    assert!(matches!(refused, Err(StoreError::Failed { .. })), "it would wait for ever: {refused:?}");
}

pub async fn a_run_holds_its_slot_by_what_it_asks_however_often_it_is_parked(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let run = taken.run.id;
    let about = |category: Category| {
        let mut item = approval("job", run, &call(0, "x"));
        if let ItemKind::Approval { category: of, .. } = &mut item.kind {
            *of = category;
        }
        item
    };
    let budget = NewItem { kind: ItemKind::Budget { text: "it is used up".into() }, ..about(Category::Exec) };
    let mut next = 0;
    for (items, holds) in [
        (vec![about(Category::UnknownOutcome)], false),
        (vec![about(Category::Stopped)], false),
        (vec![budget.clone()], false),
        (vec![budget.clone(), about(Category::Exec)], true),
        (vec![budget], false),
    ] {
        for _ in 0..2 {
            let items = items.iter().cloned().map(|item| (Position(0), item)).collect();
            let request = ParkRequest { run, next, facts: vec![], items, ran_for_ms: 0 };
            for item in store.park(&request, noon()).await.expect("parked") {
                let state = store.run(run).await.expect("read").expect("kept").state;
                assert!(matches!(state, RunState::Parked { holds: so, .. } if so == holds), "{state:?}");
                store.withdraw_item(item, "asked again", noon()).await.expect("withdrawn");
            }
            next = u32::try_from(take(&store, noon()).await.remove(0).journal.len()).expect("short");
        }
    }
}

pub async fn an_answer_must_fit_the_question(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let question = NewItem {
        kind: ItemKind::Question {
            questions: vec![ow_model::Question {
                header: None,
                text: "which?".into(),
                options: vec!["a".into(), "b".into()],
                multi: false,
            }],
        },
        ..approval("job", taken.run.id, &call(1, "y"))
    };
    let request = ParkRequest {
        run: taken.run.id,
        next: 0,
        facts: vec![started()],
        items: vec![(Position(0), approval("job", taken.run.id, &call(0, "x"))), (Position(1), question)],
        ran_for_ms: 0,
    };
    let items = store.park(&request, noon()).await.expect("parked");
    let told = store.notify(&notification("hello"), "k", noon()).await.expect("told");
    let text = Answer::Text { text: "a".into() };
    let misfits = [
        (items[0], text.clone()),
        (items[0], Answer::Acknowledge),
        (items[0], Answer::Edited { args: serde_json::json!([1]) }),
        (items[1], Answer::Once),
        (items[1], Answer::ForTask),
        (items[1], Answer::Text { text: "  ".into() }),
    ];
    for (item, answer) in misfits {
        let refused = store.resolve(item, &answer, &anna(), noon()).await;
        assert!(matches!(refused, Err(ResolveError::Misfit { .. })), "{answer:?}: {refused:?}");
    }
    for always in [Answer::AlwaysTool, Answer::AlwaysCommand] {
        let refused = store.resolve(items[0], &always, &anna(), noon()).await;
        assert!(
            matches!(refused, Err(ResolveError::NoRule { .. })),
            "what would change nothing is not offered: {refused:?}"
        );
    }
    let edited = Answer::Edited { args: serde_json::json!({ "argv": ["true"] }) };
    for (item, answer) in [(items[0], edited), (items[1], text), (told, Answer::Once)] {
        store.resolve(item, &answer, &anna(), noon()).await.expect("fits");
    }
    let told = store.item(told).await.expect("read").expect("kept");
    assert!(matches!(told.state, ItemState::Resolved(resolution) if resolution.answer == Answer::Acknowledge));
    let unknown = store.resolve(ow_model::ItemId::random(), &Answer::Once, &anna(), noon()).await;
    assert!(matches!(unknown, Err(ResolveError::Unknown { .. })));
}

pub async fn allowing_for_the_task_makes_its_rule(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    for round in 0..2 {
        let taken = begin(&store, "job", noon()).await;
        let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
        store.resolve(item, &Answer::ForTask, &anna(), noon()).await.expect("resolved");
        let rules = store.rules(Some(&name("job")), noon()).await.expect("read");
        assert_eq!(rules.len(), 1, "round {round}: the same permission is one rule");
        assert_eq!((&rules[0].target, rules[0].created_by.as_str()), (&rule_target(), "anna"));
        assert_eq!(store.rules(Some(&name("other")), noon()).await.expect("read"), []);
        store.cancel_run(taken.run.id, "done", noon()).await.expect("cancelled");
    }
    let taken = begin(&store, "job", noon()).await;
    let mut bare = approval("job", taken.run.id, &call(0, "x"));
    if let ItemKind::Approval { rule_offer, .. } = &mut bare.kind {
        *rule_offer = None;
    }
    let request =
        ParkRequest { run: taken.run.id, next: 0, facts: vec![], items: vec![(Position(0), bare)], ran_for_ms: 0 };
    let item = store.park(&request, noon()).await.expect("parked")[0];
    let refused = store.resolve(item, &Answer::ForTask, &anna(), noon()).await;
    assert!(matches!(refused, Err(ResolveError::NoRule { .. })), "{refused:?}");
    store.resolve(item, &Answer::Once, &anna(), noon()).await.expect("it is still pending");
}

pub async fn an_expired_item_takes_no_answer(place: &impl Place) {
    for tended in [true, false] {
        let store = place.open().await;
        save(&store, &spec("job", vec![]), noon()).await;
        let taken = begin(&store, "job", noon()).await;
        let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
        let expiry = later(noon(), 3600);
        if tended {
            assert_eq!(store.tend_items(expiry).await.expect("tended").expired, [item]);
        }
        let late = store.resolve(item, &Answer::Once, &anna(), later(expiry, 3600)).await;
        assert!(matches!(late, Err(ResolveError::Expired { at, .. }) if at == expiry), "{late:?}");
        drop(store);
        let store = place.open().await;
        let kept = store.item(item).await.expect("read").expect("kept");
        assert_eq!(kept.state, ItemState::Expired { at: expiry });
        let again = take(&store, later(expiry, 3600)).await.remove(0);
        let last = &again.journal.last().expect("some").fact;
        assert!(matches!(last, Fact::Answered { answered: Answered::Expired, .. }), "{last:?}");
        let end = ending(again.run.id, 3, ow_model::Outcome::Expired { item });
        store.end_run(&end, later(expiry, 3600)).await.expect("the run goes on to its end");
        let filter = ItemFilter { pending_only: true, ..ItemFilter::default() };
        for told in store.items(&filter, &page(10)).await.expect("read").rows {
            store.resolve(told.id, &Answer::Acknowledge, &anna(), later(expiry, 3600)).await.expect("seen");
        }
    }
}

pub async fn reminders_come_after_twice_the_time(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let mut patient = approval("job", taken.run.id, &call(0, "x"));
    patient.expires_in = Some(Span::from_secs(86_400));
    let request =
        ParkRequest { run: taken.run.id, next: 0, facts: vec![], items: vec![(Position(0), patient)], ran_for_ms: 0 };
    let item = store.park(&request, noon()).await.expect("parked")[0];
    let mut now = noon();
    for wait in [600, 1200, 2400] {
        assert_eq!(store.tend_items(later(now, wait - 1)).await.expect("tended"), Tended::default());
        now = later(now, wait);
        assert_eq!(store.wake_times().await.expect("read").items, Some(now));
        assert_eq!(store.tend_items(now).await.expect("tended").reminded, [item]);
    }
    let kept = store.item(item).await.expect("read").expect("kept");
    assert_eq!((kept.reminded, kept.remind_at), (3, Some(later(now, 4800))));
    // What was slept through is one reminder.
    assert_eq!(store.tend_items(later(now, 20_000)).await.expect("tended").reminded, [item]);
    assert_eq!(store.tend_items(later(now, 20_000)).await.expect("tended"), Tended::default());
    store.resolve(item, &Answer::Once, &anna(), later(now, 20_000)).await.expect("resolved");
    assert_eq!(store.wake_times().await.expect("read").items, None);
}

pub async fn a_withdrawn_item_sends_its_run_on(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let taken = begin(&store, "job", noon()).await;
    let item = park(&store, &taken, &[call(0, "x")], noon()).await[0];
    store.withdraw_item(item, "asked again", noon()).await.expect("withdrawn");
    store.withdraw_item(item, "asked again", noon()).await.expect("a second time changes nothing");
    let again = take(&store, noon()).await.remove(0);
    assert_eq!(again.journal.len(), 3);
    let unknown = store.withdraw_item(ow_model::ItemId::random(), "x", noon()).await;
    assert!(matches!(unknown, Err(StoreError::Unknown { .. })));
}

pub async fn a_notice_with_a_known_key_is_one_item(place: &impl Place) {
    let store = place.open().await;
    let first = store.notify(&notification("a"), "disk", noon()).await.expect("told");
    assert_eq!(store.notify(&notification("b"), "disk", noon()).await.expect("told"), first);
    store.resolve(first, &Answer::Acknowledge, &anna(), noon()).await.expect("seen");
    drop(store);
    let store = place.open().await;
    assert_eq!(store.notify(&notification("a"), "disk", noon()).await.expect("told"), first);
    assert_ne!(store.notify(&notification("a"), "other", noon()).await.expect("told"), first);
}

pub async fn a_rule_is_used_as_often_as_it_may(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let rule = Rule {
        id: RuleId::random(),
        scope: RuleScope::Everywhere,
        target: rule_target(),
        covers_outside: false,
        created_at: noon(),
        created_by: "anna".into(),
        expires_at: Some(later(noon(), 100)),
        uses_left: Some(2),
        used: 0,
    };
    store.add_rule(&rule).await.expect("added");
    let taken = begin(&store, "job", noon()).await;
    for next in 0..2 {
        store.append(taken.run.id, next, &[started()], Some(rule.id), noon()).await.expect("it may be used");
    }
    let refused = store.append(taken.run.id, 2, &[started()], Some(rule.id), noon()).await;
    assert!(matches!(refused, Err(StoreError::Unknown { kind: "rule", .. })), "{refused:?}");
    assert_eq!(store.journal(taken.run.id).await.expect("read").len(), 2, "nothing was written");
    assert_eq!(store.rules(Some(&name("job")), noon()).await.expect("read"), []);
    let all = store.rules(None, noon()).await.expect("read");
    assert_eq!((all[0].used, all[0].uses_left), (2, Some(0)));
    let lasting = Rule { id: RuleId::random(), uses_left: None, ..rule.clone() };
    store.add_rule(&lasting).await.expect("added");
    assert_eq!(store.rules(Some(&name("job")), later(noon(), 99)).await.expect("read").len(), 1);
    assert_eq!(store.rules(Some(&name("job")), later(noon(), 100)).await.expect("read").len(), 0, "expired");
    assert!(store.remove_rule(lasting.id).await.expect("removed"));
    assert!(!store.remove_rule(lasting.id).await.expect("removed"));
}
