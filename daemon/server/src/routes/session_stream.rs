use std::collections::VecDeque;
use std::convert::Infallible;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use ow_engine::{LiveEvent, LiveKind, LiveNews, LiveReceiver};
use ow_model::SessionId;
use ow_protocol::{MessageView, SessionView};
use ow_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

use crate::api::Api;
use crate::convert::{Transcript, session_view};
use crate::extract::{Path, Query};
use crate::find;
use crate::guard::{Caller, Connection};
use crate::limits::TCP_KEEP_ALIVE;
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    after: Option<String>,
}

/// The history after a place in the journal, then what happens: facts, and the deltas between them.
pub(super) async fn stream(
    State(api): State<Api>,
    Extension(connection): Extension<Connection>,
    _caller: Caller,
    headers: HeaderMap,
    Path(text): Path<String>,
    Query(StreamQuery { after }): Query<StreamQuery>,
) -> Result<Response, Problem> {
    let session = find::watchable(&api, &text).await?;
    // The header is of a client that comes back by itself with the address it began with, so it is the newer one.
    let last_seen = headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default());
    let shown_from = match last_seen.filter(|id| !id.is_empty()).or(after.as_deref()) {
        Some(text) => {
            let after: u32 = text
                .parse()
                .map_err(|_| Problem::bad_request(format!("`{text}` is not a place in the session's journal")))?;
            after.saturating_add(1)
        }
        None => 0,
    };
    // Both watches stand before the journal is read, so that nothing falls in between.
    let watcher = Watcher {
        changes: api.store.session_changes(session),
        live: api.control.watch_session(session),
        api,
        session,
        transcript: Transcript::default(),
        next: 0,
        shown_from,
        state: None,
        held: None,
        look: true,
        ready: VecDeque::new(),
    };
    let events = Sse::new(watcher.events());
    Ok(match connection {
        // Over the socket the kernel tells when the other end is gone.
        Connection::Unix(_) => events.into_response(),
        Connection::Tcp { .. } => events.keep_alive(KeepAlive::new().interval(TCP_KEEP_ALIVE)).into_response(),
    })
}

/// One who watches a session: how far it has read, and what is not sent yet.
struct Watcher {
    api: Api,
    session: SessionId,
    changes: watch::Receiver<u64>,
    live: LiveReceiver,
    transcript: Transcript,
    /// The next fact to be read.
    next: u32,
    /// Facts before this one are known to the client.
    shown_from: u32,
    /// As it was told last.
    state: Option<SessionView>,
    /// A live event that waits for the facts that come before it.
    held: Option<LiveEvent>,
    /// The store may have more to tell.
    look: bool,
    ready: VecDeque<Event>,
}

impl Watcher {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut watcher| async move {
            let event = watcher.next().await?;
            Some((Ok(event), watcher))
        })
    }

    /// The next event; none when owd stops or its store fails, after which a client comes back and is told why.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.api.stop.is_cancelled() {
                return None;
            }
            if self.look {
                self.look = false;
                self.changes.mark_unchanged();
                if let Err(error) = self.read().await {
                    tracing::error!(session = %self.session, %error, "a session's stream ended: the store cannot be read");
                    return None;
                }
                continue;
            }
            if let Some(event) = self.held.take() {
                self.pass_on(event);
                continue;
            }
            let news = tokio::select! {
                biased;
                () = self.api.stop.cancelled() => return None,
                news = self.live.recv() => news,
                changed = self.changes.changed() => {
                    changed.ok()?;
                    self.look = true;
                    continue;
                }
            };
            match news {
                LiveNews::Event(event) => {
                    // What the worker had journaled before it comes first.
                    self.look = event.at > self.next;
                    self.held = Some(event);
                }
                LiveNews::Lagged(lost) => self.ready.push_back(named("lagged", &json!({ "lost": lost }))),
            }
        }
    }

    /// Reads the facts that were written since, and how the session stands.
    async fn read(&mut self) -> Result<(), StoreError> {
        for fact in self.api.store.journal_from(self.session, self.next).await? {
            self.next = fact.seq + 1;
            let message = self.transcript.fold(&fact);
            if fact.seq >= self.shown_from
                && let Some(message) = message
            {
                self.ready.push_back(shown(&message));
            }
        }
        if let Some(row) = self.api.store.session(self.session).await? {
            let view = session_view(&row, Some(self.transcript.usage()));
            // Neither its length nor the time alone is news.
            let known = self.state.as_ref().is_some_and(|known| {
                let (length, active_at, usage) = (view.length, view.active_at.clone(), view.usage);
                SessionView { length, active_at, usage, ..known.clone() } == view
            });
            if !known {
                self.ready.push_back(named("state", &view));
                self.state = Some(view);
            }
        }
        Ok(())
    }

    /// A delta of what stands in the journal by now is told already.
    fn pass_on(&mut self, event: LiveEvent) {
        let LiveEvent { session: _, at, kind, payload } = event;
        if at >= self.next || kind == LiveKind::Notice {
            self.ready.push_back(named(kind.word(), &payload));
        }
    }
}

fn shown(message: &MessageView) -> Event {
    named("message", message).id(message.seq.to_string())
}

fn named(kind: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("wire types have text keys and write to memory");
    Event::default().event(kind).data(data)
}
