use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::Method;
use hyper::body::Incoming;
use ow_protocol::{EventEnvelope, STREAM};

use crate::client::{Said, refusal};
use crate::connection::Connection;
use crate::operations::Target;
use crate::sse::Decoder;
use crate::{Client, ClientError};

/// The pause before the first attempt to come back; doubled before each later one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A restart of owd takes less; after this the stream gives up.
const ATTEMPTS: u32 = 20;

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    Event(Box<EventEnvelope>),
    /// The connection is gone, most likely because owd stops; the stream tries to come back.
    Lost,
    /// owd answers again and the stream goes on after the last event seen.
    Resumed,
}

/// Events as they happen, over connections of its own.
pub struct EventStream {
    socket: PathBuf,
    target: Option<String>,
    last: Option<String>,
    open: Option<(Connection, Incoming)>,
    decoder: Decoder,
    /// Failed attempts to come back since the connection was lost.
    attempts: u32,
}

impl Client {
    /// Opens the stream: events after the position `after`, or from now on; only those about `target`
    /// (`run:<id>`, `task:<name>`, `item:<id>`, `owd`) if given. It stands when this returns, so what happens
    /// from then on is not missed.
    pub async fn stream(&self, after: Option<&str>, target: Option<&str>) -> Result<EventStream, ClientError> {
        EventStream::open(self.socket(), after, target).await
    }
}

impl EventStream {
    async fn open(socket: &Path, after: Option<&str>, target: Option<&str>) -> Result<Self, ClientError> {
        let mut stream = Self {
            socket: socket.to_owned(),
            target: target.map(str::to_owned),
            last: after.map(str::to_owned),
            open: None,
            decoder: Decoder::default(),
            attempts: 0,
        };
        stream.connect().await?;
        Ok(stream)
    }

    /// The position of the last event seen.
    #[must_use]
    pub fn position(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// Waits for the next event, or for a change of the connection.
    ///
    /// # Errors
    ///
    /// As for any operation; [`ClientError::NotRunning`] if owd did not come back in about a minute and a half.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped wait loses no event.
    pub async fn next(&mut self) -> Result<Watched, ClientError> {
        loop {
            let frame = self.decoder.next().map_err(ClientError::unreadable)?;
            if let Some(id) = self.decoder.last_id() {
                self.last = Some(id.to_owned());
            }
            if let Some(frame) = frame {
                let event: EventEnvelope = serde_json::from_str(&frame.data).map_err(ClientError::unreadable)?;
                self.last.get_or_insert_with(|| event.id.clone());
                return Ok(Watched::Event(Box::new(event)));
            }
            let Some((connection, body)) = &mut self.open else { return self.come_back().await };
            if let Ok(Some(bytes)) = connection.chunk(body).await {
                self.decoder.push(&bytes).map_err(ClientError::unreadable)?;
            } else {
                // A half-received event comes again, whole, after the resume.
                self.open = None;
                self.decoder = Decoder::default();
                return Ok(Watched::Lost);
            }
        }
    }

    async fn come_back(&mut self) -> Result<Watched, ClientError> {
        loop {
            let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.attempts.min(10));
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
            self.attempts += 1;
            match self.connect().await {
                Ok(()) => {
                    self.attempts = 0;
                    return Ok(Watched::Resumed);
                }
                Err(ClientError::NotRunning { .. } | ClientError::Transport { .. }) if self.attempts < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        let mut connection = Connection::open(&self.socket).await?;
        let mut path = Target::new(STREAM.into());
        path.add("target", self.target.as_ref());
        let mut headers = vec![("accept", "text/event-stream")];
        if let Some(last) = &self.last {
            headers.push(("last-event-id", last));
        }
        let response = connection.send(Method::GET, &path.done(), &headers, None).await?;
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
