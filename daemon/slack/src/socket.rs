//! Socket Mode: one socket to Slack, or two while a new one takes over; what comes is stored before it is acknowledged.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ow_clock::Clock;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::envelope::{Said, said};
use crate::websocket::{WebSocket, WebSocketError};
use crate::{Client, Fault, Intake, Standing};

const HELLO: Duration = Duration::from_secs(15);
/// Slack pings every few seconds: who is silent for so long is asked, and given up after as long again.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a socket that was told to go is still listened to once another is open.
const LINGER: Duration = Duration::from_secs(15);
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Between attempts that a person must help, with a token or a setting.
const HELPLESS_WAIT: Duration = Duration::from_mins(10);
/// A socket that lived so long was a good one: the next comes at once.
const GOOD_LIFE: Duration = Duration::from_secs(30);

/// Keeps the app connected until it is told to stop.
pub struct SocketMode {
    pub client: Client,
    pub intake: Arc<Intake>,
    pub clock: Clock,
    pub standing: watch::Sender<Standing>,
}

/// What a connection tells of itself.
enum Told {
    /// It is to be replaced, and is still listened to.
    Leaving {
        number: u64,
    },
    Ended {
        number: u64,
        why: String,
        lived: Duration,
    },
}

/// The connection that gets new events.
struct Current {
    number: u64,
    /// Cancelled: another has taken over.
    replaced: CancellationToken,
}

enum Dialled {
    Open(WebSocket),
    Failed { why: String, helpless: bool, after: Option<Duration> },
}

impl SocketMode {
    /// # Cancel safety
    ///
    /// Dropped midway, sockets end without a goodbye; what was not acknowledged comes again.
    pub async fn run(self, stop: CancellationToken) {
        let (tell, mut told) = mpsc::channel(16);
        let mut connections = JoinSet::new();
        let mut current: Option<Current> = None;
        let mut number = 0;
        let mut wait = FIRST_WAIT;
        let this = &self;
        let dial_after = |pause: Duration| -> Option<Pin<Box<dyn Future<Output = Dialled> + Send + '_>>> {
            Some(Box::pin(async move {
                sleep(pause).await;
                this.dial().await
            }))
        };
        // The next socket on its way; none: there is one that stays.
        let mut dialling = dial_after(Duration::ZERO);
        loop {
            enum Next {
                Stop,
                Told(Told),
                Dialled(Dialled),
            }
            let dialled = async {
                match dialling.as_mut() {
                    Some(dialling) => dialling.await,
                    None => std::future::pending().await,
                }
            };
            let next = tokio::select! {
                biased;
                () = stop.cancelled() => Next::Stop,
                Some(one) = told.recv() => Next::Told(one),
                dialled = dialled => Next::Dialled(dialled),
            };
            match next {
                Next::Stop => break,
                Next::Told(Told::Leaving { number }) => {
                    if current.as_ref().is_some_and(|current| current.number == number) && dialling.is_none() {
                        dialling = dial_after(Duration::ZERO);
                    }
                }
                Next::Told(Told::Ended { number, why, lived }) => {
                    if current.as_ref().is_some_and(|current| current.number == number) {
                        current = None;
                        if lived >= GOOD_LIFE {
                            wait = FIRST_WAIT;
                        }
                        if dialling.is_none() {
                            dialling = dial_after(wait);
                            wait = (wait * 2).min(LONGEST_WAIT);
                        }
                        warn!(why, "the connection to Slack is lost");
                        self.standing.send_modify(|standing| standing.lost(self.clock.now(), &why));
                    } else {
                        debug!(why, "a replaced connection to Slack has ended");
                    }
                }
                Next::Dialled(Dialled::Open(socket)) => {
                    number += 1;
                    let replaced = CancellationToken::new();
                    if let Some(before) = current.replace(Current { number, replaced: replaced.clone() }) {
                        before.replaced.cancel();
                    }
                    dialling = None;
                    info!("connected to Slack");
                    let since = Some(self.clock.now());
                    self.standing.send_modify(|standing| standing.since = since);
                    let connection = Connection {
                        number,
                        socket,
                        replaced,
                        stop: stop.clone(),
                        intake: Arc::clone(&self.intake),
                        clock: self.clock.clone(),
                        tell: tell.clone(),
                    };
                    connections.spawn(connection.serve());
                }
                Next::Dialled(Dialled::Failed { why, helpless, after }) => {
                    let pause = if helpless { HELPLESS_WAIT } else { after.unwrap_or(wait).max(wait) };
                    dialling = dial_after(pause);
                    wait = (wait * 2).min(LONGEST_WAIT);
                    warn!(why, seconds = pause.as_secs(), "no connection to Slack; it is tried again");
                    if current.is_none() {
                        self.standing.send_modify(|standing| standing.lost(self.clock.now(), &why));
                    }
                }
            }
            while connections.try_join_next().is_some() {}
        }
        // Each says goodbye.
        while connections.join_next().await.is_some() {}
    }

    /// Opens a socket and waits for its greeting.
    async fn dial(&self) -> Dialled {
        let failed = |why: String| Dialled::Failed { why, helpless: false, after: None };
        let mut socket = match self.client.open_socket().await {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => return failed(chain(&error)),
            Err(Fault::Later { after, why }) => return Dialled::Failed { why, helpless: false, after },
            Err(Fault::Lost { why }) => return failed(why),
            Err(fault @ Fault::Never { .. }) => {
                return Dialled::Failed { why: fault.to_string(), helpless: true, after: None };
            }
        };
        match timeout(HELLO, socket.next(HELLO)).await {
            Ok(Ok(text)) => {
                if said(&text) == Said::Hello {
                    Dialled::Open(socket)
                } else {
                    failed("Slack did not greet".into())
                }
            }
            Ok(Err(error)) => failed(chain(&error)),
            Err(_) => failed("Slack did not greet".into()),
        }
    }
}

struct Connection {
    number: u64,
    socket: WebSocket,
    replaced: CancellationToken,
    stop: CancellationToken,
    intake: Arc<Intake>,
    clock: Clock,
    tell: mpsc::Sender<Told>,
}

impl Connection {
    async fn serve(mut self) {
        let began = Instant::now();
        let why = self.listen().await;
        let told = Told::Ended { number: self.number, why, lived: began.elapsed() };
        // Nobody listens any more once owd stops.
        drop(self.tell.send(told).await);
        self.socket.close().await;
    }

    /// Stores and acknowledges what comes until the connection ends; why it did.
    async fn listen(&mut self) -> String {
        loop {
            let lingered = async {
                self.replaced.cancelled().await;
                sleep(LINGER).await;
            };
            let text = tokio::select! {
                biased;
                () = self.stop.cancelled() => return "owd stops".into(),
                () = lingered => return "another has taken over".into(),
                next = self.socket.next(PATIENCE) => match next {
                    Ok(text) => text,
                    Err(error) => return chain(&error),
                },
            };
            let (id, payload) = match said(&text) {
                Said::Envelope { id, payload } => (id, payload),
                Said::Refresh { reason } => {
                    info!(reason, "Slack asks for a new connection");
                    drop(self.tell.send(Told::Leaving { number: self.number }).await);
                    continue;
                }
                Said::Disabled => return "Socket Mode is switched off in the app's settings".into(),
                Said::Broken => {
                    warn!("Slack sent something that is no JSON");
                    continue;
                }
                Said::Hello | Said::Other => continue,
            };
            // Not stored: not acknowledged, so that it comes again.
            if let Err(error) = self.intake.take(&payload, self.clock.now()).await {
                warn!(%error, "what Slack sent could not be stored");
                continue;
            }
            if let Err(error) = self.socket.say(&json!({ "envelope_id": id }).to_string()).await {
                return chain(&error);
            }
        }
    }
}

/// An error with its causes.
fn chain(error: &WebSocketError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
