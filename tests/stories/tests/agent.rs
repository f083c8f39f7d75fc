//! Agents' tasks, end to end: the real owd, and a stub of a model that follows the published stream format.

use std::fs;

use ow_test_support::model_server::{ModelReply, ModelServer};
use ow_test_support::{Owd, Scratch, id};
use serde_json::{Value, json};

/// Written in two parts, so that this file has nothing left to do.
const MARK: &str = concat!("TO", "DO");

/// A scratch place whose agents speak to this model.
fn with_model(model: &ModelServer) -> Scratch {
    let scratch = Scratch::new();
    scratch.config(&format!(
        "[agent]\nmodel = \"stub:small\"\n\n[provider.stub]\nbase-url = \"{}\"\nwire = \"openai\"\n",
        model.url()
    ));
    scratch
}

fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages");
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn journal(owd: &Owd, run: &Value) -> Vec<Value> {
    let shown = owd.owctl.json(&["run", "show", &id(run), "--facts"]);
    shown["facts"].as_array().expect("a journal").clone()
}

/// The classic walk-through: three model calls, a search that asks nobody, one approval.
#[test]
fn todo_comments_are_collected_after_one_approval() {
    let list = format!("- a.rs: {MARK} mend this\n");
    let model = ModelServer::start();
    model.push(ModelReply::calls([("search_files", json!({ "path": ".", "text": MARK }))]));
    model.push(ModelReply::calls([("write_file", json!({ "path": "issues.md", "content": list }))]));
    model.push(ModelReply::text("One is in issues.md."));
    let scratch = with_model(&model);
    fs::write(scratch.work().join("a.rs"), format!("// {MARK} mend this\n")).expect("a file");
    scratch.task(
        "todos",
        "title = \"Collect what is to do\"\nroots = [\"{work}\"]\ngoal = \"Collect all such comments into issues.md\"\n",
    );
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "todos"]);
    let item = owd.item();
    assert_eq!(item["approval"]["tool"], "write_file");
    assert!(!scratch.work().join("issues.md").exists(), "nothing is written before the answer");
    assert_eq!(model.seen(), 2);
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    let run = owd.run_in("todos", "succeeded");
    assert_eq!(fs::read_to_string(scratch.work().join("issues.md")).expect("written"), list);
    assert_eq!(model.seen(), 3);
    let asked: Vec<Value> = model.requests().iter().map(ow_test_support::model_server::ModelRequest::json).collect();
    assert!(results(&asked[1])[0].contains(&format!("{MARK} mend this")), "the search's result was told");
    assert_eq!(results(&asked[2]).len(), 2);
    assert!(!journal(&owd, &run).is_empty());
}

#[test]
fn a_denied_call_does_not_run_and_the_model_hears_why() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("shell", json!({ "argv": ["touch", "made"] }))]));
    model.push(ModelReply::text("It was not made."));
    let scratch = with_model(&model);
    scratch.task("maker", "roots = [\"{work}\"]\ngoal = \"Make a file\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "maker"]);
    let item = owd.item();
    owd.owctl.ok(&["inbox", "deny", &id(&item), "--reason", "not today"]);
    owd.run_in("maker", "succeeded");
    assert!(!scratch.work().join("made").exists());
    assert!(results(&model.last().json())[0].contains("not today"));
}

/// P2, P3: what was approved runs once, after a restart.
#[test]
fn a_parked_agent_outlives_kill_9_and_goes_on_at_its_call() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("shell", json!({ "command": "echo once >> log" }))]));
    model.push(ModelReply::text("Done."));
    let scratch = with_model(&model);
    scratch.task("maker", "roots = [\"{work}\"]\ngoal = \"Write a line\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "maker"]);
    let item = owd.item();
    owd.kill();
    let owd = scratch.start();
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    owd.run_in("maker", "succeeded");
    assert_eq!(fs::read_to_string(scratch.work().join("log")).expect("a log"), "once\n");
    assert_eq!(model.seen(), 2, "the reply was in the journal: the model was not asked again");
}

/// P7
#[test]
fn a_wrong_key_ends_the_run_as_what_it_is() {
    let model = ModelServer::start();
    model.push(ow_test_support::model_server::ModelResponse::whole(
        401,
        r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}"#,
    ));
    let scratch = with_model(&model);
    scratch.task("maker", "goal = \"Say hello\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "maker"]);
    let run = owd.run_in("maker", "failed");
    assert_eq!(run["failure"], "model-auth", "{run}");
    assert_eq!(model.seen(), 1, "a wrong key is not tried again");
}

#[test]
fn an_agent_without_a_model_says_how_to_name_one() {
    let scratch = Scratch::new();
    scratch.task("maker", "goal = \"Say hello\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "maker"]);
    let run = owd.run_in("maker", "failed");
    assert!(run["message"].as_str().is_some_and(|message| message.contains("owctl model list")), "{run}");
}
