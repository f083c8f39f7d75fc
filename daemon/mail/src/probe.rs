//! Tries the way of a mail, step by step, and says which step fails.

use std::collections::BTreeSet;

use ow_model::Person;
use ow_reply::Received;

use crate::channel::MailChannel;
use crate::desk::{Dns, MailSettings};
use crate::imap::{Account, ImapError, Session};
use crate::net::NetError;
use crate::reader::chain;
use crate::signatures::{Key, Signatures, signers, speaks_for};

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

/// Opens the mailbox, and looks whether its last mails carry what `proofs` prove senders by: the relay's results, or
/// signatures whose keys are in the DNS. Without `proofs` nobody is to be proven there.
pub async fn probe_mailbox(account: &Account, proofs: Option<&MailSettings>) -> Vec<Probe> {
    let mut session = match Session::open(account).await {
        Ok(session) => session,
        Err(error) => return vec![Probe::fault(format!("{}: {}", account.name(), chain(&error)), remedy(&error))],
    };
    let mut found = vec![Probe::well(format!("{} can be read", account.name()))];
    if !session.tells() {
        found.push(Probe::fault(
            "the server does not tell of new mail by itself (IDLE); it is asked once a minute",
            "nothing needs to be done; answers come up to a minute later",
        ));
    }
    if let Some(MailSettings { relay, dns, people, phrases: _ }) = proofs
        && (relay.is_some() || *dns != Dns::Off)
    {
        match last_heads(&mut session).await {
            Err(error) => found.push(Probe::fault(chain(&error), remedy(&error))),
            Ok(heads) => found.extend(proven(&heads, relay.as_deref(), *dns, people).await),
        }
    }
    session.close().await;
    found
}

/// Whether the mails carry what senders are proven by.
async fn proven(heads: &[Vec<u8>], relay: Option<&str>, dns: Dns, people: &[(Person, Vec<String>)]) -> Vec<Probe> {
    if let Some(relay) = relay {
        return vec![named(heads, relay)];
    }
    let addresses = people.iter().flat_map(|(_, addresses)| addresses);
    let domains: BTreeSet<&str> = addresses.filter_map(|address| Some(address.rsplit_once('@')?.1)).collect();
    let mut found = vec![];
    for domain in domains {
        found.push(signed(heads, domain, dns).await);
    }
    found
}

/// The headers of the last mails, the newest first.
async fn last_heads(session: &mut Session) -> Result<Vec<Vec<u8>>, ImapError> {
    let uids = session.after(0).await?;
    let mut heads = vec![];
    for uid in uids.iter().rev().take(MAILS) {
        if let Ok(Some((raw, _))) = session.fetch(*uid, 0).await {
            heads.push(raw);
        }
    }
    Ok(heads)
}

fn named(heads: &[Vec<u8>], relay: &str) -> Probe {
    let mut others = vec![];
    for raw in heads {
        let Some(mail) = Received::read(raw) else { continue };
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

/// Whether the newest mail from a domain is signed by it, and its key is in the DNS.
async fn signed(heads: &[Vec<u8>], domain: &str, dns: Dns) -> Probe {
    let is_from = |raw: &&Vec<u8>| {
        let sender = Received::read(raw).and_then(|mail| mail.sender().map(|sender| sender.address.clone()));
        sender.is_some_and(|address| address.rsplit_once('@').is_some_and(|(_, of)| of.eq_ignore_ascii_case(domain)))
    };
    let Some(newest) = heads.iter().find(is_from) else {
        return Probe::fault(
            format!("none of the last mails is from `{domain}`: whether it signs its mail (DKIM) is not known"),
            "send the account a mail from there and look again; by signatures answers are proven",
        );
    };
    let signer = signers(newest).into_iter().find(|(by, _)| speaks_for(by, domain));
    let Some((by, selector)) = signer else {
        return Probe::fault(
            format!("the newest mail from `{domain}` is not signed by it (DKIM), so answers from there do not count"),
            "have whoever runs the mail of that domain sign it, or set `authserv-id` in [mail] to the name that your own mail server \
             begins its Authentication-Results with",
        );
    };
    let (by, selector) = (ow_model::escape::line(&by).into_owned(), ow_model::escape::line(&selector).into_owned());
    let server = match dns {
        Dns::At(server) => Some(server),
        Dns::Off | Dns::System => None,
    };
    let key = match Signatures::new(server) {
        Ok(signatures) => signatures.key(&by, &selector).await,
        Err(why) => Key::Unknown(why),
    };
    let name = format!("{selector}._domainkey.{by}");
    match key {
        Key::There => Probe::well(format!("mail from `{domain}` is signed, and its key `{name}` is in the DNS")),
        Key::Missing => Probe::fault(
            format!("mail from `{domain}` is signed with the key `{name}`, which is not in the DNS"),
            "whoever runs the mail of that domain must publish it there; until then answers from there do not count",
        ),
        Key::Broken(why) => Probe::fault(
            format!(
                "mail from `{domain}` is signed with the key `{name}`, and what is in the DNS by that name is none: {why}"
            ),
            "whoever runs the mail of that domain must mend it; until then answers from there do not count",
        ),
        Key::Unknown(why) => Probe::fault(
            format!("the DNS does not tell the key `{name}` of `{domain}`: {}", ow_model::escape::line(&why)),
            "look at this machine's DNS servers, and at `dns` in [mail]; until they answer, mails wait and are tried again",
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
             machine trusts, or one that `ca` names"
        }
        ImapError::Net(NetError::Ca { .. }) => {
            "let `ca` in [mail.in] name a file with the certificate of your server's issuer, as PEM, that owd may read"
        }
        ImapError::Login { .. } => {
            "look at `user` in [mail.in], and give the password again with `owctl secret set`; many providers want one made for programs"
        }
        ImapError::Refused { command: "SELECT", .. } => {
            "set `mailbox` in [mail.in], or `folders`, to mailboxes that there are, as \"INBOX\""
        }
        ImapError::NoStartTls => {
            "set `security` in [mail.in] to \"tls\", and its port to 993; nothing was sent unencrypted"
        }
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
            "look at `server`, `security`, `ca`, `user` and `password` in [mail.out]; 465 is for \"tls\", 587 for \"starttls\"",
        ),
    }
}
