use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use ow_model::{
    Answer, AnswerBy, Binding, BlobHash, Call, CallHash, Category, Cause, EventKey, EventPayload, Fact, InboxName,
    ItemId, ItemKind, NewEvent, Outcome, Person, Position, RuleTarget, RunId, Span, Surface, TaskId, TaskName,
    TaskSource, TaskSpec, Trigger, ZoneName,
};
use serde_json::json;

use crate::{Claim, Claimed, EndRequest, NewItem, PageRequest, ParkRequest, Store, TakenRun};

pub(crate) type Any = Arc<dyn Store>;

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().expect("a test's instant")
}

pub(crate) fn later(now: Timestamp, seconds: i64) -> Timestamp {
    now + SignedDuration::from_secs(seconds)
}

/// Noon of a day without anything special.
pub(crate) fn noon() -> Timestamp {
    at("2026-03-03T12:00:00Z")
}

pub(crate) fn name(text: &str) -> TaskName {
    text.parse().expect("a test's task name")
}

pub(crate) fn spec(task: &str, triggers: Vec<Trigger>) -> TaskSpec {
    TaskSpec {
        name: name(task),
        title: None,
        timezone: ZoneName("UTC".into()),
        triggers,
        steps: vec![],
        agent: None,
        mode: ow_model::Mode::default(),
        roots: vec![],
        catch_up: ow_model::CatchUp::default(),
        overlap: ow_model::Overlap::default(),
        while_parked: ow_model::WhileParked::default(),
        events: ow_model::EventDelivery::default(),
        start_deadline: None,
        jitter: Span::from_millis(0),
        timeout: Span::from_secs(3600),
        call_timeout: Span::from_secs(600),
        retry: ow_model::Retry { attempts: 0, backoff: Span::from_secs(60) },
        auto_pause_after: 0,
        concurrency: None,
        needs: vec![],
        item_expiry: Span::from_secs(14 * 86_400),
        item_reminder: Span::from_secs(86_400),
        http_allow: vec![],
        inbox: ow_model::InboxName::default(),
    }
}

pub(crate) fn cron(text: &str) -> Trigger {
    Trigger::Cron(text.into())
}

pub(crate) async fn save(store: &Any, spec: &TaskSpec, now: Timestamp) -> TaskId {
    store.save_task(spec, TaskSource::Store, "", None, now).await.expect("the task is fine").task
}

pub(crate) async fn claim(store: &Any, now: Timestamp, awake_since: Timestamp) -> Claimed {
    store.claim_due(&Claim { now, awake_since, limit: 1000 }).await.expect("claimed")
}

/// Takes all that may start.
pub(crate) async fn take(store: &Any, now: Timestamp) -> Vec<TakenRun> {
    store.take_runs(100, 100, true, now).await.expect("taken")
}

/// Runs a task by hand and takes the run.
pub(crate) async fn begin(store: &Any, task: &str, now: Timestamp) -> TakenRun {
    let id = store.run_now(&name(task), "test", None, now).await.expect("may run");
    let taken = take(store, now).await;
    taken.into_iter().find(|taken| taken.run.id == id).expect("just queued")
}

pub(crate) fn started() -> Fact {
    Fact::Started { cause: Cause::Manual { by: "test".into() }, context: json!({}) }
}

pub(crate) async fn end(store: &Any, taken: &TakenRun, outcome: Outcome, now: Timestamp) {
    let next = u32::try_from(taken.journal.len()).expect("short");
    store.end_run(&ending(taken.run.id, next, outcome), now).await.expect("ended");
}

pub(crate) fn ending(run: RunId, next: u32, outcome: Outcome) -> EndRequest {
    EndRequest { run, next, facts: vec![], outcome, ran_for_ms: 5, retry_at: None }
}

pub(crate) fn failed(message: &str) -> Outcome {
    Outcome::Failed { failure: ow_model::Failure::Step, message: message.into() }
}

pub(crate) fn call(position: u32, text: &str) -> Call {
    Call {
        position: Position(position),
        tool: "shell".parse().expect("a tool's name"),
        args: json!({ "argv": ["echo", text] }),
    }
}

pub(crate) fn rule_target() -> RuleTarget {
    RuleTarget::Call { hash: CallHash(BlobHash::of(b"call")) }
}

pub(crate) fn approval(task: &str, run: RunId, call: &Call) -> NewItem {
    NewItem {
        task: Some(name(task)),
        run: Some(run),
        title: "echo".into(),
        kind: ItemKind::Approval {
            call: call.clone(),
            hash: call.hash(),
            category: Category::Exec,
            reason: "mode ask".into(),
            binding: Binding::default(),
            rule_offer: Some(rule_target()),
            session_offer: ow_model::SessionOffer::default(),
            diff: None,
        },
        expires_in: Some(Span::from_secs(3600)),
        remind_after: Some(Span::from_secs(600)),
        inbox: InboxName::default(),
    }
}

pub(crate) fn notification(text: &str) -> NewItem {
    NewItem {
        task: None,
        run: None,
        title: "told".into(),
        kind: ItemKind::Notification { text: text.into() },
        expires_in: None,
        remind_after: None,
        inbox: InboxName::default(),
    }
}

/// Parks a taken run on approvals of these calls.
pub(crate) async fn park(store: &Any, taken: &TakenRun, calls: &[Call], now: Timestamp) -> Vec<ItemId> {
    let run = taken.run.id;
    let items = calls.iter().map(|call| (call.position, approval(taken.run.task_name.as_str(), run, call))).collect();
    let next = u32::try_from(taken.journal.len()).expect("short");
    let request = ParkRequest { run, next, facts: vec![started()], items, ran_for_ms: 7 };
    store.park(&request, now).await.expect("parked")
}

pub(crate) fn anna() -> AnswerBy {
    AnswerBy { person: Person("anna".into()), surface: Surface::Socket }
}

pub(crate) fn bert() -> AnswerBy {
    AnswerBy { person: Person("bert".into()), surface: Surface::Web }
}

pub(crate) fn deny() -> Answer {
    Answer::Deny { reason: None }
}

pub(crate) fn event(task: &str, key: &str) -> NewEvent {
    NewEvent {
        task: name(task),
        key: EventKey(key.into()),
        payload: EventPayload { kind: "watch".into(), data: json!({ "path": key }) },
        depth: 0,
    }
}

pub(crate) fn page(limit: usize) -> PageRequest {
    PageRequest { after: None, limit }
}
