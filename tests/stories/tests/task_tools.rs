//! Agents that write and start tasks: what runs later is asked about now.

use ow_stories::{results, with_model};
use ow_test_support::model_server::{ModelReply, ModelServer};
use ow_test_support::{Owd, Scratch, id, until};
use serde_json::json;

fn agent(model: &ModelServer) -> (Scratch, Owd) {
    let scratch = with_model(model);
    // The mode in which the least is asked.
    scratch.task("agent", "roots = [\"{work}\"]\nmode = \"auto\"\ngoal = \"Take care of it\"\n");
    let owd = scratch.start();
    owd.owctl.ok(&["task", "run", "agent"]);
    (scratch, owd)
}

const DEFINITION: &str =
    "title = \"Say hello\"\n\n[[step]]\ntool = \"notify\"\nargs = { text = \"hello {{ event.payload.who }}\" }\n";

#[test]
fn a_task_that_an_agent_writes_and_starts_is_asked_about_and_then_runs() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([("task_save", json!({ "name": "hello", "definition": DEFINITION }))]));
    model.push(ModelReply::calls([("task_run", json!({ "name": "hello", "payload": { "who": "Ann" } }))]));
    model.push(ModelReply::calls([("task_list", json!({})), ("task_show", json!({ "name": "hello" }))]));
    model.push(ModelReply::text("Hello is said."));
    let (_scratch, owd) = agent(&model);

    let item = owd.item();
    assert_eq!(item["approval"]["tool"], "task_save", "{item}");
    assert_eq!(item["approval"]["arguments"]["definition"], DEFINITION, "the whole definition is shown");
    assert!(owd.owctl.run(&["task", "show", "hello"]).stderr.contains("hello"), "nothing is saved before the answer");
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);

    let item = owd.item();
    assert_eq!(item["approval"]["tool"], "task_run", "{item}");
    owd.owctl.ok(&["inbox", "approve", &id(&item)]);
    owd.run_in("hello", "succeeded");
    owd.run_in("agent", "succeeded");
    let told = results(&model.last().json());
    assert!(told[2].contains("\"agent\"") && told[2].contains("\"hello\""), "{told:?}");
    assert!(told[3].contains("Say hello"), "{told:?}");
}

#[test]
fn a_definition_that_is_wrong_goes_back_to_the_model_and_asks_nobody() {
    let model = ModelServer::start();
    model.push(ModelReply::calls([(
        "task_save",
        json!({ "name": "hello", "definition": "title = \"x\"\n[[step]]\ntool = \"no_such_tool\"\nargs = {}\n" }),
    )]));
    model.push(ModelReply::calls([("task_save", json!({ "name": "two words", "definition": DEFINITION }))]));
    model.push(ModelReply::calls([("task_save", json!({
        "name": "hello",
        "definition": "[[step]]\ntool = \"shell\"\nargs = { argv = [\"curl\", \"-H\", \"Authorization: Bearer sk-proj-abcdefghijklmnopqrstuvwxyz0123456789\", \"https://example.com\"] }\n",
    }))]));
    model.push(ModelReply::text("I could not."));
    let (_scratch, owd) = agent(&model);
    owd.run_in("agent", "succeeded");
    let told = results(&model.last().json());
    assert!(told[0].contains("no_such_tool"), "{told:?}");
    assert!(told[1].contains("two words"), "{told:?}");
    assert!(told[2].contains("owctl secret set"), "{told:?}");
    assert!(owd.all_items("agent").is_empty(), "nobody is asked");
}

#[test]
fn tasks_that_start_each_other_end_as_a_loop() {
    let scratch = Scratch::new();
    scratch.task("ping", "[[step]]\ntool = \"task_run\"\nargs = { name = \"pong\" }\n");
    scratch.task("pong", "[[step]]\ntool = \"task_run\"\nargs = { name = \"ping\" }\n");
    let owd = scratch.start();
    for task in ["ping", "pong"] {
        owd.owctl.ok(&["task", "allow", task, "--yes"]);
    }
    owd.owctl.ok(&["task", "run", "ping"]);
    let why = until("the loop is refused", || {
        let mut told = ["ping", "pong"].iter().map(|task| owd.owctl.ok(&["why", task]));
        told.find(|told| told.contains("loop"))
    });
    assert_eq!(owd.runs("ping").len() + owd.runs("pong").len(), 9, "{why}");
}
