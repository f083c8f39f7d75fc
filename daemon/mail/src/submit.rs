//! Hands a mail over, to a server or to a program, and says whether it may have gone ([`Fault::Lost`]).

use std::path::{Path, PathBuf};
use std::process::Stdio;

use lettre::Message;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use ow_inbox::Fault;
use ow_model::escape;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::{Duration, timeout};

use crate::net::{Host, Security, certificates};
use crate::reader::chain;

/// A mail is handed over within this time, or it is tried again.
const SEND: Duration = Duration::from_mins(1);

/// Letters of what a server or a program said that are kept.
const SAID: usize = 300;

/// How mail leaves this machine.
#[derive(Clone, Eq, PartialEq)]
pub enum Way {
    Server {
        host: Host,
        login: Option<(String, String)>,
    },
    /// A program that takes a mail as `sendmail` does.
    Program(PathBuf),
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server { host, login: _ } => f.debug_struct("Server").field("host", host).finish_non_exhaustive(),
            Self::Program(path) => f.debug_tuple("Program").field(path).finish(),
        }
    }
}

impl Way {
    /// Hands a mail over for all that its head names; `own` is the name that owd gives itself.
    ///
    /// # Cancel safety
    ///
    /// Whether a mail that was cut off midway has gone is not known.
    pub async fn send(&self, mail: &Message, own: &str) -> Result<(), Fault> {
        match self {
            Self::Server { host, login } => {
                let late = || Fault::later(format!("`{}` does not answer in time", host.name));
                let opened = timeout(SEND, open(host, login.as_ref(), own)).await.unwrap_or_else(|_| Err(late()));
                let mut connection = opened?;
                let late = || Fault::lost("the mail server did not take the mail in time");
                let sent = timeout(SEND, submit(&mut connection, mail, host)).await.unwrap_or_else(|_| Err(late()));
                if sent.is_ok() {
                    // It has the mail; how it says goodbye changes nothing.
                    drop(timeout(SEND, connection.quit()).await);
                }
                sent
            }
            Self::Program(program) => {
                let late = || Fault::lost("the mail program did not take the mail in time");
                timeout(SEND, pipe(mail, program)).await.unwrap_or_else(|_| Err(late()))
            }
        }
    }

    /// Connects and logs in, and says where; sends nothing.
    pub(crate) async fn greet(&self, own: &str) -> Result<String, String> {
        match self {
            Self::Program(program) => {
                let is_there = std::fs::metadata(program).is_ok_and(|found| found.is_file());
                let shown = program.display();
                if is_there { Ok(shown.to_string()) } else { Err(format!("there is no program {shown}")) }
            }
            Self::Server { host, login } => {
                let place = format!("{}:{}", host.name, host.port);
                match timeout(SEND, open(host, login.as_ref(), own)).await {
                    Ok(Ok(mut connection)) => {
                        drop(timeout(SEND, connection.quit()).await);
                        Ok(place)
                    }
                    Ok(Err(fault)) => Err(fault.into_why()),
                    Err(_) => Err(format!("`{place}` does not answer in time")),
                }
            }
        }
    }
}

/// A connection that a mail may be handed over by: encrypted where that is wanted, and logged in.
async fn open(host: &Host, login: Option<&(String, String)>, own: &str) -> Result<AsyncSmtpConnection, Fault> {
    let Host { name, port, security, ca } = host;
    let failed =
        |error: lettre::transport::smtp::Error| Fault::later(format!("`{name}:{port}`: {}", said(&chain(&error))));
    let tls = || {
        let mut tls = TlsParameters::builder(name.clone());
        if let Some(ca) = ca {
            let unread =
                |why: String| Fault::later(format!("no certificates can be read from {}: {why}", ca.display()));
            let text = certificates(ca).map_err(|error| unread(error.to_string()))?;
            tls = tls.add_root_certificate(Certificate::from_pem(&text).map_err(|error| unread(chain(&error)))?);
        }
        tls.build().map_err(failed)
    };
    let wrapper = if *security == Security::Tls { Some(tls()?) } else { None };
    let own = ClientId::Domain(own.to_owned());
    let opened = AsyncSmtpConnection::connect_tokio1((name.as_str(), *port), Some(SEND), &own, wrapper, None);
    let mut connection = opened.await.map_err(failed)?;
    if *security == Security::StartTls {
        connection.starttls(tls()?, &own).await.map_err(failed)?;
    }
    if let Some((user, password)) = login {
        let credentials = Credentials::new(user.clone(), password.clone());
        // A login that is refused is a matter of the configuration, and mended there.
        connection.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(failed)?;
    }
    Ok(connection)
}

async fn submit(connection: &mut AsyncSmtpConnection, mail: &Message, host: &Host) -> Result<(), Fault> {
    let Err(error) = connection.send(mail.envelope(), &mail.formatted()).await else { return Ok(()) };
    let why = format!("`{}`: {}", host.name, said(&chain(&error)));
    // It wants a login, or another one.
    let of_login = error.status().is_some_and(|code| matches!(u16::from(code), 530 | 534 | 535 | 538));
    Err(if error.is_permanent() && !of_login {
        Fault::never(why)
    } else if error.status().is_some() || error.is_client() {
        Fault::later(why)
    } else {
        Fault::lost(why)
    })
}

async fn pipe(mail: &Message, program: &Path) -> Result<(), Fault> {
    /// What `sysexits.h` calls wrong for good: no such user or host, not permitted, bad data.
    const FOR_GOOD: [i32; 5] = [64, 65, 67, 68, 77];
    /// Try later: some keep the mail for that themselves.
    const TEMPFAIL: i32 = 75;
    let envelope = mail.envelope();
    let from = envelope.from().map_or("", AsRef::as_ref);
    let mut child = Command::new(program)
        .args(["-i", "-f", from, "--"])
        .args(envelope.to().iter().map(AsRef::<str>::as_ref))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Fault::later(format!("{} does not start: {error}", program.display())))?;
    let mut stdin = child.stdin.take().expect("piped just above");
    let text = mail.formatted();
    let written = async {
        let done = stdin.write_all(&text).await;
        drop(stdin);
        done
    };
    let (written, ended) = tokio::join!(written, child.wait_with_output());
    let ended = ended.map_err(|error| Fault::lost(format!("{}: {error}", program.display())))?;
    let words = said(&String::from_utf8_lossy(&ended.stderr));
    let why = |how: &str| format!("{} ended with {how}: {words}", program.display());
    match (ended.status.code(), written) {
        (Some(0), Ok(())) => Ok(()),
        (Some(code), _) if FOR_GOOD.contains(&code) => Err(Fault::never(why(&code.to_string()))),
        (Some(code), _) if code != 0 && code != TEMPFAIL => Err(Fault::later(why(&code.to_string()))),
        (Some(code), _) => Err(Fault::lost(why(&code.to_string()))),
        (None, _) => Err(Fault::lost(why("a signal"))),
    }
}

/// On one line, and not too long.
fn said(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape::line(&line).chars().take(SAID).collect()
}
