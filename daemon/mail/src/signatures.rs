use std::net::SocketAddr;
use std::time::Duration;

use mail_auth::common::cache::NoCache;
use mail_auth::common::crypto::Algorithm;
use mail_auth::common::verify::DomainKey;
use mail_auth::dkim::Signature;
use mail_auth::hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ProtocolConfig, ResolverConfig, ResolverOpts,
};
use mail_auth::{AuthenticatedMessage, DkimResult, DnsError, MessageAuthenticator, Txt};
use ow_reply::{Received, without_envelope};

/// A DNS server is given so long for an answer, and asked twice.
const DNS_TIME: Duration = Duration::from_secs(5);

/// Signatures beyond so many are not looked at: each costs a question to some DNS server.
const SIGNATURES: usize = 5;

/// What must be signed; `in-reply-to` too, where the mail has it.
const SIGNED: [&str; 3] = ["from", "subject", "date"];

/// Checks DKIM signatures (RFC 6376) with keys from the DNS.
pub struct Signatures {
    authenticator: MessageAuthenticator,
}

/// What the signatures of a mail prove of its sender.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Signed {
    /// The sender's own domain signed all that an answer is read from.
    Proven,
    /// DNS gave no answer; whether it is signed is not known.
    Later,
    Not(String),
}

/// How the key of a domain stands in the DNS.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Key {
    There,
    Missing,
    /// There is something, which is no key.
    Broken(String),
    /// DNS gave no answer.
    Unknown(String),
}

/// Who signed a mail, and by which of their keys: domains and selectors. Its headers are enough.
pub(crate) fn signers(raw: &[u8]) -> Vec<(String, String)> {
    let lines = as_sent(raw);
    let Some(message) = AuthenticatedMessage::parse(&lines) else { return vec![] };
    let of = |signature: &Signature| (signature.d.trim_end_matches('.').to_ascii_lowercase(), signature.s.clone());
    message.dkim_headers.iter().map(|header| of(&header.header)).collect()
}

/// Whether a signature of the domain `by` speaks for an address of `domain`.
pub(crate) fn speaks_for(by: &str, domain: &str) -> bool {
    by == domain || (by.contains('.') && domain.ends_with(&format!(".{by}")))
}

impl Signatures {
    /// Asks the DNS server at `server`; without one, those that this machine asks.
    ///
    /// # Errors
    ///
    /// Says why this machine's DNS servers cannot be told.
    pub fn new(server: Option<SocketAddr>) -> Result<Self, String> {
        let authenticator = match server {
            None => MessageAuthenticator::new_system_conf(),
            Some(server) => {
                let connection = |protocol| {
                    let mut connection = ConnectionConfig::new(protocol);
                    connection.port = server.port();
                    connection
                };
                let connections = vec![connection(ProtocolConfig::Udp), connection(ProtocolConfig::Tcp)];
                let servers = vec![NameServerConfig::new(server.ip(), true, connections)];
                let mut options = ResolverOpts::default();
                options.timeout = DNS_TIME;
                options.attempts = 2;
                // Keys change, and an answer by mail is rare.
                options.cache_size = 0;
                MessageAuthenticator::new(ResolverConfig::from_parts(None, vec![], servers), options)
            }
        };
        authenticator.map(|authenticator| Self { authenticator }).map_err(|error| error.to_string())
    }

    /// Asks the DNS for the key of a domain.
    pub async fn key(&self, domain: &str, selector: &str) -> Key {
        let name = format!("{selector}._domainkey.{domain}.");
        let cache: Option<&NoCache<Box<str>, Txt>> = None;
        match self.authenticator.txt_lookup::<DomainKey>(name, cache).await {
            Ok(_) => Key::There,
            Err(mail_auth::Error::Dns(DnsError::RecordNotFound(_))) => Key::Missing,
            Err(mail_auth::Error::Dns(DnsError::Resolver(why))) => Key::Unknown(why),
            Err(error) => Key::Broken(error.to_string()),
        }
    }

    /// Checks whether the domain of `address` signed `raw`, which was read as `mail`: `From`, `Subject`, `Date`,
    /// `In-Reply-To` and the whole body. Its lines may end in either way.
    pub async fn check(&self, raw: &[u8], mail: &Received, address: &str) -> Signed {
        let lines = as_sent(raw);
        let Some(message) = AuthenticatedMessage::parse(&lines) else { return Signed::Not("it is no mail".into()) };
        if message.dkim_headers.is_empty() {
            return Signed::Not("nobody signed it".into());
        }
        if message.dkim_headers.len() > SIGNATURES {
            return Signed::Not(format!("it has more than {SIGNATURES} signatures"));
        }
        let domain = address.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
        let mut why = None;
        let mut later = false;
        for output in self.authenticator.verify_dkim(&message).await {
            let Some(signature) = output.signature() else { continue };
            if let Err(unfit) = covers(signature, &domain, mail) {
                why.get_or_insert(unfit);
                continue;
            }
            match output.result() {
                DkimResult::Pass => return Signed::Proven,
                DkimResult::TempError(_) => later = true,
                DkimResult::Neutral(error) | DkimResult::Fail(error) | DkimResult::PermError(error) => {
                    why = Some(format!("the signature of `{}` does not hold: {error}", signature.d));
                }
                DkimResult::None => {}
            }
        }
        if later {
            return Signed::Later;
        }
        Signed::Not(why.unwrap_or_else(|| "no signature can be read".into()))
    }
}

/// Whether a signature, if it holds, proves all that an answer is read from.
fn covers(signature: &Signature, domain: &str, mail: &Received) -> Result<(), String> {
    let by = signature.d.trim_end_matches('.').to_ascii_lowercase();
    if !speaks_for(&by, domain) {
        return Err(format!("`{by}` signed it, not `{domain}`"));
    }
    if !matches!(signature.a, Algorithm::RsaSha256 | Algorithm::Ed25519Sha256) {
        return Err("it is signed in a way that proves nothing today".into());
    }
    if signature.l > 0 {
        return Err("only the beginning of its body is signed".into());
    }
    let signed = |name: &str| signature.h.iter().filter(|signed| signed.eq_ignore_ascii_case(name)).count();
    for name in SIGNED.into_iter().chain(["in-reply-to"]) {
        let found = mail.count(name);
        if found > 1 {
            return Err(format!("it has more than one `{name}`"));
        }
        if signed(name) == 0 && (found > 0 || name != "in-reply-to") {
            return Err(format!("its `{name}` is not signed"));
        }
    }
    Ok(())
}

/// With the line ends that it was signed with: mail is handed over with those of this system.
fn as_sent(raw: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(raw.len() + raw.len() / 40);
    let mut before = 0;
    for &byte in without_envelope(raw) {
        if byte == b'\n' && before != b'\r' {
            lines.push(b'\r');
        }
        lines.push(byte);
        before = byte;
    }
    lines
}
