//! Tools by which tasks and agents use Slack.

use std::sync::Arc;

use async_trait::async_trait;
use ow_model::{Artifact, Call, CallError, CallErrorKind, CallResult};
use ow_policy::{Action, Authorized, Facts};
use ow_tool::{CallOf, DaemonTool, Place, Runner, Tool, ToolSpec, Toolbox};
use serde_json::{Map, Value, json};

use crate::text::plain;
use crate::{App, Client, Fault, markdown};

/// Bytes that a message may have.
const TEXT_LIMIT: usize = 64 * 1024;
/// Messages that are read when no number is given, and at most.
const MESSAGES: u64 = 20;
const MOST_MESSAGES: u64 = 100;
/// People that a search looks through and gives.
const PAGES: usize = 10;
const FOUND: usize = 20;

/// Adds the tools of Slack to the others.
pub fn register(toolbox: &mut Toolbox, app: &App) {
    for what in [What::Send, What::Read, What::People] {
        let spec = ToolSpec::own(what.name(), what.schema());
        let runs = Runs { app: app.clone(), what };
        toolbox.register(Arc::new(SlackTool { spec, what }), Runner::Daemon(Arc::new(runs)));
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    Send,
    Read,
    People,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Send => "slack_send",
            Self::Read => "slack_read",
            Self::People => "slack_people",
        }
    }

    fn schema(self) -> Value {
        let text = |what: &str| json!({ "type": "string", "description": what });
        let channel = "a channel's id (`C…`), or a member's (`U…`) for a direct message";
        let thread = "the ts of a thread's first message";
        let (required, properties) = match self {
            Self::Send => (
                json!(["channel", "text"]),
                json!({ "channel": text(channel), "text": text("Markdown"), "thread": text(thread) }),
            ),
            Self::Read => (
                json!(["channel"]),
                json!({
                    "channel": text("a channel's id (`C…`, `D…`)"),
                    "thread": text(thread),
                    "limit": {
                        "type": "integer", "minimum": 1, "maximum": MOST_MESSAGES,
                        "description": "how many messages, the newest; 20 where it is left out",
                    },
                }),
            ),
            Self::People => (json!(["query"]), json!({ "query": text("a part of the name, or of the address") })),
        };
        json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
    }
}

/// A tool as policy and `check` see it.
struct SlackTool {
    spec: ToolSpec,
    what: What,
}

impl Tool for SlackTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, args: &Value) -> Result<(), String> {
        Arguments::read(self.what, args).map(drop)
    }

    fn facts(&self, call: &Call, _place: &Place) -> Result<Facts, CallError> {
        match Arguments::read(self.what, &call.args) {
            Ok(_) => Ok(Facts { risk: self.spec.risk, action: Action::Plain }),
            Err(message) => Err(CallError { kind: CallErrorKind::BadArguments, message }),
        }
    }
}

/// The arguments, read.
enum Arguments<'a> {
    Send { channel: &'a str, text: &'a str, thread: Option<&'a str> },
    Read { channel: &'a str, thread: Option<&'a str>, limit: u64 },
    People { query: &'a str },
}

impl<'a> Arguments<'a> {
    fn read(what: What, args: &'a Value) -> Result<Self, String> {
        let name = what.name();
        let Value::Object(fields) = args else { return Err(format!("`{name}` takes a table of arguments")) };
        let known: &[&str] = match what {
            What::Send => &["channel", "text", "thread"],
            What::Read => &["channel", "thread", "limit"],
            What::People => &["query"],
        };
        if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!("`{name}` has no argument `{unknown}`; it takes {}", known.join(", ")));
        }
        Ok(match what {
            What::Send => Self::Send {
                channel: channel(fields)?,
                text: text(fields, "text")?.ok_or("`text` is missing: what is to be sent")?,
                thread: thread(fields)?,
            },
            What::Read => Self::Read { channel: channel(fields)?, thread: thread(fields)?, limit: limit(fields)? },
            What::People => {
                Self::People { query: text(fields, "query")?.ok_or("`query` is missing: a part of a name")? }
            }
        })
    }
}

fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Err(format!("`{key}` is empty")),
        Some(Value::String(text)) if text.len() <= TEXT_LIMIT => Ok(Some(text)),
        Some(Value::String(text)) => Err(format!("`{key}` has {} bytes; at most {TEXT_LIMIT} are sent", text.len())),
        Some(other) => Err(format!("`{key}` is {other}; write a text")),
    }
}

fn channel(fields: &Map<String, Value>) -> Result<&str, String> {
    let id = text(fields, "channel")?.ok_or("`channel` is missing: the id of a channel or of a member")?;
    let is_id = |rest: &str| {
        !rest.is_empty() && rest.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit())
    };
    if id.strip_prefix(['C', 'G', 'D', 'U', 'W']).is_some_and(is_id) {
        return Ok(id);
    }
    // A name may be another's tomorrow.
    Err(format!("`channel` is {id:?}; write an id, as `C0123456789`: at the end of a channel's details in Slack"))
}

fn thread(fields: &Map<String, Value>) -> Result<Option<&str>, String> {
    let Some(ts) = text(fields, "thread")? else { return Ok(None) };
    let is_ts = ts.split_once('.').is_some_and(|(seconds, rest)| {
        !seconds.is_empty() && !rest.is_empty() && (seconds.to_owned() + rest).bytes().all(|byte| byte.is_ascii_digit())
    });
    if is_ts { Ok(Some(ts)) } else { Err(format!("`thread` is {ts:?}; write a ts, as `1760000000.000100`")) }
}

fn limit(fields: &Map<String, Value>) -> Result<u64, String> {
    match fields.get("limit") {
        None | Some(Value::Null) => Ok(MESSAGES),
        Some(value) => value
            .as_u64()
            .filter(|limit| (1..=MOST_MESSAGES).contains(limit))
            .ok_or_else(|| format!("`limit` is {value}; write a number from 1 to {MOST_MESSAGES}")),
    }
}

/// Where the calls run: in owd, for the tokens stay there.
struct Runs {
    app: App,
    what: What,
}

#[async_trait]
impl DaemonTool for Runs {
    async fn run(&self, call: &Authorized<Call>, _of: &CallOf) -> CallResult {
        let arguments = match Arguments::read(self.what, &call.get().args) {
            Ok(arguments) => arguments,
            Err(why) => return CallResult::failed(CallErrorKind::BadArguments, why),
        };
        let Some(client) = self.app.client() else {
            let why = "owd has no Slack app that it can use now; `owctl doctor` says why";
            return CallResult::failed(CallErrorKind::Failed, why.to_owned());
        };
        let done = match arguments {
            Arguments::Send { channel, text, thread } => send(&client, channel, text, thread).await,
            Arguments::Read { channel, thread, limit } => read(&client, channel, thread, limit).await,
            Arguments::People { query } => people(&client, query).await,
        };
        done.unwrap_or_else(|fault| match fault {
            Fault::Lost { why } if self.what == What::Send => CallResult::failed(CallErrorKind::Lost, why),
            fault => CallResult::failed(CallErrorKind::Failed, fault.to_string()),
        })
    }
}

async fn send(client: &Client, channel: &str, text: &str, thread: Option<&str>) -> Result<CallResult, Fault> {
    let (mut sent, mut artifacts) = (vec![], vec![]);
    for (text, blocks) in markdown::messages(text) {
        let args = json!({
            "channel": channel, "thread_ts": thread, "text": text, "blocks": blocks,
            "unfurl_links": false, "unfurl_media": false,
        });
        match client.call("chat.postMessage", &args).await {
            Ok(answer) => {
                let id = format!(
                    "{}/{}",
                    answer["channel"].as_str().unwrap_or(channel),
                    answer["ts"].as_str().unwrap_or_default()
                );
                sent.push(json!({ "channel": answer["channel"], "ts": answer["ts"] }));
                artifacts.push(Artifact::Message { to: format!("slack:{channel}"), id });
            }
            Err(fault) if sent.is_empty() => return Err(fault),
            Err(Fault::Lost { why }) => {
                let why = format!("the beginning was sent, in {} messages; then: {why}", sent.len());
                return Err(Fault::Lost { why });
            }
            // What was sent stays sent.
            Err(fault) => {
                let failed = CallResult::failed(
                    CallErrorKind::Failed,
                    format!("the beginning was sent, in {} messages; then: {fault}", sent.len()),
                );
                return Ok(CallResult { artifacts, ..failed });
            }
        }
    }
    Ok(CallResult { artifacts, ..CallResult::ok(json!({ "messages": sent })) })
}

async fn read(client: &Client, channel: &str, thread: Option<&str>, limit: u64) -> Result<CallResult, Fault> {
    let answer = match thread {
        Some(thread) => {
            let args = json!({ "channel": channel, "ts": thread, "limit": limit });
            client.call("conversations.replies", &args).await?
        }
        None => client.call("conversations.history", &json!({ "channel": channel, "limit": limit })).await?,
    };
    let mut messages: Vec<Value> = answer["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| {
            json!({
                "ts": message["ts"], "user": message["user"], "thread": message["thread_ts"],
                "text": plain(message["text"].as_str().unwrap_or_default(), ""),
                "replies": message["reply_count"],
            })
        })
        .collect();
    if thread.is_none() {
        // Slack gives the newest first; a conversation is read from its beginning.
        messages.reverse();
    }
    let output = json!({ "messages": messages, "more": answer["has_more"] == true });
    Ok(CallResult { outside: true, ..CallResult::ok(output) })
}

async fn people(client: &Client, query: &str) -> Result<CallResult, Fault> {
    let query = query.trim().to_lowercase();
    let (mut found, mut cursor) = (vec![], String::new());
    for _ in 0..PAGES {
        let args = json!({ "limit": 200, "cursor": cursor });
        let answer = client.call("users.list", &args).await?;
        for member in answer["members"].as_array().into_iter().flatten() {
            let profile = &member["profile"];
            let names = [&member["name"], &member["real_name"], &profile["display_name"], &profile["email"]];
            let fits = names.into_iter().filter_map(Value::as_str).any(|name| name.to_lowercase().contains(&query));
            if fits && member["deleted"] != true {
                found.push(json!({
                    "id": member["id"], "name": member["name"], "real_name": member["real_name"],
                    "email": profile["email"], "is_bot": member["is_bot"],
                }));
            }
        }
        answer["response_metadata"]["next_cursor"].as_str().unwrap_or_default().clone_into(&mut cursor);
        if cursor.is_empty() || found.len() >= FOUND {
            break;
        }
    }
    let more = found.len() > FOUND || !cursor.is_empty();
    found.truncate(FOUND);
    Ok(CallResult { outside: true, ..CallResult::ok(json!({ "people": found, "more": more })) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_named_with_what_would_be_right() {
        let fault = |what: What, args: &Value| Arguments::read(what, args).err().unwrap_or_default();
        for (what, args, words) in [
            (What::Send, json!("hi"), "takes a table"),
            (What::Send, json!({ "channel": "C0123456789" }), "`text` is missing"),
            (What::Send, json!({ "channel": "#general", "text": "hi" }), "write an id"),
            (What::Send, json!({ "channel": "C01", "text": "hi", "to": 1 }), "no argument `to`"),
            (What::Send, json!({ "channel": "C01", "text": "hi", "thread": "first" }), "write a ts"),
            (What::Read, json!({ "channel": "C01", "limit": 1000 }), "a number from 1 to 100"),
            (What::People, json!({ "query": " " }), "`query` is empty"),
        ] {
            let told = fault(what, &args);
            assert!(told.contains(words), "{args}: {told}");
        }
        assert!(Arguments::read(What::Read, &json!({ "channel": "C01", "thread": "1760000000.000100" })).is_ok());
    }
}
