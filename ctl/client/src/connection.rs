use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use crate::ClientError;

/// One HTTP connection, polled by whoever waits on it.
pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// None once it has ended.
    driver: Option<Driver>,
}

/// The half of a connection that reads and writes the socket.
type Driver = Pin<Box<http1::Connection<TokioIo<UnixStream>, Full<Bytes>>>>;

impl Connection {
    pub(crate) async fn open(socket: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(socket).await.map_err(|why| not_connected(socket, why))?;
        let (sender, driver) =
            http1::handshake(TokioIo::new(stream)).await.map_err(ClientError::transport("connecting to owd"))?;
        Ok(Self { sender, driver: Some(Box::pin(driver)) })
    }

    /// Whether the connection can take a request; false when owd has closed it meanwhile.
    pub(crate) async fn is_ready(&mut self) -> bool {
        let Self { sender, driver } = self;
        drive(driver, sender.ready()).await.is_ok()
    }

    pub(crate) async fn send(
        &mut self,
        method: Method,
        target: &str,
        headers: &[(&'static str, &str)],
        body: Option<Bytes>,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut request = Request::builder().method(method).uri(target).header(HOST, "owd");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::new(body.unwrap_or_default()))
            .map_err(|why| ClientError::Transport { doing: "writing the request", why: Box::new(why) })?;
        let Self { sender, driver } = self;
        drive(driver, sender.send_request(request)).await.map_err(ClientError::transport("asking owd"))
    }

    /// The next bytes of a body; none at its end.
    pub(crate) async fn chunk(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, ClientError> {
        loop {
            let Some(frame) = drive(&mut self.driver, body.frame()).await else { return Ok(None) };
            let frame = frame.map_err(ClientError::transport("reading owd's answer"))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// Waits for `future` while the connection below it makes progress.
async fn drive<F: Future>(driver: &mut Option<Driver>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // First the connection: how it ended reaches the waiting half through hyper's own channel.
        if let Some(connection) = driver
            && connection.as_mut().poll(cx).is_ready()
        {
            *driver = None;
        }
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        // The future may have handed the connection something to write.
        if let Some(connection) = driver
            && connection.as_mut().poll(cx).is_ready()
        {
            *driver = None;
            return future.as_mut().poll(cx);
        }
        Poll::Pending
    })
    .await
}

fn not_connected(socket: &Path, why: io::Error) -> ClientError {
    let socket = socket.to_owned();
    if why.kind() == io::ErrorKind::PermissionDenied {
        ClientError::NotPermitted { socket, why }
    } else {
        ClientError::NotRunning { socket, why }
    }
}
