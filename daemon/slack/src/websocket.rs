//! A WebSocket to Slack: the handshake over the HTTP client that is there anyway, then frames.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use reqwest::{Client, StatusCode, Upgraded};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use thiserror::Error;
use tokio::time::timeout;
use tokio_websockets::{ClientBuilder, CloseCode, Limits, Message, WebSocketStream};

const HANDSHAKE: Duration = Duration::from_secs(15);
const WRITE: Duration = Duration::from_secs(10);
/// A message of more bytes than this ends the connection; Slack's are a few kilobytes.
const LONGEST: usize = 4 * 1024 * 1024;

/// An open connection.
pub(crate) struct WebSocket {
    /// Boxed: it is moved about, and large.
    stream: Box<WebSocketStream<Upgraded>>,
}

/// Why a connection could not be opened, or ended.
#[derive(Debug, Error)]
pub(crate) enum WebSocketError {
    #[error("the address of the socket is of no use")]
    Address,
    #[error("no connection")]
    Connect(#[source] reqwest::Error),
    #[error("the server answered {0} instead of opening a socket")]
    Refused(StatusCode),
    #[error("the server's answer proves no socket")]
    Unproven,
    #[error("the connection broke")]
    Broken(#[source] tokio_websockets::Error),
    #[error("nothing came in time")]
    Silent,
    #[error("the server closed it")]
    Closed,
}

impl WebSocket {
    /// Opens the socket at a `wss:` (or `ws:`) address; `client` speaks HTTP/1.1 alone.
    pub(crate) async fn open(client: &Client, address: &str) -> Result<Self, WebSocketError> {
        let url = match address.split_once(':') {
            Some(("wss", rest)) => format!("https:{rest}"),
            Some(("ws", rest)) => format!("http:{rest}"),
            _ => return Err(WebSocketError::Address),
        };
        let key = STANDARD.encode(nonce());
        let request = client.get(url).header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
        let request = request.header(SEC_WEBSOCKET_VERSION, "13").header(SEC_WEBSOCKET_KEY, &key);
        let response = match timeout(HANDSHAKE, request.send()).await {
            Err(_) => return Err(WebSocketError::Silent),
            // The address holds the ticket.
            Ok(Err(error)) => return Err(WebSocketError::Connect(error.without_url())),
            Ok(Ok(response)) => response,
        };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(WebSocketError::Refused(response.status()));
        }
        let expected = accept_of(&key);
        if response.headers().get(SEC_WEBSOCKET_ACCEPT).is_none_or(|given| given.as_bytes() != expected.as_bytes()) {
            return Err(WebSocketError::Unproven);
        }
        let stream = response.upgrade().await.map_err(|error| WebSocketError::Connect(error.without_url()))?;
        let limits = Limits::default().max_payload_len(Some(LONGEST));
        Ok(Self { stream: Box::new(ClientBuilder::new().limits(limits).take_over(stream)) })
    }

    /// The next text. A server that is silent for `patience` is pinged, and given up after as long again.
    ///
    /// # Cancel safety
    ///
    /// What was read stays with the socket.
    pub(crate) async fn next(&mut self, patience: Duration) -> Result<String, WebSocketError> {
        let mut pinged = false;
        loop {
            match timeout(patience, self.stream.next()).await {
                Ok(None) => return Err(WebSocketError::Closed),
                Ok(Some(Err(error))) => return Err(WebSocketError::Broken(error)),
                Ok(Some(Ok(message))) => match message.as_text() {
                    Some(text) => return Ok(text.to_owned()),
                    None if message.is_close() => return Err(WebSocketError::Closed),
                    // Pings are answered underneath; nothing here speaks binary.
                    None => pinged = false,
                },
                Err(_) if pinged => return Err(WebSocketError::Silent),
                Err(_) => {
                    self.send(Message::ping("owd")).await?;
                    pinged = true;
                }
            }
        }
    }

    pub(crate) async fn say(&mut self, text: &str) -> Result<(), WebSocketError> {
        self.send(Message::text(text.to_owned())).await
    }

    /// Says goodbye, if the server still listens.
    pub(crate) async fn close(mut self) {
        // Gone is what it is to be.
        drop(self.send(Message::close(Some(CloseCode::NORMAL_CLOSURE), "")).await);
    }

    async fn send(&mut self, message: Message) -> Result<(), WebSocketError> {
        match timeout(WRITE, self.stream.send(message)).await {
            Ok(sent) => sent.map_err(WebSocketError::Broken),
            Err(_) => Err(WebSocketError::Silent),
        }
    }
}

/// What a server answers to a key.
fn accept_of(key: &str) -> String {
    const PROOF: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{PROOF}").as_bytes()))
}

/// It keeps caches from answering with another's handshake; it is no secret.
fn nonce() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).unwrap_or_default();
    bytes
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_standards_key_has_the_standards_answer() {
        assert_eq!(super::accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
