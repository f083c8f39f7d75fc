use ow_model::{
    Artifact, BlobHash, CallErrorKind, CallResult, Fact, Hole, Intent, Outcome, Position, RunState, SessionId,
};
use ow_store::{EndRequest, Store};
use serde_json::{Value, json};

use crate::daemon::{Daemon, call};

async fn append(daemon: &Daemon, session: SessionId, facts: &[Fact]) {
    daemon.store.append(session, 0, facts, None, daemon.now()).await.unwrap();
}

fn rendered(position: u32) -> Fact {
    let hole = Hole { name: "event.path".into(), at: "/argv/1".into() };
    Fact::Rendered { step: position, call: call(position), holes: vec![hole] }
}

fn intended(position: u32) -> Fact {
    let hash = call(position).hash();
    Fact::Intended { position: Position(position), hash, repeatable: false, intent: Intent::default() }
}

fn done(position: u32, result: CallResult) -> Fact {
    Fact::Done { position: Position(position), result, took_ms: 7 }
}

#[tokio::test]
async fn a_run_is_shown_with_its_calls_artifacts_and_facts() {
    let daemon = Daemon::start();
    let task = daemon.save("reports", |_| {}).await;
    let taken = daemon.begin(&task).await;
    let run = taken.run.id;
    let whole = "x".repeat(100_000);
    let blob = daemon.store.put_blob(whole.as_bytes()).await.unwrap();
    let other = daemon.store.put_blob(b"of nobody").await.unwrap();
    let mut written = CallResult::ok(json!({ "stdout": "xxx" }));
    written.kept = vec![("stdout".into(), blob)];
    written.artifacts = vec![
        Artifact::File { path: "/srv/a.md".into(), bytes: 3, hash: BlobHash::of(b"abc") },
        Artifact::Message { to: "anna".into(), id: "m".into() },
    ];
    let allowed = Fact::Allowed { position: Position(0), rule: "mode auto".into(), by_rule: None };
    let facts = [
        Fact::Started { cause: taken.run.cause.clone(), context: json!({}) },
        rendered(0),
        allowed,
        intended(0),
        done(0, written),
        rendered(1),
        intended(1),
        done(1, CallResult::failed(CallErrorKind::Failed, "status 1")),
        rendered(2),
        Fact::Refused { position: Position(2), rule: "deny rm".into() },
        rendered(3),
        intended(3),
    ];
    append(&daemon, run, &facts).await;
    let mut client = daemon.client().await;
    let shown = client.get(&format!("/v1/runs/{}", &run.to_string()[..10])).await.ok();
    assert_eq!((&shown["id"], &shown["state"]), (&json!(run.to_string()), &json!("running")));
    assert_eq!(shown["cause"]["kind"], "manual");
    let states: Vec<_> =
        shown["calls"].as_array().unwrap().iter().map(|call| call["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["done", "failed", "refused", "running"]);
    assert_eq!(shown["calls"][0]["id"], format!("{run}/0"));
    assert_eq!(shown["calls"][0]["rule"], "mode auto");
    assert_eq!(shown["calls"][0]["output"], json!({ "stdout": "xxx" }));
    assert_eq!(shown["calls"][0]["kept"], json!([["stdout", blob.to_string()]]));
    assert_eq!((&shown["calls"][1]["error"], &shown["calls"][1]["output"]), (&json!("status 1"), &Value::Null));
    assert_eq!(shown["artifacts"][0]["name"], "/srv/a.md");
    assert_eq!((&shown["artifacts"][1]["number"], &shown["artifacts"][1]["kind"]), (&json!(2), &json!("message")));
    assert_eq!(shown["facts"].as_array().unwrap().len(), facts.len());

    // What a run keeps is had through that run alone.
    let reply = client.get(&format!("/v1/runs/{run}/output/{blob}")).await;
    assert_eq!((reply.status, reply.text()), (200, whole));
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    client.get(&format!("/v1/runs/{run}/output/{other}")).await.error(404, "not_found");
    client.get(&format!("/v1/runs/{run}/output/nonsense")).await.error(404, "not_found");

    // Once nobody runs it, a call without an end is one of unknown outcome.
    let next = u32::try_from(facts.len()).unwrap();
    daemon.store.interrupt_run(run, next, &[], 5, daemon.now()).await.unwrap();
    assert_eq!(client.get(&format!("/v1/runs/{run}")).await.ok()["calls"][3]["state"], "unknown");
}

#[tokio::test]
async fn a_running_run_is_stopped_by_the_daemon_and_a_waiting_one_by_the_store() {
    let daemon = Daemon::start();
    let task = daemon.save("reports", |_| {}).await;
    let mut client = daemon.client().await;
    let running = daemon.begin(&task).await.run.id;
    client.post(&format!("/v1/runs/{running}/cancel"), &json!({})).await.ok();
    assert_eq!(daemon.control.script().stopped, [(running, "cancelled by anna".to_owned())]);

    let item = daemon.approval("asks").await;
    let parked = daemon.store.item(item).await.unwrap().unwrap().run.unwrap();
    let cancelled = client.post(&format!("/v1/runs/{parked}/cancel"), &json!({})).await.ok();
    assert_eq!((&cancelled["state"], &cancelled["message"]), (&json!("cancelled"), &json!("cancelled by anna")));
    assert_eq!(daemon.control.script().stopped.len(), 1);
    client.post(&format!("/v1/runs/{parked}/cancel"), &json!({})).await.error(409, "conflict");
    assert_eq!(client.get(&format!("/v1/items/{item}")).await.ok()["state"], "withdrawn");

    let again = client.post(&format!("/v1/runs/{parked}/retry"), &json!({})).await.ok();
    assert_eq!((&again["state"], &again["cause"]["kind"]), (&json!("queued"), &json!("retry")));
    assert!(again["cause"]["text"].as_str().unwrap().ends_with("by hand, anna"), "{again}");
    client.post(&format!("/v1/runs/{running}/retry"), &json!({})).await.error(409, "conflict");
}

#[tokio::test]
async fn runs_page_newest_first_by_task_and_state() {
    let daemon = Daemon::start();
    let (reports, mails) = (daemon.save("reports", |_| {}).await, daemon.save("mails", |_| {}).await);
    let mut ids = vec![];
    for _ in 0..5 {
        let taken = daemon.begin(&reports).await;
        let end = EndRequest {
            run: taken.run.id,
            next: 0,
            facts: vec![],
            outcome: Outcome::Succeeded,
            ran_for_ms: 5,
            retry_at: None,
        };
        daemon.store.end_run(&end, daemon.now()).await.unwrap();
        ids.push(taken.run.id.to_string());
        daemon.control.advance(1);
    }
    ids.reverse();
    let open = daemon.begin(&mails).await.run;
    assert_eq!(open.state, RunState::Running);
    let mut client = daemon.client().await;
    let mut seen = vec![];
    let mut path = "/v1/runs?task=reports&limit=2".to_owned();
    loop {
        let page = client.get(&path).await.ok();
        seen.extend(page["rows"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(cursor) => path = format!("/v1/runs?task=reports&limit=2&after={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, ids);
    for (filter, count) in
        [("", 6), ("?state=succeeded", 5), ("?state=running", 1), ("?state=open", 1), ("?state=failed", 0)]
    {
        assert_eq!(
            client.get(&format!("/v1/runs{filter}")).await.ok()["rows"].as_array().unwrap().len(),
            count,
            "{filter}"
        );
    }
}
