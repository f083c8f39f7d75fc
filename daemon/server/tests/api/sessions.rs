use ow_engine::{Command, CommandReceiver, LiveKind};
use ow_model::{
    Call, CallResult, Fact, Finish, Mode, Position, Purpose, RecordedFact, Reply, ReplyCall, RunState, SessionId,
    TurnOutcome, Usage,
};
use ow_store::{RestRequest, Store};
use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::{Daemon, approval};
use crate::stream::Watcher;

async fn create(client: &mut Client, body: Value) -> (SessionId, Value) {
    let view = client.post("/v1/sessions", &body).await.ok();
    (view["id"].as_str().unwrap().parse().unwrap(), view)
}

async fn say(client: &mut Client, session: SessionId, text: &str) -> Value {
    client.post(&format!("/v1/sessions/{session}/messages"), &json!({ "text": text })).await.ok()
}

/// Takes the session as a worker does; returns how long its journal is.
async fn take(daemon: &Daemon, session: SessionId) -> u32 {
    let taken = daemon.store.take_chats(9, daemon.now()).await.unwrap();
    let taken = taken.into_iter().find(|taken| taken.run.id == session).expect("it has something to do");
    u32::try_from(taken.journal.len()).unwrap()
}

async fn heard(daemon: &Daemon, session: SessionId) -> Vec<Fact> {
    let inputs = daemon.store.inputs(session).await.unwrap().into_iter();
    inputs.map(|(number, input)| Fact::Input { number: Some(number), input }).collect()
}

fn asked() -> Fact {
    Fact::Asked { model: "stub:small".into(), purpose: Purpose::Turn, reserved: Usage::default(), sent: None }
}

fn replied(text: &str, calls: Vec<ReplyCall>) -> Fact {
    let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    let usage = Some(Usage { input: 10, cached: 4, output: 2 });
    let reply =
        Reply { text: text.into(), reasoning: None, calls, finish, usage, model: "stub:small".into(), private: None };
    Fact::Replied { reply, sent: None }
}

async fn idle(daemon: &Daemon, session: SessionId, next: u32, facts: Vec<Fact>) {
    daemon.store.idle_run(&RestRequest { session, next, facts, ran_for_ms: 1 }, daemon.now()).await.unwrap();
}

#[tokio::test]
async fn a_chat_is_opened_spoken_to_listed_and_removed() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, view) =
        create(&mut client, json!({ "model": "stub:small", "mode": "edit", "roots": ["/tmp"], "title": "a chat" }))
            .await;
    assert_eq!(
        (&view["state"], &view["mode"], &view["model"], &view["roots"], &view["title"]),
        (&json!("idle"), &json!("edit"), &json!("stub:small"), &json!(["/tmp"]), &json!("a chat"))
    );
    let said = say(&mut client, session, "hello").await;
    assert_eq!(
        (&said["number"], &said["new"], &said["session"]["state"], &said["session"]["waiting"]),
        (&json!(1), &json!(true), &json!("queued"), &json!(1))
    );
    let short = &session.to_string()[..5];
    assert_eq!(client.get(&format!("/v1/sessions/{short}")).await.ok()["usage"]["calls"], 0);
    assert_eq!(client.get("/v1/sessions").await.ok()["rows"].as_array().unwrap().len(), 1);
    for hidden in ["/v1/tasks", "/v1/runs"] {
        assert_eq!(client.get(hidden).await.ok()["rows"], json!([]), "{hidden}");
    }
    assert_eq!(client.get("/v1/status").await.ok()["sessions"], 1);
    assert_eq!(client.delete(&format!("/v1/sessions/{session}")).await.status, 204);
    assert_eq!(client.get("/v1/sessions").await.ok()["rows"], json!([]));
    assert_eq!(client.get("/v1/sessions?state=all").await.ok()["rows"][0]["state"], "cancelled");
    let refused = client.post(&format!("/v1/sessions/{session}/messages"), &json!({ "text": "x" })).await;
    refused.error(409, "conflict");
}

#[tokio::test]
async fn what_is_wrong_with_a_chat_or_a_message_is_named() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.post("/v1/sessions", &json!({ "mode": "yolo" })).await.error(422, "invalid");
    client.post("/v1/sessions", &json!({ "model": "a b" })).await.error(422, "invalid");
    client.post("/v1/sessions", &json!({ "modle": "x" })).await.error(400, "bad_request");
    client.get("/v1/sessions/abc").await.error(404, "not_found");
    client.get("/v1/sessions?task=x").await.error(400, "bad_request");
    let (session, _) = create(&mut client, json!({})).await;
    let messages = format!("/v1/sessions/{session}/messages");
    client.post(&messages, &json!({ "text": " " })).await.error(422, "invalid");
    let attached = |name: &str, kind: &str, base64: &str| json!({ "text": "x", "attachments": [{ "name": name, "media_type": kind, "base64": base64 }] });
    client.post(&messages, &attached("../x", "text/plain", "")).await.error(422, "invalid");
    client.post(&messages, &attached("x", "text", "")).await.error(422, "invalid");
    client.post(&messages, &attached("x", "text/plain", "!")).await.error(422, "invalid");
    let settings = format!("/v1/sessions/{session}/settings");
    client.post(&settings, &json!({ "mode": "plan", "model": "a b" })).await.error(422, "invalid");
    assert_eq!(client.get(&format!("/v1/sessions/{session}")).await.ok()["mode"], "ask", "nothing was set");
    client.get(&format!("/v1/sessions/{session}/export?format=pdf")).await.error(400, "bad_request");
    client.get(&format!("/v1/sessions/{session}/stream?after=x")).await.error(400, "bad_request");
}

#[tokio::test]
async fn an_attachment_is_kept_as_it_came() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    let body = json!({
        "text": "", "key": "k",
        "attachments": [{ "name": "a.txt", "media_type": "text/plain", "base64": "aGVsbG8=" }],
    });
    for new in [true, false] {
        let said = client.post(&format!("/v1/sessions/{session}/messages"), &body).await.ok();
        assert_eq!((&said["number"], &said["new"]), (&json!(1), &json!(new)));
    }
    let (_, input) = daemon.store.inputs(session).await.unwrap().pop().unwrap();
    let attached = &input.attachments[0];
    assert_eq!((attached.name.as_str(), attached.bytes), ("a.txt", 5));
    assert_eq!(daemon.store.blob(attached.hash).await.unwrap().as_deref(), Some(b"hello".as_slice()));
}

#[tokio::test]
async fn a_stream_gives_the_history_then_deltas_in_the_order_of_the_journal() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    say(&mut client, session, "hello").await;
    let next = take(&daemon, session).await;
    let mut facts = heard(&daemon, session).await;
    facts.push(asked());
    let next = daemon.store.append(session, next, &facts, None, daemon.now()).await.unwrap();
    let mut stream = Watcher::open(daemon.client().await, &format!("/v1/sessions/{session}/stream"), None).await;
    let first = stream.frame().await.unwrap();
    assert_eq!((first.event.as_str(), first.data["text"].as_str()), ("message", Some("hello")));
    let state = stream.frame().await.unwrap();
    assert_eq!((state.event.as_str(), state.data["state"].as_str()), ("state", Some("running")));
    // The journal goes on while deltas are under way: one that comes late is told no more.
    let delta = |at: u32, text: &'static str| {
        daemon.control.live.send(session, at, LiveKind::Text, || json!({ "text": text }));
    };
    delta(next, "a");
    let heard = stream.frame().await.unwrap();
    assert_eq!((heard.event.as_str(), heard.data["text"].as_str()), ("text", Some("a")));
    let call = ReplyCall { id: None, name: "shell".into(), arguments: r#"{"argv":["ls"]}"#.into() };
    let next = daemon.store.append(session, next, &[replied("ab", vec![call])], None, daemon.now()).await.unwrap();
    let message = stream.frame().await.unwrap();
    assert_eq!(message.data["calls"][0], json!({ "position": 0, "tool": "shell", "arguments": { "argv": ["ls"] } }));
    delta(next - 1, "late");
    let result = CallResult::ok(json!({ "stdout": "x\n" }));
    let done = Fact::Done { position: Position(0), result, took_ms: 3 };
    let next = daemon.store.append(session, next, &[done, asked()], None, daemon.now()).await.unwrap();
    delta(next, "c");
    let call = stream.frame().await.unwrap().data;
    assert_eq!((&call["kind"], &call["tool"], &call["text"]), (&json!("call"), &json!("shell"), &json!("x\n")));
    assert_eq!(
        stream.frame().await.unwrap().data["text"],
        "c",
        "a late delta is dropped, a new one comes after its facts"
    );
    let ended = Fact::TurnEnded { outcome: TurnOutcome::Completed };
    idle(&daemon, session, next, vec![replied("c", vec![]), ended]).await;
    let last = stream.frame().await.unwrap();
    assert_eq!(last.data["text"], "c");
    let ended = stream.frame().await.unwrap();
    assert_eq!((&ended.data["kind"], &ended.data["outcome"]), (&json!("turn-ended"), &json!("completed")));
    assert_eq!(stream.frame().await.unwrap().data["state"], "idle");
    // Who comes back is told only what is new.
    let mut again =
        Watcher::open(daemon.client().await, &format!("/v1/sessions/{session}/stream"), Some(&last.id)).await;
    assert_eq!(again.frame().await.unwrap().data["kind"], "turn-ended");
    let usage = client.get(&format!("/v1/sessions/{session}")).await.ok()["usage"].clone();
    assert_eq!(usage, json!({ "input": 20, "cached": 8, "output": 4, "calls": 2 }));
}

#[tokio::test]
async fn several_watch_one_session() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    let path = format!("/v1/sessions/{session}/stream");
    let mut watchers = vec![
        Watcher::open(daemon.client().await, &path, None).await,
        Watcher::open(daemon.client().await, &path, None).await,
    ];
    for watcher in &mut watchers {
        assert_eq!(watcher.frame().await.unwrap().data["state"], "idle");
    }
    say(&mut client, session, "hello").await;
    for watcher in &mut watchers {
        assert_eq!(watcher.frame().await.unwrap().data["state"], "queued");
    }
}

/// What a worker does with a command.
async fn take_command(worker: &mut CommandReceiver) -> Command {
    let told = worker.recv().await;
    let command = told.command.clone();
    told.taken();
    command
}

#[tokio::test]
async fn what_is_to_be_known_of_a_chosen_model_is_told_at_once() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    client.post(&format!("/v1/sessions/{session}/settings"), &json!({ "model": "nosuch:z" })).await.ok();
    let facts = daemon.store.journal(session).await.unwrap();
    let told = facts.iter().any(|recorded| matches!(&recorded.fact, Fact::Noticed { text } if text.contains("nosuch")));
    assert!(told, "{facts:?}");
}

#[tokio::test]
async fn a_command_goes_to_the_worker_or_into_the_journal() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    let settings = format!("/v1/sessions/{session}/settings");
    let view = client.post(&settings, &json!({ "mode": "auto", "model": "stub:large", "title": "t" })).await.ok();
    assert_eq!((&view["mode"], &view["model"], &view["title"]), (&json!("auto"), &json!("stub:large"), &json!("t")));
    let facts = daemon.store.journal(session).await.unwrap();
    assert!(matches!(&facts[0].fact, Fact::ModeSet { mode: Mode::Auto }), "{facts:?}");
    say(&mut client, session, "hello").await;
    let next = take(&daemon, session).await;
    assert_eq!(next, 2);
    let mut worker = daemon.control.commands.open(session);
    let interrupt = format!("/v1/sessions/{session}/interrupt");
    for (path, body, command) in [
        (&settings, json!({ "mode": "ask" }), Command::SetMode(Mode::Ask)),
        (&interrupt, json!({}), Command::Interrupt { by: "anna".into() }),
    ] {
        let (told, reply) = tokio::join!(take_command(&mut worker), client.post(path, &body));
        assert_eq!((told, reply.status), (command, 200));
    }
    assert_eq!(daemon.store.journal(session).await.unwrap().len(), 2, "the worker writes, nobody else");
    drop(worker);
    // A worker that has just taken it has not opened its queue yet: it is waited for.
    let (path, body) = (format!("/v1/sessions/{session}/interrupt"), json!({}));
    let (late, interrupted) = tokio::join!(
        async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            take_command(&mut daemon.control.commands.open(session)).await
        },
        client.post(&path, &body)
    );
    assert_eq!((late, interrupted.status), (Command::Interrupt { by: "anna".into() }, 200));
}

/// P2: a worker that leaves the session before it wrote a command down leaves nothing undone.
#[tokio::test]
async fn a_command_that_its_worker_leaves_behind_is_written_down() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    say(&mut client, session, "hello").await;
    let next = take(&daemon, session).await;
    let mut worker = daemon.control.commands.open(session);
    let leaving = async {
        let told = worker.recv().await;
        // It rests in the instant in which it is told.
        idle(&daemon, session, next, vec![]).await;
        drop((told, worker));
    };
    let (settings, body) = (format!("/v1/sessions/{session}/settings"), json!({ "mode": "auto" }));
    let (reply, ()) = tokio::join!(client.post(&settings, &body), leaving);
    assert_eq!(reply.ok()["mode"], "auto");
    let facts = daemon.store.journal(session).await.unwrap();
    assert!(facts.iter().any(|fact| matches!(fact.fact, Fact::ModeSet { mode: Mode::Auto })), "{facts:?}");
}

#[tokio::test]
async fn an_interrupted_question_is_withdrawn_and_its_turn_closed() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    say(&mut client, session, "hello").await;
    let taken = daemon.store.take_chats(1, daemon.now()).await.unwrap().remove(0);
    let item = daemon.park(&taken, vec![approval(0, None)]).await[0];
    let view = client.get(&format!("/v1/sessions/{session}")).await.ok();
    assert_eq!((&view["state"], &view["items"]), (&json!("parked"), &json!([item.to_string()])));
    let view = client.post(&format!("/v1/sessions/{session}/interrupt"), &json!({})).await.ok();
    assert_eq!(view["state"], "queued", "a worker closes the turn");
    assert_eq!(client.get(&format!("/v1/items/{item}")).await.ok()["state"], "withdrawn");
    let facts = daemon.store.journal(session).await.unwrap();
    assert!(facts.iter().any(|fact| matches!(fact.fact, Fact::TurnInterrupted { .. })), "{facts:?}");
}

#[tokio::test]
async fn to_compact_an_idle_chat_wakes_it() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    let view = client.post(&format!("/v1/sessions/{session}/compact"), &json!({})).await.ok();
    assert_eq!(view["state"], "queued");
    let facts = daemon.store.journal(session).await.unwrap();
    assert!(matches!(facts[..], [RecordedFact { fact: Fact::CompactionWanted, .. }]), "{facts:?}");
}

#[tokio::test]
async fn a_running_chat_that_is_removed_is_stopped() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    say(&mut client, session, "hello").await;
    take(&daemon, session).await;
    assert_eq!(client.delete(&format!("/v1/sessions/{session}")).await.status, 204);
    assert_eq!(daemon.control.script().stopped, [(session, "removed by anna".to_owned())]);
}

#[tokio::test]
async fn an_export_tells_all_that_was_said() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({ "model": "stub:small" })).await;
    say(&mut client, session, "list the folder").await;
    let next = take(&daemon, session).await;
    let mut facts = heard(&daemon, session).await;
    let call = ReplyCall { id: None, name: "shell".into(), arguments: r#"{"argv":["ls"]}"#.into() };
    facts.extend([
        asked(),
        replied("I look.", vec![call]),
        Fact::Done { position: Position(0), result: CallResult::ok(json!({ "stdout": "```\nx" })), took_ms: 3 },
        asked(),
        replied("There is **x**.", vec![]),
        Fact::TurnEnded { outcome: TurnOutcome::Completed },
    ]);
    idle(&daemon, session, next, facts).await;
    let export = client.get(&format!("/v1/sessions/{session}/export")).await.ok();
    let kinds: Vec<_> = export["messages"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "assistant", "call", "assistant", "turn-ended"]);
    let text = client.get(&format!("/v1/sessions/{session}/export?format=markdown")).await;
    assert_eq!(text.status, 200);
    let text = text.text();
    for part in ["# list the folder", "## anna", "Call 0, `shell`", "````\n```\nx\n````", "There is **x**."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run = daemon.store.run(session).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Idle);
}

#[tokio::test]
async fn a_call_in_json_keeps_its_number() {
    // A model may write what is no JSON; the history shows it as it came.
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    say(&mut client, session, "x").await;
    let next = take(&daemon, session).await;
    let mut facts = heard(&daemon, session).await;
    let broken = ReplyCall { id: None, name: "shell".into(), arguments: "{\"argv\":".into() };
    facts.extend([asked(), replied("", vec![broken])]);
    facts.push(Fact::Refused { position: Position(0), rule: "no".into() });
    facts.push(Fact::Edited {
        position: Position(0),
        call: Call { position: Position(0), tool: "shell".parse().unwrap(), args: json!({}) },
    });
    idle(&daemon, session, next, facts).await;
    let export = client.get(&format!("/v1/sessions/{session}/export")).await.ok();
    assert_eq!(export["messages"][1]["calls"][0]["arguments"], "{\"argv\":");
    assert_eq!(export["messages"][2]["tool"], "shell");
}

#[tokio::test]
async fn a_chat_tells_what_it_was_allowed_for_good() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let (session, _) = create(&mut client, json!({})).await;
    say(&mut client, session, "build it").await;
    let next = take(&daemon, session).await;
    let call = |name: &str, arguments: &str| ReplyCall { id: None, name: name.into(), arguments: arguments.into() };
    let answered = |position: u32, answer: ow_model::Answer| Fact::Answered {
        position: Position(position),
        item: "0123456789abcdef".parse().unwrap(),
        answered: ow_model::Answered::Resolved(ow_model::Resolution {
            answer,
            by: ow_model::AnswerBy { person: ow_model::Person("anna".into()), surface: ow_model::Surface::Socket },
            at: daemon.now(),
        }),
    };
    let mut facts = heard(&daemon, session).await;
    let wanted = vec![
        call("shell", r#"{"command":"cargo test"}"#),
        call("write_file", "{}"),
        call("shell", r#"{"argv":["touch","a"]}"#),
        call("shell", r#"{"argv":["touch","b"]}"#),
    ];
    facts.extend([
        asked(),
        replied("", wanted),
        answered(0, ow_model::Answer::AlwaysCommand),
        answered(1, ow_model::Answer::AlwaysTool),
        answered(2, ow_model::Answer::AlwaysCommand),
        answered(3, ow_model::Answer::Once),
        Fact::RootGranted { path: "/srv".into(), writable: true },
    ]);
    idle(&daemon, session, next, facts).await;
    let grants = client.get(&format!("/v1/sessions/{session}")).await.ok()["grants"].clone();
    let expected =
        [("command", "cargo test"), ("tool", "write_file"), ("command", "touch a"), ("writable-folder", "/srv")];
    assert_eq!(grants, json!(expected.map(|(kind, what)| json!({ "kind": kind, "what": what }))));
    assert_eq!(client.get("/v1/sessions").await.ok()["rows"][0]["grants"], Value::Null);
}
