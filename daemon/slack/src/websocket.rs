//! A WebSocket to Slack: the handshake over the HTTP client that is there anyway, then frames.

mod frame;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use reqwest::{Client, StatusCode, Upgraded};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use self::frame::{Broken, Decoder, Kind, Message, encode};

const HANDSHAKE: Duration = Duration::from_secs(15);
const WRITE: Duration = Duration::from_secs(10);
const PIECE: usize = 16 * 1024;

/// An open connection.
pub(crate) struct WebSocket {
    stream: Upgraded,
    decoder: Decoder,
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
    Io(#[source] std::io::Error),
    #[error("the server broke the protocol")]
    Broken(#[source] Broken),
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
        let key = STANDARD.encode(random::<16>());
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
        Ok(Self { stream, decoder: Decoder::default() })
    }

    /// The next text. A server that is silent for `patience` is pinged, and given up after as long again.
    ///
    /// # Cancel safety
    ///
    /// What was read stays with the socket; a pong on its way may be cut short, after which the server closes.
    pub(crate) async fn next(&mut self, patience: Duration) -> Result<String, WebSocketError> {
        let mut pinged = false;
        let mut piece = vec![0; PIECE];
        loop {
            match self.decoder.next().map_err(WebSocketError::Broken)? {
                Some(Message::Text(text)) => return Ok(text),
                Some(Message::Ping(what)) => self.send(Kind::Pong, &what).await?,
                Some(Message::Pong | Message::Binary) => {}
                Some(Message::Close) => return Err(WebSocketError::Closed),
                None => match timeout(patience, self.stream.read(&mut piece)).await {
                    Ok(Ok(0)) => return Err(WebSocketError::Closed),
                    Ok(Ok(read)) => {
                        pinged = false;
                        self.decoder.push(&piece[..read]);
                    }
                    Ok(Err(error)) => return Err(WebSocketError::Io(error)),
                    Err(_) if pinged => return Err(WebSocketError::Silent),
                    Err(_) => {
                        self.send(Kind::Ping, b"owd").await?;
                        pinged = true;
                    }
                },
            }
        }
    }

    pub(crate) async fn say(&mut self, text: &str) -> Result<(), WebSocketError> {
        self.send(Kind::Text, text.as_bytes()).await
    }

    /// Says goodbye, if the server still listens.
    pub(crate) async fn close(mut self) {
        const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();
        // Gone is what it is to be.
        drop(self.send(Kind::Close, &NORMAL).await);
    }

    async fn send(&mut self, kind: Kind, payload: &[u8]) -> Result<(), WebSocketError> {
        let frame = encode(kind, payload, random());
        let write = async {
            self.stream.write_all(&frame).await?;
            self.stream.flush().await
        };
        match timeout(WRITE, write).await {
            Ok(written) => written.map_err(WebSocketError::Io),
            Err(_) => Err(WebSocketError::Silent),
        }
    }
}

/// What a server answers to a key.
fn accept_of(key: &str) -> String {
    const PROOF: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{PROOF}").as_bytes()))
}

/// Masks keep proxies from being confused; they are no secret.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without chance the mask is one that anybody knows: the frame is as good.
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
