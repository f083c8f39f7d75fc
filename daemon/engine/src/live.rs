use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use ow_model::{Position, SessionId};
use ow_tool::Audience;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

/// Events that a watcher may be behind; one that is further behind is told that it has lagged.
const BEHIND: usize = 1024;

/// What happens in sessions right now, for whoever watches: pieces of text, the beginning of calls, their output.
///
/// Only deltas between two facts of the journal, which holds the truth: nothing here is kept, and a session
/// that nobody watches costs nothing.
#[derive(Debug, Default)]
pub struct Live {
    /// A session is in it while someone watches it.
    watched: Mutex<HashMap<SessionId, broadcast::Sender<LiveEvent>>>,
    /// Somebody has begun to watch a session.
    arrived: Notify,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LiveEvent {
    pub session: SessionId,
    /// The journal's length when it was sent: it comes after the facts before this, and is stale once there is one more.
    pub at: u32,
    pub kind: LiveKind,
    pub payload: Value,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LiveKind {
    /// `text`: the next piece of the reply.
    Text,
    /// `text`: the next piece of what the model thinks.
    Reasoning,
    /// `position`, `tool`, `arguments`: a call begins.
    ToolStarted,
    /// `position`, `text`: the next piece of what a call prints.
    ToolOutput,
    /// `item`: a person is asked.
    Waiting,
    TurnStarted,
    TurnEnded,
    /// `text`: something to be said to people only.
    Notice,
}

impl LiveKind {
    /// One word: `text`, `reasoning`, `tool-started`, `tool-output`, `waiting`, `turn-started`, `turn-ended`, `notice`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::ToolStarted => "tool-started",
            Self::ToolOutput => "tool-output",
            Self::Waiting => "waiting",
            Self::TurnStarted => "turn-started",
            Self::TurnEnded => "turn-ended",
            Self::Notice => "notice",
        }
    }
}

impl Live {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Watches a session from here on; several may watch one.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, session: SessionId) -> LiveReceiver {
        let events = self.watched().entry(session).or_insert_with(|| broadcast::channel(BEHIND).0).subscribe();
        self.arrived.notify_waiters();
        LiveReceiver { live: Arc::clone(self), session, events: Some(events) }
    }

    /// Waits until somebody watches the session.
    pub(crate) async fn arrival(&self, session: SessionId) {
        loop {
            let arrived = self.arrived.notified();
            if self.watched().contains_key(&session) {
                return;
            }
            arrived.await;
        }
    }

    /// Tells the session's watchers, of which `at` is the journal's length as its worker knows it. `payload` is only made
    /// when someone watches.
    pub fn send(&self, session: SessionId, at: u32, kind: LiveKind, payload: impl FnOnce() -> Value) {
        let watched = self.watched();
        if let Some(events) = watched.get(&session) {
            // The last watcher may be leaving right now: then nobody hears it.
            drop(events.send(LiveEvent { session, at, kind, payload: payload() }));
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<SessionId, broadcast::Sender<LiveEvent>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those who watch one session, at one point of its journal.
#[derive(Clone, Debug)]
pub(crate) struct Watchers {
    pub(crate) live: Arc<Live>,
    pub(crate) session: SessionId,
    pub(crate) at: u32,
}

impl Watchers {
    pub(crate) fn send(&self, kind: LiveKind, payload: impl FnOnce() -> Value) {
        self.live.send(self.session, self.at, kind, payload);
    }
}

/// Those who watch a call run.
#[derive(Debug)]
pub(crate) struct CallWatchers {
    pub(crate) watchers: Watchers,
    pub(crate) position: Position,
}

impl Audience for CallWatchers {
    fn arrives(&self) -> BoxFuture<'_, ()> {
        let Watchers { live, session, .. } = &self.watchers;
        Box::pin(live.arrival(*session))
    }

    fn hear(&self, text: &str) {
        self.watchers.send(LiveKind::ToolOutput, || json!({ "position": self.position, "text": text }));
    }
}

/// One watcher of a session.
#[derive(Debug)]
pub struct LiveReceiver {
    live: Arc<Live>,
    session: SessionId,
    /// There until it is dropped.
    events: Option<broadcast::Receiver<LiveEvent>>,
}

/// What a watcher hears.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveNews {
    Event(LiveEvent),
    /// So many events are lost to this watcher, who was too slow; the journal tells what they led to.
    Lagged(u64),
}

impl LiveReceiver {
    /// The next event; waits for it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when this is dropped.
    pub async fn recv(&mut self) -> LiveNews {
        let events = self.events.as_mut().expect("there until it is dropped");
        match events.recv().await {
            Ok(event) => LiveNews::Event(event),
            Err(broadcast::error::RecvError::Lagged(lost)) => LiveNews::Lagged(lost),
            // The sender stays while this receiver is counted.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for LiveReceiver {
    fn drop(&mut self) {
        let mut watched = self.live.watched();
        self.events = None;
        if watched.get(&self.session).is_some_and(|events| events.receiver_count() == 0) {
            watched.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(live: &Live, session: SessionId, text: &str) {
        live.send(session, 7, LiveKind::Text, || json!({ "text": text }));
    }

    #[tokio::test]
    async fn every_watcher_of_a_session_hears_its_events_and_no_others() {
        let (live, one, other) = (Live::new(), SessionId::from_bytes([1; 10]), SessionId::from_bytes([2; 10]));
        let (mut first, mut second, mut elsewhere) = (live.subscribe(one), live.subscribe(one), live.subscribe(other));
        text(&live, one, "a");
        text(&live, other, "b");
        let heard = LiveEvent { session: one, at: 7, kind: LiveKind::Text, payload: json!({ "text": "a" }) };
        assert_eq!(first.recv().await, LiveNews::Event(heard.clone()));
        assert_eq!(second.recv().await, LiveNews::Event(heard));
        assert!(matches!(elsewhere.recv().await, LiveNews::Event(event) if event.payload == json!({ "text": "b" })));
    }

    #[test]
    fn a_session_that_nobody_watches_costs_nothing() {
        let (live, session) = (Live::new(), SessionId::from_bytes([1; 10]));
        drop(live.subscribe(session));
        assert!(live.watched().is_empty());
        live.send(session, 7, LiveKind::Text, || unreachable!("nobody watches"));
    }

    #[tokio::test]
    async fn whoever_comes_to_a_session_is_noticed_and_to_another_is_not() {
        let (live, session) = (Live::new(), SessionId::from_bytes([1; 10]));
        let mut arrival = std::pin::pin!(live.arrival(session));
        assert!(futures_util::poll!(arrival.as_mut()).is_pending());
        let _other = live.subscribe(SessionId::from_bytes([2; 10]));
        assert!(futures_util::poll!(arrival.as_mut()).is_pending());
        let _watcher = live.subscribe(session);
        arrival.await;
        live.arrival(session).await;
    }

    #[tokio::test]
    async fn a_watcher_that_is_too_slow_is_told_so() {
        let (live, session) = (Live::new(), SessionId::from_bytes([1; 10]));
        let mut slow = live.subscribe(session);
        for index in 0..=BEHIND {
            text(&live, session, &index.to_string());
        }
        assert_eq!(slow.recv().await, LiveNews::Lagged(1));
        assert!(matches!(slow.recv().await, LiveNews::Event(event) if event.payload == json!({ "text": "1" })));
    }
}
