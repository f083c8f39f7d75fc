use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::Method;
use hyper::body::Incoming;
use tokio::time::{Instant, sleep_until};

use crate::ClientError;
use crate::client::{Said, refusal};
use crate::connection::Connection;
use crate::sse::{Decoder, Frame};

/// The pause before the first attempt to come back; doubled before each later one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A restart of owd takes less; after this the feed gives up.
const ATTEMPTS: u32 = 20;

/// What comes of a feed.
pub(crate) enum Fed {
    Frame(Frame),
    /// The connection is gone, most likely because owd stops; the feed tries to come back.
    Lost,
    /// owd answers again and the feed goes on after the last id seen.
    Resumed,
}

/// Server-sent events of one path, over connections of its own.
pub(crate) struct Feed {
    socket: PathBuf,
    /// Path and query, encoded.
    target: String,
    last: Option<String>,
    open: Option<(Connection, Incoming)>,
    decoder: Decoder,
    /// Failed attempts to come back since the connection was lost.
    attempts: u32,
    /// When the next attempt is due. Kept here, so that a wait that is dropped and begun anew does not put it off.
    next_attempt: Option<Instant>,
}

impl Feed {
    pub(crate) async fn open(socket: &Path, target: String, after: Option<&str>) -> Result<Self, ClientError> {
        let mut feed = Self {
            socket: socket.to_owned(),
            target,
            last: after.map(str::to_owned),
            open: None,
            decoder: Decoder::default(),
            attempts: 0,
            next_attempt: None,
        };
        feed.connect().await?;
        Ok(feed)
    }

    /// The last id seen.
    pub(crate) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// # Cancel safety
    ///
    /// Safe: a dropped wait loses no event.
    pub(crate) async fn next(&mut self) -> Result<Fed, ClientError> {
        loop {
            let frame = self.decoder.next().map_err(ClientError::unreadable)?;
            if let Some(id) = self.decoder.last_id() {
                self.last = Some(id.to_owned());
            }
            if let Some(frame) = frame {
                return Ok(Fed::Frame(frame));
            }
            let Some((connection, body)) = &mut self.open else { return self.come_back().await };
            if let Ok(Some(bytes)) = connection.chunk(body).await {
                self.decoder.push(&bytes).map_err(ClientError::unreadable)?;
            } else {
                // A half-received event comes again, whole, after the resume.
                self.open = None;
                self.decoder = Decoder::default();
                return Ok(Fed::Lost);
            }
        }
    }

    async fn come_back(&mut self) -> Result<Fed, ClientError> {
        loop {
            let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.attempts.min(10));
            let due = *self.next_attempt.get_or_insert_with(|| Instant::now() + pause.min(LONGEST_PAUSE));
            sleep_until(due).await;
            self.next_attempt = None;
            self.attempts += 1;
            match self.connect().await {
                Ok(()) => {
                    self.attempts = 0;
                    return Ok(Fed::Resumed);
                }
                Err(ClientError::NotRunning { .. } | ClientError::Transport { .. }) if self.attempts < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        let mut connection = Connection::open(&self.socket).await?;
        let mut headers = vec![("accept", "text/event-stream")];
        if let Some(last) = &self.last {
            headers.push(("last-event-id", last));
        }
        let response = connection.send(Method::GET, &self.target, &headers, None).await?;
        Said::of(&response).check()?;
        let status = response.status();
        let mut body = response.into_body();
        if !status.is_success() {
            let mut bytes = Vec::new();
            while let Some(chunk) = connection.chunk(&mut body).await? {
                bytes.extend_from_slice(&chunk);
            }
            return Err(refusal(&bytes));
        }
        self.open = Some((connection, body));
        Ok(())
    }
}
