use std::io;
use std::net::TcpListener as StdTcpListener;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
use crate::limits::{ACCEPT_REST, DRAIN_TIME, HEAD_LIMIT, HEAD_TIME, TCP_CONNECTIONS, UNIX_CONNECTIONS};
use crate::process::{Lineage, Peer};
use crate::socket::{self, BindError, FileIdentity, SocketAccess};

/// A control API that listens and does not answer yet: connections wait in the kernel's queue.
#[derive(Debug)]
pub struct Server {
    listener: StdUnixListener,
    /// The socket file, if we made it and must remove it.
    file: Option<(PathBuf, FileIdentity)>,
}

/// How to serve.
#[derive(Debug)]
pub struct Options {
    pub tcp: Option<Tcp>,
    /// Whose descendants get nothing: [`Lineage::own`] but in tests.
    pub lineage: Lineage,
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
        let listener = socket::bind(path, access)?;
        let identity = FileIdentity::of(path).map_err(|source| BindError::Failed { path: path.into(), source })?;
        Ok(Self { listener, file: Some((path.into(), identity)) })
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
        let Options { tcp, lineage } = options;
        let router = Api::new(store, control, stop.clone()).router();
        let abandon = CancellationToken::new();
        // Whoever drops us midway takes the connections along.
        let _abandoned_when_dropped = abandon.clone().drop_guard();
        let connections = Connections { router, stop, abandon, tracker: TaskTracker::new() };

        listener.set_nonblocking(true)?;
        let unix = UnixListener::from_std(listener)?;
        match tcp {
            None => serve_unix(unix, &lineage, &connections).await,
            Some(Tcp { listener, key, person, allowed_origins }) => {
                listener.set_nonblocking(true)?;
                let tcp = TcpListener::from_std(listener)?;
                let door = Arc::new(Door::new(tcp.local_addr()?, key, person, allowed_origins));
                tokio::join!(serve_unix(unix, &lineage, &connections), serve_tcp(tcp, &door, &connections));
            }
        }
        connections.drain().await;
        match file {
            Some((path, identity)) => socket::remove(&path, identity),
            None => Ok(()),
        }
    }
}

/// What all connections share.
struct Connections {
    router: Router,
    stop: CancellationToken,
    /// Ends connections where they are.
    abandon: CancellationToken,
    tracker: TaskTracker,
}

async fn serve_unix(listener: UnixListener, lineage: &Lineage, connections: &Connections) {
    let places = Arc::new(Semaphore::new(UNIX_CONNECTIONS));
    while let Some((stream, place)) = connections.next(&places, async || listener.accept().await.map(first)).await {
        connections.open_unix(stream, lineage, place);
    }
}

async fn serve_tcp(listener: TcpListener, door: &Arc<Door>, connections: &Connections) {
    let places = Arc::new(Semaphore::new(TCP_CONNECTIONS));
    while let Some((stream, place)) = connections.next(&places, async || listener.accept().await.map(first)).await {
        connections.open_tcp(stream, door, place);
    }
}

impl Connections {
    /// The next connection, once there is a place for it; none when owd stops.
    async fn next<S>(
        &self,
        places: &Arc<Semaphore>,
        accept: impl AsyncFn() -> io::Result<S>,
    ) -> Option<(S, OwnedSemaphorePermit)> {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                accepted = async {
                    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
                    accept().await.map(|stream| (stream, place))
                } => accepted,
            };
            match accepted {
                Ok(accepted) => return Some(accepted),
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

    fn open_unix(&self, stream: UnixStream, lineage: &Lineage, place: OwnedSemaphorePermit) {
        match stream.peer_cred() {
            Ok(credentials) => {
                let peer = Arc::new(Peer::of(credentials, lineage));
                self.open(stream, Connection::Unix(peer), place);
            }
            Err(error) => tracing::warn!(%error, "a peer without credentials was turned away"),
        }
    }

    fn open_tcp(&self, stream: TcpStream, door: &Arc<Door>, place: OwnedSemaphorePermit) {
        match (stream.peer_addr(), stream.set_nodelay(true)) {
            (Ok(client), Ok(())) => {
                self.open(stream, Connection::Tcp { client: client.ip(), door: Arc::clone(door) }, place);
            }
            (Err(error), _) | (_, Err(error)) => tracing::debug!(%error, "a client was gone before it was served"),
        }
    }

    fn open<S>(&self, stream: S, connection: Connection, place: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (router, stop, abandon) = (self.router.clone(), self.stop.clone(), self.abandon.clone());
        self.tracker.spawn(async move {
            let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                request.extensions_mut().insert(connection.clone());
                router.clone().call(request.map(Body::new))
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(HEAD_LIMIT)
                .serve_connection(TokioIo::new(stream), service);
            let mut served = std::pin::pin!(served);
            let ended = tokio::select! {
                biased;
                () = abandon.cancelled() => return,
                ended = served.as_mut() => Some(ended),
                () = stop.cancelled() => None,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    served.as_mut().graceful_shutdown();
                    tokio::select! {
                        biased;
                        () = abandon.cancelled() => return,
                        ended = served.as_mut() => ended,
                    }
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

fn first<A, B>((first, _): (A, B)) -> A {
    first
}
