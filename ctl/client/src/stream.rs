use ow_protocol::{EventEnvelope, STREAM};

use crate::feed::{Fed, Feed};
use crate::operations::Target;
use crate::{Client, ClientError};

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
    feed: Feed,
    first: Option<String>,
}

impl Client {
    /// Opens the stream: events after the position `after`, or from now on; only those about `target`
    /// (`run:<id>`, `task:<name>`, `item:<id>`, `session:<id>`, `owd`) if given. It stands when this returns, so what
    /// happens from then on is not missed.
    pub async fn stream(&self, after: Option<&str>, target: Option<&str>) -> Result<EventStream, ClientError> {
        let mut path = Target::new(STREAM.into());
        path.add("target", target);
        Ok(EventStream { feed: Feed::open(self.socket(), path.done(), after).await?, first: None })
    }
}

impl EventStream {
    /// The position of the last event seen.
    #[must_use]
    pub fn position(&self) -> Option<&str> {
        self.feed.last().or(self.first.as_deref())
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
        Ok(match self.feed.next().await? {
            Fed::Frame(frame) => {
                let event: EventEnvelope = serde_json::from_str(&frame.data).map_err(ClientError::unreadable)?;
                self.first.get_or_insert_with(|| event.id.clone());
                Watched::Event(Box::new(event))
            }
            Fed::Lost => Watched::Lost,
            Fed::Resumed => Watched::Resumed,
        })
    }
}
