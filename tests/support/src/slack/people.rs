//! What people do in the workspace, and the events that tell the app of it.

use serde_json::{Value, json};

use super::{APP, SLACK_BOT, Slack, State, TEAM};

impl Slack {
    /// A person writes in a channel; the message's ts.
    #[expect(clippy::must_use_candidate, reason = "often it is only done")]
    pub fn says(&self, channel: &str, user: &str, text: &str) -> String {
        self.write(channel, user, text, None)
    }

    /// A person writes in the thread of a message; the message's ts.
    #[expect(clippy::must_use_candidate, reason = "often it is only done")]
    pub fn replies(&self, channel: &str, user: &str, thread: &str, text: &str) -> String {
        self.write(channel, user, text, Some(thread))
    }

    /// A person writes to the bot directly; channel and ts.
    #[expect(clippy::must_use_candidate, reason = "often it is only done")]
    pub fn writes_to_bot(&self, user: &str, text: &str) -> (String, String) {
        let channel = self.state().open_direct(user);
        let ts = self.says(&channel, user, text);
        (channel, ts)
    }

    /// The app posts a message, as by one of its tools; its ts.
    #[must_use]
    pub fn bot_says(&self, channel: &str, text: &str) -> String {
        let mut state = self.state();
        let ts = state.next_ts();
        state.post(channel, json!({ "type": "message", "user": SLACK_BOT, "text": text, "ts": ts, "team": TEAM }));
        drop(state);
        self.shared.changed.notify_all();
        ts
    }

    fn write(&self, channel: &str, user: &str, text: &str, thread: Option<&str>) -> String {
        let mut state = self.state();
        let ts = state.next_ts();
        let mut message = json!({
            "type": "message", "user": user, "text": text, "ts": ts, "team": TEAM,
            "client_msg_id": format!("client-{ts}"),
            "blocks": [{ "type": "rich_text", "block_id": "b", "elements": [
                { "type": "rich_text_section", "elements": [{ "type": "text", "text": text }] }
            ] }],
        });
        if let Some(thread) = thread {
            message["thread_ts"] = json!(thread);
        }
        state.post(channel, message);
        drop(state);
        self.shared.changed.notify_all();
        ts
    }

    /// A person changes a message.
    ///
    /// # Panics
    ///
    /// When there is no such message.
    pub fn edits(&self, channel: &str, ts: &str, text: &str) {
        let mut state = self.state();
        let edited = state.next_ts();
        let message = state.find(channel, ts).expect("a message");
        let before = message.clone();
        message["text"] = json!(text);
        message["edited"] = json!({ "user": before["user"], "ts": edited });
        let event = json!({
            "type": "message", "subtype": "message_changed", "hidden": true, "channel": channel, "ts": edited,
            "event_ts": edited, "channel_type": "channel", "message": message.clone(), "previous_message": before,
        });
        state.tell(channel, &event);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// A person deletes a message.
    ///
    /// # Panics
    ///
    /// When there is no such message.
    pub fn deletes(&self, channel: &str, ts: &str) {
        let mut state = self.state();
        let at = state.next_ts();
        let before = state.find(channel, ts).expect("a message").clone();
        if let Some(channel) = state.channels.get_mut(channel) {
            channel.messages.retain(|message| message["ts"] != ts);
        }
        let event = json!({
            "type": "message", "subtype": "message_deleted", "hidden": true, "channel": channel, "ts": at,
            "event_ts": at, "deleted_ts": ts, "channel_type": "channel", "previous_message": before,
        });
        state.tell(channel, &event);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// A person reacts to a message.
    ///
    /// # Panics
    ///
    /// When there is no such message.
    pub fn reacts(&self, channel: &str, user: &str, ts: &str, name: &str) {
        let mut state = self.state();
        let at = state.next_ts();
        let author = state.find(channel, ts).expect("a message")["user"].clone();
        let event = json!({
            "type": "reaction_added", "user": user, "reaction": name, "item_user": author,
            "item": { "type": "message", "channel": channel, "ts": ts }, "event_ts": at,
        });
        state.tell(channel, &event);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// A person presses the button with this `action_id` of a message.
    ///
    /// # Panics
    ///
    /// When the message shows no such button now.
    pub fn presses(&self, channel: &str, user: &str, ts: &str, action_id: &str) {
        let message = self.message(channel, ts).expect("a message");
        self.presses_old(channel, user, &message, action_id);
    }

    /// The same click as a client sends it that still shows the message as it was.
    ///
    /// # Panics
    ///
    /// When that message had no such button.
    pub fn presses_old(&self, channel: &str, user: &str, message: &Value, action_id: &str) {
        let found = element(&message["blocks"], action_id);
        let (block, button) = found.unwrap_or_else(|| panic!("no button `{action_id}` in {message}"));
        self.clicks(channel, user, message, &block, &button);
    }

    fn clicks(&self, channel: &str, user: &str, message: &Value, block: &str, button: &Value) {
        let mut state = self.state();
        let at = state.next_ts();
        let trigger = state.trigger();
        let mut action = button.clone();
        action["block_id"] = json!(block);
        action["action_ts"] = json!(at);
        if button["type"] == "static_select" {
            action["selected_option"] = button["options"][0].clone();
        }
        let payload = json!({
            "type": "block_actions", "api_app_id": APP, "token": "x", "trigger_id": trigger,
            "team": { "id": TEAM, "domain": "local" }, "enterprise": null, "is_enterprise_install": false,
            "user": state.person(user),
            "container": {
                "type": "message", "message_ts": message["ts"], "channel_id": channel, "is_ephemeral": false,
            },
            "channel": { "id": channel, "name": state.channels.get(channel).map_or("", |channel| &channel.name) },
            "message": message, "state": { "values": {} },
            "response_url": "https://hooks.slack.com/actions/local", "actions": [action],
        });
        state.queue("interactive", payload);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// A person submits a modal, with `{block: {action: value}}` as its state.
    ///
    /// # Panics
    ///
    /// When there is no such modal.
    pub fn submits(&self, user: &str, view: &str, values: &Value) {
        let mut state = self.state();
        let mut shown = state.views.remove(view).expect("the modal is open");
        shown["state"] = json!({ "values": values });
        let trigger = state.trigger();
        let payload = json!({
            "type": "view_submission", "api_app_id": APP, "token": "x", "trigger_id": trigger,
            "team": { "id": TEAM, "domain": "local" }, "enterprise": null, "is_enterprise_install": false,
            "user": state.person(user), "view": shown, "response_urls": [],
        });
        state.queue("interactive", payload);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// An event as it is, in the envelope of an event of its own unless `event_id` is given.
    pub fn sends(&self, event: &Value, event_id: Option<&str>) {
        let mut state = self.state();
        let wrapped = state.wrap(event, event_id);
        state.queue("events_api", wrapped);
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl State {
    pub(super) fn find(&mut self, channel: &str, ts: &str) -> Option<&mut Value> {
        let messages = &mut self.channels.get_mut(channel)?.messages;
        messages.iter_mut().find(|message| message["ts"] == ts)
    }

    /// Puts a message into a channel and tells the app of it.
    pub(super) fn post(&mut self, channel: &str, message: Value) {
        let Some(found) = self.channels.get_mut(channel) else { return };
        let kind = found.kind();
        let mentions = message["text"].as_str().is_some_and(|text| text.contains(&format!("<@{SLACK_BOT}>")));
        let mut event = message.clone();
        found.messages.push(message);
        event["channel"] = json!(channel);
        event["event_ts"] = event["ts"].clone();
        let is_own = event["bot_id"].is_string();
        if mentions && kind != "im" && !is_own {
            let mut mention = event.clone();
            mention["type"] = json!("app_mention");
            self.tell(channel, &mention);
        }
        event["channel_type"] = json!(kind);
        self.tell(channel, &event);
    }

    /// Tells the app of an event in a channel that its bot is in.
    fn tell(&mut self, channel: &str, event: &Value) {
        if self.channels.get(channel).is_some_and(|channel| channel.members.contains(SLACK_BOT)) {
            let wrapped = self.wrap(event, None);
            self.queue("events_api", wrapped);
        }
    }

    fn wrap(&mut self, event: &Value, id: Option<&str>) -> Value {
        let id = id.map_or_else(|| format!("Ev{:08X}", self.next()), str::to_owned);
        json!({
            "token": "x", "team_id": TEAM, "api_app_id": APP, "event": event, "type": "event_callback",
            "event_id": id, "event_time": super::signing::wall_clock(), "is_ext_shared_channel": false,
            "authorizations": [{
                "enterprise_id": null, "team_id": TEAM, "user_id": SLACK_BOT, "is_bot": true, "is_enterprise_install": false,
            }],
            "event_context": "4-local",
        })
    }

    fn person(&self, id: &str) -> Value {
        let name = self.users.get(id).map_or(id, |user| user.name.as_str());
        json!({ "id": id, "username": name, "name": name, "team_id": TEAM })
    }
}

impl super::Channel {
    fn kind(&self) -> &'static str {
        match (self.is_im, self.is_private) {
            (true, _) => "im",
            (false, true) => "group",
            (false, false) => "channel",
        }
    }
}

/// An interactive element with this `action_id`, and its block's id.
fn element(blocks: &Value, action_id: &str) -> Option<(String, Value)> {
    blocks.as_array()?.iter().find_map(|block| {
        let elements = block["elements"].as_array().cloned().unwrap_or_default();
        let all = elements.into_iter().chain([block["accessory"].clone(), block["element"].clone()]);
        let found = all.into_iter().find(|element| element["action_id"] == action_id)?;
        Some((block["block_id"].as_str().unwrap_or("b1").to_owned(), found))
    })
}
