//! What Slack tells the app, as far as owd cares: the payload of an envelope or of a signed request in, an event out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A message's place: its channel, and its time stamp there.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Place {
    pub channel: String,
    pub ts: String,
}

/// Something that a person did.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// Somebody wrote a message.
    Message(Written),
    /// Somebody reacted to a message.
    Reaction { user: String, at: Place, name: String },
    /// Somebody pressed a button.
    Press(Press),
    /// Somebody submitted a modal.
    Submit(Submit),
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Written {
    pub user: String,
    pub channel: String,
    pub ts: String,
    /// The first message of its thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// As Slack has it: escaped, with `<…>` for what is more than text.
    pub text: String,
    /// In the conversation of that person and the bot alone.
    #[serde(default)]
    pub direct: bool,
    /// Slack says that it mentions the bot.
    #[serde(default)]
    pub mention: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Press {
    pub user: String,
    pub channel: String,
    pub ts: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The button's value: `<item>/<choice>`.
    pub value: String,
    /// For a modal; good for three seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Submit {
    pub user: String,
    /// What the modal is for: `<item>/<choice>`.
    pub value: String,
    /// Where the button was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Place>,
    /// What was written or chosen, by the block's id; the choices of one block in their order.
    pub fields: BTreeMap<String, Vec<String>>,
}

/// What became of a payload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Parsed {
    /// Something to be stored and worked off: its key is the same whenever Slack sends it again.
    Event { key: String, event: Event },
    /// Nothing that concerns owd, and why.
    Nothing(&'static str),
}

/// Reads the payload of an event or an interaction. `bot` is the user id of the bot itself.
#[must_use]
pub fn parse(payload: &Value, bot: &str) -> Parsed {
    match payload["type"].as_str() {
        Some("event_callback") => event(payload, &payload["event"], bot),
        Some("block_actions") => press(payload),
        Some("view_submission") => submit(payload),
        _ => Parsed::Nothing("of no kind that is known"),
    }
}

fn event(outer: &Value, event: &Value, bot: &str) -> Parsed {
    let id = text(outer, "event_id");
    match event["type"].as_str() {
        Some(kind @ ("message" | "app_mention")) => message(event, kind == "app_mention", bot),
        Some("reaction_added") => {
            let user = text(event, "user");
            let item = &event["item"];
            if user == bot || item["type"] != "message" || id.is_empty() {
                return Parsed::Nothing("no reaction of a person to a message");
            }
            let at = Place { channel: text(item, "channel"), ts: text(item, "ts") };
            Parsed::Event {
                key: format!("event:{id}"),
                event: Event::Reaction { user, at, name: text(event, "reaction") },
            }
        }
        _ => Parsed::Nothing("of no kind that is known"),
    }
}

/// A message that a person wrote just now.
///
/// Its key is its place, not the event's id: a mention comes as two events, each with an id of its own.
fn message(event: &Value, mention: bool, bot: &str) -> Parsed {
    match event["subtype"].as_str() {
        None | Some("file_share" | "thread_broadcast" | "me_message") => {}
        Some("message_changed" | "message_deleted" | "message_replied") => {
            return Parsed::Nothing("a message that was changed or deleted says nothing new");
        }
        Some(_) => return Parsed::Nothing("no person wrote it"),
    }
    let is_app = ["bot_id", "bot_profile", "app_id"].iter().any(|key| !event[*key].is_null());
    let user = text(event, "user");
    if is_app || user.is_empty() || user == bot || user == "USLACKBOT" {
        return Parsed::Nothing("no person wrote it");
    }
    if event["hidden"] == true || !event["edited"].is_null() {
        return Parsed::Nothing("a message that was changed or deleted says nothing new");
    }
    let (channel, ts) = (text(event, "channel"), text(event, "ts"));
    if channel.is_empty() || ts.is_empty() {
        return Parsed::Nothing("it has no place");
    }
    let direct = event["channel_type"] == "im" || channel.starts_with('D');
    let thread = event["thread_ts"].as_str().filter(|thread| *thread != ts).map(str::to_owned);
    let words = text(event, "text");
    let mention = mention || mentions(&words, bot);
    let key = format!("message:{channel}:{ts}");
    Parsed::Event { key, event: Event::Message(Written { user, channel, ts, thread, text: words, direct, mention }) }
}

/// Whether a text holds `<@BOT>` or `<@BOT|name>`.
fn mentions(text: &str, bot: &str) -> bool {
    text.match_indices("<@").any(|(at, _)| {
        let id = text[at + 2..].split(['>', '|']).next();
        id == Some(bot)
    })
}

fn press(payload: &Value) -> Parsed {
    let user = text(&payload["user"], "id");
    let action = &payload["actions"][0];
    let value = match &action["selected_option"]["value"] {
        Value::String(chosen) => chosen.clone(),
        _ => text(action, "value"),
    };
    let container = &payload["container"];
    let channel = first([&payload["channel"]["id"], &container["channel_id"]]);
    let ts = first([&container["message_ts"], &payload["message"]["ts"]]);
    let trigger = payload["trigger_id"].as_str().map(str::to_owned);
    let Some(click) = trigger.clone().or_else(|| action["action_ts"].as_str().map(str::to_owned)) else {
        return Parsed::Nothing("a click without an id");
    };
    if user.is_empty() || value.is_empty() {
        return Parsed::Nothing("no button of a notice");
    }
    let thread = payload["message"]["thread_ts"].as_str().map(str::to_owned);
    let press = Press { user, channel, ts, thread, value, trigger };
    Parsed::Event { key: format!("click:{click}"), event: Event::Press(press) }
}

fn submit(payload: &Value) -> Parsed {
    let view = &payload["view"];
    let (user, id) = (text(&payload["user"], "id"), text(view, "id"));
    let value = text(view, "callback_id");
    if user.is_empty() || id.is_empty() || value.is_empty() {
        return Parsed::Nothing("no modal of owd's");
    }
    let from = view["private_metadata"].as_str().and_then(|text| serde_json::from_str(text).ok());
    let blocks = view["state"]["values"].as_object().into_iter().flatten();
    let fields = blocks
        .map(|(block, actions)| {
            let values = actions.as_object().into_iter().flat_map(serde_json::Map::values).flat_map(chosen).collect();
            (block.clone(), values)
        })
        .collect();
    let hash = text(view, "hash");
    Parsed::Event { key: format!("modal:{id}:{hash}"), event: Event::Submit(Submit { user, value, from, fields }) }
}

/// What stands in one element of a modal.
fn chosen(element: &Value) -> Vec<String> {
    let one = [&element["value"], &element["selected_option"]["value"]].into_iter().find_map(Value::as_str);
    let several = element["selected_options"].as_array().into_iter().flatten();
    one.into_iter().chain(several.filter_map(|option| option["value"].as_str())).map(str::to_owned).collect()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn first<const N: usize>(values: [&Value; N]) -> String {
    values.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(event: &Value) -> Parsed {
        parse(&json!({ "type": "event_callback", "event_id": "Ev1", "event": event }), "UBOT")
    }

    #[test]
    fn only_what_a_person_writes_now_is_a_message() {
        let plain = json!({ "type": "message", "user": "U1", "channel": "C1", "ts": "1.1", "text": "hi" });
        let with = |more: Value| {
            let mut event = plain.clone();
            event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            event
        };
        assert!(matches!(told(&plain), Parsed::Event { .. }));
        for more in [
            json!({ "subtype": "file_share" }),
            json!({ "subtype": "thread_broadcast", "thread_ts": "1.0" }),
            json!({ "channel_type": "im", "channel": "D1" }),
        ] {
            assert!(matches!(told(&with(more.clone())), Parsed::Event { .. }), "{more}");
        }
        for more in [
            json!({ "bot_id": "B1" }),
            json!({ "subtype": "bot_message", "user": null, "username": "x" }),
            json!({ "app_id": "A1" }),
            json!({ "user": "UBOT" }),
            json!({ "user": "USLACKBOT" }),
            json!({ "user": null }),
            json!({ "hidden": true }),
            json!({ "edited": { "user": "U1", "ts": "1.2" } }),
            json!({ "subtype": "message_changed" }),
            json!({ "subtype": "message_deleted" }),
            json!({ "subtype": "channel_join" }),
            json!({ "subtype": "reminder_add" }),
            json!({ "ts": null }),
            json!({ "type": "member_joined_channel" }),
        ] {
            assert!(matches!(told(&with(more.clone())), Parsed::Nothing(_)), "{more}");
        }
    }

    #[test]
    fn a_mention_that_comes_as_two_events_is_one_message() {
        let keys = ["message", "app_mention"].map(|kind| {
            let event = json!({ "type": kind, "user": "U1", "channel": "C1", "ts": "1.1", "text": "<@UBOT> go" });
            match told(&event) {
                Parsed::Event { key, event: Event::Message(written) } => {
                    assert!(written.mention);
                    key
                }
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(keys[0], keys[1]);
    }

    #[test]
    fn of_a_modal_each_field_is_read() {
        let payload = json!({
            "type": "view_submission", "user": { "id": "U1" },
            "view": {
                "id": "V1", "hash": "h", "callback_id": "abc/answer",
                "private_metadata": "{\"channel\":\"C1\",\"ts\":\"1.1\"}",
                "state": { "values": {
                    "q0": { "pick": { "type": "radio_buttons", "selected_option": { "value": "0" } } },
                    "q1": { "text": { "type": "plain_text_input", "value": "free" } },
                    "q2": { "pick": { "type": "checkboxes", "selected_options": [{ "value": "1" }, { "value": "2" }] } },
                    "q3": { "text": { "type": "plain_text_input", "value": null } },
                } },
            },
        });
        let Parsed::Event { event: Event::Submit(submit), .. } = parse(&payload, "UBOT") else { panic!("no modal") };
        assert_eq!(submit.from, Some(Place { channel: "C1".into(), ts: "1.1".into() }));
        let fields: Vec<(&str, usize)> =
            submit.fields.iter().map(|(name, values)| (name.as_str(), values.len())).collect();
        assert_eq!(fields, [("q0", 1), ("q1", 1), ("q2", 2), ("q3", 0)]);
    }
}
