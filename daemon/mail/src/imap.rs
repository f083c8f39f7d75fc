//! The little of IMAP (RFC 3501, IDLE of RFC 2177) that reading one mailbox takes.

mod connection;
mod frame;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;
use tokio::time::{Duration, timeout};

use crate::imap::connection::Connection;
use crate::imap::frame::{Fetched, Frame};
use crate::net::{Host, NetError, Security};
use crate::reader::Extent;

/// A server is given so long for an answer.
const ANSWER: Duration = Duration::from_mins(1);

/// And so long for a whole mail.
const MAIL: Duration = Duration::from_mins(5);

/// An account and the mailbox in it that is read.
#[derive(Clone, Eq, PartialEq)]
pub struct Account {
    pub host: Host,
    pub user: String,
    pub password: String,
    pub mailbox: String,
}

impl Account {
    /// By which the store knows it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}@{} {}", self.user, self.host.name, self.mailbox)
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Why a mailbox could not be read just then.
#[derive(Debug, Error)]
pub enum ImapError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error("the connection broke")]
    Broken(#[from] std::io::Error),
    #[error("the server ended the connection{}", in_words(.0))]
    Ended(String),
    #[error("the server did not answer `{0}` in time")]
    Slow(&'static str),
    #[error("the server refused the login of `{user}`: {said}")]
    Login { user: String, said: String },
    #[error("the server refused `{command}`: {said}")]
    Refused { command: &'static str, said: String },
    #[error("the server does not offer STARTTLS")]
    NoStartTls,
    #[error("the server said what IMAP does not know: {0}")]
    Nonsense(String),
}

fn in_words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// A mailbox that is open.
pub(crate) struct Session {
    connection: Connection,
    capabilities: Vec<String>,
    pub(crate) validity: u32,
    /// The number that the next mail will have, if the server says it.
    pub(crate) next: Option<u32>,
}

impl Session {
    /// Logs in and opens the mailbox.
    pub(crate) async fn open(account: &Account) -> Result<Self, ImapError> {
        let mut session = Self::greeted(account).await?;
        session.log_in(account).await?;
        session.learn_capabilities().await?;
        let name = quoted(&utf7(&account.mailbox))?;
        for frame in session.ask("SELECT", &format!("SELECT {name}"), ANSWER).await? {
            match frame {
                Frame::Validity(validity) => session.validity = validity,
                Frame::Next(next) => session.next = Some(next),
                _ => {}
            }
        }
        Ok(session)
    }

    async fn greeted(account: &Account) -> Result<Self, ImapError> {
        let mut connection = Connection::new(account.host.connect().await?);
        let greeting = within(ANSWER, "greeting", connection.frame()).await?;
        if let Frame::Bye(words) = greeting {
            return Err(ImapError::Ended(words));
        }
        let mut session = Self { connection, capabilities: vec![], validity: 0, next: None };
        session.learn_capabilities().await?;
        if account.host.security == Security::StartTls {
            if !session.can("STARTTLS") {
                return Err(ImapError::NoStartTls);
            }
            session.ask("STARTTLS", "STARTTLS", ANSWER).await?;
            // What was sent before the encryption counts for nothing.
            session.connection = Connection::new(account.host.encrypt(session.connection.into_stream()).await?);
            session.learn_capabilities().await?;
        }
        Ok(session)
    }

    async fn learn_capabilities(&mut self) -> Result<(), ImapError> {
        let frames = self.ask("CAPABILITY", "CAPABILITY", ANSWER).await?;
        let told = frames.into_iter().filter_map(|frame| match frame {
            Frame::Capabilities(told) => Some(told),
            _ => None,
        });
        self.capabilities = told.flatten().collect();
        Ok(())
    }

    fn can(&self, what: &str) -> bool {
        self.capabilities.iter().any(|known| known.eq_ignore_ascii_case(what))
    }

    async fn log_in(&mut self, account: &Account) -> Result<(), ImapError> {
        let Account { user, password, .. } = account;
        let done = if self.can("AUTH=PLAIN") {
            let secret = crate::net::base64(format!("\0{user}\0{password}").as_bytes());
            within(ANSWER, "AUTHENTICATE", self.connection.authenticate("AUTHENTICATE PLAIN", &secret)).await
        } else {
            let line = format!("LOGIN {} {}", quoted(user)?, quoted(password)?);
            self.ask("LOGIN", &line, ANSWER).await.map(|_| ())
        };
        match done {
            Err(ImapError::Refused { said, .. }) => Err(ImapError::Login { user: user.clone(), said }),
            other => other,
        }
    }

    async fn ask(&mut self, command: &'static str, line: &str, time: Duration) -> Result<Vec<Frame>, ImapError> {
        within(time, command, self.connection.ask(command, line)).await
    }

    /// The same where what is not told counts as not there: an answer that cannot be read is an error then.
    async fn ask_of_mails(
        &mut self,
        command: &'static str,
        line: &str,
        time: Duration,
    ) -> Result<Vec<Frame>, ImapError> {
        let frames = self.ask(command, line, time).await?;
        if frames.contains(&Frame::Unread) {
            return Err(ImapError::Nonsense(format!("an answer to {command} that cannot be read")));
        }
        Ok(frames)
    }

    /// The numbers of the mails after this one, in order.
    pub(crate) async fn after(&mut self, uid: u32) -> Result<Vec<u32>, ImapError> {
        let Some(first) = uid.checked_add(1) else { return Ok(vec![]) };
        let mut found = self.search(&format!("UID {first}:*")).await?;
        // `*` is the last one, even where the range begins after it.
        found.retain(|found| *found > uid);
        Ok(found)
    }

    /// The numbers of the mails that came on that day or later.
    pub(crate) async fn since(&mut self, at: Timestamp) -> Result<Vec<u32>, ImapError> {
        let day = at.to_zoned(TimeZone::UTC).strftime("%d-%b-%Y").to_string();
        self.search(&format!("SINCE {day}")).await
    }

    /// The numbers of the mails that the server got in that second or later: it tells whole seconds.
    pub(crate) async fn arrived_from(&mut self, at: Timestamp) -> Result<Vec<u32>, ImapError> {
        /// Mails that are asked about at once: a command has its length.
        const AT_ONCE: usize = 500;
        // Days begin elsewhere at other times.
        let found = self.since(at.checked_sub(SignedDuration::from_hours(24)).unwrap_or(at)).await?;
        let mut arrived = vec![];
        for some in found.chunks(AT_ONCE) {
            let numbers = some.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let line = format!("UID FETCH {numbers} (UID INTERNALDATE)");
            for frame in self.ask_of_mails("UID FETCH", &line, MAIL).await? {
                if let Frame::Fetched(Fetched { uid: Some(uid), arrived: Some(when), .. }) = frame
                    && when.as_second() >= at.as_second()
                    && found.binary_search(&uid).is_ok()
                {
                    arrived.push(uid);
                }
            }
        }
        arrived.sort_unstable();
        Ok(arrived)
    }

    async fn search(&mut self, what: &str) -> Result<Vec<u32>, ImapError> {
        self.connection.news = false;
        let frames = self.ask_of_mails("UID SEARCH", &format!("UID SEARCH {what}"), ANSWER).await?;
        let told = frames.into_iter().filter_map(|frame| match frame {
            Frame::Found(found) => Some(found),
            _ => None,
        });
        let mut found: Vec<u32> = told.flatten().collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// A mail, only its headers if it is larger than `most` bytes; none: it is not there any more.
    pub(crate) async fn fetch(&mut self, uid: u32, most: u64) -> Result<Option<(Vec<u8>, Extent)>, ImapError> {
        let about = self.ask_of_mails("UID FETCH", &format!("UID FETCH {uid} (UID RFC822.SIZE)"), ANSWER).await?;
        let Some(Fetched { size, .. }) = of_mail(about, uid) else { return Ok(None) };
        // Not marked as read by looking.
        let (what, extent) = match size {
            Some(size) if size > most => ("BODY.PEEK[HEADER]", Extent::Head),
            _ => ("BODY.PEEK[]", Extent::Whole),
        };
        let frames = self.ask_of_mails("UID FETCH", &format!("UID FETCH {uid} (UID {what})"), MAIL).await?;
        Ok(of_mail(frames, uid).and_then(|found| found.body).map(|body| (body, extent)))
    }

    /// Marks a mail as read.
    pub(crate) async fn mark_read(&mut self, uid: u32) -> Result<(), ImapError> {
        self.ask("UID STORE", &format!("UID STORE {uid} +FLAGS.SILENT (\\Seen)"), ANSWER).await.map(|_| ())
    }

    /// Whether the server tells by itself of new mail.
    pub(crate) fn tells(&self) -> bool {
        self.can("IDLE")
    }

    /// Waits until the server tells of new mail, or until `end`.
    pub(crate) async fn idle(&mut self, end: impl Future<Output = ()>) -> Result<(), ImapError> {
        if self.connection.news {
            return Ok(());
        }
        within(ANSWER, "IDLE", self.connection.begin_idle()).await?;
        let told = async {
            while !self.connection.news {
                let frame = self.connection.frame().await?;
                if let Frame::Bye(words) = frame {
                    return Err(ImapError::Ended(words));
                }
            }
            Ok(())
        };
        tokio::select! {
            told = told => told?,
            () = end => {}
        }
        within(ANSWER, "DONE", self.connection.end_idle()).await
    }

    /// Says goodbye, and does not wait for the answer.
    pub(crate) async fn close(mut self) {
        drop(timeout(Duration::from_secs(2), self.connection.ask("LOGOUT", "LOGOUT")).await);
    }
}

async fn within<T>(
    time: Duration,
    command: &'static str,
    answer: impl Future<Output = Result<T, ImapError>>,
) -> Result<T, ImapError> {
    timeout(time, answer).await.unwrap_or(Err(ImapError::Slow(command)))
}

/// What was fetched of this mail: a server may tell of others in between.
fn of_mail(frames: Vec<Frame>, uid: u32) -> Option<Fetched> {
    frames.into_iter().find_map(|frame| match frame {
        Frame::Fetched(fetched) if fetched.uid == Some(uid) => Some(fetched),
        _ => None,
    })
}

/// A mailbox's name as IMAP writes it (RFC 3501, 5.1.3): what is not ASCII as UTF-16 in a base64 of its own.
fn utf7(name: &str) -> String {
    let (mut written, mut foreign) = (String::new(), vec![]);
    let flush = |written: &mut String, foreign: &mut Vec<u8>| {
        if !foreign.is_empty() {
            let text = crate::net::base64(foreign).trim_end_matches('=').replace('/', ",");
            written.push('&');
            written.push_str(&text);
            written.push('-');
            foreign.clear();
        }
    };
    for letter in name.chars() {
        if matches!(letter, ' '..='~') {
            flush(&mut written, &mut foreign);
            written.push(letter);
            if letter == '&' {
                written.push('-');
            }
        } else {
            foreign.extend(letter.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| unit.to_be_bytes()));
        }
    }
    flush(&mut written, &mut foreign);
    written
}

/// As a quoted string.
fn quoted(text: &str) -> Result<String, ImapError> {
    if text.chars().any(|letter| letter.is_control() || !letter.is_ascii()) {
        return Err(ImapError::Nonsense("a name or password that IMAP cannot quote".into()));
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailboxs_name_is_written_as_servers_know_it() {
        for (name, written) in [
            ("INBOX", "INBOX"),
            ("Research & Development", "Research &- Development"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("📥", "&2D3c5Q-"),
        ] {
            assert_eq!(utf7(name), written, "{name}");
        }
    }
}
