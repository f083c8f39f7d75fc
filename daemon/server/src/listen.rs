use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, TcpListener as StdTcpListener};
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ow_model::Person;
use ow_store::Store;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::api::Api;
use crate::control::Control;
use crate::guard::{Connection, Door};
use crate::key::Key;
use crate::limits::{
    ACCEPT_REST, DRAIN_TIME, HEAD_LIMIT, HEAD_TIME, HOOK_CONNECTIONS, HOOK_CONNECTIONS_OF_ONE, HOOK_HEAD_TIME,
    TCP_CONNECTIONS, UNIX_CONNECTIONS,
};
use crate::process::{Lineage, Peer};
use crate::socket::{self, BindError, SocketAccess, SocketFile};
use crate::webhook::{self, Deliveries, Webhooks};

/// A control API that listens and does not answer yet: connections wait in the kernel's queue.
#[derive(Debug)]
pub struct Server {
    listener: StdUnixListener,
    /// The socket file, if we made it and must remove it.
    file: Option<SocketFile>,
}

/// How to serve.
#[derive(Debug)]
pub struct Options {
    pub tcp: Option<Tcp>,
    pub webhooks: Option<Listener>,
    /// Whose descendants get nothing: [`Lineage::own`] but in tests.
    pub lineage: Lineage,
}

/// Where senders outside deliver; no part of the control API.
pub struct Listener {
    pub listener: StdTcpListener,
    pub hooks: Arc<Webhooks>,
    pub deliveries: Arc<dyn Deliveries>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listener, hooks, deliveries: _ } = self;
        f.debug_struct("Listener").field("listener", listener).field("hooks", hooks).finish_non_exhaustive()
    }
}

/// The TCP door, on loopback by default.
#[derive(Debug)]
pub struct Tcp {
    pub listener: StdTcpListener,
    pub key: Key,
    /// Who holds the key.
    pub person: Person,
    /// Origins beside owd's own whose pages may speak with the key, as `https://host:port`; matched whole.
    pub allowed_origins: Vec<String>,
}

impl Server {
    /// Listens on a socket file at `path`. The file of an owner that is gone is replaced.
    pub fn bind_unix(path: &Path, access: SocketAccess) -> Result<Self, BindError> {
        let (listener, file) = socket::bind(path, access)?;
        Ok(Self { listener, file: Some(file) })
    }

    /// Takes over a listener that a service manager has opened. Its socket file stays when owd ends.
    #[must_use]
    pub fn from_listener(listener: StdUnixListener) -> Self {
        Self { listener, file: None }
    }

    /// Serves until `stop` is cancelled; then accepts nothing new, ends the event streams, lets requests that
    /// are being answered finish for at most [`DRAIN_TIME`], and removes the socket file.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops all connections at once and leaves the socket file.
    pub async fn serve(
        self,
        store: Arc<dyn Store>,
        control: Arc<dyn Control>,
        options: Options,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let Self { listener, file } = self;
        let Options { tcp, webhooks, lineage } = options;
        let router = Api::new(store, control, stop.clone()).router();
        let abandon = CancellationToken::new();
        // Whoever drops us midway takes the connections along.
        let _abandoned_when_dropped = abandon.clone().drop_guard();
        let connections = Connections { router, stop, abandon, tracker: TaskTracker::new(), head_time: HEAD_TIME };

        listener.set_nonblocking(true)?;
        let unix = Entrance::Unix { listener: UnixListener::from_std(listener)?, lineage };
        let tcp = tcp.map(Tcp::entrance).transpose()?;
        let hooks = match webhooks {
            None => None,
            Some(Listener { listener, hooks, deliveries }) => {
                listener.set_nonblocking(true)?;
                let entrance = Entrance::Hooks { listener: TcpListener::from_std(listener)?, peers: Arc::default() };
                Some((connections.of_hooks(webhook::router(hooks, deliveries)), entrance))
            }
        };
        tokio::join!(
            connections.accept(unix),
            async {
                if let Some(tcp) = tcp {
                    connections.accept(tcp).await;
                }
            },
            async {
                if let Some((connections, entrance)) = hooks {
                    connections.accept(entrance).await;
                }
            },
        );
        connections.drain().await;
        match file {
            Some(file) => file.remove(),
            None => Ok(()),
        }
    }
}

impl Tcp {
    fn entrance(self) -> io::Result<Entrance> {
        let Self { listener, key, person, allowed_origins } = self;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let door = Arc::new(Door::new(listener.local_addr()?, key, person, allowed_origins));
        Ok(Entrance::Tcp { listener, door })
    }
}

/// What all connections of a door share.
struct Connections {
    router: Router,
    stop: CancellationToken,
    /// Ends connections where they are.
    abandon: CancellationToken,
    tracker: TaskTracker,
    /// How long the head of a request may take.
    head_time: Duration,
}

/// A door, with what decides who comes in by it.
enum Entrance {
    Unix { listener: UnixListener, lineage: Lineage },
    Tcp { listener: TcpListener, door: Arc<Door> },
    Hooks { listener: TcpListener, peers: Arc<Peers> },
}

/// Connections from each address.
#[derive(Default)]
struct Peers(Mutex<HashMap<IpAddr, usize>>);

/// One of them, until it is dropped.
struct PeerPlace {
    peers: Arc<Peers>,
    address: IpAddr,
}

impl Peers {
    /// None: there are as many from this address as there may be.
    fn place(self: &Arc<Self>, address: IpAddr) -> Option<PeerPlace> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= HOOK_CONNECTIONS_OF_ONE {
            return None;
        }
        *count += 1;
        Some(PeerPlace { peers: Arc::clone(self), address })
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut counts = self.peers.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.address)),
        }
    }
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Entrance {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix { listener, lineage: _ } => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
            Self::Tcp { listener, door: _ } | Self::Hooks { listener, peers: _ } => {
                listener.accept().await.map(|(stream, _)| Stream::Tcp(stream))
            }
        }
    }

    const fn connections(&self) -> usize {
        match self {
            Self::Unix { .. } => UNIX_CONNECTIONS,
            Self::Tcp { .. } => TCP_CONNECTIONS,
            Self::Hooks { .. } => HOOK_CONNECTIONS,
        }
    }
}

impl Connections {
    /// The same end for connections that are served something else.
    fn of_hooks(&self, router: Router) -> Self {
        let Self { router: _, stop, abandon, tracker, head_time: _ } = self;
        let (stop, abandon, tracker) = (stop.clone(), abandon.clone(), tracker.clone());
        Self { router, stop, abandon, tracker, head_time: HOOK_HEAD_TIME }
    }

    /// Lets connections in until owd stops, each once there is a place for it.
    async fn accept(&self, entrance: Entrance) {
        let places = Arc::new(Semaphore::new(entrance.connections()));
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = next(&entrance, &places) => accepted,
            };
            match accepted {
                Ok((stream, place)) => self.open(&entrance, stream, place),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    // What is short (file handles) comes back only when others end; trying at once would spin.
                    tokio::select! {
                        () = self.stop.cancelled() => {}
                        () = tokio::time::sleep(ACCEPT_REST) => {}
                    }
                }
            }
        }
    }

    fn open(&self, entrance: &Entrance, stream: Stream, place: OwnedSemaphorePermit) {
        let opened = match (stream, entrance) {
            (Stream::Unix(stream), Entrance::Unix { listener: _, lineage }) => stream.peer_cred().map(|credentials| {
                let peer = Arc::new(Peer::of(credentials, lineage));
                self.serve(stream, Some(Connection::Unix(peer)), place);
            }),
            (Stream::Tcp(stream), Entrance::Tcp { listener: _, door }) => {
                stream.set_nodelay(true).and_then(|()| stream.peer_addr()).map(|client| {
                    let connection = Connection::Tcp { client: client.ip(), door: Arc::clone(door) };
                    self.serve(stream, Some(connection), place);
                })
            }
            // Who comes by this door is told by what they sign, and their address is often that of a proxy.
            (Stream::Tcp(stream), Entrance::Hooks { listener: _, peers }) => {
                stream.set_nodelay(true).and_then(|()| stream.peer_addr()).map(|client| {
                    if let Some(of_one) = peers.place(client.ip()) {
                        self.serve(stream, None, (place, of_one));
                    } else {
                        tracing::debug!(client = %client.ip(), "too many connections from one address");
                    }
                })
            }
            (Stream::Unix(_), Entrance::Tcp { .. } | Entrance::Hooks { .. })
            | (Stream::Tcp(_), Entrance::Unix { .. }) => Ok(()),
        };
        if let Err(error) = opened {
            tracing::debug!(%error, "a client was gone before it was served");
        }
    }

    fn serve<S>(&self, stream: S, connection: Option<Connection>, place: impl Send + 'static)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (router, stop, abandon) = (self.router.clone(), self.stop.clone(), self.abandon.clone());
        let head_time = self.head_time;
        self.tracker.spawn(async move {
            let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                if let Some(connection) = &connection {
                    request.extensions_mut().insert(connection.clone());
                }
                router.clone().call(request.map(Body::new))
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head_time)
                .max_buf_size(HEAD_LIMIT)
                .serve_connection(TokioIo::new(stream), service);
            let mut served = std::pin::pin!(served);
            let ended = tokio::select! {
                biased;
                () = abandon.cancelled() => return,
                ended = served.as_mut() => Some(ended),
                () = stop.cancelled() => None,
            };
            let ended = if let Some(ended) = ended {
                ended
            } else {
                served.as_mut().graceful_shutdown();
                tokio::select! {
                    biased;
                    () = abandon.cancelled() => return,
                    ended = served.as_mut() => ended,
                }
            };
            if let Err(error) = ended {
                // Clients that hang up, and heads that time out.
                tracing::debug!(%error, "connection ended");
            }
            drop(place);
        });
    }

    async fn drain(&self) {
        self.tracker.close();
        if tokio::time::timeout(DRAIN_TIME, self.tracker.wait()).await.is_err() {
            tracing::warn!(connections = self.tracker.len(), "connections were cut off while stopping");
            self.abandon.cancel();
            self.tracker.wait().await;
        }
    }
}

async fn next(entrance: &Entrance, places: &Arc<Semaphore>) -> io::Result<(Stream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    entrance.accept().await.map(|stream| (stream, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_so_many_places_and_leaves_the_others_theirs() {
        let peers = Arc::new(Peers::default());
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let mut held: Vec<_> = (0..HOOK_CONNECTIONS_OF_ONE).map(|_| peers.place(one).expect("a place")).collect();
        assert!(peers.place(one).is_none());
        assert!(peers.place(other).is_some());
        held.pop();
        assert!(peers.place(one).is_some(), "one has left");
        held.clear();
        assert!(peers.0.lock().expect("nobody panicked").is_empty(), "who is gone is forgotten");
    }
}
