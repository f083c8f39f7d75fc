//! Sends the request: each hop judged by text and by every address, and connected only to those.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use ow_model::{CallError, CallErrorKind, CallResult, RefusedAddress};
use ow_policy::url::{Blocked, Guard, on_record};
use ow_secret::Redactor;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, redirect};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use super::body::{Body, decoded};
use super::page::{self, Part};
use super::{FetchArgs, HttpArgs};
use crate::args::{self, Hidden};
use crate::capture::{Finished, capture};
use crate::helper::work::Work;
use crate::world::failed;

const CONNECT_LIMIT: Duration = Duration::from_secs(20);
const AGENT: &str = concat!("owd/", env!("CARGO_PKG_VERSION"));

/// What goes along to another origin: nothing by which anyone is known.
const ANONYMOUS_HEADERS: &[&str] = &["accept", "accept-language", "user-agent"];

/// Turns names into addresses. The system does it; tests have a table.
pub(super) trait Names: Sync {
    fn addresses(&self, host: &str, port: u16) -> impl Future<Output = io::Result<Vec<IpAddr>>> + Send;
}

struct System;

impl Names for System {
    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.map(|address| address.ip()).collect())
    }
}

pub(crate) async fn run(work: &Work) -> Result<Finished, CallError> {
    run_with(work, &System).await.or_else(Unanswered::into_result)
}

/// Fetches a page and reads it as text.
pub(crate) async fn fetch(work: &Work) -> Result<Finished, CallError> {
    fetch_with(work, &System).await.or_else(Unanswered::into_result)
}

/// What becomes of an answer.
enum Reader {
    /// It is the result as it came.
    Whole,
    /// Its text is.
    Page(Part),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    Failed(CallError),
    /// The URL guard refused the call's URL or a redirect's.
    Refused(RefusedAddress),
}

impl Unanswered {
    /// A refusal is a result: it says what was refused where.
    fn into_result(self) -> Result<Finished, CallError> {
        match self {
            Self::Failed(error) => Err(error),
            Self::Refused(address) => {
                let mut result = CallResult::failed(CallErrorKind::Refused, address.to_string());
                result.output = json!({ RefusedAddress::FIELD: address });
                // Where a redirect led is what a server wrote.
                result.outside = address.hop > 0;
                Ok(Finished { result, kept: vec![] })
            }
        }
    }
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

pub(super) async fn run_with(work: &Work, names: &impl Names) -> Result<Finished, Unanswered> {
    request(work, &args::read(&work.call.args)?, names, &Reader::Whole).await
}

pub(super) async fn fetch_with(work: &Work, names: &impl Names) -> Result<Finished, Unanswered> {
    let args: FetchArgs = args::read(&work.call.args)?;
    let time = args.timeout.unwrap_or(super::FETCH_TIME);
    let accept = ("accept".to_owned(), Hidden::Plain(super::PAGES.into()));
    let get = HttpArgs {
        method: "GET".into(),
        url: args.url.clone(),
        headers: BTreeMap::from([accept]),
        body: None,
        timeout: Some(time),
    };
    request(work, &get, names, &Reader::Page(Part::of(&args))).await
}

async fn request(work: &Work, args: &HttpArgs, names: &impl Names, reader: &Reader) -> Result<Finished, Unanswered> {
    let time = args.timeout.map_or(work.limits.time, |time| time.min(work.limits.time));
    let deadline = Instant::now() + time.duration();
    let is_sent = AtomicBool::new(false);
    tokio::select! {
        biased;
        () = work.stop.token.cancelled() => Err(Unanswered::Failed(CallError {
            kind: CallErrorKind::Stopped,
            message: "stopped by owd; whether the server took the request is not known".into(),
        })),
        answered = timeout_at(deadline, exchange(work, args, names, reader, &is_sent)) => {
            answered.unwrap_or_else(|_| Err(Unanswered::Failed(CallError {
                kind: if is_sent.load(Ordering::Relaxed) { CallErrorKind::Lost } else { CallErrorKind::TimedOut },
                message: format!("no whole answer within {time}"),
            })))
        }
    }
}

/// `is_sent`: whether a server may have taken a request that is not to be made twice.
async fn exchange(
    work: &Work,
    args: &HttpArgs,
    names: &impl Names,
    reader: &Reader,
    is_sent: &AtomicBool,
) -> Result<Finished, Unanswered> {
    let guard = Guard { allow: &work.net.allow, own: &work.net.own, hosts: work.net.hosts.as_deref() };
    let method = Method::from_bytes(args.method.to_ascii_uppercase().as_bytes())
        .map_err(|_| failed(format!("`{}` is not a method", args.method)))?;
    let follows = matches!(method, Method::GET | Method::HEAD);
    let mut headers = headers_of(&args.headers, work)?;
    let body = args.body.as_ref().map(|body| body.text(&work.secrets)).transpose()?;
    let first = guard.parse(&args.url).map_err(|blocked| match Url::parse(&args.url) {
        Ok(url) => refused(&url, 0, blocked),
        Err(_) => failed(blocked.why).into(),
    })?;
    let mut url = first.clone();
    let mut hop = 0;
    loop {
        let client = client_for(&url, &checked_addresses(&url, hop, &guard, names).await?)?;
        let mut request = client.request(method.clone(), url.clone()).headers(headers.clone());
        if let Some(body) = body.as_ref().filter(|_| hop == 0 || url.origin() == first.origin()) {
            request = request.body(body.as_bytes().to_vec());
        }
        // What HTTP calls idempotent may be made once more.
        let once = !matches!(method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE);
        is_sent.store(once, Ordering::Relaxed);
        let response = request.send().await.map_err(|error| unanswered(error, once))?;
        hop += 1;
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let next = if follows {
            guard.redirect(&first, &url, response.status().as_u16(), location, hop).map_err(|blocked| {
                let goal = location.and_then(|location| url.join(location).ok());
                refused(goal.as_ref().unwrap_or(&url), hop, blocked)
            })?
        } else {
            None
        };
        match next {
            Some(next) => {
                if !next.keeps_credentials {
                    headers = anonymous(&headers);
                }
                url = next.url;
            }
            None => {
                return Ok(match reader {
                    Reader::Whole => answer(response, &url, hop, work, once).await?,
                    Reader::Page(part) => page::answer(response, &url, *part, work).await?,
                });
            }
        }
    }
}

/// All addresses of the URL's host, each of them judged.
async fn checked_addresses(
    url: &Url,
    hop: u32,
    guard: &Guard<'_>,
    names: &impl Names,
) -> Result<Vec<SocketAddr>, Unanswered> {
    let port = url.port_or_known_default().unwrap_or_default();
    let addresses = match url.host() {
        Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
        Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
        Some(Host::Domain(name)) => {
            // Judged by its text first, so that no question about a local name leaves the machine.
            guard.check(url).map_err(|blocked| refused(url, hop, blocked))?;
            names.addresses(name, port).await.map_err(|_| does_not_resolve(url))?
        }
        None => vec![],
    };
    if addresses.is_empty() {
        return Err(does_not_resolve(url).into());
    }
    guard.check_addresses(url, &addresses).map_err(|blocked| refused(url, hop, blocked))?;
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

/// Answers every question with the addresses that were judged.
struct Pinned(Arc<[SocketAddr]>);

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.iter().copied().collect::<Vec<_>>().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// A client for one hop, which can connect to nothing but `addresses`.
fn client_for(url: &Url, addresses: &[SocketAddr]) -> Result<Client, CallError> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails only where another part has set one already.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(AGENT)
        .connect_timeout(CONNECT_LIMIT)
        .dns_resolver(Pinned(addresses.into()));
    if url.scheme() == "http" {
        // A machine without certificates can still speak plain HTTP.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| failed(format!("no HTTP client: {}", cause(&error.without_url()))))
}

fn headers_of(given: &BTreeMap<String, Hidden>, work: &Work) -> Result<HeaderMap, CallError> {
    let mut headers = HeaderMap::new();
    for (name, hidden) in given {
        let text = hidden.text(&work.secrets)?;
        // The text itself stays out of the message: it may be a secret's.
        let bad = |_| failed(format!("the value of header `{name}` holds a line end or a control character"));
        let mut value = HeaderValue::from_str(&text).map_err(bad)?;
        value.set_sensitive(hidden.is_secret());
        let name: HeaderName = name.parse().map_err(|_| failed(format!("`{name}` is not the name of a header")))?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn anonymous(headers: &HeaderMap) -> HeaderMap {
    headers
        .iter()
        .filter(|(name, value)| ANONYMOUS_HEADERS.contains(&name.as_str()) && !value.is_sensitive())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

async fn answer(mut response: Response, url: &Url, hops: u32, work: &Work, once: bool) -> Result<Finished, CallError> {
    let status = response.status();
    let redactor = work.secrets.redactor();
    let headers = shown_headers(response.headers(), &redactor);
    let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (bytes, is_whole) = body_of(&mut response, work.limits.kept_bytes)
        .await
        .map_err(|error| if once { CallError { kind: CallErrorKind::Lost, ..error } } else { error })?;
    let mut output = json!({ "status": status.as_u16(), "url": shown_url(url), "headers": headers });
    if hops > 1 {
        output["redirects"] = (hops - 1).into();
    }
    let text = match decoded(&bytes, content_type.as_deref(), is_whole) {
        Body::Text(text) => text,
        Body::Bytes(text) => {
            output["encoding"] = "base64".into();
            text
        }
    };
    let captured = capture(text.as_bytes(), &work.limits, &redactor);
    output["body"] = captured.text.into();
    let kept: Vec<(String, Vec<u8>)> = captured.whole.map(|whole| ("body".to_owned(), whole)).into_iter().collect();
    if !is_whole {
        output["cut"] = json!({ "body": format!("more than {} bytes", work.limits.kept_bytes) });
    } else if !kept.is_empty() {
        output["cut"] = json!({ "body": captured.total });
    }
    let error = (status.is_client_error() || status.is_server_error())
        .then(|| CallError { kind: CallErrorKind::Failed, message: format!("the server answered {status}") });
    let result = CallResult { output, kept: vec![], artifacts: vec![], outside: true, error };
    Ok(Finished { result, kept })
}

/// At most so many bytes of the body, and whether that is all of it.
pub(super) async fn body_of(response: &mut Response, most: usize) -> Result<(Vec<u8>, bool), CallError> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(unreachable)? {
        let room = most - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

fn shown_headers(headers: &HeaderMap, redactor: &Redactor) -> Map<String, Value> {
    const MOST: usize = 64;
    const LONGEST: usize = 2048;
    let mut shown = Map::new();
    for name in headers.keys().take(MOST) {
        let values: Vec<String> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        // Before the cut, which could leave a part of a secret.
        let mut text = redactor.redact(&values.join(", ")).into_owned();
        if text.len() > LONGEST {
            text = text.chars().take(LONGEST).chain(['…']).collect();
        }
        shown.insert(name.as_str().to_owned(), text.into());
    }
    shown
}

/// The final address without what only the browser needs.
pub(super) fn shown_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

fn refused(url: &Url, hop: u32, blocked: Blocked) -> Unanswered {
    Unanswered::Refused(RefusedAddress { url: on_record(url), hop, why: blocked.why })
}

fn does_not_resolve(url: &Url) -> CallError {
    let host = url.host_str().unwrap_or_default();
    CallError { kind: CallErrorKind::Unreachable, message: format!("`{host}` does not resolve") }
}

/// An error of the client, without the URL: its query may hold a key.
fn unreachable(error: reqwest::Error) -> CallError {
    let error = error.without_url();
    let kind = if error.is_connect() { CallErrorKind::Unreachable } else { CallErrorKind::Failed };
    CallError { kind, message: cause(&error) }
}

/// The same of a request that is not to be made twice: without an answer nobody knows whether the server took it.
fn unanswered(error: reqwest::Error, once: bool) -> CallError {
    let is_lost = once && !error.is_connect() && !error.is_builder();
    let error = unreachable(error);
    if is_lost { CallError { kind: CallErrorKind::Lost, ..error } } else { error }
}

/// The innermost reason, which says what happened.
fn cause(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    let (outer, inner) = (error.to_string(), at.to_string());
    if outer == inner { outer } else { format!("{outer}: {inner}") }
}

#[cfg(test)]
mod tests;
