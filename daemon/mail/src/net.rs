//! Connections to mail servers.

use std::sync::{Arc, OnceLock};

use rustls_platform_verifier::BuilderVerifierExt;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, crypto};

/// A connection takes no longer than this.
const CONNECT: Duration = Duration::from_secs(30);

/// A mail server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    pub name: String,
    pub port: u16,
    pub security: Security,
}

/// How a connection is kept private.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Security {
    Tls,
    StartTls,
    /// Not at all: for servers of this machine.
    None,
}

pub(crate) trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

pub(crate) type Stream = Box<dyn Both>;

/// Why a server cannot be reached.
#[derive(Debug, Error)]
pub enum NetError {
    #[error("`{host}` has no address")]
    Name {
        host: String,
        #[source]
        source: std::io::Error,
    },
    #[error("`{host}:{port}` cannot be connected to")]
    Connect {
        host: String,
        port: u16,
        #[source]
        source: std::io::Error,
    },
    #[error("`{host}` does not answer in time")]
    Slow { host: String },
    #[error("no encrypted connection to `{host}`")]
    Tls {
        host: String,
        #[source]
        source: std::io::Error,
    },
}

impl Host {
    /// Connects; encrypted from the start where that is how it is done.
    pub(crate) async fn connect(&self) -> Result<Stream, NetError> {
        let Self { name: host, port, security } = self;
        let slow = |_| NetError::Slow { host: host.clone() };
        let addresses = timeout(CONNECT, tokio::net::lookup_host((host.as_str(), *port)))
            .await
            .map_err(slow)?
            .map_err(|source| NetError::Name { host: host.clone(), source })?;
        let addresses: Vec<_> = addresses.collect();
        let stream = timeout(CONNECT, TcpStream::connect(addresses.as_slice()))
            .await
            .map_err(slow)?
            .map_err(|source| NetError::Connect { host: host.clone(), port: *port, source })?;
        match security {
            Security::Tls => self.encrypt(Box::new(stream)).await,
            Security::StartTls | Security::None => Ok(Box::new(stream)),
        }
    }

    /// Goes on encrypted; the server's certificate is checked as this machine does.
    pub(crate) async fn encrypt(&self, stream: Stream) -> Result<Stream, NetError> {
        let failed = |source: std::io::Error| NetError::Tls { host: self.name.clone(), source };
        let name = ServerName::try_from(self.name.clone()).map_err(|error| failed(std::io::Error::other(error)))?;
        let connector = TlsConnector::from(client().map_err(failed)?);
        let stream = timeout(CONNECT, connector.connect(name, stream))
            .await
            .map_err(|_| NetError::Slow { host: self.name.clone() })?
            .map_err(failed)?;
        Ok(Box::new(stream))
    }
}

/// The certificates that this machine trusts are read once.
fn client() -> Result<Arc<ClientConfig>, std::io::Error> {
    static CLIENT: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(known) = CLIENT.get() {
        return Ok(Arc::clone(known));
    }
    let made = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(std::io::Error::other)?
        .with_no_client_auth();
    Ok(Arc::clone(CLIENT.get_or_init(|| Arc::new(made))))
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
