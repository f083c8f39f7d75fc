use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::read::path;
use crate::document::{Found, Section};

/// Mail: whose counts, where it is read, how it is sent.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailConfig {
    /// The relay whose topmost `Authentication-Results` is believed, by the name it gives itself there. None: only a
    /// signature proves a sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authserv_id: Option<String>,
    /// Whether a signature of the sender's own domain proves who sent a mail.
    pub signatures: bool,
    /// The DNS server that is asked for the keys of signatures. None: those of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<SocketAddr>,
    /// The socket to which a mail server of this machine hands mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lmtp: Option<PathBuf>,
    /// The account that the mail server runs under, by name or number: what it hands over is believed to come from outside.
    /// None: root's alone; a person decides there what they may decide themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lmtp_user: Option<String>,
    /// The mailbox that is read.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub incoming: Option<MailInConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<MailOutConfig>,
}

impl MailConfig {
    pub(super) const fn new() -> Self {
        Self { authserv_id: None, signatures: true, dns: None, lmtp: None, lmtp_user: None, incoming: None, out: None }
    }
}

/// A mailbox of an IMAP account.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailInConfig {
    #[serde(flatten)]
    pub server: MailServer,
    pub user: String,
    /// The name of the secret that is its password.
    pub password: String,
    pub mailbox: String,
    /// Further mailboxes, for tasks that name them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
}

/// How mail is sent.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailOutConfig {
    /// An address, or a name and an address in `<>`. Answers go there.
    pub from: String,
    #[serde(flatten)]
    pub way: MailWay,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub enum MailWay {
    Server {
        #[serde(flatten)]
        server: MailServer,
        /// The user, and the name of the secret that is the password.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        login: Option<MailLogin>,
    },
    /// A program that takes a mail as `sendmail` does.
    Program { sendmail: PathBuf },
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailLogin {
    pub user: String,
    pub password: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MailServer {
    pub host: String,
    pub port: u16,
    pub security: MailSecurity,
    /// A file of certificates (PEM) whose holders are believed beside those that this machine trusts, for this server.
    pub ca: Option<PathBuf>,
}

impl Serialize for MailServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { host, port, security, ca } = self;
        let server = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut fields = serializer.serialize_struct("MailServer", 3)?;
        fields.serialize_field("server", &server)?;
        fields.serialize_field("security", security)?;
        if let Some(ca) = ca {
            fields.serialize_field("ca", ca)?;
        }
        fields.end()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MailSecurity {
    Tls,
    StartTls,
    None,
}

/// Folders that are read beside the mailbox: each has a connection of its own.
const FOLDERS: usize = 10;

/// The ports of a protocol: encrypted from the start, and else.
struct Ports(u16, u16);

pub(super) fn mail(section: &Section<'_, '_>, home: &Path) -> MailConfig {
    let remedy = "write the name that the relay begins its Authentication-Results with, as `mx.example.net`";
    let authserv_id = section.read("authserv-id", remedy, |text| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
        if text.is_empty() || !text.chars().all(plain) { Err("not the name of a relay") } else { Ok(text.to_owned()) }
    });
    let remedy = "write an address and a port, as `127.0.0.1:53`";
    let dns = section.read("dns", remedy, |text| text.parse().map_err(|_| "not an address with a port"));
    let remedy = "write the account that your mail server delivers with, as `postfix`, or its number";
    let lmtp_user = section.read("lmtp-user", remedy, |text| {
        let plain = |letter: char| !letter.is_whitespace() && !letter.is_control() && letter != ':';
        if text.is_empty() || !text.chars().all(plain) {
            Err("not the name of an account")
        } else {
            Ok(text.to_owned())
        }
    });
    MailConfig {
        authserv_id: authserv_id.map(|found| found.value),
        signatures: section.flag("signatures").is_none_or(|found| found.value),
        dns: dns.map(|found| found.value),
        lmtp: path(section, "lmtp", home),
        lmtp_user: lmtp_user.map(|found| found.value),
        incoming: section.section("in").and_then(|section| incoming(&section, home)),
        out: section.section("out").and_then(|section| out(&section, home)),
    }
}

fn incoming(section: &Section<'_, '_>, home: &Path) -> Option<MailInConfig> {
    let server = server(section, &Ports(993, 143), home);
    let login = login(section);
    let mailbox = section.text("mailbox").map_or_else(|| "INBOX".into(), |found| found.value);
    let mut folders: Vec<String> = vec![];
    for Found { value, place } in section.texts("folders").unwrap_or_default() {
        let fault = |what: &str, remedy: &str| section.document().fault(&place, what, remedy);
        if value.is_empty() || value.chars().any(char::is_control) {
            fault(
                "not the name of a folder",
                "write it as your mail program shows it, as `Invoices` or `INBOX/Invoices`",
            );
        } else if value == mailbox || folders.contains(&value) {
            fault("it is read already", "name each folder once, and `mailbox` not among them");
        } else if folders.len() == FOLDERS {
            fault("too many folders", "ten are read at most: have your server sort mail into fewer");
        } else {
            folders.push(value);
        }
    }
    section.finish();
    if login.is_none() && section.value("user").is_none() {
        let remedy = "give `user`, and `password` as the name of a secret: `owctl secret set NAME` keeps it";
        section.document().fault_without_value(section.place(), "a mailbox without `user` and `password`", remedy);
    }
    let MailLogin { user, password } = login?;
    Some(MailInConfig { server: server?, user, password, mailbox, folders })
}

fn out(section: &Section<'_, '_>, home: &Path) -> Option<MailOutConfig> {
    let remedy = "write an address, as `owd@example.org`, or `owd <owd@example.org>`";
    let from = section.read("from", remedy, |text| {
        ow_reply::sender(&[text], "").filter(|_| text.is_ascii()).map(|_| text.to_owned()).ok_or("not one mail address")
    });
    let fault = |what: &str, remedy: &str| section.document().fault_without_value(section.place(), what, remedy);
    if from.is_none() && section.value("from").is_none() {
        fault("mail without `from`", "say from which address owd writes: `from = \"owd@example.org\"`");
    }
    let program = path(section, "sendmail", home);
    let named = section.value("server").is_some();
    let way = match program {
        Some(_) if named => {
            fault("both `server` and `sendmail`", "keep one of them");
            None
        }
        Some(sendmail) => Some(MailWay::Program { sendmail }),
        None => {
            let server = server(section, &Ports(465, 587), home);
            let login = login(section);
            server.map(|server| MailWay::Server { server, login })
        }
    };
    section.finish();
    Some(MailOutConfig { from: from?.value, way: way? })
}

fn server(section: &Section<'_, '_>, ports: &Ports, home: &Path) -> Option<MailServer> {
    let words = [("tls", MailSecurity::Tls), ("starttls", MailSecurity::StartTls), ("none", MailSecurity::None)];
    let security = section.choice("security", &words).unwrap_or(MailSecurity::Tls);
    let remedy = "write a name, and a port if it is not the usual one, as `mail.example.org:993`";
    let server = section.read("server", remedy, |text| host(text).ok_or("not the name of a server"));
    if server.is_none() && section.value("server").is_none() {
        let remedy = "name the mail server: `server = \"mail.example.org\"`";
        section.document().fault_without_value(section.place(), "no `server`", remedy);
    }
    let ca = path(section, "ca", home);
    let Found { value: (host, port), place } = server?;
    if security == MailSecurity::None && !is_own(&host) {
        let what = "not a server of this machine: mail and password would cross the network unencrypted";
        section.document().fault(&place, what, "set `security` to \"tls\" or \"starttls\"");
    }
    let Ports(tls, plain) = *ports;
    let usual = if security == MailSecurity::Tls { tls } else { plain };
    Some(MailServer { host, port: port.unwrap_or(usual), security, ca })
}

/// A name or an address, and a port.
fn host(text: &str) -> Option<(String, Option<u16>)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some((address.ip().to_string(), Some(address.port())));
    }
    if text.parse::<IpAddr>().is_ok() {
        return Some((text.to_owned(), None));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port.parse().ok().filter(|port| *port != 0)?)),
        None => (text, None),
    };
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    (!name.is_empty() && name.chars().all(plain)).then(|| (name.to_ascii_lowercase(), port))
}

fn is_own(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn login(section: &Section<'_, '_>) -> Option<MailLogin> {
    let user = section.text("user");
    let password = section.text("password");
    match (user, password) {
        (Some(user), Some(password)) => {
            let name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
            if password.value.is_empty() || !password.value.chars().all(name) {
                let remedy = "keep it with `owctl secret set MAIL_PASSWORD`, and write that name here";
                section.document().fault_redacted(&password.place, "not the name of a secret", remedy);
                return None;
            }
            Some(MailLogin { user: user.value, password: password.value })
        }
        (None, None) => None,
        (Some(_), None) => {
            let remedy = "name the secret that is its password: `password = \"MAIL_PASSWORD\"`";
            section.document().fault_without_value(section.place(), "`user` without `password`", remedy);
            None
        }
        (None, Some(_)) => {
            section.document().fault_without_value(section.place(), "`password` without `user`", "name the user");
            None
        }
    }
}
