//! Connections to mail servers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lettre::transport::smtp::client::AsyncTokioStream;
use rustls_platform_verifier::{BuilderVerifierExt, Verifier};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, crypto};

/// A connection takes no longer than this.
const CONNECT: Duration = Duration::from_secs(30);

/// A mail server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    pub name: String,
    pub port: u16,
    pub security: Security,
    /// A file of certificates (PEM) that count beside those that this machine trusts.
    pub ca: Option<PathBuf>,
}

/// How a connection is kept private.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Security {
    Tls,
    StartTls,
    /// Not at all: for servers of this machine.
    None,
}

pub(crate) trait Both: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Both for T {}

pub(crate) type Stream = Box<dyn Both>;

impl std::fmt::Debug for dyn Both {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a connection")
    }
}

/// Mail goes out over the same connections.
impl AsyncTokioStream for Stream {
    fn peer_addr(&self) -> std::io::Result<SocketAddr> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

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
    #[error("no certificates can be read from {}", path.display())]
    Ca {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
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
        let Self { name: host, port, security, ca: _ } = self;
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
        // A mail's end is written after its text and must not wait until that is acknowledged.
        stream.set_nodelay(true).map_err(|source| NetError::Connect { host: host.clone(), port: *port, source })?;
        match security {
            Security::Tls => self.encrypt(Box::new(stream)).await,
            Security::StartTls | Security::None => Ok(Box::new(stream)),
        }
    }

    /// Goes on encrypted; the server's certificate is checked as this machine does.
    pub(crate) async fn encrypt(&self, stream: Stream) -> Result<Stream, NetError> {
        let failed = |source: std::io::Error| NetError::Tls { host: self.name.clone(), source };
        let name = ServerName::try_from(self.name.clone()).map_err(|error| failed(std::io::Error::other(error)))?;
        let client = match &self.ca {
            None => client().map_err(failed)?,
            Some(ca) => client_with(ca).map_err(|source| NetError::Ca { path: ca.clone(), source })?,
        };
        let connector = TlsConnector::from(client);
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

/// One that trusts these certificates too. Read anew each time: they are renewed while owd runs.
fn client_with(ca: &Path) -> Result<Arc<ClientConfig>, std::io::Error> {
    let provider = Arc::new(crypto::ring::default_provider());
    let extra = CertificateDer::pem_slice_iter(&certificates(ca)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(std::io::Error::other)?;
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(std::io::Error::other)?;
    let made = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(made))
}

/// The text of a file with at least one certificate.
pub(crate) fn certificates(ca: &Path) -> Result<Vec<u8>, std::io::Error> {
    let text = std::fs::read(ca)?;
    match CertificateDer::pem_slice_iter(&text).next() {
        Some(Ok(_)) => Ok(text),
        Some(Err(error)) => Err(std::io::Error::other(error)),
        None => Err(std::io::Error::other("it holds no certificate (PEM)")),
    }
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
