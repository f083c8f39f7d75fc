use serde::Serialize;
use serde_json::json;

use crate::{Client, Fault};

/// The scopes that the manifest asks for.
pub const SCOPES: [&str; 10] = [
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:write",
    "reactions:read",
    "users:read",
];

/// One thing that must be right between owd and Slack.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Hop {
    pub ok: bool,
    /// What was looked at, and how it stands.
    pub message: String,
    /// What to do where it is not right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Hop {
    fn ok(message: String) -> Self {
        Self { ok: true, message, remedy: None }
    }

    fn wrong(message: String, remedy: &str) -> Self {
        Self { ok: false, message, remedy: Some(remedy.to_owned()) }
    }

    fn of(what: &str, fault: &Fault) -> Self {
        let remedy = match fault {
            Fault::Later { .. } | Fault::Lost { .. } => "see whether this machine reaches slack.com, and try again",
            Fault::Never { .. } => "follow the section on Slack of the README once more",
        };
        Self::wrong(format!("{what}: {fault}"), remedy)
    }
}

/// Looks at each hop: the bot's token and its scopes, Socket Mode, and the places that are told. Changes nothing there.
/// `posts`: Slack may post to a listener of owd's instead.
pub async fn examine(client: &Client, told: &[String], posts: bool) -> Vec<Hop> {
    let mut hops = vec![];
    match client.me().await {
        Err(fault) => return vec![Hop::of("bot-token", &fault)],
        Ok(me) => {
            let missing: Vec<&str> = SCOPES.into_iter().filter(|scope| !me.scopes.contains(*scope)).collect();
            hops.push(if missing.is_empty() {
                Hop::ok(format!("the app is in {}, with what it needs", me.team_name))
            } else {
                let remedy = "add them under OAuth & Permissions, and install the app again";
                Hop::wrong(format!("the app lacks the scopes {}", missing.join(", ")), remedy)
            });
        }
    }
    if client.has_app_token() {
        hops.push(match client.can_open_socket().await {
            Ok(()) => Hop::ok("Socket Mode can be had".into()),
            Err(fault) => Hop::of("app-token", &fault),
        });
    } else if posts {
        hops.push(Hop::ok(
            "Slack posts to the listener; whether it reaches it is seen where its address is entered".into(),
        ));
    } else {
        let remedy = "set slack.app-token, so that answers can come in";
        hops.push(Hop::wrong("nothing comes in: there is no app-token".into(), remedy));
    }
    for place in told {
        hops.push(examine_place(client, place).await);
    }
    hops
}

async fn examine_place(client: &Client, place: &str) -> Hop {
    if place.starts_with(['U', 'W']) {
        return match client.call("users.info", &json!({ "user": place })).await {
            Ok(answer) if answer["user"]["deleted"] == true => {
                Hop::wrong(format!("{place} is no member any more"), "take it out of [inboxes]")
            }
            Ok(_) => Hop::ok(format!("{place} can be written to")),
            Err(fault) => Hop::of(place, &fault),
        };
    }
    match client.call("conversations.info", &json!({ "channel": place })).await {
        Ok(answer) if answer["channel"]["is_archived"] == true => {
            Hop::wrong(format!("the channel {place} is archived"), "name another one in [inboxes]")
        }
        Ok(answer) if answer["channel"]["is_member"] == true => {
            let name = answer["channel"]["name"].as_str().unwrap_or(place);
            Hop::ok(format!("the app is in #{name}"))
        }
        Ok(_) => Hop::wrong(format!("the app is not in the channel {place}"), "write there: /invite @owd"),
        Err(fault) => Hop::of(place, &fault),
    }
}
