//! Sends what the outbox holds for people's addresses.

use std::path::PathBuf;
use std::process::Stdio;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use ow_clock::Clock;
use ow_inbox::{Channel, Delivered, Fault};
use ow_model::escape;
use ow_store::{Content, Delivery, Thread};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::{Duration, timeout};

use crate::net::{Host, Security};
use crate::notice::{Letter, acknowledgement, digest};
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

/// Mail as a channel: one connection a mail.
#[derive(Clone, Debug)]
pub struct MailChannel {
    pub from: Mailbox,
    pub way: Way,
    pub zone: TimeZone,
    pub clock: Clock,
}

#[async_trait]
impl Channel for MailChannel {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Fault> {
        let to: Address = delivery
            .binding
            .address()
            .parse()
            .map_err(|_| Fault::never(format!("`{}` is no mail address", delivery.binding.address())))?;
        let host = self.from.email.domain();
        let message_id = match &delivery.content {
            // A reply to several items at once names none of them.
            Content::Notices(notices) if notices.len() > 1 => {
                let number = delivery.message_id.rsplit('.').next().unwrap_or_default();
                format!("<owd.several.{number}@{host}>")
            }
            Content::Notices(_) | Content::Reply(_) => format!("<{}@{host}>", delivery.message_id),
        };
        let thread = match &delivery.content {
            Content::Notices(notices) => match notices.as_slice() {
                [one] => one.thread.iter().map(|thread| name_of(thread, host)).collect(),
                _ => vec![],
            },
            Content::Reply(reply) => thread_of(&reply.references, reply.in_reply_to.as_deref()),
        };
        let letter = Letter {
            from: &self.from,
            to: &to,
            message_id: &message_id,
            thread: &thread,
            date: self.clock.now(),
            zone: &self.zone,
        };
        let written = match &delivery.content {
            Content::Notices(notices) => {
                let news: Vec<_> = notices.iter().map(|notice| (&notice.item, notice.occasion)).collect();
                digest(&news, &letter)
            }
            Content::Reply(reply) => acknowledgement(&reply.text, &reply.subject, &letter),
        };
        let mail = written.map_err(|error| Fault::never(chain(&error)))?;
        self.send(mail, &to).await?;
        Ok(Delivered { reference: Some(message_id) })
    }
}

/// The Message-ID of a mail that was delivered before.
fn name_of(thread: &Thread, host: &str) -> String {
    thread.reference.clone().unwrap_or_else(|| format!("<{}@{host}>", thread.message_id))
}

/// What goes into `References`: ids alone, for they come from another's mail.
fn thread_of(references: &[String], in_reply_to: Option<&str>) -> Vec<String> {
    let mut ids: Vec<String> = vec![];
    for id in references.iter().map(String::as_str).chain(in_reply_to) {
        let plain = id.len() < 250
            && id.starts_with('<')
            && id.ends_with('>')
            && id.bytes().all(|byte| byte.is_ascii_graphic());
        if plain && !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    // A thread's beginning and its end are what programs go by.
    if ids.len() > 12 {
        ids.drain(1..ids.len() - 11);
    }
    ids
}

impl MailChannel {
    /// Hands a mail over.
    ///
    /// # Cancel safety
    ///
    /// Whether a mail that was cut off midway has gone is not known.
    pub async fn send(&self, mail: Message, to: &Address) -> Result<(), Fault> {
        let sent = async {
            match &self.way {
                Way::Server { host, login } => self.submit(&mail, host, login.as_ref()).await,
                Way::Program(program) => self.pipe(&mail, program, to).await,
            }
        };
        timeout(SEND, sent).await.unwrap_or_else(|_| Err(Fault::later("the mail server did not take the mail in time")))
    }

    /// Connects and logs in, and says where; sends nothing.
    pub(crate) async fn greet(&self) -> Result<String, String> {
        match &self.way {
            Way::Program(program) => {
                let is_there = std::fs::metadata(program).is_ok_and(|found| found.is_file());
                let shown = program.display();
                if is_there { Ok(shown.to_string()) } else { Err(format!("there is no program {shown}")) }
            }
            Way::Server { host, login } => {
                let fault = |fault: Fault| match fault {
                    Fault::Later { why, .. } | Fault::Never { why } => why,
                };
                let transport = transport(host, login.as_ref(), self.from.email.domain()).map_err(fault)?;
                match timeout(SEND, transport.test_connection()).await {
                    Ok(Ok(true)) => Ok(format!("{}:{}", host.name, host.port)),
                    Ok(Ok(false)) => Err(format!("`{}:{}` does not answer as a mail server", host.name, host.port)),
                    Ok(Err(error)) => Err(format!("`{}:{}`: {}", host.name, host.port, said(&chain(&error)))),
                    Err(_) => Err(format!("`{}:{}` does not answer in time", host.name, host.port)),
                }
            }
        }
    }

    async fn submit(&self, mail: &Message, host: &Host, login: Option<&(String, String)>) -> Result<(), Fault> {
        let transport = transport(host, login, self.from.email.domain())?;
        match transport.send(mail.clone()).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let why = format!("`{}`: {}", host.name, said(&chain(&error)));
                // A login that is refused is a matter of the configuration, and mended there.
                let of_login = error.status().is_some_and(|code| matches!(u16::from(code), 530 | 534 | 535 | 538));
                if error.is_permanent() && !of_login { Err(Fault::never(why)) } else { Err(Fault::later(why)) }
            }
        }
    }

    async fn pipe(&self, mail: &Message, program: &std::path::Path, to: &Address) -> Result<(), Fault> {
        /// What `sysexits.h` calls wrong for good: no such user or host, not permitted, bad data.
        const FOR_GOOD: [i32; 5] = [64, 65, 67, 68, 77];
        let from: &str = self.from.email.as_ref();
        let mut child = Command::new(program)
            .args(["-i", "-f", from, "--", to.as_ref()])
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
        let ended = ended.map_err(|error| Fault::later(format!("{}: {error}", program.display())))?;
        let words = said(&String::from_utf8_lossy(&ended.stderr));
        match (ended.status.code(), written) {
            (Some(0), Ok(())) => Ok(()),
            (Some(code), _) if FOR_GOOD.contains(&code) => {
                Err(Fault::never(format!("{} ended with {code}: {words}", program.display())))
            }
            (code, _) => {
                let code = code.map_or_else(|| "a signal".into(), |code| code.to_string());
                Err(Fault::later(format!("{} ended with {code}: {words}", program.display())))
            }
        }
    }
}

fn transport(
    host: &Host,
    login: Option<&(String, String)>,
    own: &str,
) -> Result<AsyncSmtpTransport<Tokio1Executor>, Fault> {
    let tls = || {
        TlsParameters::new(host.name.clone()).map_err(|error| Fault::later(format!("no encryption: {}", chain(&error))))
    };
    let tls = match host.security {
        Security::Tls => Tls::Wrapper(tls()?),
        Security::StartTls => Tls::Required(tls()?),
        Security::None => Tls::None,
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host.name.clone())
        .port(host.port)
        .tls(tls)
        .timeout(Some(SEND))
        .hello_name(ClientId::Domain(own.to_owned()));
    if let Some((user, password)) = login {
        builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
    }
    Ok(builder.build())
}

/// On one line, and not too long.
fn said(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape::line(&line).chars().take(SAID).collect()
}
