//! Hands mails over to a server, several over one connection where they follow at once.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lettre::Message;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, MailBodyParameter, MailParameter};
use ow_inbox::Fault;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep_until, timeout};

use crate::net::{Host, Security, certificates};
use crate::reader::chain;
use crate::submit::{SEND, said};

/// A kept connection has to answer within this time, or a new one is opened: its other end may be long gone.
const KEPT_ANSWERS: Duration = Duration::from_secs(10);

/// A connection is kept for mail that follows at once; no server is held for what may not come.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// Connections kept at the same time.
const MOST: usize = 4;

/// How long a goodbye may take. The mail is over there, and nothing depends on it.
const GOODBYE: Duration = Duration::from_secs(5);

/// A server that takes mail.
#[derive(Clone, Copy)]
pub(crate) struct Server<'a> {
    pub(crate) host: &'a Host,
    pub(crate) login: Option<&'a (String, String)>,
    /// The name that owd gives itself.
    pub(crate) own: &'a str,
}

impl Server<'_> {
    /// Hands a mail over for all that its head names.
    ///
    /// # Cancel safety
    ///
    /// Whether a mail that was cut off midway has gone is not known.
    pub(crate) async fn send(&self, mail: &Message, kept: &Kept) -> Result<(), Fault> {
        let known = match kept.take() {
            Some(mut connection) => {
                let announced = timeout(KEPT_ANSWERS, announce(&mut connection, mail)).await;
                // What it refuses may be the connection's fault, and nothing of the mail has gone: a new one is asked.
                matches!(announced, Ok(Ok(()))).then_some(connection)
            }
            None => None,
        };
        let mut connection = if let Some(connection) = known {
            connection
        } else {
            let late = || Fault::later(format!("`{}` does not answer in time", self.host.name));
            timeout(SEND, self.announced(mail)).await.unwrap_or_else(|_| Err(late()))?
        };
        // From here on the server may have it, unless it says that it has not. It is not handed over again here.
        match timeout(SEND, connection.message(&mail.formatted())).await {
            Ok(Ok(_)) => {
                kept.keep(connection);
                Ok(())
            }
            Ok(Err(error)) => Err(self.refused(&error).unwrap_or_else(|| Fault::lost(self.words(&error)))),
            Err(_) => Err(Fault::lost("the mail server did not take the mail in time")),
        }
    }

    /// A new connection, to the point where a mail's text may follow.
    async fn announced(&self, mail: &Message) -> Result<AsyncSmtpConnection, Fault> {
        let mut connection = self.open().await?;
        match announce(&mut connection, mail).await {
            Ok(()) => Ok(connection),
            Err(error) => {
                goodbye(connection).await;
                Err(self.refused(&error).unwrap_or_else(|| Fault::later(self.words(&error))))
            }
        }
    }

    /// Connects and logs in, and goes again.
    pub(crate) async fn greet(&self) -> Result<(), Fault> {
        let late = || Fault::later(format!("`{}:{}` does not answer in time", self.host.name, self.host.port));
        goodbye(timeout(SEND, self.open()).await.unwrap_or_else(|_| Err(late()))?).await;
        Ok(())
    }

    /// A connection that a mail may be handed over by: encrypted where that is wanted, and logged in.
    async fn open(&self) -> Result<AsyncSmtpConnection, Fault> {
        let Host { name, port, security, ca: _ } = self.host;
        let failed = |error: Error| Fault::later(format!("`{name}:{port}`: {}", said(&chain(&error))));
        let own = ClientId::Domain(self.own.to_owned());
        let stream = self.host.connect().await.map_err(|error| Fault::later(said(&chain(&error))))?;
        let opened = AsyncSmtpConnection::connect_with_transport(Box::new(stream), &own);
        let mut connection = opened.await.map_err(failed)?;
        if *security == Security::StartTls {
            // It asks once more what the server offers, now that nobody else can have said it.
            connection.starttls(tls(self.host)?, &own).await.map_err(failed)?;
        }
        if let Some((user, password)) = self.login {
            let credentials = Credentials::new(user.clone(), password.clone());
            // A login that is refused is a matter of the configuration, and mended there.
            connection.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(failed)?;
        }
        Ok(connection)
    }

    /// What the server's word, or ours before anything was sent, makes of a mail; none: nobody has spoken.
    fn refused(&self, error: &Error) -> Option<Fault> {
        // It wants a login, or another one.
        let of_login = error.status().is_some_and(|code| matches!(u16::from(code), 530 | 534 | 535 | 538));
        if error.is_permanent() && !of_login {
            Some(Fault::never(self.words(error)))
        } else {
            (error.status().is_some() || error.is_client()).then(|| Fault::later(self.words(error)))
        }
    }

    fn words(&self, error: &Error) -> String {
        format!("`{}`: {}", self.host.name, said(&chain(error)))
    }
}

/// How a connection that is open goes on encrypted.
fn tls(host: &Host) -> Result<TlsParameters, Fault> {
    let mut tls = TlsParameters::builder(host.name.clone());
    if let Some(ca) = &host.ca {
        let unread = |why: String| Fault::later(format!("no certificates can be read from {}: {why}", ca.display()));
        let text = certificates(ca).map_err(|error| unread(error.to_string()))?;
        tls = tls.add_root_certificate(Certificate::from_pem(&text).map_err(|error| unread(chain(&error)))?);
    }
    tls.build().map_err(|error| Fault::later(format!("`{}`: {}", host.name, said(&chain(&error)))))
}

/// Says who a mail is from and for whom, up to where its text may follow. None of it has gone yet.
async fn announce(connection: &mut AsyncSmtpConnection, mail: &Message) -> Result<(), Error> {
    let envelope = mail.envelope();
    let mut options = vec![];
    // A server that does not take what these say refuses them, and that for good.
    let mut addresses = envelope.from().into_iter().chain(envelope.to());
    if addresses.any(|address| !AsRef::<str>::as_ref(address).is_ascii()) {
        options.push(MailParameter::SmtpUtfEight);
    }
    if !mail.formatted().is_ascii() {
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    connection.command(Mail::new(envelope.from().cloned(), options)).await?;
    for to in envelope.to() {
        connection.command(Rcpt::new(to.clone(), vec![])).await?;
    }
    connection.command(Data).await.map(drop)
}

async fn goodbye(mut connection: AsyncSmtpConnection) {
    drop(timeout(GOODBYE, connection.quit()).await);
}

/// Connections over which a mail was taken and another may go.
pub(crate) struct Kept {
    /// How long each stays without a mail.
    stay: Duration,
    idle: Arc<Mutex<Idle>>,
    /// At most one of them is not at its end.
    closing: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Idle {
    /// With the instant at which each goes, the soonest first.
    connections: Vec<(Instant, AsyncSmtpConnection)>,
    /// Somebody sees to it that they go.
    watched: bool,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self { stay: KEPT_FOR, idle: Arc::default(), closing: Mutex::default() }
    }
}

impl Kept {
    /// The one that was used last.
    fn take(&self) -> Option<AsyncSmtpConnection> {
        lock(&self.idle).connections.pop().map(|(_, connection)| connection)
    }

    fn keep(&self, connection: AsyncSmtpConnection) {
        let mut idle = lock(&self.idle);
        if idle.connections.len() >= MOST {
            // It goes without a word, as servers take it too.
            drop(idle.connections.remove(0));
        }
        idle.connections.push((Instant::now() + self.stay, connection));
        if !std::mem::replace(&mut idle.watched, true) {
            let mut closing = lock(&self.closing);
            while closing.try_join_next().is_some() {}
            closing.spawn(close(Arc::clone(&self.idle)));
        }
    }
}

/// Closes each connection in its time; ends with the last.
async fn close(idle: Arc<Mutex<Idle>>) {
    loop {
        let due = {
            let mut idle = lock(&idle);
            let Some((due, _)) = idle.connections.first() else {
                idle.watched = false;
                return;
            };
            *due
        };
        sleep_until(due).await;
        let over = {
            let mut idle = lock(&idle);
            let first = idle.connections.first().is_some_and(|(due, _)| *due <= Instant::now());
            first.then(|| idle.connections.remove(0).1)
        };
        if let Some(connection) = over {
            goodbye(connection).await;
        }
    }
}

/// No lock is held where something else may fail.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
