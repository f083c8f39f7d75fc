use hyper::Method;
use ow_protocol::{
    MessageView, NewMessage, NewSession, Page, PageQuery, SentMessage, SentView, SessionExport, SessionSettings,
    SessionView,
};
use serde_json::Value;

use crate::client::Ask;
use crate::feed::{Fed, Feed};
use crate::operations::{Answer, Target, paged, path};
use crate::{Client, ClientError};

/// What happens in a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    /// An entry of its history.
    Message(Box<MessageView>),
    /// How it stands, whenever that changes; the first one ends the history.
    State(Box<SessionView>),
    /// What is not kept: `text`, `reasoning`, `tool-started`, `tool-output`, `waiting`, `turn-started`, `turn-ended`,
    /// `notice`, `lagged`.
    Live { kind: String, payload: Value },
    /// The connection is gone, most likely because owd stops; the stream tries to come back.
    Lost,
    /// owd answers again and the stream goes on after the last entry seen.
    Resumed,
}

/// A session as it goes on, over connections of its own.
pub struct SessionStream(Feed);

impl Client {
    pub async fn sessions(&mut self, query: &PageQuery) -> Answer<Page<SessionView>> {
        self.read(Ask::get(paged(ow_protocol::SESSIONS, query))).await
    }

    pub async fn create_session(&mut self, new: &NewSession) -> Answer<SessionView> {
        self.read(Ask::with(Method::POST, ow_protocol::SESSIONS.into(), new)).await
    }

    pub async fn session(&mut self, id: &str) -> Answer<SessionView> {
        self.read(Ask::get(path(ow_protocol::SESSION, &[id]))).await
    }

    pub async fn remove_session(&mut self, id: &str) -> Answer<()> {
        self.act(Ask::bare(Method::DELETE, path(ow_protocol::SESSION, &[id]))).await
    }

    pub async fn say(&mut self, id: &str, message: &NewMessage) -> Answer<SentMessage> {
        self.read(Ask::with(Method::POST, path(ow_protocol::SESSION_MESSAGES, &[id]), message)).await
    }

    pub async fn interrupt_session(&mut self, id: &str) -> Answer<SessionView> {
        self.read(Ask::bare(Method::POST, path(ow_protocol::SESSION_INTERRUPT, &[id]))).await
    }

    pub async fn set_session(&mut self, id: &str, settings: &SessionSettings) -> Answer<SessionView> {
        self.read(Ask::with(Method::POST, path(ow_protocol::SESSION_SETTINGS, &[id]), settings)).await
    }

    pub async fn compact_session(&mut self, id: &str) -> Answer<SessionView> {
        self.read(Ask::bare(Method::POST, path(ow_protocol::SESSION_COMPACT, &[id]))).await
    }

    pub async fn export_session(&mut self, id: &str) -> Answer<SessionExport> {
        self.read(Ask::get(path(ow_protocol::SESSION_EXPORT, &[id]))).await
    }

    /// What went to models in a chat.
    pub async fn session_sent(&mut self, id: &str) -> Answer<Page<SentView>> {
        self.read(Ask::get(path(ow_protocol::SESSION_SENT, &[id]))).await
    }

    /// The body of one request to a model, byte for byte.
    pub async fn session_sent_body(&mut self, id: &str, number: u32) -> Answer<Vec<u8>> {
        self.bytes(Ask::get(path(ow_protocol::SESSION_SENT_BODY, &[id, &number.to_string()]))).await
    }

    /// A session as a Markdown document.
    pub async fn export_session_as_text(&mut self, id: &str) -> Answer<Vec<u8>> {
        let mut target = Target::new(path(ow_protocol::SESSION_EXPORT, &[id]));
        target.add("format", Some("markdown"));
        self.bytes(Ask::get(target.done())).await
    }

    /// Opens a session's stream: its history after the entry `after`, or all of it, then what happens.
    pub async fn watch_session(&self, id: &str, after: Option<u32>) -> Answer<SessionStream> {
        let after = after.map(|after| after.to_string());
        let target = path(ow_protocol::SESSION_STREAM, &[id]);
        Ok(SessionStream(Feed::open(self.socket(), target, after.as_deref()).await?))
    }
}

impl SessionStream {
    /// Waits for the next event, or for a change of the connection.
    ///
    /// # Errors
    ///
    /// As for any operation; [`ClientError::NotRunning`] if owd did not come back in about a minute and a half.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped wait loses no event.
    pub async fn next(&mut self) -> Result<SessionEvent, ClientError> {
        Ok(match self.0.next().await? {
            Fed::Frame(frame) => {
                let read = || serde_json::from_str(&frame.data).map_err(ClientError::unreadable);
                match frame.event.as_str() {
                    "message" => SessionEvent::Message(Box::new(
                        serde_json::from_str(&frame.data).map_err(ClientError::unreadable)?,
                    )),
                    "state" => SessionEvent::State(Box::new(
                        serde_json::from_str(&frame.data).map_err(ClientError::unreadable)?,
                    )),
                    kind => SessionEvent::Live { kind: kind.to_owned(), payload: read()? },
                }
            }
            Fed::Lost => SessionEvent::Lost,
            Fed::Resumed => SessionEvent::Resumed,
        })
    }
}
