use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Method, Response};
use ow_protocol::{ErrorReply, PROTOCOL_HEADER, PROTOCOL_VERSION, VERSION_HEADER};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ClientError;
use crate::connection::Connection;

/// An answer must come within this; owd holds no request back on purpose.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Copying a large store takes its time.
pub(crate) const BACKUP_LIMIT: Duration = Duration::from_hours(1);

/// Speaks to one owd over its Unix socket.
pub struct Client {
    socket: PathBuf,
    connection: Option<Connection>,
    running_version: Option<String>,
}

/// One request, before it is sent.
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Path and query, encoded.
    pub(crate) target: String,
    pub(crate) body: Option<Bytes>,
    pub(crate) limit: Duration,
}

impl Ask {
    pub(crate) fn get(target: String) -> Self {
        Self { method: Method::GET, target, body: None, limit: ANSWER_LIMIT }
    }

    pub(crate) fn bare(method: Method, target: String) -> Self {
        Self { method, target, body: None, limit: ANSWER_LIMIT }
    }

    pub(crate) fn with(method: Method, target: String, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("wire types have text keys and write to memory");
        Self { method, target, body: Some(body.into()), limit: ANSWER_LIMIT }
    }
}

impl Client {
    /// A client of the owd that listens on `socket`; connects on first use.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), connection: None, running_version: None }
    }

    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The version of the owd that answered last, if it said so.
    #[must_use]
    pub fn running_version(&self) -> Option<&str> {
        self.running_version.as_deref()
    }

    pub(crate) async fn read<T: DeserializeOwned>(&mut self, ask: Ask) -> Result<T, ClientError> {
        let bytes = self.bytes(ask).await?;
        serde_json::from_slice(&bytes).map_err(ClientError::unreadable)
    }

    pub(crate) async fn act(&mut self, ask: Ask) -> Result<(), ClientError> {
        self.bytes(ask).await.map(drop)
    }

    pub(crate) async fn bytes(&mut self, ask: Ask) -> Result<Vec<u8>, ClientError> {
        let limit = ask.limit;
        let answer = tokio::time::timeout(limit, self.exchange(ask)).await;
        answer.unwrap_or_else(|_| {
            // A late answer must not be taken for that of the next request.
            self.connection = None;
            Err(ClientError::TimedOut { limit })
        })
    }

    async fn exchange(&mut self, ask: Ask) -> Result<Vec<u8>, ClientError> {
        if let Some(mut kept) = self.connection.take()
            && kept.is_ready().await
        {
            match self.exchange_over(kept, &ask).await {
                // owd closed it at that very moment. Reading twice does no harm; whether anything else was carried
                // out is not known.
                Err(ClientError::Transport { .. }) if ask.method == Method::GET => {}
                done => return done,
            }
        }
        let fresh = Connection::open(&self.socket).await?;
        self.exchange_over(fresh, &ask).await
    }

    async fn exchange_over(&mut self, mut connection: Connection, ask: &Ask) -> Result<Vec<u8>, ClientError> {
        let response = connection.send(ask.method.clone(), &ask.target, &[], ask.body.clone()).await?;
        let said = Said::of(&response);
        let status = response.status();
        let mut body = response.into_body();
        let mut bytes = Vec::new();
        while let Some(chunk) = connection.chunk(&mut body).await? {
            bytes.extend_from_slice(&chunk);
        }
        self.connection = Some(connection);
        said.check()?;
        self.running_version = said.version;
        if status.is_success() { Ok(bytes) } else { Err(refusal(&bytes)) }
    }
}

/// What an answer's headers tell of who gave it.
pub(crate) struct Said {
    protocol: Option<u32>,
    version: Option<String>,
}

impl Said {
    pub(crate) fn of(response: &Response<Incoming>) -> Self {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        Self {
            protocol: header(PROTOCOL_HEADER).and_then(|text| text.parse().ok()),
            version: header(VERSION_HEADER).map(str::to_owned),
        }
    }

    /// # Errors
    ///
    /// [`ClientError::Version`] if the answer is of another protocol.
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        match self.protocol {
            Some(theirs) if theirs != PROTOCOL_VERSION => {
                let running = self.version.clone().unwrap_or_else(|| "of another version".into());
                Err(ClientError::Version { running, theirs })
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn refusal(bytes: &[u8]) -> ClientError {
    match serde_json::from_slice::<ErrorReply>(bytes) {
        Ok(reply) => ClientError::Http(reply.error),
        Err(why) => ClientError::unreadable(why),
    }
}
