//! Slack's settings change under a running owd, and a person sees how the connection stands.

use ow_stories::asking;
use ow_stories::slack::{connect, tokens, workspace};
use ow_test_support::{Owd, SLACK_BOT, id, until};
use rustix::process::Signal;
use serde_json::Value;

fn stands(owd: &Owd) -> Value {
    owd.owctl.json(&["status"])["slack"].take()
}

fn becomes(owd: &Owd, state: &str) -> Value {
    until(&format!("Slack is {state}"), || Some(stands(owd)).filter(|slack| slack["state"] == state))
}

#[test]
fn an_app_is_taken_up_changed_and_given_up_by_a_reload() {
    let slack = workspace();
    let scratch = asking();
    let owd = scratch.start();
    assert_eq!(stands(&owd), Value::Null);

    connect(&scratch, &slack, "", "slack = [\"C1\"]");
    let told = owd.owctl.ok(&["reload"]);
    assert!(told.contains("[slack], for its tools, has changed since owd started"), "{told}");
    slack.wait_for_connection();
    let now = becomes(&owd, "connected");
    assert!(now["connected_since"].is_string() && now["last_error"].is_null(), "{now}");
    assert!(owd.owctl.ok(&["status"]).contains("connected to "), "a person sees it too");
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let fits = |message: &Value| message["text"].as_str().is_some_and(|text| text.contains(&item));
    let notice = slack.wait_for_message("C1", fits);

    // Another token: the old connection ends.
    tokens(&scratch, "xoxb-wrong", slack.app_token());
    owd.owctl.ok(&["reload"]);
    let now = until("the wrong token is told", || {
        Some(stands(&owd)).filter(|slack| slack["last_error"].as_str().is_some_and(|why| why.contains("invalid_auth")))
    });
    assert_eq!(now["state"], "connecting", "{now}");
    let said = owd.owctl.ok(&["status"]);
    assert!(said.contains("not connected; it is tried again; last error") && said.contains("warning: slack"), "{said}");
    until("the old connection ends", || (slack.connections() == 0).then_some(()));

    // No token at all: a fault that names it, and everything else goes on.
    std::fs::write(scratch.path().join("config/secrets.toml"), "").expect("written");
    owd.owctl.ok(&["reload"]);
    let now = becomes(&owd, "unusable");
    assert!(now["last_error"].as_str().is_some_and(|why| why.contains("owctl secret set slack-bot-token")), "{now}");

    tokens(&scratch, slack.bot_token(), slack.app_token());
    owd.owctl.ok(&["reload"]);
    becomes(&owd, "connected");
    slack.presses("C1", "UADA", notice["ts"].as_str().expect("a ts"), "once");
    owd.run_in("asking", "succeeded");

    scratch.config("");
    owd.owctl.ok(&["reload"]);
    until("it is given up", || stands(&owd).is_null().then_some(()));
    until("the connection ends", || (slack.connections() == 0).then_some(()));
    owd.stop();
}

#[test]
fn a_binding_that_changes_moves_notices_and_leaves_the_connection() {
    let slack = workspace();
    slack.channel("C2", "night", &["UADA", SLACK_BOT]);
    let scratch = asking();
    connect(&scratch, &slack, "", "slack = [\"C1\"]");
    let owd = scratch.start();
    slack.wait_for_connection();
    becomes(&owd, "connected");
    let hellos = slack.hellos();
    connect(&scratch, &slack, "reactions = true", "slack = [\"C2\"]\n[scheduler]\nworkers = 3");
    owd.signal(Signal::HUP);
    let waits = |status: Value| status["warnings"].to_string().contains("[scheduler] workers has changed");
    until("it is read again", || waits(owd.owctl.json(&["status"])).then_some(()));
    owd.owctl.ok(&["task", "run", "asking"]);
    let item = id(&owd.item());
    let fits = |message: &Value| message["text"].as_str().is_some_and(|text| text.contains(&item));
    let notice = slack.wait_for_message("C2", fits);
    assert!(slack.messages("C1").is_empty());
    slack.reacts("C2", "UADA", notice["ts"].as_str().expect("a ts"), "+1");
    owd.run_in("asking", "succeeded");
    assert_eq!(slack.hellos(), hellos, "the connection is the same");
}

#[test]
fn a_connection_that_is_lost_is_told_of_until_it_is_back() {
    let slack = workspace();
    let scratch = asking();
    connect(&scratch, &slack, "", "slack = [\"C1\"]");
    let owd = scratch.start();
    slack.wait_for_connection();
    becomes(&owd, "connected");
    slack.cuts();
    slack.wait_for_connection();
    let now = until("it is back, and the loss is told", || {
        Some(stands(&owd)).filter(|slack| slack["state"] == "connected" && slack["last_error"].is_string())
    });
    assert!(now["last_error_at"].is_string(), "{now}");
    let report = owd.owctl.run(&["doctor"]).stdout;
    let line = report.lines().find(|line| line.contains("slack-connection")).expect("a check");
    assert!(line.contains("connected to ") && line.contains("last error"), "{line}");
}

#[test]
fn what_waits_for_a_restart_is_named() {
    let scratch = asking();
    let owd = scratch.start();
    scratch.config("[listener]\naddress = \"127.0.0.1:1\"\n[scheduler]\nworkers = 3\n");
    let told = owd.owctl.ok(&["reload"]);
    for setting in ["[listener] address", "[scheduler] workers"] {
        assert!(told.contains(&format!("{setting} has changed since owd started, and is read only then")), "{told}");
    }
    assert!(told.contains("restart owd"), "{told}");
    let workers = owd.owctl.json(&["status"])["workers"].clone();
    assert_ne!(workers, 3, "so many there are not yet");
    scratch.config("");
    let told = owd.owctl.ok(&["reload"]);
    assert!(!told.contains("has changed since"), "{told}");
}
