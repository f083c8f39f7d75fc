//! What the scripted models say. A reply follows from the request alone, so that it is the same after a crash.

use ow_test_support::model_server::{ModelReply, ModelRequest};
use serde_json::{Value, json};

/// Which script a session follows, and the name that its effects are counted under.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Part {
    pub(crate) script: String,
    pub(crate) name: String,
}

/// What a task's goal, or the person's message, says for the script to be found.
pub(crate) fn goal(script: &str, name: &str) -> String {
    format!("script={script} name={name} end")
}

/// The effects that the world outside counts in a session of this script.
pub(crate) fn labels(script: &str) -> &'static [&'static str] {
    match script {
        "works" => &["one", "sent", "two"],
        "asks" => &["asked", "asked-too", "told"],
        "sleeps" => &["woken"],
        _ => &["chatted"],
    }
}

/// The last text of a session.
pub(crate) fn last_text(part: &Part) -> String {
    format!("All of {} is done.", part.name)
}

impl Part {
    /// The part that a request belongs to: of the newest message that names one, as those of a chat follow each other.
    pub(crate) fn of(body: &Value) -> Option<Self> {
        let said = body["messages"].as_array()?.iter().rev().find_map(|message| {
            let text = content(message);
            (message["role"] == "user" && text.contains("script=")).then_some(text)
        })?;
        let word = |key: &str| Some(said.split_once(key)?.1.split_whitespace().next()?.to_owned());
        Some(Self { script: word("script=")?, name: word("name=")? })
    }

    /// The session that it belongs to.
    pub(crate) fn session(&self) -> &str {
        self.name.split('-').next().unwrap_or_default()
    }
}

/// The text of a message, whatever form it has.
pub(crate) fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// The reply to a request: the script's next.
pub(crate) fn reply(request: &ModelRequest, work: &str, outside: &str) -> ModelReply {
    let body = request.json();
    let Some(part) = Part::of(&body) else { return ModelReply::text("Who asks?") };
    let messages = body["messages"].as_array().expect("it was judged");
    // A chat's turns follow each other in one history.
    let turn = messages.iter().rposition(|message| message["role"] == "user" && content(message).contains("script="));
    let said = messages[turn.unwrap_or_default()..].iter().filter(|message| message["role"] == "assistant").count();
    let name = part.name.as_str();
    let count =
        |shell: &str, label: &str| ("shell", json!({ "argv": [shell, format!("{work}/count.sh"), name, label] }));
    let send = |label: &str| {
        ("http_request", json!({ "method": "POST", "url": format!("{outside}/{name}/{label}"), "body": "x" }))
    };
    let note = format!("{work}/notes/{name}.md");
    let calls = match (part.script.as_str(), said) {
        ("works", 0) => vec![
            ("list_dir", json!({ "path": work })),
            ("read_file", json!({ "path": format!("{work}/seed.txt") })),
            ("search_files", json!({ "path": work, "text": "plum" })),
        ],
        ("works", 1) => vec![
            count("sh", "one"),
            ("write_file", json!({ "path": note, "content": format!("of {name}\n") })),
            ("read_file", json!({ "path": note })),
        ],
        ("works", 2) => vec![send("sent")],
        ("works", 3) => vec![count("sh", "two"), ("list_dir", json!({ "path": format!("{work}/notes") }))],
        ("asks", 0) => vec![
            count("bash", "asked"),
            ("read_file", json!({ "path": format!("{work}/seed.txt") })),
            count("bash", "asked-too"),
        ],
        ("asks", 1) => vec![("write_file", json!({ "path": note, "content": format!("of {name}\n") })), send("told")],
        ("sleeps", 0) => vec![("sleep_until", json!({ "when": "1s", "note": "go on" }))],
        ("sleeps", 1) => vec![count("sh", "woken")],
        ("talks", 0) => vec![("read_file", json!({ "path": format!("{work}/seed.txt") })), count("bash", "chatted")],
        _ => return ModelReply::text(last_text(&part)),
    };
    ModelReply::calls(calls)
}
