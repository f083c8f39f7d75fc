//! Chats, end to end: the real owd and owctl, and a stub of a model.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use ow_stories::{Door, model_config, with_model};
use ow_test_support::model_server::{Gate, ModelReply, ModelResponse, ModelServer};
use ow_test_support::{Answer, Owd, Scratch, id, rows, until};
use serde_json::{Value, json};

/// Runs `owctl chat …` in the scratch's working folder, with this piped in.
fn chat(owd: &Owd, scratch: &Scratch, args: &[&str], piped: Option<&str>) -> Answer {
    let mut command = owd.owctl.command(&[&["chat"], args].concat());
    command.current_dir(scratch.work());
    let Some(text) = piped else { return Answer::within_limit(&mut command) };
    let input = scratch.path().join("piped");
    fs::write(&input, text).expect("written");
    command.stdin(fs::File::open(&input).expect("just written"));
    Answer::within_limit(&mut command)
}

fn messages(model: &ModelServer) -> Vec<Value> {
    model.last().json()["messages"].as_array().expect("messages").clone()
}

#[test]
fn one_question_prints_the_answer_alone_and_the_chat_goes_on_later() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("list_dir", json!({ "path": "." }))]));
    model.push(ModelReply::text("There is **a.txt**."));
    model.push(ModelReply::text("As I said."));
    let scratch = with_model(&model);
    fs::write(scratch.work().join("a.txt"), "x").expect("a file");
    let owd = scratch.start();
    let answer = chat(&owd, &scratch, &["-p", "what is here?"], None);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "There is **a.txt**.\n"), "{}", answer.stderr);
    let again = chat(&owd, &scratch, &["--continue", "-p", "and now?"], None);
    assert_eq!((again.code, again.stdout.as_str()), (0, "As I said.\n"), "{}", again.stderr);
    let said = messages(&model).iter().filter(|message| message["role"] == "user").count();
    assert_eq!(said, 2, "the history is sent");
    let sessions = rows(&owd.owctl.json(&["session", "list"]));
    assert_eq!(sessions.len(), 1);
    assert_eq!((&sessions[0]["title"], &sessions[0]["state"]), (&json!("what is here?"), &json!("idle")));
    let export = owd.owctl.ok(&["session", "export", &id(&sessions[0])]);
    assert!(export.contains("There is **a.txt**."), "{export}");
    owd.owctl.ok(&["session", "rm", &id(&sessions[0])]);
    assert_eq!(rows(&owd.owctl.json(&["session", "list"])).len(), 0);
}

/// The chat that is left asks in the inbox that it was begun with, also after a restart.
#[test]
fn a_chats_questions_go_to_the_inbox_it_was_begun_with() {
    let model = ModelServer::start();
    let scratch = Scratch::new();
    scratch.config(&model_config(&model, "[inboxes.ops]\n"));
    let owd = scratch.start();
    let wrong = chat(&owd, &scratch, &["--inbox", "opps", "-p", "hello"], None);
    assert_ne!(wrong.code, 0);
    assert!(wrong.stderr.contains("inbox `opps`: there is no such inbox; did you mean \"ops\"?"), "{}", wrong.stderr);
    assert_eq!(rows(&owd.owctl.json(&["session", "list"])).len(), 0, "no chat was begun");

    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    chat(&owd, &scratch, &["--inbox", "ops", "-p", "make it"], None);
    assert_eq!(owd.item()["inbox"], "ops");
    let session = id(&rows(&owd.owctl.json(&["session", "list"]))[0]);
    assert!(owd.owctl.ok(&["session", "show", &session]).contains("ops"));
    let other = chat(&owd, &scratch, &["--continue", "--inbox", "default", "-p", "and?"], None);
    assert_eq!(other.code, 2, "{}", other.stderr);
    assert!(other.stderr.contains("a chat keeps its inbox"), "{}", other.stderr);
    owd.stop();

    let owd = scratch.start();
    let touch = || ModelReply::calls([("shell", json!({ "argv": ["touch", "again"] }))]);
    model.push(touch());
    let first = id(&owd.item());
    owd.owctl.ok(&["inbox", "deny", &first]);
    let next = until("the next question", || owd.items().into_iter().find(|item| id(item) != first));
    assert_eq!(next["inbox"], "ops");
}

#[test]
fn what_is_piped_in_is_said_too() {
    let model = ModelServer::start();
    model.push(ModelReply::text("Fine."));
    model.push(ModelReply::text("Fine again."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    assert_eq!(chat(&owd, &scratch, &["-p", "review this"], Some("+ a line\n")).stdout, "Fine.\n");
    let heard = messages(&model).pop().expect("a message")["content"].to_string();
    assert!(heard.contains("review this") && heard.contains("+ a line"), "{heard}");
    assert_eq!(chat(&owd, &scratch, &[], Some("only piped\n")).stdout, "Fine again.\n");
}

#[test]
fn a_script_is_not_kept_waiting_behind_a_question() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    let scratch = with_model(&model);
    let owd = scratch.start();
    assert_eq!(chat(&owd, &scratch, &["-p", "make it"], None).code, 1);
    let behind = chat(&owd, &scratch, &["--continue", "-p", "and that"], None);
    assert_eq!(behind.code, 1, "{}", behind.stderr);
    assert!(behind.stderr.contains(&id(&owd.item())), "{}", behind.stderr);
}

#[test]
fn the_exit_code_is_true_to_the_turn() {
    let model = ModelServer::start();
    model.push(ModelResponse::whole(
        401,
        r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}"#,
    ));
    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    model.push(ModelReply::text("Made."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let failed = chat(&owd, &scratch, &["-p", "hello"], None);
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""), "{}", failed.stderr);
    assert!(failed.stderr.contains("Incorrect API key"), "{}", failed.stderr);
    // What asks is left in the Inbox, and goes on from there.
    let waiting = chat(&owd, &scratch, &["-p", "make it"], None);
    assert_eq!(waiting.code, 1, "{}", waiting.stderr);
    let item = owd.item();
    assert!(waiting.stderr.contains(&id(&item)), "{}", waiting.stderr);
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    until("the turn has gone on", || scratch.work().join("made").exists().then_some(()));
    until("it is idle", || {
        let session = &rows(&owd.owctl.json(&["session", "list"]))[0];
        (session["state"] == "idle").then_some(())
    });
}

#[test]
fn all_events_are_told_in_json() {
    let (model, gate) = (ModelServer::start(), Gate::new());
    let text = "One two three. ".repeat(20);
    model.push(ModelResponse::from(ModelReply::text(&text).in_pieces(5)).wait_after(3000, &gate));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let told = scratch.path().join("told");
    let mut command = owd.owctl.command(&["chat", "--json", "-p", "count"]);
    command.current_dir(scratch.work()).stdin(Stdio::null()).stdout(fs::File::create(&told).expect("a file"));
    let mut chat = command.spawn().expect("owctl");
    until("the beginning is told while the rest is awaited", || {
        let told = fs::read_to_string(&told).expect("what was told");
        told.contains(r#""event":"text""#).then_some(())
    });
    gate.open();
    assert!(chat.wait().expect("it ends").success());
    let told = fs::read_to_string(&told).expect("what was told");
    let events: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(events.iter().any(|event| event["event"] == "state"), "{told}");
    // What is in the history already is told by the message alone.
    let streamed = streamed(&events);
    assert!(!streamed.is_empty() && text.starts_with(&streamed), "{streamed}");
    assert_eq!(said(&events), [&text[..]]);
    let last = &events.last().expect("some")["data"];
    assert_eq!((&last["kind"], &last["outcome"]), (&json!("turn-ended"), &json!("completed")));
}

#[test]
fn what_a_sub_agent_says_and_does_is_not_shown_as_the_session_s_own() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("delegate", json!({ "goal": "What does note.txt say?" }))]));
    let mut inner = ModelReply::calls((0..8).map(|n| ("read_file", json!({ "path": format!("note{n}.txt") }))));
    inner.text = "Let me look.".into();
    model.push(inner);
    model.push(ModelReply::text("It says: plum."));
    model.push(ModelReply::text("Plum."));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let answer = chat(&owd, &scratch, &["--json", "-p", "what does it say?"], None);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(!answer.stdout.contains("Let me look.") && !answer.stdout.contains("read_file"), "{}", answer.stdout);
    let events: Vec<Value> = answer.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let streamed = streamed(&events);
    assert!("Plum.".starts_with(&streamed), "{streamed}");
    assert_eq!(said(&events).last().map(String::as_str), Some("Plum."));
}

/// What was told of the model's text while it came.
fn streamed(events: &[Value]) -> String {
    let pieces = events.iter().filter(|event| event["event"] == "text");
    pieces.map(|event| event["data"]["text"].as_str().expect("a text")).collect()
}

/// The agent's messages of the history.
fn said(events: &[Value]) -> Vec<String> {
    let messages = events.iter().filter(|event| event["event"] == "message" && event["data"]["kind"] == "assistant");
    messages.map(|event| event["data"]["text"].as_str().expect("a text").to_owned()).collect()
}

/// Opens a chat in the scratch's working folder by the API, and says this.
fn say(door: &Door, scratch: &Scratch, mode: &str, text: &str) -> String {
    let body = json!({ "mode": mode, "roots": [scratch.work()] }).to_string();
    let session = id(&door.send("POST", "/v1/sessions", &[], &body).json());
    let said = json!({ "text": text }).to_string();
    assert_eq!(door.send("POST", &format!("/v1/sessions/{session}/messages"), &[], &said).status, 200);
    session
}

/// What a person takes back holds for calls that were let through and have not begun.
#[test]
fn a_mode_that_is_set_while_calls_run_holds_for_those_that_have_not_begun() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([
        ("shell", json!({ "argv": ["./wait"] })),
        ("shell", json!({ "argv": ["touch", "second"] })),
    ]));
    model.push(ModelReply::text("One was made."));
    let scratch = with_model(&model);
    let work = scratch.work();
    fs::write(work.join("wait"), "#!/bin/sh\ntouch first\nwhile [ ! -e go ]; do sleep 0.02; done\n").expect("written");
    fs::set_permissions(work.join("wait"), fs::Permissions::from_mode(0o700)).expect("its mode is set");
    let _owd = scratch.start();
    let door = Door::Unix(scratch.path().join("owd.sock"));
    let session = say(&door, &scratch, "auto", "make both");
    until("the first runs", || work.join("first").exists().then_some(()));
    let set = door.send("POST", &format!("/v1/sessions/{session}/settings"), &[], r#"{"mode": "plan"}"#);
    assert_eq!((set.status, &set.json()["mode"]), (200, &json!("plan")));
    fs::write(work.join("go"), "").expect("written");
    until("the model hears of it", || (model.seen() == 2).then_some(()));
    assert!(!work.join("second").exists());
    let told = messages(&model).pop().expect("a result")["content"].to_string();
    assert!(told.contains("mode plan"), "{told}");
}

/// P2: what owd said yes to outlives it, also where nobody is at work.
#[test]
fn to_shorten_an_idle_chat_outlives_kill_9() {
    let model = ModelServer::start();
    for text in ["one", "two", "a summary"] {
        model.push(ModelReply::text(text));
    }
    let scratch = with_model(&model);
    let owd = scratch.start();
    let long = "word ".repeat(2_000);
    assert_eq!(chat(&owd, &scratch, &["-p", &long], None).code, 0);
    assert_eq!(chat(&owd, &scratch, &["--continue", "-p", &long], None).code, 0);
    let session = id(&rows(&owd.owctl.json(&["session", "list"]))[0]);
    let door = Door::Unix(scratch.path().join("owd.sock"));
    // Nothing goes on while all is paused, so that the kill comes before the work.
    owd.owctl.ok(&["pause", "--all"]);
    assert_eq!(door.send("POST", &format!("/v1/sessions/{session}/compact"), &[], "{}").status, 200);
    owd.kill();
    let owd = scratch.start();
    owd.owctl.ok(&["resume", "--all"]);
    until("it is shortened", || {
        let shown = owd.owctl.ok(&["session", "export", &session]);
        shown.contains("sent a summary of what was said before").then_some(())
    });
    assert_eq!(model.seen(), 3);
}

#[test]
fn an_attachment_reaches_the_model() {
    let model = ModelServer::start();
    model.push(ModelReply::text("Read."));
    let scratch = with_model(&model);
    fs::write(scratch.work().join("notes.txt"), "the secret is 42").expect("a file");
    let owd = scratch.start();
    let answer = chat(&owd, &scratch, &["-p", "read it", "--attach", "notes.txt"], None);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(messages(&model).pop().expect("a message")["content"].to_string().contains("the secret is 42"));
    let wrong = chat(&owd, &scratch, &["-p", "read it", "--attach", "none.txt"], None);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("none.txt"), "{}", wrong.stderr);
}

/// A PDF of one page that says this, as its format's first edition has it.
fn pdf(text: &str) -> Vec<u8> {
    let page = format!("BT /F1 24 Tf 72 700 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{page}\nendstream", page.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in (1..).zip(&objects) {
        writeln!(table, "{:010} 00000 n ", file.len()).expect("a string takes all");
        file.extend(format!("{number} 0 obj\n{object}\nendobj\n").bytes());
    }
    let begins = file.len();
    file.extend(table.bytes());
    let size = objects.len() + 1;
    file.extend(format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{begins}\n%%EOF\n").bytes());
    file
}

#[test]
fn a_pdf_reaches_a_model_that_reads_none_as_its_text() {
    let has_reader = std::process::Command::new("pdftotext").arg("-v").output().is_ok();
    if !has_reader {
        println!("skipped: pdftotext is not installed");
        return;
    }
    let model = ModelServer::start();
    model.push(ModelReply::text("Read."));
    model.push(ModelReply::text("Not read."));
    let scratch = with_model(&model);
    fs::write(scratch.work().join("letter.pdf"), pdf("Dear reader")).expect("a file");
    fs::write(scratch.work().join("broken.pdf"), "%PDF-1.4\nnothing of the kind").expect("a file");
    let owd = scratch.start();
    let answer = chat(&owd, &scratch, &["-p", "read it", "--attach", "letter.pdf"], None);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let heard = messages(&model).pop().expect("a message")["content"].to_string();
    assert!(heard.contains("Dear reader"), "{heard}");
    let answer = chat(&owd, &scratch, &["-p", "read it", "--attach", "broken.pdf"], None);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let heard = messages(&model).pop().expect("a message")["content"].to_string();
    assert!(heard.contains("this model cannot read it"), "{heard}");
}

/// P2: what was said is heard, whatever happens to owd.
#[test]
fn a_message_outlives_kill_9() {
    let model = ModelServer::start();
    let gate = Gate::new();
    model.push(ModelResponse::from(ModelReply::text("First.")).after(&gate));
    let scratch = with_model(&model);
    let owd = scratch.start();
    let mut command = owd.owctl.command(&["chat", "-p", "first"]);
    let mut asking = command.current_dir(scratch.work()).stdout(Stdio::null()).spawn().expect("it starts");
    until("the model is asked", || (model.seen() == 1).then_some(()));
    owd.kill();
    gate.open();
    model.push(ModelReply::text("First."));
    let owd = scratch.start();
    let ended = until("it is answered", || asking.try_wait().expect("a child"));
    assert!(ended.success(), "whoever waited comes back to the stream");
    let session = &rows(&owd.owctl.json(&["session", "list"]))[0];
    let export = owd.owctl.json(&["session", "export", &id(session)]);
    let kinds = |kind: &str| {
        let all = export["messages"].as_array().expect("messages");
        all.iter().filter(|message| message["kind"] == kind).count()
    };
    assert_eq!((kinds("user"), kinds("assistant")), (1, 1), "{export}");
}
