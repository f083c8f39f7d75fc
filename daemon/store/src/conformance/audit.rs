use ow_model::{
    Answer, AuditEffect, Audited, Call, CallErrorKind, CallResult, Decided, Fact, Intent, Position, Rule, RuleId,
    RuleScope,
};

use super::Place;
use super::support::{
    Any, anna, approval, begin, call, deny, later, name, noon, page, rule_target, save, spec, started, take,
};
use crate::{AuditCheck, AuditFilter, PageRequest, ParkRequest};

fn rendered(call: &Call) -> Fact {
    Fact::Rendered { step: 0, call: call.clone(), holes: vec![] }
}

fn allowed(position: u32) -> Fact {
    Fact::Allowed { position: Position(position), rule: "safe: echo".into(), by_rule: None }
}

fn intended(call: &Call) -> Fact {
    Fact::Intended { position: call.position, hash: call.hash(), repeatable: false, intent: Intent::default() }
}

fn done(position: u32) -> Fact {
    Fact::Done { position: Position(position), result: CallResult::ok(serde_json::json!({})), took_ms: 3 }
}

async fn audited(store: &Any) -> Vec<Audited> {
    let mut rows = store.audit(&AuditFilter::default(), &page(100)).await.expect("read").rows;
    rows.reverse();
    rows.into_iter().map(|row| row.audited).collect()
}

/// Each entry in a few words: position, what was decided, what came of it.
async fn told(store: &Any) -> Vec<String> {
    let words = |entry: &Audited| {
        let position = entry.position.map_or_else(String::new, |position| position.to_string());
        let decided: Vec<&str> = entry.decided.iter().map(Decided::word).collect();
        let effect = entry.effect.map_or("", AuditEffect::word);
        format!("{position} {} {effect}", decided.join("+")).trim().to_owned()
    };
    audited(store).await.iter().map(words).collect()
}

async fn check(store: &Any) -> AuditCheck {
    store.check_audit().await.expect("read")
}

pub async fn each_commit_about_a_call_is_one_entry_of_the_audit(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let run = begin(&store, "job", noon()).await.run.id;
    let (read, write, bad) = (call(0, "r"), call(1, "w"), call(2, "b"));
    let facts = [
        started(),
        rendered(&read),
        allowed(0),
        intended(&read),
        done(0),
        rendered(&write),
        allowed(1),
        intended(&write),
    ];
    let next = store.append(run, 0, &facts, None, noon()).await.expect("appended");
    let broken = CallResult::failed(CallErrorKind::BadArguments, "secret words");
    let failed = Fact::Done { position: bad.position, result: broken, took_ms: 0 };
    let facts = [done(1), rendered(&bad), failed];
    store.append(run, next, &facts, None, later(noon(), 1)).await.expect("appended");
    drop(store);
    let store = place.open().await;
    assert_eq!(told(&store).await, ["0 allow done", "1 allow begun", "1  done", "2  failed"]);
    let entries = audited(&store).await;
    assert!(entries.iter().all(|entry| entry.tool.as_deref() == Some("shell") && entry.run == Some(run)));
    assert_eq!(entries[2].call, Some(write.hash()), "an entry names its call though its facts do not");
    assert_eq!(entries[2].took_ms, Some(3));
    let text = serde_json::to_string(&entries).expect("JSON");
    assert!(!text.contains("argv") && !text.contains("secret words"), "no arguments and no output: {text}");
    assert_eq!(check(&store).await.entries, 4);
}

pub async fn the_audit_says_who_answered_what(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let run = begin(&store, "job", noon()).await.run.id;
    let calls = [call(0, "x"), call(1, "y")];
    let items = calls.iter().map(|call| (call.position, approval("job", run, call))).collect();
    let facts = vec![started(), rendered(&calls[0]), rendered(&calls[1])];
    let request = ParkRequest { run, next: 0, facts, items, ran_for_ms: 0 };
    let items = store.park(&request, noon()).await.expect("parked");
    store.resolve(items[0], &Answer::ForTask, &anna(), later(noon(), 1)).await.expect("resolved");
    store.resolve(items[1], &deny(), &anna(), later(noon(), 2)).await.expect("resolved");
    let next = u32::try_from(take(&store, later(noon(), 3)).await.remove(0).journal.len()).expect("short");
    let refused = Fact::Refused { position: Position(1), rule: "deny".into() };
    store.append(run, next, &[refused], None, later(noon(), 3)).await.expect("appended");
    assert_eq!(told(&store).await, ["0 ask", "1 ask", "add-rule", "0 answer", "1 answer", "1 refuse"]);
    let entries = audited(&store).await;
    let answers: Vec<(&str, &str)> = entries
        .iter()
        .flat_map(|entry| &entry.decided)
        .filter_map(|decided| match decided {
            Decided::Answer { answer, by, .. } => Some((answer.as_str(), by.person.0.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [("for-task", "anna"), ("deny", "anna")]);
    assert_eq!(entries[3].call, Some(calls[0].hash()));
}

pub async fn the_audit_outlives_what_it_speaks_of(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
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
    let taken = begin(&store, "job", noon()).await;
    let facts = [started(), rendered(&call(0, "x")), allowed(0), intended(&call(0, "x")), done(0)];
    store.append(taken.run.id, 0, &facts, None, noon()).await.expect("appended");
    let next = u32::try_from(facts.len()).expect("short");
    let ending = super::support::ending(taken.run.id, next, ow_model::Outcome::Succeeded);
    store.end_run(&ending, noon()).await.expect("ended");
    assert!(store.remove_rule(rule.id).await.expect("removed"));
    let much_later = later(noon(), 400 * 86_400);
    // The newest run stays as long as it is that.
    begin(&store, "job", much_later).await;
    let retention = super::retention::retention();
    while store.retain(&retention, much_later).await.expect("retained") {}
    assert_eq!(store.run(taken.run.id).await.expect("read"), None, "the run is gone");
    assert_eq!(told(&store).await, ["add-rule", "0 allow done", "remove-rule"]);
    assert_eq!(check(&store).await.fault, None);
}

pub async fn a_fact_that_is_refused_leaves_nothing_in_the_audit(place: &impl Place) {
    let store = place.open().await;
    save(&store, &spec("job", vec![]), noon()).await;
    let run = begin(&store, "job", noon()).await.run.id;
    let gone = RuleId::random();
    let facts = [started(), rendered(&call(0, "x")), allowed(0), intended(&call(0, "x"))];
    store.append(run, 0, &facts, Some(gone), noon()).await.expect_err("there is no such rule");
    store.append(run, 7, &facts, None, noon()).await.expect_err("fenced");
    assert!(told(&store).await.is_empty());
    store.append(run, 0, &facts, None, noon()).await.expect("appended");
    let checked = check(&store).await;
    assert_eq!((checked.entries, checked.fault), (1, None));
    assert!(checked.head.is_some());
}

pub async fn the_audit_is_read_in_pages_and_by_run_and_task(place: &impl Place) {
    let store = place.open().await;
    let mut runs = vec![];
    for task in ["one", "two"] {
        save(&store, &spec(task, vec![]), noon()).await;
        let run = begin(&store, task, noon()).await.run.id;
        for position in 0..3 {
            let call = call(position, task);
            let facts = [rendered(&call), allowed(position), intended(&call), done(position)];
            store.append(run, position * 4, &facts, None, noon()).await.expect("appended");
        }
        runs.push(run);
    }
    let of_task = AuditFilter { task: Some(name("one")), run: None };
    assert_eq!(store.audit(&of_task, &page(10)).await.expect("read").rows.len(), 3);
    let of_run = AuditFilter { task: None, run: Some(runs[1]) };
    let first = store.audit(&of_run, &page(2)).await.expect("read");
    assert_eq!(first.rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [6, 5]);
    let rest = store.audit(&of_run, &PageRequest { after: first.next, limit: 2 }).await.expect("read");
    assert_eq!((rest.rows.iter().map(|row| row.seq).collect::<Vec<_>>(), rest.next), (vec![4], None));
}
