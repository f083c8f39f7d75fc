//! Who may speak: asked of every request before anything else is looked at.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::Response;
use ow_model::{AnswerBy, Person, Surface};
use ow_protocol::ErrorCode;
use tokio::time::Instant;

use crate::api::Api;
use crate::key::Key;
use crate::problem::Problem;
use crate::process::{Peer, Standing};
use crate::rate::Rate;

/// Where a request came from; put into it by the listener.
#[derive(Clone, Debug)]
pub(crate) enum Connection {
    Unix(Arc<Peer>),
    Tcp { client: IpAddr, door: Arc<Door> },
}

/// What a TCP request must know and say to come in.
#[derive(Debug)]
pub(crate) struct Door {
    address: SocketAddr,
    key: Key,
    person: Person,
    allowed_origins: Vec<String>,
    rate: Rate,
}

/// Who makes the request, proven by its surface.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) AnswerBy);

impl Caller {
    pub(crate) fn name(&self) -> &str {
        &self.0.person.0
    }
}

pub(crate) async fn guard(State(api): State<Api>, mut request: Request, next: Next) -> Result<Response, Problem> {
    let connection = request.extensions().get::<Connection>().cloned().expect("the listener puts it in");
    let caller = match connection {
        Connection::Unix(peer) => admit_peer(&api, &peer)?,
        Connection::Tcp { client, door } => door.admit(client, &request)?,
    };
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// A process that owd started is told nothing, not even how many items wait: it only learns that owd is there.
fn admit_peer(api: &Api, peer: &Peer) -> Result<Caller, Problem> {
    match peer.standing() {
        Standing::StartedByOwd => {
            return Err(forbidden("a process that owd started may answer, grant, edit and read nothing")
                .with_hint("do it from your own terminal"));
        }
        Standing::Unknown => {
            return Err(forbidden("it cannot be told which process asks").with_hint(
                "the process that connected must still run, and owd must see it and its ancestors in /proc",
            ));
        }
        Standing::Stranger => {}
    }
    let person = api.control.person_of_uid(peer.uid).ok_or_else(|| {
        forbidden(format!("the user with uid {} is nobody that owd knows", peer.uid))
            .with_hint(format!("write `uids = [{}]` under their [people.NAME] in owd.toml, and restart owd", peer.uid))
    })?;
    Ok(Caller(AnswerBy { person, surface: Surface::Socket }))
}

impl Door {
    pub(crate) fn new(address: SocketAddr, key: Key, person: Person, allowed_origins: Vec<String>) -> Self {
        Self { address, key, person, allowed_origins, rate: Rate::default() }
    }

    /// Host and Origin first: a page in a browser learns nothing, not even whether a key would have been right.
    fn admit(&self, client: IpAddr, request: &Request) -> Result<Caller, Problem> {
        let headers = request.headers();
        let foreign = |message: &str| Err(Problem::new(ErrorCode::ForeignOrigin, message));
        let named_in_uri = request.uri().authority().map(Authority::as_str);
        match one(headers, &HOST) {
            Ok(Some(host)) if self.is_own_host(host) && named_in_uri.is_none_or(|named| self.is_own_host(named)) => {}
            _ => return foreign("this Host is not owd's own"),
        }
        match one(headers, &ORIGIN) {
            Ok(None) => {}
            Ok(Some(origin)) if self.is_known_origin(origin) => {}
            _ => return foreign("this Origin is not owd's own"),
        }
        let offered = one(headers, &AUTHORIZATION).ok().flatten().and_then(bearer);
        if !offered.is_some_and(|offered| self.key.opens_for(offered.as_bytes())) {
            let message = if offered.is_some() { "the key is wrong" } else { "a key is needed" };
            return Err(Problem::new(ErrorCode::Unauthorized, message)
                .with_hint("send `Authorization: Bearer` with the key of owd's TCP listener"));
        }
        if !is_reading(request.method()) {
            self.rate.admit(client, Instant::now()).map_err(|wait| {
                let seconds = wait.as_millis().div_ceil(1000).max(1);
                let seconds = u64::try_from(seconds).expect("a wait is below the rate's span");
                Problem::new(ErrorCode::TooManyRequests, "too many changing requests")
                    .with_hint(format!("try again in {seconds} s; the Unix socket has no such limit"))
                    .with_retry_after(seconds)
            })?;
        }
        Ok(Caller(AnswerBy { person: self.person.clone(), surface: Surface::Web }))
    }

    /// A name that points here by rebinding is not ours; an address is, and so is `localhost`.
    fn is_own_host(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') || authority.port_u16().unwrap_or(80) != self.address.port() {
            return false;
        }
        let name = authority.host();
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let bound = self.address.ip();
        literal.parse::<IpAddr>().is_ok_and(|named| named == bound || bound.is_unspecified())
    }

    /// Whole and to the letter: no suffix, no prefix, no other port.
    fn is_known_origin(&self, origin: &str) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == origin)
            || origin.strip_prefix("http://").is_some_and(|host| self.is_own_host(host))
    }
}

fn forbidden(message: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::Forbidden, message)
}

fn is_reading(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD || method == Method::OPTIONS
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// The header's only value. Two of them, or one that is no text, are an error: it could not be told which one counts.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(drop),
        (Some(_), Some(_)) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(address: &str, allowed: &[&str]) -> Door {
        Door::new(
            address.parse().expect("an address"),
            Key::new("0123456789abcdef").expect("a key"),
            Person("anna".into()),
            allowed.iter().map(|origin| (*origin).into()).collect(),
        )
    }

    #[test]
    fn only_the_bound_address_and_localhost_are_own_hosts() {
        let four = door("127.0.0.1:8787", &[]);
        for own in ["127.0.0.1:8787", "localhost:8787", "LOCALHOST:8787"] {
            assert!(four.is_own_host(own), "{own}");
        }
        for foreign in [
            "",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:80",
            "127.0.0.2:8787",
            "evil.example:8787",
            "localhost.evil.example:8787",
            "127.0.0.1.evil.example:8787",
            "user@127.0.0.1:8787",
            "[::1]:8787",
            "127.0.0.1:8787/",
            "127.0.0.1:8787 x",
            "0x7f000001:8787",
        ] {
            assert!(!four.is_own_host(foreign), "{foreign}");
        }
        let six = door("[::1]:8787", &[]);
        assert!(
            six.is_own_host("[::1]:8787") && six.is_own_host("localhost:8787") && !six.is_own_host("127.0.0.1:8787")
        );
        let plain = door("127.0.0.1:80", &[]);
        assert!(plain.is_own_host("127.0.0.1") && plain.is_own_host("localhost"));
        let all = door("0.0.0.0:8787", &[]);
        assert!(all.is_own_host("192.168.1.7:8787") && !all.is_own_host("evil.example:8787"));
    }

    #[test]
    fn an_origin_is_known_in_whole_or_not_at_all() {
        let door = door("127.0.0.1:8787", &["https://owd.example"]);
        for known in ["http://127.0.0.1:8787", "http://localhost:8787", "https://owd.example"] {
            assert!(door.is_known_origin(known), "{known}");
        }
        for foreign in [
            "null",
            "",
            "https://evil.example",
            "https://127.0.0.1:8787",
            "http://127.0.0.1:8787.evil.example",
            "http://127.0.0.1",
            "https://owd.example.evil",
            "https://owd.example:444",
            "https://sub.owd.example",
            "https://owd.example/",
            "http://owd.example",
            "http://127.0.0.1:8787/",
            "http://x@127.0.0.1:8787",
        ] {
            assert!(!door.is_known_origin(foreign), "{foreign}");
        }
    }
}
