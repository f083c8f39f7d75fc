//! Tries the way of a mail, step by step, and says which step fails.

use crate::channel::MailChannel;
use crate::imap::{Account, ImapError, Session};
use crate::net::NetError;
use crate::reader::chain;

/// Mails that are looked through for the relay's name.
const MAILS: usize = 20;

/// How one way was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Probe {
    pub message: String,
    /// What to do; none: all is well.
    pub remedy: Option<String>,
}

impl Probe {
    fn well(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: None }
    }

    fn fault(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: Some(remedy.into()) }
    }
}

/// Opens the mailbox, and looks whether the relay's results stand in its last mails.
pub async fn probe_mailbox(account: &Account, relay: Option<&str>) -> Vec<Probe> {
    let mut session = match Session::open(account).await {
        Ok(session) => session,
        Err(error) => return vec![Probe::fault(chain(&error), remedy(&error))],
    };
    let mut found = vec![Probe::well(format!("{} can be read", account.name()))];
    if !session.tells() {
        found.push(Probe::fault(
            "the server does not tell of new mail by itself (IDLE); it is asked once a minute",
            "nothing needs to be done; answers come up to a minute later",
        ));
    }
    if let Some(relay) = relay {
        found.push(named(&mut session, relay).await);
    }
    session.close().await;
    found
}

async fn named(session: &mut Session, relay: &str) -> Probe {
    let uids = match session.after(0).await {
        Ok(uids) => uids,
        Err(error) => return Probe::fault(chain(&error), remedy(&error)),
    };
    let mut others = vec![];
    for uid in uids.iter().rev().take(MAILS) {
        // Headers are enough.
        let Ok(Some((raw, _))) = session.fetch(*uid, 0).await else { continue };
        let Some(mail) = ow_reply::Received::read(&raw) else { continue };
        let Some(results) = mail.header("authentication-results") else { continue };
        let name = results.split([';', ' ']).next().unwrap_or_default().to_owned();
        if name.eq_ignore_ascii_case(relay) {
            return Probe::well(format!("the last mails carry the results of `{relay}`"));
        }
        if !others.contains(&name) {
            others.push(name);
        }
    }
    match others.first() {
        Some(other) => Probe::fault(
            format!("the last mails carry the results of `{}`, not of `{relay}`", ow_model::escape::line(other)),
            "set `authserv-id` in [mail] to the name that your own mail server writes there, and to no other",
        ),
        None => Probe::fault(
            format!("none of the last mails carries results of `{relay}`"),
            "send the account a mail and look again; if there are none still, leave `authserv-id` out: signatures then prove senders",
        ),
    }
}

fn remedy(error: &ImapError) -> &'static str {
    match error {
        ImapError::Net(NetError::Name { .. }) => "look at `server` in [mail.in], and at this machine's DNS",
        ImapError::Net(NetError::Connect { .. } | NetError::Slow { .. }) => {
            "look at `server` and its port in [mail.in]; 993 is for security = \"tls\", 143 for \"starttls\""
        }
        ImapError::Net(NetError::Tls { .. }) => {
            "look at `security` in [mail.in]; `server` must be the name that the certificate is for, and its issuer one that this \
             machine trusts"
        }
        ImapError::Login { .. } => {
            "look at `user`, and give the password again with `owctl secret set`; many providers want one made for programs"
        }
        ImapError::Refused { command: "SELECT", .. } => {
            "set `mailbox` in [mail.in] to a mailbox that there is, as \"INBOX\""
        }
        ImapError::NoStartTls => "set `security` in [mail.in] to \"tls\", and its port to 993",
        ImapError::Refused { .. }
        | ImapError::Broken(_)
        | ImapError::Ended(_)
        | ImapError::Slow(_)
        | ImapError::Nonsense(_) => "look whether `server` in [mail.in] is an IMAP server",
    }
}

/// Connects to the server that mail goes out by, and logs in.
pub async fn probe_out(channel: &MailChannel) -> Probe {
    match channel.way.greet(channel.from.email.domain()).await {
        Ok(way) => Probe::well(format!("mail goes out by {way}")),
        Err(why) => Probe::fault(
            why,
            "look at `server`, `security`, `user` and `password` in [mail.out]; 465 is for \"tls\", 587 for \"starttls\"",
        ),
    }
}
