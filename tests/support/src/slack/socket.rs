//! Socket Mode: sockets by ticket, envelopes and their acknowledgements, and what is sent again without one.

use std::io::{self, BufReader};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::{APP, Shared, Slack, State, http, signing, websocket};
use crate::monotonic;

/// Events are sent so often at most after the first time.
const RETRIES: u32 = 3;
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    stream: TcpStream,
    /// It was told to go: it gets nothing new.
    is_leaving: bool,
}

/// One event or interaction on its way to the app.
#[derive(Clone, Debug)]
pub(super) struct Envelope {
    id: String,
    kind: &'static str,
    payload: Value,
    attempt: u32,
    reason: &'static str,
    /// On which connection, and when; none: not sent, or to be sent again.
    sent: Option<(u64, Duration)>,
}

impl State {
    pub(super) fn queue(&mut self, kind: &'static str, payload: Value) {
        let id = self.envelope_id();
        self.queue.push(Envelope { id, kind, payload, attempt: 0, reason: "", sent: None });
    }

    fn envelope_id(&mut self) -> String {
        let number = self.next();
        format!("dbdd0ef3-1543-4f94-bfb4-{number:012x}")
    }

    pub(super) fn ticket(&mut self) -> String {
        let ticket = format!("ticket-{}", self.next());
        self.tickets.insert(ticket.clone());
        ticket
    }
}

/// Whether a socket may be opened: each ticket is good for one.
pub(super) fn admits(query: &str, shared: &Shared) -> bool {
    let mut state = shared.state();
    let ticket = http::pairs(query).into_iter().find(|(name, _)| name == "ticket");
    ticket.is_some_and(|(_, ticket)| state.tickets.remove(&ticket)) && !state.is_shut
}

/// Serves one socket: acknowledgements come in, pings are answered.
pub(super) fn serve(stream: &TcpStream, mut reader: BufReader<&TcpStream>, shared: &Arc<Shared>) -> io::Result<()> {
    let mut writer = stream;
    let id = {
        let mut state = shared.state();
        let id = state.next();
        state.hellos += 1;
        let hello = json!({
            "type": "hello",
            "num_connections": state.connections.len() + 1,
            "debug_info": { "host": "applink-1", "build_number": 10, "approximate_connection_time": 18060 },
            "connection_info": { "app_id": APP },
        });
        websocket::write_text(&mut writer, &hello.to_string())?;
        state.connections.push(Connection { id, stream: stream.try_clone()?, is_leaving: false });
        id
    };
    shared.changed.notify_all();
    let ended = listen(stream, &mut reader, shared);
    let mut state = shared.state();
    state.connections.retain(|connection| connection.id != id);
    // A click on a socket that is gone is told to the person as failed; events come again.
    state.queue.retain(|envelope| envelope.kind == "events_api" || !matches!(envelope.sent, Some((on, _)) if on == id));
    for envelope in &mut state.queue {
        if matches!(envelope.sent, Some((on, _)) if on == id) {
            again(envelope, "error");
        }
    }
    drop(state);
    shared.changed.notify_all();
    ended
}

fn listen(stream: &TcpStream, reader: &mut BufReader<&TcpStream>, shared: &Shared) -> io::Result<()> {
    let mut writer = stream;
    loop {
        match websocket::read(reader)? {
            websocket::Frame::Text(text) => {
                let said: Value = serde_json::from_str(&text).map_err(io::Error::other)?;
                let mut state = shared.state();
                state.queue.retain(|envelope| said["envelope_id"] != envelope.id.as_str());
                if !said["payload"].is_null() {
                    state.responses.push(said["payload"].clone());
                }
                drop(state);
                shared.changed.notify_all();
            }
            websocket::Frame::Ping(what) => {
                let _state = shared.state();
                websocket::write_pong(&mut writer, &what)?;
            }
            websocket::Frame::Pong => {}
            websocket::Frame::Close => {
                let _state = shared.state();
                return websocket::write_close(&mut writer);
            }
        }
    }
}

fn again(envelope: &mut Envelope, reason: &'static str) {
    envelope.attempt += 1;
    envelope.reason = reason;
    envelope.sent = None;
}

/// Sends what is queued, and once more what was not acknowledged, until the workspace ends.
pub(super) fn send_what_waits(shared: &Arc<Shared>) {
    while !shared.stopped.load(Ordering::SeqCst) {
        let mut state = shared.state();
        let patience = state.patience;
        state.queue.retain(|envelope| match envelope.sent {
            Some((_, at)) if monotonic().saturating_sub(at) > patience => {
                envelope.kind == "events_api" && envelope.attempt < RETRIES
            }
            _ => true,
        });
        let mut queue = std::mem::take(&mut state.queue);
        for envelope in &mut queue {
            if matches!(envelope.sent, Some((_, at)) if monotonic().saturating_sub(at) > patience) {
                again(envelope, "timeout");
                envelope.id = state.envelope_id();
            }
        }
        state.queue = queue;
        if state.request_urls.is_some() {
            drop(state);
            post_next(shared);
            state = shared.state();
        } else {
            send_all(&mut state);
        }
        drop(shared.changed.wait_timeout(state, LOOK));
    }
}

fn send_all(state: &mut State) {
    let mut queue = std::mem::take(&mut state.queue);
    for (place, envelope) in queue.iter_mut().enumerate().filter(|(_, envelope)| envelope.sent.is_none()) {
        let open: Vec<&Connection> = state.connections.iter().filter(|open| !open.is_leaving).collect();
        // Slack spreads events over an app's connections.
        let Some(connection) = open.get(place % open.len().max(1)) else { break };
        let mut text = json!({
            "envelope_id": envelope.id,
            "type": envelope.kind,
            "payload": envelope.payload,
            "accepts_response_payload": envelope.kind == "interactive" && envelope.payload["type"] == "view_submission",
        });
        if envelope.kind == "events_api" {
            text["retry_attempt"] = json!(envelope.attempt);
            text["retry_reason"] = json!(envelope.reason);
        }
        let mut stream = &connection.stream;
        if websocket::write_text(&mut stream, &text.to_string()).is_ok() {
            envelope.sent = Some((connection.id, monotonic()));
        }
    }
    state.queue = queue;
}

/// Posts the oldest of what waits to the app's request URL, and waits for its answer.
fn post_next(shared: &Arc<Shared>) {
    let (envelope, urls) = {
        let mut state = shared.state();
        let Some(urls) = state.request_urls.clone() else { return };
        let Some(envelope) = state.queue.iter_mut().find(|envelope| envelope.sent.is_none()) else { return };
        envelope.sent = Some((0, monotonic()));
        (envelope.clone(), urls)
    };
    let secret = "8f742231b10e8888abcd99yyyzzz85a5";
    let retry = (envelope.attempt > 0).then_some((envelope.attempt, "http_error"));
    let answer = if envelope.kind == "events_api" {
        signing::post(&urls.0, secret, "application/json", retry, &envelope.payload.to_string())
    } else {
        let payload = envelope.payload.to_string();
        let form = url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload).finish();
        signing::post(&urls.1, secret, "application/x-www-form-urlencoded", None, &form)
    };
    let mut state = shared.state();
    match answer {
        Ok((200..=299, body)) => {
            state.queue.retain(|waiting| waiting.id != envelope.id);
            if body.is_object() {
                state.responses.push(body);
            }
        }
        // A person is told that the app did not answer; an event comes again.
        Ok(_) | Err(_) if envelope.kind != "events_api" || envelope.attempt >= RETRIES => {
            state.queue.retain(|waiting| waiting.id != envelope.id);
        }
        Ok(_) | Err(_) => {
            if let Some(waiting) = state.queue.iter_mut().find(|waiting| waiting.id == envelope.id) {
                again(waiting, "http_error");
            }
        }
    }
}

impl Slack {
    /// Tells all sockets to go: `warning`, then `refresh_requested`, after which they get nothing new, or `link_disabled`.
    pub fn disconnects(&self, reason: &str) {
        let mut state = self.state();
        for connection in &mut state.connections {
            let mut stream = &connection.stream;
            let text = json!({ "type": "disconnect", "reason": reason, "debug_info": { "host": "applink-1" } });
            drop(websocket::write_text(&mut stream, &text.to_string()));
            connection.is_leaving |= reason != "warning";
        }
    }

    /// Closes the sockets that were told to go.
    pub fn closes_leaving(&self) {
        for connection in self.state().connections.iter().filter(|connection| connection.is_leaving) {
            let mut stream = &connection.stream;
            drop(websocket::write_close(&mut stream));
            drop(connection.stream.shutdown(Shutdown::Both));
        }
    }

    /// Cuts all sockets without a word.
    pub fn cuts(&self) {
        for connection in &self.state().connections {
            drop(connection.stream.shutdown(Shutdown::Both));
        }
    }

    /// Takes no new sockets, and cuts those there are; or takes them again.
    pub fn is_down(&self, down: bool) {
        self.state().is_shut = down;
        if down {
            self.cuts();
        }
        self.shared.changed.notify_all();
    }

    /// Pings all sockets.
    pub fn pings(&self) {
        for connection in &self.state().connections {
            let mut stream = &connection.stream;
            drop(websocket::write_ping(&mut stream, "Ping from applink-1"));
        }
    }

    /// Asks the app's request URL for its challenge, as when it is entered in the app's settings; the answer.
    ///
    /// # Panics
    ///
    /// When nobody answers there.
    #[must_use]
    pub fn verifies(&self, url: &str) -> (u16, Value) {
        let body = json!({ "token": "x", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7", "type": "url_verification" });
        signing::post(url, self.signing_secret(), "application/json", None, &body.to_string()).expect("an answer")
    }
}
