//! What agents do at the edges, where the turn alone cannot show it: the real owd, and a stub of a model.

use std::fs;

use ow_stories::{Door, results, with_model};
use ow_test_support::model_server::{ModelReply, ModelResponse, ModelServer};
use ow_test_support::{Owd, Scratch, id, rows, until};
use serde_json::json;

/// Says something in a chat and waits until it is idle again.
fn say(owd: &Owd, door: &Door, chat: &str, text: &str) {
    let path = format!("/v1/sessions/{chat}/messages");
    let reply = door.send("POST", &path, &[], &json!({ "text": text }).to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    until("the chat is idle", || {
        let chats = rows(&owd.owctl.json(&["session", "list"]));
        (chats[0]["state"] == "idle" && chats[0]["waiting"] == 0).then_some(())
    });
}

/// A turn that a provider failed is no end: the same message is heard once, by whatever model is set by then.
#[test]
fn a_chat_that_failed_goes_on_with_another_model() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let owd = scratch.start();
    let door = Door::Unix(scratch.path().join("owd.sock"));
    let chat = id(&door.send("POST", "/v1/sessions", &[], "{}").json());
    model.push(ModelResponse::error(401, "this key is not valid"));
    say(&owd, &door, &chat, "which plums are ripe?");
    for name in ["stub:other", "stub:third"] {
        let settings = json!({ "model": name }).to_string();
        assert_eq!(door.send("POST", &format!("/v1/sessions/{chat}/settings"), &[], &settings).status, 200);
    }
    model.push(ModelReply::text("The early ones."));
    say(&owd, &door, &chat, "go on");
    let last = model.last().json();
    assert_eq!((model.seen(), &last["model"]), (2, &json!("third")));
    assert_eq!(last["messages"].to_string().matches("which plums are ripe?").count(), 1, "{last}");
    assert!(!last["messages"].to_string().contains("not valid"), "the error is for the person: {last}");
    let export = owd.owctl.ok(&["session", "export", &chat]);
    assert!(export.contains("The early ones.") && export.contains("not valid"), "{export}");
}

#[test]
fn a_sub_agent_changes_nothing_whatever_it_tries() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let made = scratch.work().join("made");
    let path = made.clone();
    model.answer(move |request| {
        let body = request.json();
        let said = body["messages"].to_string().matches("\"role\":\"assistant\"").count();
        let is_nested = body["messages"][0]["content"].to_string().contains("You are a sub-agent");
        match (is_nested, said) {
            (false, 0) => ModelReply::calls([("delegate", json!({ "goal": "make a file" }))]).into(),
            (true, 0) => ModelReply::calls([
                ("write_file", json!({ "path": path, "content": "x" })),
                ("shell", json!({ "argv": ["touch", path] })),
                ("http_request", json!({ "method": "POST", "url": "https://example.org/", "body": "x" })),
                ("notify", json!({ "text": "made" })),
                ("delegate", json!({ "goal": "make it for me" })),
                ("ask_user", json!({ "questions": [{ "question": "May I?" }] })),
                ("request_directory", json!({ "path": "/srv", "writable": true, "reason": "to write" })),
            ])
            .into(),
            (true, _) => ModelReply::text(format!("Nothing was made: {}", results(&body).join(" | "))).into(),
            (false, _) => ModelReply::text("It could not.").into(),
        }
    });
    scratch.task("agent", "roots = [\"{work}\"]\nmode = \"auto\"\ngoal = \"Make a file\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    owd.run_in("agent", "succeeded");
    let told = results(&model.last().json()).pop().expect("a report");
    assert!(!made.exists(), "{told}");
    assert!(owd.all_items("agent").iter().all(|item| item["kind"] == "notification"), "nobody was asked");
    assert_eq!(told.to_lowercase().matches("not run").count(), 6, "{told}");
}

/// Asks for a folder, then reads and writes there.
fn asks_for(model: &ModelServer, folder: &std::path::Path) {
    let (read, new) = (folder.join("a.txt"), folder.join("b.txt"));
    model.push(ModelReply::calls([(
        "request_directory",
        json!({ "path": folder, "writable": true, "reason": "to keep notes" }),
    )]));
    model.push(ModelReply::calls([("read_file", json!({ "path": read }))]));
    model.push(ModelReply::calls([("write_file", json!({ "path": new, "content": "x" }))]));
    model.push(ModelReply::text("That is all."));
}

fn other_folder(scratch: &Scratch) -> std::path::PathBuf {
    let other = scratch.path().join("other");
    fs::create_dir(&other).expect("a folder");
    fs::write(other.join("a.txt"), "plum\n").expect("a file");
    other
}

#[test]
fn a_granted_folder_is_kept_over_a_restart() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let other = other_folder(&scratch);
    asks_for(&model, &other);
    scratch.task("agent", "roots = [\"{work}\"]\nmode = \"edit\"\ngoal = \"Keep notes\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    let item = owd.item();
    owd.kill();
    let owd = scratch.start();
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    owd.run_in("agent", "succeeded");
    assert_eq!(fs::read_to_string(other.join("b.txt")).expect("written"), "x");
    assert_eq!(owd.all_items("agent").len(), 1, "the folder alone was asked for");
}

#[test]
fn a_folder_that_is_not_granted_stays_closed() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let other = other_folder(&scratch);
    asks_for(&model, &other);
    scratch.task("agent", "roots = [\"{work}\"]\nmode = \"edit\"\ngoal = \"Keep notes\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    for _ in 0..3 {
        let item = owd.item();
        owd.owctl.ok(&["inbox", "deny", &id(&item)]);
        until("it is answered", || (owd.items().first().map(id) != Some(id(&item))).then_some(()));
    }
    owd.run_in("agent", "succeeded");
    let told = results(&model.last().json());
    assert!(told.iter().all(|text| !text.contains("plum")), "{told:?}");
    assert!(!other.join("b.txt").exists());
}

/// The same call for ever is stopped at its third time, unless a person bears with it longer; the run's journal says so.
#[test]
fn a_tools_patience_is_set_in_the_configuration_and_stands_in_the_run() {
    let model = ModelServer::start();
    let scratch = with_model(&model);
    let set = "\n[agent.loops.list_dir]\nconsecutive-duplicate = [5, 6]\nexact-duplicate = \"off\"\n";
    let work = scratch.work();
    model.answer(move |request| {
        let body = request.json();
        if body["tools"].is_null() {
            return ModelReply::text("I went round in circles.").into();
        }
        ModelReply::calls([("list_dir", json!({ "path": work }))]).into()
    });
    scratch.task("looks", "goal = \"look around\"\nmode = \"ask\"\nroots = [\"{work}\"]\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "allow", "looks", "--yes"]);
    let calls_of_a_run = || {
        let before = model.seen();
        owd.owctl.run(&["task", "run", "looks", "--wait"]);
        model.seen() - before
    };
    assert_eq!(calls_of_a_run(), 4, "three calls and the last answer");
    scratch.config(&ow_stories::model_config(&model, set));
    owd.owctl.ok(&["reload"]);
    assert_eq!(calls_of_a_run(), 7, "six calls and the last answer");
    let run = id(&rows(&owd.owctl.json(&["run", "list"]))[0]);
    let journal = owd.owctl.json(&["run", "show", &run]).to_string();
    assert!(journal.contains("consecutive-duplicate for list_dir: nudges at 5, stops at 6"), "{journal}");
    assert!(journal.contains("consecutive-duplicate stops the turn"), "{journal}");
    scratch.task(
        "looks",
        "goal = \"look around\"\nmode = \"ask\"\nroots = [\"{work}\"]\n[loops.list_dir]\nconsecutive-duplicate = [3, 4]\n",
    );
    owd.owctl.ok(&["reload"]);
    assert_eq!(calls_of_a_run(), 5, "the task's own patience goes before that of all");
    scratch.config("[agent.loops.list_dri]\nsleep = \"off\"\n");
    let checked = scratch.owctl().ok(&["config", "check"]);
    assert!(checked.contains("there is no tool `list_dri`; did you mean `list_dir`?"), "{checked}");
}
