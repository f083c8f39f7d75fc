use ow_model::{
    Artifact, BlobHash, CallErrorKind, CallResult, Fact, Finish, Hole, Intent, Outcome, Position, Purpose, Reply,
    ReplyCall, RunState, SessionId, Usage,
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

fn asked(purpose: Purpose) -> Fact {
    Fact::Asked { model: "stub:small".into(), purpose, reserved: Usage::default(), sent: None }
}

fn replied(text: &str, calls: &[(&str, &str)]) -> Fact {
    let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    let call =
        |(name, arguments): &(&str, &str)| ReplyCall { id: None, name: (*name).into(), arguments: (*arguments).into() };
    let reply = Reply {
        text: text.into(),
        reasoning: None,
        calls: calls.iter().map(call).collect(),
        finish,
        usage: None,
        model: "stub:small".into(),
        private: None,
    };
    Fact::Replied { reply, sent: None }
}

fn admitted(position: u32) -> Fact {
    Fact::Admitted { position: Position(position), rule: "mode auto".into(), by_rule: None, repeatable: true }
}

/// The journal of an agent that reads, has a sub-agent read, writes nonsense and reports.
fn agents_facts(started: Fact) -> Vec<Fact> {
    let of_it = |fact| Fact::Delegated { position: Position(1), fact: Box::new(fact) };
    vec![
        started,
        asked(Purpose::Turn),
        replied("I will look.", &[("read_file", r#"{"path":"a"}"#), ("delegate", "{}")]),
        admitted(0),
        intended(0),
        done(0, CallResult::ok(json!({ "text": "hello" }))),
        admitted(1),
        intended(1),
        of_it(asked(Purpose::Turn)),
        of_it(replied("", &[("read_file", r#"{"path":"b"}"#)])),
        of_it(admitted(2)),
        of_it(intended(2)),
        of_it(done(2, CallResult::ok(json!({ "text": "inner" })))),
        of_it(asked(Purpose::Turn)),
        of_it(replied("the sub-agent's report", &[])),
        done(1, CallResult::ok(json!({ "report": "the sub-agent's report" }))),
        asked(Purpose::Turn),
        replied("", &[("write_file", "{half")]),
        done(3, CallResult::failed(CallErrorKind::BadArguments, "not valid JSON")),
        asked(Purpose::Summary),
        replied("a summary", &[]),
    ]
}

#[tokio::test]
async fn an_agents_run_is_shown_with_the_calls_it_made_and_what_it_said() {
    let daemon = Daemon::start();
    let task = daemon.save("watcher", |spec| spec.agent = Some(ow_model::AgentSpec::default())).await;
    let taken = daemon.begin(&task).await;
    let run = taken.run.id;
    let started = Fact::Started { cause: taken.run.cause.clone(), context: json!({}) };
    let facts = agents_facts(started);
    append(&daemon, run, &facts).await;
    let mut client = daemon.client().await;
    let shown = client.get(&format!("/v1/runs/{run}")).await.ok();
    let calls: Vec<_> = shown["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            (call["tool"].clone(), call["state"].clone(), call["arguments"].clone(), call["sub_agent_of"].clone())
        })
        .collect();
    assert_eq!(
        calls,
        [
            (json!("read_file"), json!("done"), json!({ "path": "a" }), Value::Null),
            (json!("delegate"), json!("done"), json!({}), Value::Null),
            (json!("read_file"), json!("done"), json!({ "path": "b" }), json!(1)),
            (json!("write_file"), json!("failed"), json!("{half"), Value::Null),
        ]
    );
    assert_eq!((&shown["calls"][0]["step"], &shown["calls"][0]["rule"]), (&Value::Null, &json!("mode auto")));
    assert_eq!(shown["calls"][2]["output"], json!({ "text": "inner" }));
    // Neither a summary nor a sub-agent's report is the agent's own word.
    assert_eq!(shown["answer"], "I will look.");

    let report = format!("{}\nall is well", "x".repeat(30_000));
    let next = u32::try_from(facts.len()).unwrap();
    let last = [
        asked(Purpose::Turn),
        replied(&report, &[]),
        asked(Purpose::Turn),
        Fact::ModelFailed {
            kind: ow_model::ModelFailure::Unavailable,
            message: "gone".into(),
            partial: None,
            sent: None,
        },
    ];
    daemon.store.append(run, next, &last, None, daemon.now()).await.unwrap();
    let shown = client.get(&format!("/v1/runs/{run}")).await.ok();
    let answer = shown["answer"].as_str().unwrap();
    assert!(answer.len() < 21_000 && answer.ends_with(&format!("[10012 more characters: owctl session export {run}]")));

    // All of it is in the run's session, which can be read as a chat can.
    let whole = client.get(&format!("/v1/sessions/{run}/export")).await.ok();
    let texts: Vec<_> = whole["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert!(texts.contains(&&json!(report)), "{texts:?}");
    let session = client.get(&format!("/v1/sessions/{run}")).await.ok();
    assert_eq!((&session["task"], &session["state"]), (&json!("watcher"), &json!("running")));
    client.post(&format!("/v1/sessions/{run}/messages"), &json!({ "text": "hello" })).await.error(404, "not_found");
    client.delete(&format!("/v1/sessions/{run}")).await.error(404, "not_found");
}

#[tokio::test]
async fn a_run_that_sleeps_says_until_what() {
    let daemon = Daemon::start();
    let task = daemon.save("watcher", |spec| spec.agent = Some(ow_model::AgentSpec::default())).await;
    let run = daemon.begin(&task).await.run.id;
    let on = vec![ow_model::Wake::Event("run.ended".into())];
    let until = daemon.now() + jiff::SignedDuration::from_hours(1);
    let slept = Fact::Slept { until: Some(until), on, note: String::new() };
    let rest = ow_store::RestRequest { session: run, next: 0, facts: vec![slept], ran_for_ms: 1 };
    daemon.store.sleep_run(&rest, Some(until), daemon.now()).await.unwrap();
    let shown = daemon.client().await.get(&format!("/v1/runs/{run}")).await.ok();
    assert_eq!(shown["message"], "sleeps until event run.ended or 2026-03-28T13:00:00Z");
}
