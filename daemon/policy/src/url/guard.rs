use std::net::{IpAddr, SocketAddr};

use ::url::{Host, Url};
use thiserror::Error;

use super::address::is_public;

/// So many hops are followed; the next one is refused.
pub const REDIRECT_LIMIT: u32 = 10;
const LENGTH_LIMIT: usize = 8192;

/// Names that stand for this machine or its own network, whatever a resolver says.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "home.arpa",
    "intranet",
    "ip6-localhost",
    "ip6-loopback",
    "instance-data",
];

/// Ports of services that a web request can be made to speak to (the Fetch standard's list of bad ports).
const BAD_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// What may be reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Guard<'a> {
    /// The person's `http.allow`: an entry `host:port` opens that one private address.
    pub allow: &'a [String],
    /// Addresses on which owd listens; never reached.
    pub own: &'a [SocketAddr],
    /// The only hosts that a redirect may lead to, besides that of the first URL; none: any public one.
    pub hosts: Option<&'a [String]>,
}

/// Why a URL is refused.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{why}")]
pub struct Blocked {
    pub why: String,
}

/// The next request of a redirect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hop {
    pub url: Url,
    /// The origin is the same: authorization and cookies may go along.
    pub keeps_credentials: bool,
}

impl Guard<'_> {
    /// Reads a URL and judges its text.
    pub fn parse(&self, text: &str) -> Result<Url, Blocked> {
        if text.len() > LENGTH_LIMIT {
            return blocked(format!("the URL is longer than {LENGTH_LIMIT} bytes"));
        }
        // Parsers disagree on what these mean, so what is judged would not be what is fetched.
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace() || letter == '\\') {
            return blocked("the URL holds a blank, a control character or a backslash".into());
        }
        let url = Url::parse(text).map_err(|error| Blocked { why: format!("not a URL: {error}") })?;
        self.check(&url)?;
        Ok(url)
    }

    /// Judges a URL by what stands in it; a name is judged again by its addresses.
    pub fn check(&self, url: &Url) -> Result<(), Blocked> {
        if !matches!(url.scheme(), "http" | "https") {
            return blocked(format!("scheme `{}` is not http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return blocked("the URL holds a user name or password; name a secret in a header instead".into());
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return blocked("the URL names no host".into());
        };
        match host {
            Host::Ipv4(address) => self.check_address(url, IpAddr::V4(address), port)?,
            Host::Ipv6(address) => self.check_address(url, IpAddr::V6(address), port)?,
            Host::Domain(name) => {
                let name = name.trim_end_matches('.');
                if name.is_empty() || name.split('.').any(str::is_empty) {
                    return blocked("the URL's host is not a name".into());
                }
                if is_local_name(name) && !self.is_opened(url) {
                    return blocked(format!("`{name}` is a name of this machine or its network{REMEDY}"));
                }
            }
        }
        if BAD_PORTS.contains(&port) && !self.is_opened(url) {
            return blocked(format!("port {port} belongs to another service than the web"));
        }
        Ok(())
    }

    /// Judges all addresses that the URL's name resolves to. One bad one refuses all.
    pub fn check_addresses(&self, url: &Url, addresses: &[IpAddr]) -> Result<(), Blocked> {
        self.check(url)?;
        let port = url.port_or_known_default().unwrap_or_default();
        if addresses.is_empty() {
            return blocked(format!("`{}` does not resolve", url.host_str().unwrap_or_default()));
        }
        addresses.iter().try_for_each(|address| self.check_address(url, *address, port))
    }

    /// Judges one redirect; none where the status or the missing location makes it an answer of its own.
    ///
    /// `first` is the URL that was asked for, `from` the one that answered, `hop` counts from 1. Only GET
    /// and HEAD are to be followed.
    pub fn redirect(
        &self,
        first: &Url,
        from: &Url,
        status: u16,
        location: Option<&str>,
        hop: u32,
    ) -> Result<Option<Hop>, Blocked> {
        let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, location) else { return Ok(None) };
        if hop > REDIRECT_LIMIT {
            return blocked(format!("more than {REDIRECT_LIMIT} redirects"));
        }
        if location.chars().any(|letter| letter.is_control() || letter == '\\') {
            return blocked("a redirect holds a control character or a backslash".into());
        }
        let url = from.join(location).map_err(|error| Blocked { why: format!("a redirect is not a URL: {error}") })?;
        if from.scheme() == "https" && url.scheme() == "http" {
            return blocked("a redirect leads from https to http".into());
        }
        self.check(&url)?;
        let known = url.host() == first.host() && url.port_or_known_default() == first.port_or_known_default()
            || upgraded(first, &url)
            || self.hosts.is_none_or(|hosts| is_named(&url, hosts));
        if !known {
            return blocked(format!(
                "a redirect leads to `{}`, which http-allow names neither in the task nor in owd.toml",
                url.host_str().unwrap_or_default()
            ));
        }
        let keeps_credentials = url.origin() == from.origin();
        Ok(Some(Hop { url, keeps_credentials }))
    }

    fn check_address(&self, url: &Url, address: IpAddr, port: u16) -> Result<(), Blocked> {
        let host = url.host_str().unwrap_or_default();
        if self.own.iter().any(|own| is_own(*own, address.to_canonical(), port)) {
            return blocked(format!("`{host}` is not to be reached by a call"));
        }
        if is_public(address) || self.is_opened(url) {
            return Ok(());
        }
        blocked(format!("`{host}` does not lead to the public internet{REMEDY}"))
    }

    /// Whether an entry `host:port` names exactly this host and port.
    fn is_opened(&self, url: &Url) -> bool {
        self.allow
            .iter()
            .filter_map(|entry| Entry::parse(entry))
            .any(|entry| entry.port.is_some() && !entry.below && entry.matches(url))
    }
}

const REMEDY: &str = "; a person may open it in owd.toml, under [policy], with http-allow = [\"host:port\"]";

/// Whether a list of `host`, `host:port` and `*.domain` names the URL's host.
#[must_use]
pub fn is_named(url: &Url, list: &[String]) -> bool {
    list.iter().filter_map(|entry| Entry::parse(entry)).any(|entry| entry.matches(url))
}

/// The URL's origin with its port, as rules keep it: `https://example.com:443`.
#[must_use]
pub fn origin(url: &Url) -> String {
    format!(
        "{}://{}:{}",
        url.scheme(),
        url.host_str().unwrap_or_default().trim_end_matches('.'),
        url.port_or_known_default().unwrap_or_default()
    )
}

/// A URL as it may stand in a record: without user name, password and fragment, and of bounded length.
#[must_use]
pub fn on_record(url: &Url) -> String {
    const LONGEST: usize = 2048;
    let mut url = url.clone();
    url.set_fragment(None);
    // Neither can fail where there is a host, and without one there is nothing to take out.
    let (_user, _password) = (url.set_username(""), url.set_password(None));
    let text = String::from(url);
    if text.len() <= LONGEST { text } else { text.chars().take(LONGEST).chain(['…']).collect() }
}

/// One entry of a list of hosts.
struct Entry {
    host: Host<String>,
    port: Option<u16>,
    /// Only names below it.
    below: bool,
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let (below, rest) = match text.trim().strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        if rest.is_empty() || rest.contains(['/', '@', '*', '?', '#', '\\']) {
            return None;
        }
        // `ftp` lends its parser for hosts and keeps ports 80 and 443, which http and https would drop.
        let url = Url::parse(&format!("ftp://{rest}/")).ok()?;
        let port = rest.ends_with(":21").then_some(21).or(url.port());
        let host = match url.host()? {
            Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_owned()),
            Host::Ipv4(address) => Host::Ipv4(address),
            Host::Ipv6(address) => Host::Ipv6(address),
        };
        Some(Self { host, port, below })
    }

    fn matches(&self, url: &Url) -> bool {
        if self.port.is_some_and(|port| url.port_or_known_default() != Some(port)) {
            return false;
        }
        match (&self.host, url.host()) {
            (Host::Domain(own), Some(Host::Domain(name))) => {
                let name = name.trim_end_matches('.');
                if self.below {
                    name.strip_suffix(own.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                } else {
                    name == own
                }
            }
            (Host::Ipv4(own), Some(Host::Ipv4(address))) => !self.below && *own == address,
            (Host::Ipv6(own), Some(Host::Ipv6(address))) => !self.below && *own == address,
            _ => false,
        }
    }
}

fn is_local_name(name: &str) -> bool {
    LOCAL_NAMES.iter().any(|local| name == *local || name.strip_suffix(local).is_some_and(|rest| rest.ends_with('.')))
}

fn is_own(own: SocketAddr, address: IpAddr, port: u16) -> bool {
    let listens = own.ip().to_canonical();
    own.port() == port
        && (listens == address
            || (listens.is_unspecified() && !is_public(address))
            // 0.0.0.0 connects to this machine.
            || (listens.is_loopback() && (address.is_loopback() || address.is_unspecified())))
}

/// The same host, from http to https on their usual ports.
fn upgraded(first: &Url, url: &Url) -> bool {
    first.host() == url.host()
        && first.port_or_known_default() == Some(80)
        && url.scheme() == "https"
        && url.port_or_known_default() == Some(443)
}

fn blocked<T>(why: String) -> Result<T, Blocked> {
    Err(Blocked { why })
}
