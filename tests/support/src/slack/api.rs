//! The methods of the Web API that owd and the tests use.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::blocks::{self, Surface};
use super::{APP, BOT_ID, SLACK_BOT, State, TEAM};
use crate::monotonic;

/// Beyond this a message's text is cut.
const LONGEST_TEXT: usize = 40_000;
/// Beyond this an update is refused.
const LONGEST_UPDATE: usize = 4_000;
const PAGE: usize = 100;

type Refusal = Value;

fn refuse<T>(error: &str) -> Result<T, Refusal> {
    Err(json!({ "ok": false, "error": error }))
}

pub(super) fn answer(state: &mut State, method: &str, args: &Value, token: &str, address: SocketAddr) -> Value {
    let done = entitled(state, method, token).and_then(|()| perform(state, method, args, address));
    match done {
        Ok(mut answer) => {
            answer["ok"] = json!(true);
            answer
        }
        Err(refusal) => refusal,
    }
}

/// What a method needs: which token, and one of which scopes.
fn needs(method: &str) -> Option<&'static [&'static str]> {
    Some(match method {
        "auth.test" | "apps.connections.open" | "views.open" | "views.update" => &[],
        "chat.postMessage" | "chat.postEphemeral" | "chat.update" | "chat.delete" => &["chat:write"],
        "conversations.open" => &["im:write"],
        "conversations.history" | "conversations.replies" => {
            &["channels:history", "groups:history", "im:history", "mpim:history"]
        }
        "conversations.info" | "conversations.list" | "conversations.members" => {
            &["channels:read", "groups:read", "im:read", "mpim:read"]
        }
        "users.list" | "users.info" => &["users:read"],
        "users.lookupByEmail" => &["users:read.email"],
        "reactions.add" | "reactions.remove" => &["reactions:write"],
        "reactions.get" => &["reactions:read"],
        _ => return None,
    })
}

fn entitled(state: &State, method: &str, token: &str) -> Result<(), Refusal> {
    let Some(scopes) = needs(method) else { return refuse("unknown_method") };
    let is_app = token.starts_with("xapp-");
    match token {
        "" => return refuse("not_authed"),
        "xapp-1-A0APP-1-local" | "xoxb-1-local" => {}
        _ => return refuse("invalid_auth"),
    }
    if is_app != (method == "apps.connections.open") && method != "auth.test" {
        return refuse("not_allowed_token_type");
    }
    if scopes.is_empty() || scopes.iter().any(|scope| state.scopes.contains(*scope)) {
        return Ok(());
    }
    let provided = state.scopes.iter().cloned().collect::<Vec<_>>().join(",");
    Err(json!({ "ok": false, "error": "missing_scope", "needed": scopes.join(","), "provided": provided }))
}

fn perform(state: &mut State, method: &str, args: &Value, address: SocketAddr) -> Result<Value, Refusal> {
    match method {
        "auth.test" => Ok(json!({
            "url": "https://local.slack.com/", "team": "Local", "user": "owd", "team_id": TEAM, "user_id": SLACK_BOT,
            "bot_id": BOT_ID, "is_enterprise_install": false,
        })),
        "apps.connections.open" => {
            if state.is_shut {
                return refuse("internal_error");
            }
            let ticket = state.ticket();
            Ok(json!({ "url": format!("ws://{address}/link/?ticket={ticket}&app_id={APP}") }))
        }
        "chat.postMessage" => post_message(state, args),
        "chat.postEphemeral" => post_ephemeral(state, args),
        "chat.update" => update(state, args),
        "chat.delete" => {
            let (channel, ts) = (member_channel(state, args)?, text(args, "ts"));
            own(state, &channel, &ts, "cant_delete_message")?;
            if let Some(found) = state.channels.get_mut(&channel) {
                found.messages.retain(|message| message["ts"] != ts.as_str());
            }
            Ok(json!({ "channel": channel, "ts": ts }))
        }
        "conversations.open" => {
            let users = text(args, "users");
            if !state.users.contains_key(&users) {
                return refuse("user_not_found");
            }
            Ok(json!({ "channel": { "id": state.open_direct(&users) } }))
        }
        "conversations.history" => history(state, args),
        "conversations.replies" => replies(state, args),
        "conversations.info" => {
            let id = text(args, "channel");
            let Some(channel) = state.channels.get(&id) else { return refuse("channel_not_found") };
            Ok(json!({ "channel": channel_json(&id, channel) }))
        }
        "conversations.list" => {
            let all: Vec<Value> =
                state.channels.iter().filter(|(_, one)| !one.is_im).map(|(id, one)| channel_json(id, one)).collect();
            Ok(paged("channels", &all, args, PAGE))
        }
        "conversations.members" => {
            let Some(channel) = state.channels.get(&text(args, "channel")) else { return refuse("channel_not_found") };
            let members: Vec<Value> = channel.members.iter().map(|id| json!(id)).collect();
            Ok(paged("members", &members, args, PAGE))
        }
        "users.list" => {
            let with_email = state.scopes.contains("users:read.email");
            let all: Vec<Value> = state.users.iter().map(|(id, user)| user.json(id, with_email)).collect();
            Ok(paged("members", &all, args, PAGE))
        }
        "users.info" => {
            let id = text(args, "user");
            let Some(user) = state.users.get(&id) else { return refuse("user_not_found") };
            Ok(json!({ "user": user.json(&id, state.scopes.contains("users:read.email")) }))
        }
        "users.lookupByEmail" => {
            let email = text(args, "email");
            let found = state.users.iter().find(|(_, user)| user.email == email && !user.is_bot);
            let Some((id, user)) = found else { return refuse("users_not_found") };
            Ok(json!({ "user": user.json(id, true) }))
        }
        "views.open" => open_view(state, args),
        "reactions.add" => react(state, args),
        "reactions.remove" => unreact(state, args),
        "reactions.get" => {
            let (channel, ts) = (text(args, "channel"), text(args, "timestamp"));
            let Some(message) = state.find(&channel, &ts) else { return refuse("message_not_found") };
            Ok(json!({ "type": "message", "channel": channel, "message": message.clone() }))
        }
        _ => refuse("unknown_method"),
    }
}

fn text(args: &Value, key: &str) -> String {
    match &args[key] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A channel that the bot may write in; a user's id stands for the direct conversation with them.
fn member_channel(state: &mut State, args: &Value) -> Result<String, Refusal> {
    let mut id = text(args, "channel");
    if state.users.contains_key(&id) && id != SLACK_BOT {
        id = state.open_direct(&id);
    }
    match state.channels.get(&id) {
        None => refuse("channel_not_found"),
        Some(channel) if !channel.members.contains(SLACK_BOT) => refuse("not_in_channel"),
        Some(_) => Ok(id),
    }
}

/// Text and blocks of a message.
fn content(args: &Value, most: usize) -> Result<(String, Value), Refusal> {
    let mut words = text(args, "text");
    let given = &args["blocks"];
    if words.is_empty() && given.as_array().is_none_or(Vec::is_empty) {
        return refuse("no_text");
    }
    if !given.is_null()
        && let Err(wrong) = blocks::check(given, Surface::Message)
    {
        return Err(
            json!({ "ok": false, "error": "invalid_blocks", "response_metadata": { "messages": [wrong.clone()] }, "errors": [wrong] }),
        );
    }
    if words.chars().count() > most {
        if most == LONGEST_UPDATE {
            return refuse("msg_too_long");
        }
        words = words.chars().take(most).collect();
    }
    Ok((words, given.clone()))
}

fn message(state: &mut State, words: &str, given: &Value) -> Value {
    let ts = state.next_ts();
    let mut message = json!({
        "type": "message", "user": SLACK_BOT, "bot_id": BOT_ID, "app_id": APP, "team": TEAM, "ts": ts, "text": words,
        "bot_profile": { "id": BOT_ID, "name": "owd", "app_id": APP, "team_id": TEAM },
    });
    if !given.is_null() {
        message["blocks"] = given.clone();
    }
    message
}

fn post_message(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let channel = member_channel(state, args)?;
    let (words, given) = content(args, LONGEST_TEXT)?;
    let thread = text(args, "thread_ts");
    let mut message = message(state, &words, &given);
    if !thread.is_empty() {
        // Slack takes a thread that it does not know, and posts to the channel's own.
        let parent =
            state.find(&channel, &thread).map(|parent| parent["thread_ts"].as_str().unwrap_or(&thread).to_owned());
        message["thread_ts"] = json!(parent.unwrap_or(thread));
    }
    if args["metadata"].is_object() {
        message["metadata"] = args["metadata"].clone();
    }
    let ts = message["ts"].clone();
    state.post(&channel, message.clone());
    Ok(json!({ "channel": channel, "ts": ts, "message": message }))
}

fn post_ephemeral(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let channel = member_channel(state, args)?;
    let user = text(args, "user");
    let (words, given) = content(args, LONGEST_TEXT)?;
    let Some(found) = state.channels.get(&channel) else { return refuse("channel_not_found") };
    if !found.members.contains(&user) {
        return refuse("user_not_in_channel");
    }
    let mut message = message(state, &words, &given);
    message["thread_ts"] = args["thread_ts"].clone();
    let ts = message["ts"].clone();
    if let Some(found) = state.channels.get_mut(&channel) {
        found.ephemeral.push((user, message));
    }
    Ok(json!({ "message_ts": ts }))
}

/// A message that the bot wrote.
fn own(state: &mut State, channel: &str, ts: &str, refusal: &str) -> Result<(), Refusal> {
    match state.find(channel, ts) {
        None => refuse("message_not_found"),
        Some(message) if message["user"] != SLACK_BOT => refuse(refusal),
        Some(_) => Ok(()),
    }
}

fn update(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let (channel, ts) = (member_channel(state, args)?, text(args, "ts"));
    own(state, &channel, &ts, "cant_update_message")?;
    let (words, given) = content(args, LONGEST_UPDATE)?;
    let edited = state.next_ts();
    let Some(message) = state.find(&channel, &ts) else { return refuse("message_not_found") };
    message["text"] = json!(words);
    // Text alone takes the blocks away.
    message["blocks"] = if given.is_null() { json!([]) } else { given };
    message["edited"] = json!({ "user": BOT_ID, "ts": edited });
    let message = message.clone();
    Ok(json!({ "channel": channel, "ts": ts, "text": words, "message": message }))
}

/// Messages, newest first, of a channel that the bot is in.
fn history(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let channel = member_channel(state, args)?;
    let oldest: f64 = text(args, "oldest").parse().unwrap_or(0.0);
    let latest: f64 = text(args, "latest").parse().unwrap_or(f64::MAX);
    let messages = state.channels.get(&channel).map(|channel| channel.messages.clone()).unwrap_or_default();
    let shown: Vec<Value> = messages
        .into_iter()
        .rev()
        .filter(|message| message["thread_ts"].is_null() || message["thread_ts"] == message["ts"])
        .filter(|message| {
            let ts: f64 = message["ts"].as_str().and_then(|ts| ts.parse().ok()).unwrap_or(0.0);
            ts > oldest && ts < latest
        })
        .collect();
    Ok(paged("messages", &with_metadata(shown, args), args, PAGE))
}

/// What an app noted with its messages is shown to who asks for it.
fn with_metadata(mut messages: Vec<Value>, args: &Value) -> Vec<Value> {
    if text(args, "include_all_metadata") != "true" {
        for message in messages.iter_mut().filter_map(Value::as_object_mut) {
            message.remove("metadata");
        }
    }
    messages
}

fn replies(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let (channel, thread) = (member_channel(state, args)?, text(args, "ts"));
    let messages = state.channels.get(&channel).map(|channel| channel.messages.clone()).unwrap_or_default();
    let shown: Vec<Value> = messages
        .into_iter()
        .filter(|message| message["ts"] == thread.as_str() || message["thread_ts"] == thread.as_str())
        .collect();
    if shown.is_empty() {
        return refuse("thread_not_found");
    }
    Ok(paged("messages", &with_metadata(shown, args), args, PAGE))
}

/// One page of a list; the cursor is the place of the next.
fn paged(name: &str, all: &[Value], args: &Value, most: usize) -> Value {
    let limit = text(args, "limit").parse().unwrap_or(most).clamp(1, 1000);
    let from: usize = text(args, "cursor").parse().unwrap_or(0);
    let rows: Vec<&Value> = all.iter().skip(from).take(limit).collect();
    let next = if from + rows.len() < all.len() { (from + rows.len()).to_string() } else { String::new() };
    let has_more = !next.is_empty();
    json!({ name: rows, "has_more": has_more, "response_metadata": { "next_cursor": next } })
}

fn channel_json(id: &str, channel: &super::Channel) -> Value {
    json!({
        "id": id, "name": channel.name, "is_channel": !channel.is_im, "is_im": channel.is_im,
        "is_private": channel.is_private, "is_archived": false, "is_member": channel.members.contains(SLACK_BOT),
        "num_members": channel.members.len(),
    })
}

fn open_view(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let life = state.trigger_life;
    match state.triggers.get_mut(&text(args, "trigger_id")) {
        None => return refuse("invalid_trigger_id"),
        Some(trigger) if trigger.used => return refuse("exchanged_trigger_id"),
        Some(trigger) if monotonic().saturating_sub(trigger.at) > life => return refuse("expired_trigger_id"),
        Some(trigger) => trigger.used = true,
    }
    if let Err(wrong) = blocks::check_view(&args["view"]) {
        return Err(json!({ "ok": false, "error": "invalid_arguments", "response_metadata": { "messages": [wrong] } }));
    }
    let id = format!("V{:08X}", state.next());
    let mut view = args["view"].clone();
    for (key, value) in [("id", json!(id)), ("team_id", json!(TEAM)), ("app_id", json!(APP)), ("bot_id", json!(BOT_ID))]
    {
        view[key] = value;
    }
    view["hash"] = json!(format!("{}.local", state.next()));
    view["state"] = json!({ "values": {} });
    state.views.insert(id, view.clone());
    Ok(json!({ "view": view }))
}

fn react(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let (channel, ts, name) = (text(args, "channel"), text(args, "timestamp"), text(args, "name"));
    let Some(message) = state.find(&channel, &ts) else { return refuse("message_not_found") };
    let mut reactions = message["reactions"].as_array().cloned().unwrap_or_default();
    if reactions.iter().any(|reaction| reaction["name"] == name.as_str()) {
        return refuse("already_reacted");
    }
    reactions.push(json!({ "name": name, "users": [SLACK_BOT], "count": 1 }));
    message["reactions"] = Value::Array(reactions);
    Ok(json!({}))
}

fn unreact(state: &mut State, args: &Value) -> Result<Value, Refusal> {
    let (channel, ts, name) = (text(args, "channel"), text(args, "timestamp"), text(args, "name"));
    let Some(message) = state.find(&channel, &ts) else { return refuse("message_not_found") };
    let mut reactions = message["reactions"].as_array().cloned().unwrap_or_default();
    let before = reactions.len();
    reactions.retain(|reaction| reaction["name"] != name.as_str());
    if reactions.len() == before {
        return refuse("no_reaction");
    }
    message["reactions"] = Value::Array(reactions);
    Ok(json!({}))
}
