//! A world of mail on loopback.

use std::fs;
use std::os::unix::fs::MetadataExt;

use ow_test_support::{Dovecot, Owd, Postfix, Scratch, id, until};

use crate::counting::asking;
use crate::mail::Domain;

/// Postfix, Dovecot, a domain that signs, and a home for an owd that knows them.
#[derive(Debug)]
pub struct World {
    pub postfix: Postfix,
    pub dovecot: Dovecot,
    pub domain: Domain,
    pub scratch: Scratch,
}

/// ada, who is asked at `to`, writes from `ada@example.org`; owd reads and writes as `owd@example.net`. None where there are no
/// such servers, and the test is skipped.
///
/// # Panics
///
/// When a file cannot be written.
#[must_use]
pub fn world(to: &str) -> Option<World> {
    let dovecot = Dovecot::start()?;
    let postfix = Postfix::start(&dovecot)?;
    let domain = Domain::new();
    let scratch = asking();
    let uid = fs::metadata(scratch.path()).expect("a home").uid();
    scratch.config(&format!(
        "[mail]\ndns = \"{}\"\n[mail.in]\nserver = \"{}\"\nsecurity = \"none\"\nuser = \"owd\"\npassword = \"mail-password\"\n\
         [mail.out]\nserver = \"{}\"\nsecurity = \"none\"\nfrom = \"owd <owd@example.net>\"\n\
         [people.ada]\nuids = [{uid}]\nmail = [\"ada@example.org\"]\n[inboxes.default]\nmail = [\"{to}\"]\n",
        domain.dns(),
        dovecot.address(),
        postfix.address()
    ));
    Some(World { postfix, dovecot, domain, scratch })
}

impl World {
    /// # Panics
    ///
    /// When owd does not start.
    #[must_use]
    pub fn start(&self) -> Owd {
        let opened = || self.scratch.stderr().matches("the mailbox is open").count();
        let before = opened();
        let owd = self.scratch.start_with(|command| {
            command.env("OWD_SECRET_MAIL_PASSWORD", "secret");
        });
        // What lay in it before owd has ever looked is no news.
        until("the mailbox is open", || (opened() > before).then_some(()));
        owd
    }

    /// Has owd send its mail by another way to the same server.
    ///
    /// # Panics
    ///
    /// When the settings cannot be written.
    pub fn reach_out_by(&self, address: &str) {
        let file = self.scratch.path().join("config/owd.toml");
        let text = fs::read_to_string(&file).expect("settings").replace(&self.postfix.address(), address);
        fs::write(file, text).expect("settings");
    }

    /// Runs `asking` and waits until it asks.
    #[must_use]
    pub fn asks(owd: &Owd) -> String {
        owd.owctl.ok(&["task", "run", "asking"]);
        // That a notice of it could not be delivered may stand in the Inbox already.
        let asked = || owd.items().iter().find(|item| item["kind"] == "approval").map(id);
        until("it asks", asked)
    }

    /// Waits for a mail in ada's mailbox with all of these in it, in its head or its text.
    #[expect(clippy::must_use_candidate, reason = "that it arrives is often all that is wanted")]
    pub fn arrives(&self, what: &[&str]) -> String {
        until(&format!("a mail with {what:?}"), || {
            let mails = self.dovecot.mails("ada");
            mails.into_iter().map(|(mail, _)| mail).find(|mail| what.iter().all(|what| readable(mail).contains(what)))
        })
    }

    /// ada's answer to a notice.
    pub fn answer(&self, notice: &str, number: u32, text: &str) {
        let field = |name: &str| field(notice, name);
        let date = field("Date").replace("GMT", "+0000");
        let quoted: Vec<String> = readable(notice).lines().map(|line| format!("> {line}")).collect();
        let text = format!("{text}\n\nOn {date}, owd wrote:\n{}\n", quoted.join("\n"));
        let head = format!("In-Reply-To: {}\r\nMessage-ID: <{number}@mail.example.org>\r\n", field("Message-ID"));
        let subject = format!("Re: {}", field("Subject"));
        let mail = self.domain.mail("Ada <ada@example.org>", &subject, &date, &head, &text);
        self.postfix.submit("ada@example.org", "owd@example.net", &mail);
    }
}

/// A field of a mail's head, on one line.
#[must_use]
pub fn field(mail: &str, name: &str) -> String {
    let head = mail.replace("\r\n", "\n").replace("\n ", " ").replace("\n\t", " ");
    let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap_or_default();
    line.trim().to_owned()
}

/// A mail with the quoting of its transport taken out, up to its HTML.
#[must_use]
pub fn readable(mail: &str) -> String {
    let mail = mail.replace("\r\n", "\n").replace("=\n", "").replace("=3D", "=");
    mail.split("Content-Type: text/html").next().unwrap_or_default().to_owned()
}

/// How many different mails have this in them.
#[must_use]
pub fn distinct(mails: &[(String, bool)], what: &str) -> usize {
    let mut ids: Vec<String> = mails
        .iter()
        .filter(|(mail, _)| readable(mail).contains(what))
        .map(|(mail, _)| field(mail, "Message-ID"))
        .collect();
    ids.sort();
    ids.dedup();
    ids.len()
}
