//! A Slack workspace on loopback, with one app installed: the Web API, Socket Mode, and signed requests over HTTP, as
//! Slack publishes them.
//!
//! A test is the people of the workspace ([`Slack::says`], [`Slack::presses`], …) and its weather ([`Slack::limits`],
//! [`Slack::disconnects`], [`Slack::cuts`]). What the app does is in the channels afterwards, and each of its calls is on
//! record. What Slack refuses is refused here with the same words: tokens, scopes, lengths, blocks, old triggers.

mod api;
mod blocks;
mod http;
mod people;
mod signing;
mod socket;
mod websocket;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::until;

/// The user id of the app's bot.
pub const SLACK_BOT: &str = "U0BOT";
const BOT_ID: &str = "B0BOT";
const APP: &str = "A0APP";
const TEAM: &str = "T0LOCAL";
const STACK: usize = 256 * 1024;

/// All scopes that the app may ask for here.
const SCOPES: [&str; 16] = [
    "app_mentions:read",
    "channels:history",
    "channels:read",
    "chat:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:read",
    "reactions:write",
    "users:read",
    "users:read.email",
    "users.profile:read",
];

/// The workspace. It ends when it is dropped, with all its connections.
#[derive(Debug)]
pub struct Slack {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// One call of the Web API, as it came, and how it was answered.
#[derive(Clone, Debug)]
pub struct SlackCall {
    pub method: String,
    /// The arguments, whichever way they were encoded; what JSON holds as text in a form is read as JSON.
    pub args: Value,
    pub status: u16,
    pub answer: Value,
    /// Monotonic.
    pub at: Duration,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something was queued, acknowledged, or connected.
    changed: Condvar,
    stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    scopes: BTreeSet<String>,
    users: BTreeMap<String, User>,
    channels: BTreeMap<String, Channel>,
    views: BTreeMap<String, Value>,
    triggers: BTreeMap<String, Trigger>,
    calls: Vec<SlackCall>,
    /// What a method answers next instead of doing anything.
    faults: VecDeque<(String, Fault)>,
    connections: Vec<socket::Connection>,
    tickets: BTreeSet<String>,
    queue: Vec<socket::Envelope>,
    /// Where events go over HTTP; none: Socket Mode.
    request_urls: Option<(String, String)>,
    responses: Vec<Value>,
    /// Unacknowledged for so long, an event is sent again.
    patience: Duration,
    trigger_life: Duration,
    streams: Vec<TcpStream>,
    counter: u64,
    hellos: usize,
    is_shut: bool,
}

#[derive(Clone, Debug)]
enum Fault {
    Limited {
        retry_after: u64,
    },
    Error {
        error: String,
    },
    Status(u16),
    /// The message is posted, and the connection ends before the answer.
    Lost,
    /// The message is posted, and no answer comes.
    Held,
}

#[derive(Clone, Debug)]
struct User {
    name: String,
    real_name: String,
    email: String,
    is_bot: bool,
    deleted: bool,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    name: String,
    is_im: bool,
    is_private: bool,
    members: BTreeSet<String>,
    messages: Vec<Value>,
    /// For one person's eyes: (user, message).
    ephemeral: Vec<(String, Value)>,
}

#[derive(Clone, Debug)]
struct Trigger {
    at: Duration,
    used: bool,
}

impl Slack {
    /// A workspace with the app's bot and nobody else.
    ///
    /// # Panics
    ///
    /// When loopback has no free port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let mut state = State {
            scopes: SCOPES.iter().map(|scope| (*scope).to_owned()).collect(),
            patience: Duration::from_secs(3),
            trigger_life: Duration::from_secs(3),
            ..State::default()
        };
        state.users.insert(SLACK_BOT.into(), User::new("owd", true));
        let shared =
            Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), stopped: AtomicBool::new(false) });
        let accepting = Arc::clone(&shared);
        spawn(move || accept(&listener, address, &accepting));
        let sending = Arc::clone(&shared);
        spawn(move || socket::send_what_waits(&sending));
        Self { address, shared }
    }

    /// What the app's `api-url` is set to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/api/", self.address)
    }

    #[must_use]
    pub const fn app_token(&self) -> &'static str {
        "xapp-1-A0APP-1-local"
    }

    #[must_use]
    pub const fn bot_token(&self) -> &'static str {
        "xoxb-1-local"
    }

    #[must_use]
    pub const fn signing_secret(&self) -> &'static str {
        "8f742231b10e8888abcd99yyyzzz85a5"
    }

    /// Adds a person.
    pub fn user(&self, id: &str, name: &str) {
        self.state().users.insert(id.into(), User::new(name, false));
    }

    /// Adds a channel with these members; the bot is one of them only if it is named.
    pub fn channel(&self, id: &str, name: &str, members: &[&str]) {
        let members = members.iter().map(|member| (*member).to_owned()).collect();
        let channel = Channel { name: name.into(), members, ..Channel::default() };
        self.state().channels.insert(id.into(), channel);
    }

    /// Takes a scope from the app.
    pub fn revokes(&self, scope: &str) {
        self.state().scopes.remove(scope);
    }

    /// The next call of this method is answered 429.
    pub fn limits(&self, method: &str, retry_after: u64) {
        self.fault(method, Fault::Limited { retry_after });
    }

    /// The next call of this method is answered with this error, `{"ok": false, "error": …}`.
    pub fn refuses(&self, method: &str, error: &str) {
        self.fault(method, Fault::Error { error: error.into() });
    }

    /// The next call of this method is answered with this status and no JSON.
    pub fn fails(&self, method: &str, status: u16) {
        self.fault(method, Fault::Status(status));
    }

    /// The next call of this method is done, and the connection ends before the answer.
    pub fn loses_answer(&self, method: &str) {
        self.fault(method, Fault::Lost);
    }

    /// The next call of this method is done, and no answer comes.
    pub fn holds_answer(&self, method: &str) {
        self.fault(method, Fault::Held);
    }

    fn fault(&self, method: &str, fault: Fault) {
        self.state().faults.push_back((method.into(), fault));
    }

    /// How long Slack waits for an acknowledgement before it sends an event again. Three seconds until told otherwise.
    pub fn patience(&self, patience: Duration) {
        self.state().patience = patience;
    }

    /// Events and interactions go to these addresses over HTTP, signed; no longer over Socket Mode.
    pub fn posts_to(&self, events: &str, interactivity: &str) {
        self.state().request_urls = Some((events.into(), interactivity.into()));
        self.shared.changed.notify_all();
    }

    /// The messages of a channel, oldest first.
    #[must_use]
    pub fn messages(&self, channel: &str) -> Vec<Value> {
        self.state().channels.get(channel).map(|channel| channel.messages.clone()).unwrap_or_default()
    }

    /// One message, as it stands now.
    #[must_use]
    pub fn message(&self, channel: &str, ts: &str) -> Option<Value> {
        self.messages(channel).into_iter().find(|message| message["ts"] == ts)
    }

    /// What only this person sees in a channel.
    #[must_use]
    pub fn ephemerals(&self, channel: &str, user: &str) -> Vec<Value> {
        let state = self.state();
        let channel = state.channels.get(channel);
        let all = channel.into_iter().flat_map(|channel| &channel.ephemeral);
        all.filter(|(sees, _)| sees == user).map(|(_, message)| message.clone()).collect()
    }

    /// The conversation of the bot with this person, if there is one.
    #[must_use]
    pub fn direct(&self, user: &str) -> Option<String> {
        let state = self.state();
        let found = state.channels.iter().find(|(_, channel)| channel.is_im && channel.members.contains(user));
        found.map(|(id, _)| id.clone())
    }

    /// The modals that are open, with `id`, in the order of opening.
    #[must_use]
    pub fn views(&self) -> Vec<Value> {
        self.state().views.values().cloned().collect()
    }

    /// All calls of a method, oldest first.
    #[must_use]
    pub fn calls(&self, method: &str) -> Vec<SlackCall> {
        self.state().calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// Payloads that the app sent with its acknowledgements.
    #[must_use]
    pub fn responses(&self) -> Vec<Value> {
        self.state().responses.clone()
    }

    /// How many sockets are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state().connections.len()
    }

    /// How many sockets were ever greeted.
    #[must_use]
    pub fn hellos(&self) -> usize {
        self.state().hellos
    }

    /// How many events the app has not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.state().queue.len()
    }

    /// Waits until the app is connected.
    ///
    /// # Panics
    ///
    /// When it does not connect within the limit.
    pub fn wait_for_connection(&self) {
        until("the app is connected to Slack", || (self.connections() > 0).then_some(()));
    }

    /// Waits until the app has acknowledged all events.
    ///
    /// # Panics
    ///
    /// When it does not within the limit.
    pub fn wait_for_acknowledgements(&self) {
        until("the app has acknowledged all", || (self.unacknowledged() == 0).then_some(()));
    }

    /// Waits for a message in a channel that `fits`, and gives it.
    ///
    /// # Panics
    ///
    /// When there is none within the limit.
    pub fn wait_for_message(&self, channel: &str, fits: impl Fn(&Value) -> bool) -> Value {
        until(&format!("a message in {channel}"), || self.messages(channel).into_iter().find(|message| fits(message)))
    }

    /// Waits for a note that only this person sees and that holds `text`.
    ///
    /// # Panics
    ///
    /// When there is none within the limit.
    pub fn wait_for_ephemeral(&self, channel: &str, user: &str, text: &str) {
        until(&format!("a note to {user} that says `{text}`"), || {
            let notes = self.ephemerals(channel, user);
            notes.iter().any(|note| note["text"].as_str().is_some_and(|note| note.contains(text))).then_some(())
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// The time stamp of a new message: unique in the workspace, and later than all before.
    fn next_ts(&mut self) -> String {
        let seconds = signing::wall_clock();
        format!("{seconds}.{:06}", self.next())
    }

    fn trigger(&mut self) -> String {
        let id = format!("{}.{}.local", self.next(), signing::wall_clock());
        self.triggers.insert(id.clone(), Trigger { at: crate::monotonic(), used: false });
        id
    }

    /// The direct conversation of the bot with a person; opened where there is none.
    fn open_direct(&mut self, user: &str) -> String {
        let known = self.channels.iter().find(|(_, channel)| channel.is_im && channel.members.contains(user));
        if let Some((id, _)) = known {
            return id.clone();
        }
        let id = format!("D{user}");
        let members = [user.to_owned(), SLACK_BOT.to_owned()].into();
        self.channels.insert(id.clone(), Channel { is_im: true, members, ..Channel::default() });
        id
    }
}

impl User {
    fn new(name: &str, is_bot: bool) -> Self {
        let real_name = name.split('.').map(capital).collect::<Vec<_>>().join(" ");
        Self { name: name.into(), real_name, email: format!("{name}@example.org"), is_bot, deleted: false }
    }

    fn json(&self, id: &str, with_email: bool) -> Value {
        let mut profile = json!({ "real_name": self.real_name, "display_name": self.name, "title": "" });
        if with_email && !self.is_bot {
            profile["email"] = json!(self.email);
        }
        json!({
            "id": id, "team_id": TEAM, "name": self.name, "deleted": self.deleted, "real_name": self.real_name,
            "tz": "Europe/Vienna", "profile": profile, "is_bot": self.is_bot, "is_app_user": false, "updated": 1_760_000_000,
        })
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl Drop for Slack {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
        // Wakes the accepting thread.
        drop(TcpStream::connect(self.address));
        for stream in self.state().streams.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) {
    drop(thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread"));
}

fn accept(listener: &TcpListener, address: SocketAddr, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if let Ok(copy) = stream.try_clone() {
            shared.state().streams.push(copy);
        }
        let shared = Arc::clone(shared);
        spawn(move || {
            // A client that leaves is no fault of Slack's.
            drop(http::serve(&stream, address, &shared));
            drop(stream.shutdown(Shutdown::Both));
        });
    }
}
