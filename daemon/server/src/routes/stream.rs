use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use ow_protocol::EventEnvelope;
use ow_store::{Store, StreamEvent};
use serde::Deserialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::control::Control;
use crate::convert::{envelope, gap};
use crate::extract::Query;
use crate::guard::{Caller, Connection};
use crate::limits::{STREAM_CHUNK, TCP_KEEP_ALIVE};
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    after: Option<String>,
    target: Option<String>,
}

pub(super) async fn stream(
    State(api): State<Api>,
    Extension(connection): Extension<Connection>,
    _caller: Caller,
    headers: HeaderMap,
    Query(StreamQuery { after, target }): Query<StreamQuery>,
) -> Result<Response, Problem> {
    let target = target.map(|target| Target::parse(&target)).transpose()?;
    let head = api.store.stream_head();
    // The header is of a client that comes back by itself with the address it began with, so it is the newer one.
    let last_seen = headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default());
    let after = match last_seen.or(after.as_deref()) {
        Some(text) => {
            text.parse().map_err(|_| Problem::bad_request(format!("`{text}` is not a position of the stream")))?
        }
        None => *head.borrow(),
    };
    let watcher =
        Watcher { store: api.store, control: api.control, stop: api.stop, head, after, target, ready: vec![] };
    let events = Sse::new(watcher.events());
    Ok(match connection {
        // Over the socket the kernel tells when the other end is gone.
        Connection::Unix(_) => events.into_response(),
        Connection::Tcp { .. } => events.keep_alive(KeepAlive::new().interval(TCP_KEEP_ALIVE)).into_response(),
    })
}

/// Which events a watcher wants.
enum Target {
    /// `run:<id>`, `task:<name>`, `item:<id>`, `owd`.
    Exactly(String),
    /// All runs, tasks or items.
    Kind(&'static str),
}

impl Target {
    fn parse(text: &str) -> Result<Self, Problem> {
        Ok(match text {
            "run" => Self::Kind("run:"),
            "task" => Self::Kind("task:"),
            "item" => Self::Kind("item:"),
            "session" => Self::Kind("session:"),
            _ if text == "owd" || ["run:", "task:", "item:", "session:"].iter().any(|kind| text.starts_with(kind)) => {
                Self::Exactly(text.into())
            }
            _ => {
                return Err(Problem::bad_request(format!("`target={text}` is no target")).with_hint(
                    "use `run:<id>`, `task:<name>`, `item:<id>`, `session:<id>`, `owd`, or `run`, `task`, `item`, `session` \
                     for all of a kind",
                ));
            }
        })
    }

    fn covers(&self, event: &StreamEvent) -> bool {
        match self {
            Self::Exactly(target) => event.target == *target,
            Self::Kind(kind) => event.target.starts_with(kind),
        }
    }
}

/// One who watches: where it stands and what is read but not sent yet.
struct Watcher {
    store: Arc<dyn Store>,
    control: Arc<dyn Control>,
    stop: CancellationToken,
    head: watch::Receiver<u64>,
    after: u64,
    target: Option<Target>,
    /// Newest first, so that the next is the last.
    ready: Vec<Event>,
}

impl Watcher {
    fn events(mut self) -> impl Stream<Item = Result<Event, Infallible>> {
        // Only its id, no data: a client that comes back before its first event still comes back to this place.
        self.ready.push(Event::default().id(self.after.to_string()));
        stream::unfold(self, |mut watcher| async move {
            let event = watcher.next().await?;
            Some((Ok(event), watcher))
        })
    }

    /// The next event; none when owd stops or its store fails, after which a client comes back and is told why.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Some(event);
            }
            if self.stop.is_cancelled() {
                return None;
            }
            let head = *self.head.borrow_and_update();
            if self.after == head {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return None,
                    changed = self.head.changed() => changed.ok()?,
                }
                continue;
            }
            // A position ahead of the head is of a store that was since replaced by a backup.
            let read = if self.after < head { self.store.stream(self.after, STREAM_CHUNK).await } else { Ok(None) };
            match read {
                Ok(Some(events)) => self.take(events, head),
                Ok(None) => {
                    self.ready.push(message(&gap(self.after, head, self.control.now())));
                    self.after = head;
                }
                Err(error) => {
                    tracing::error!(%error, "an event stream ended: the store cannot be read");
                    return None;
                }
            }
        }
    }

    fn take(&mut self, events: Vec<StreamEvent>, head: u64) {
        // Nothing up to the head: the positions between were never given out.
        self.after = events.last().map_or(head, |event| event.position);
        let wanted =
            events.into_iter().rev().filter(|event| self.target.as_ref().is_none_or(|target| target.covers(event)));
        self.ready = wanted.map(|event| message(&envelope(event))).collect();
    }
}

fn message(envelope: &EventEnvelope) -> Event {
    let data = serde_json::to_string(envelope).expect("an envelope becomes JSON");
    Event::default().id(&envelope.id).event(&envelope.kind).data(data)
}
