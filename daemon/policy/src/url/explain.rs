use std::net::IpAddr;

use ::url::{Host, Url};
use serde::{Deserialize, Serialize};

use super::guard::{Blocked, Guard};

/// Whether owd would refuse a URL, and why.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ExplainedUrl {
    pub blocked: bool,
    pub why: String,
}

/// How a server is supposed to answer at a URL.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Redirect {
    pub url: String,
    pub status: u16,
    pub location: String,
}

/// Follows a GET of `text` as the web tools would, asking `resolve` for the addresses of names.
///
/// `resolve` gets each name in lower case without a final dot; none stands for a name that it knows no
/// answer for. A URL that no redirect is given for counts as answering.
#[must_use]
pub fn explain(
    text: &str,
    guard: &Guard,
    resolve: &mut dyn FnMut(&str) -> Option<Vec<IpAddr>>,
    redirects: &[Redirect],
) -> ExplainedUrl {
    match follow(text, guard, resolve, redirects) {
        Ok(why) => ExplainedUrl { blocked: false, why },
        Err(Blocked { why }) => ExplainedUrl { blocked: true, why },
    }
}

fn follow(
    text: &str,
    guard: &Guard,
    resolve: &mut dyn FnMut(&str) -> Option<Vec<IpAddr>>,
    redirects: &[Redirect],
) -> Result<String, Blocked> {
    let first = guard.parse(text)?;
    let mut url = first.clone();
    let mut hop = 0;
    loop {
        check_resolved(&url, guard, resolve)?;
        // What stands behind `#` is never sent.
        let sent = |url: &Url| {
            let mut sent = url.clone();
            sent.set_fragment(None);
            sent
        };
        let answer =
            redirects.iter().find(|redirect| Url::parse(&redirect.url).is_ok_and(|from| sent(&from) == sent(&url)));
        hop += 1;
        let next = match answer {
            Some(answer) => guard.redirect(&first, &url, answer.status, Some(&answer.location), hop)?,
            None => None,
        };
        match next {
            Some(next) => url = next.url,
            None if hop == 1 => return Ok("all addresses are public or opened by http-allow".into()),
            None => return Ok(format!("public or opened by http-allow, at each of {} redirects", hop - 1)),
        }
    }
}

fn check_resolved(
    url: &Url,
    guard: &Guard,
    resolve: &mut dyn FnMut(&str) -> Option<Vec<IpAddr>>,
) -> Result<(), Blocked> {
    let Some(Host::Domain(name)) = url.host() else { return guard.check(url) };
    let name = name.trim_end_matches('.');
    if let Some(addresses) = resolve(name) {
        return guard.check_addresses(url, &addresses);
    }
    guard.check(url)?;
    Err(Blocked { why: format!("`{name}` does not resolve: no answer was given for it") })
}
