//! Who hands mail over at the socket, and what it may decide then: a mail's own header says who wrote it, so that whoever
//! may connect could write as anybody.

use std::sync::Arc;

use async_trait::async_trait;
use ow_config::Config;
use ow_mail::{Admits, Admitted, Extent, Taken, Takes};
use ow_model::Person;
use ow_server::{Lineage, is_stranger};
use ow_store::StoreError;
use tokio::net::UnixStream;

use crate::mail::MailDesk;
use crate::people::Accounts;

/// Whose process is at the other end of the socket.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Hand {
    /// The mail server's: it vouches for what it writes into a mail.
    Server,
    /// A person's: no mail of theirs decides what they may not decide themselves.
    Person(Person),
    /// Somebody else's, who may hand over nothing.
    Nobody,
}

/// `[mail] lmtp-user` is the mail server, whoever else it is; so is root, unless it is a person's account, and where there
/// are no people, owd's own account.
fn hand(config: &Config, own_uid: u32, user: Option<&str>, uid: u32) -> Hand {
    let is_server = |named: &str| user == Some(named) || named.parse() == Ok(uid);
    if config.mail.lmtp_user.as_deref().is_some_and(is_server) {
        return Hand::Server;
    }
    match config.person_of(uid, user) {
        Some((name, _)) => Hand::Person(Person(name.to_owned())),
        None if uid == 0 || config.people.is_empty() && uid == own_uid => Hand::Server,
        None => Hand::Nobody,
    }
}

/// Lets in whom the configuration knows, each with what they may decide.
pub(crate) fn admits(desk: Arc<MailDesk>) -> Arc<Admits> {
    let (lineage, accounts, own_uid) = (Lineage::own(), Accounts::of_machine(), rustix::process::getuid().as_raw());
    Arc::new(move |stream: &UnixStream| {
        let credentials = stream.peer_cred().map_err(|error| format!("who connects cannot be told: {error}"))?;
        let uid = credentials.uid();
        let by = match hand(&desk.config().config, own_uid, accounts.name(uid).as_deref(), uid) {
            Hand::Server => None,
            Hand::Person(person) => Some(person),
            Hand::Nobody => return Err(format!("uid {uid} is neither a person nor `lmtp-user` of [mail]")),
        };
        // A process that owd started could write a mail that claims to come from a person.
        let still = Box::new(is_stranger(credentials, &lineage));
        if !still() {
            return Err("a process that owd started, or that is gone, may hand over no mail".into());
        }
        Ok(Admitted { takes: Arc::new(Handed { desk: Arc::clone(&desk), by }), still })
    })
}

/// The desk, for what one connection brings.
struct Handed {
    desk: Arc<MailDesk>,
    by: Option<Person>,
}

#[async_trait]
impl Takes for Handed {
    async fn take(&self, raw: &[u8], extent: Extent, folder: Option<&str>) -> Result<Taken, StoreError> {
        self.desk.take_from(raw, extent, self.by.as_ref(), folder).await
    }

    async fn give_up(&self, mailbox: &str, uid: u32) -> Result<(), StoreError> {
        self.desk.give_up(mailbox, uid).await
    }

    fn stands(&self, mailbox: &str, fault: Option<&str>) {
        Takes::stands(&*self.desk, mailbox, fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mail_server_hands_over_what_others_write() {
        let read = |server: &str| {
            let text = format!("[mail]\nlmtp = \"/run/owd/lmtp\"\n{server}\n[people.eve]\nuids = [1001]\n");
            Config::parse(&text, None, &crate::args::host()).expect("a configuration")
        };
        let eve = Hand::Person(Person("eve".into()));
        for (server, user, uid, expected) in [
            ("", Some("eve"), 1001, eve.clone()),
            ("", None, 1001, eve),
            ("", Some("postfix"), 89, Hand::Nobody),
            ("", Some("owd"), 1000, Hand::Nobody),
            ("", Some("root"), 0, Hand::Server),
            ("lmtp-user = \"postfix\"", Some("postfix"), 89, Hand::Server),
            ("lmtp-user = \"89\"", None, 89, Hand::Server),
            ("lmtp-user = \"postfix\"", Some("mallory"), 1002, Hand::Nobody),
            ("lmtp-user = \"eve\"", Some("eve"), 1001, Hand::Server),
        ] {
            assert_eq!(hand(&read(server), 1000, user, uid), expected, "{server} {user:?} {uid}");
        }
        let alone = Config::new(&crate::args::host());
        assert_eq!(hand(&alone, 1000, Some("owd"), 1000), Hand::Server);
        assert_eq!(hand(&alone, 1000, Some("mallory"), 1002), Hand::Nobody);
    }
}
