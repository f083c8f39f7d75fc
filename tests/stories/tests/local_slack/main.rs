//! The local Slack of these stories, driven by Slack's own clients: what it says is what they take for Slack.
//!
//! Each is skipped, with a line that says so, where its packages are not there. They are looked for in the folder that
//! `OW_SLACK_CLIENTS` names, or else in `~/.cache/owd-slack`, and get there by `pip install --target DIR/py slack_sdk`
//! and `npm install --ignore-scripts --prefix DIR @slack/bolt`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ow_test_support::{SLACK_BOT, Slack, until};
use serde_json::json;

/// A client; it ends with its owner.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("OW_SLACK_CLIENTS").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/owd-slack")))
}

fn workspace() -> Slack {
    let slack = Slack::start();
    slack.user("UADA", "ada");
    slack.user("UEVE", "eve");
    slack.channel("C1", "general", &["UADA", "UEVE", SLACK_BOT]);
    slack.channel("C2", "elsewhere", &["UADA"]);
    slack
}

fn start(command: &mut Command, slack: &Slack) -> Client {
    let command = command.env("SLACK_URL", slack.url()).env("APP_TOKEN", slack.app_token());
    let command = command.env("BOT_TOKEN", slack.bot_token()).env("SIGNING_SECRET", slack.signing_secret());
    Client(command.stdin(Stdio::null()).spawn().expect("the client starts"))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/local_slack").join(name)
}

/// What both clients are made to do: answer a mention in its thread, open a modal on a click, take its submission.
fn conversation(slack: &Slack) {
    slack.wait_for_connection();
    let asked = slack.says("C1", "UADA", &format!("<@{SLACK_BOT}> hello"));
    let answer = slack.wait_for_message("C1", |message| message["thread_ts"] == asked.as_str());
    assert_eq!(answer["text"], "hello, <@UADA>", "{answer}");
    let ts = answer["ts"].as_str().expect("a ts").to_owned();
    slack.presses("C1", "UADA", &ts, "more");
    let view = until("a modal is open", || slack.views().into_iter().next());
    let id = view["id"].as_str().expect("an id");
    slack.submits("UADA", id, &json!({ "why": { "text": { "type": "plain_text_input", "value": "too early" } } }));
    until("the buttons are replaced", || {
        slack.message("C1", &ts).filter(|message| message["text"] == "denied: too early")
    });
    slack.wait_for_acknowledgements();
}

#[test]
fn the_official_python_client_takes_it_for_slack() {
    let Some(py) = folder().map(|folder| folder.join("py")).filter(|py| py.join("slack_sdk").is_dir()) else {
        println!("skipped: slack_sdk is not installed; the head of this file says how to have it");
        return;
    };
    let slack = workspace();
    let mut client = start(Command::new("python3").arg(script("sdk.py")).env("PYTHONPATH", py), &slack);
    conversation(&slack);
    // A refresh, and a socket that is cut: the client comes back by itself, and what was said meanwhile is told it.
    for weather in [|slack: &Slack| slack.disconnects("refresh_requested"), |slack: &Slack| slack.cuts()] {
        let before = slack.hellos();
        weather(&slack);
        let asked = slack.says("C1", "UADA", &format!("<@{SLACK_BOT}> hello"));
        let answer = slack.wait_for_message("C1", |message| message["thread_ts"] == asked.as_str());
        assert_eq!(answer["text"], "hello, <@UADA>");
        until("it has connected anew", || (slack.hellos() > before).then_some(()));
        slack.wait_for_acknowledgements();
    }
    // Last, what it makes of refusals; it ends with 0 if all came as it expects them from Slack.
    slack.says("C1", "UEVE", &format!("<@{SLACK_BOT}> check"));
    slack.limits("chat.postMessage", 1);
    let ended = until("the client has ended", || client.0.try_wait().expect("it can be waited for"));
    assert!(ended.success(), "{ended}");
}

#[test]
fn the_official_javascript_framework_takes_it_for_slack() {
    let found = folder().filter(|folder| folder.join("node_modules/@slack/bolt").is_dir());
    let Some(folder) = found else {
        println!("skipped: @slack/bolt is not installed; the head of this file says how to have it");
        return;
    };
    let slack = workspace();
    let mut command = Command::new("node");
    command.arg(script("bolt.mjs")).arg(&folder).arg("socket");
    let client = start(&mut command, &slack);
    conversation(&slack);
    slack.disconnects("refresh_requested");
    slack.closes_leaving();
    conversation(&slack);
    drop(client);

    // The same over HTTP, where it checks our signatures.
    let slack = workspace();
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let mut command = Command::new("node");
    command.arg(script("bolt.mjs")).arg(&folder).arg(port.to_string());
    let _client = start(&mut command, &slack);
    let url = format!("http://127.0.0.1:{port}/slack/events");
    until("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    let (status, challenge) = slack.verifies(&url);
    assert_eq!(status, 200, "{challenge}");
    slack.posts_to(&url, &url);
    let asked = slack.says("C1", "UADA", &format!("<@{SLACK_BOT}> hello"));
    let answer = slack.wait_for_message("C1", |message| message["thread_ts"] == asked.as_str());
    slack.presses("C1", "UADA", answer["ts"].as_str().expect("a ts"), "more");
    until("a modal is open", || slack.views().into_iter().next());
    slack.wait_for_acknowledgements();
}
