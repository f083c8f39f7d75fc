use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ring::digest;
use serde::Deserialize;
use thiserror::Error;

use crate::sign::hex;
use crate::{Headers, ID_LIMIT, Keys, Profile, Scheme, ToldApart};

/// How far a signed time may lie from the present, before and after, in milliseconds.
const WINDOW: i64 = 300_000;
/// The same for Linear, as it asks of receivers.
const LINEAR_WINDOW: i64 = 60_000;
/// More signatures in one header are no sender's.
const SIGNATURES_LIMIT: usize = 16;

/// A request that was made by who knows one of the hook's secrets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// What makes it the same delivery again, for one hook. None: its sender gives no way to tell.
    pub key: Option<String>,
    /// What its signature covers, where that is its time and not its id: the same under another id is no other delivery,
    /// but this one, made again by somebody who has recorded it.
    pub signed: Option<String>,
    /// The sender's own name for it.
    pub id: Option<String>,
    /// What kind of event it is, in the sender's words.
    pub event: Option<String>,
}

/// Why nobody proved to have made a request. For the log: its sender is told nothing of it.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    #[error("the hook has no secret")]
    NoSecret,
    #[error("no header `{header}`")]
    Missing { header: String },
    #[error("more than one header `{header}`")]
    Duplicate { header: String },
    #[error("header `{header}`: {why}")]
    Malformed { header: String, why: &'static str },
    #[error("the signed body has no `webhookTimestamp`")]
    NoTime,
    #[error("signed {seconds} s ago; at most {limit} s count")]
    Old { seconds: i64, limit: i64 },
    #[error("signed {seconds} s ahead of this machine's clock; at most {limit} s count")]
    Early { seconds: i64, limit: i64 },
    #[error("the signature is by none of the hook's secrets")]
    Signature,
    #[error("the token is none of the hook's secrets")]
    Token,
}

impl Refusal {
    pub(crate) fn malformed(header: &str, why: &'static str) -> Self {
        Self::Malformed { header: header.into(), why }
    }
}

/// Holds a request against a scheme: the MAC over the raw bytes first, then what it covers.
pub fn verify(
    scheme: &Scheme,
    keys: &Keys,
    headers: &Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<Delivery, Refusal> {
    if keys.is_empty() {
        return Err(Refusal::NoSecret);
    }
    let request = Request { scheme, keys, headers, body, now };
    match scheme.profile {
        Profile::Github => request.github(),
        Profile::Gitlab => request.gitlab(),
        Profile::Stripe => request.stripe(),
        Profile::Slack => request.slack(),
        Profile::Linear => request.linear(),
        Profile::Standard => request.standard(),
        Profile::Generic => request.generic(),
        Profile::Bearer => request.bearer(),
    }
}

struct Request<'a> {
    scheme: &'a Scheme,
    keys: &'a Keys,
    headers: &'a Headers,
    body: &'a [u8],
    now: Timestamp,
}

impl Request<'_> {
    fn github(&self) -> Result<Delivery, Refusal> {
        const SIGNATURE: &str = "X-Hub-Signature-256";
        let mac = prefixed(self.headers.one(SIGNATURE)?, "sha256=", SIGNATURE)?;
        self.made_by_key(&[self.body], &mac)?;
        let id = self.id("X-GitHub-Delivery")?;
        Ok(Delivery {
            key: Some(match self.scheme.told_apart {
                ToldApart::ById => named_or(id.as_deref(), || self.of_body("")),
                ToldApart::ByBody => self.of_body(""),
            }),
            // It signs no time: the same body may be another event.
            signed: None,
            id,
            event: self.word("X-GitHub-Event")?,
        })
    }

    fn gitlab(&self) -> Result<Delivery, Refusal> {
        let event = self.word("X-Gitlab-Event")?;
        // Once signatures are switched on they come with each request, beside a token or without one.
        if self.headers.maybe("webhook-signature")?.is_some() {
            return Ok(Delivery { event, ..self.standard()? });
        }
        self.token(self.headers.one("X-Gitlab-Token")?)?;
        if let Some(id) = self.id("Idempotency-Key")? {
            return Ok(Delivery { key: Some(named(&id)), signed: None, id: Some(id), event });
        }
        // Events that follow from one another share this id; a delivery that is made again has its body, too.
        let id = self.id("X-Gitlab-Event-UUID")?;
        Ok(Delivery { key: id.as_deref().map(|id| self.of_body(id)), signed: None, id, event })
    }

    fn stripe(&self) -> Result<Delivery, Refusal> {
        const SIGNATURE: &str = "Stripe-Signature";
        let malformed = |why| Refusal::malformed(SIGNATURE, why);
        let (mut time, mut macs) = (None, vec![]);
        for part in self.headers.one(SIGNATURE)?.split(',') {
            match part.trim().split_once('=').ok_or_else(|| malformed("not `t=…,v1=…`"))? {
                ("t", _) if time.is_some() => return Err(malformed("more than one `t`")),
                ("t", text) => time = Some(text),
                ("v1", hex) => macs.push(mac_of_hex(hex).ok_or_else(|| malformed("a `v1` is not 64 digits of hex"))?),
                // Other versions of signatures are not ours to judge, and prove nothing.
                _ => {}
            }
        }
        let time = time.ok_or_else(|| malformed("no `t`"))?;
        if macs.is_empty() || macs.len() > SIGNATURES_LIMIT {
            return Err(malformed("no `v1`, or too many"));
        }
        let at = seconds(time).ok_or_else(|| malformed("`t` is no time in seconds"))?;
        if !macs.iter().any(|mac| self.keys.made(&[time.as_bytes(), b".", self.body], mac)) {
            return Err(Refusal::Signature);
        }
        self.fresh(at, WINDOW)?;
        // A retry of Stripe's has the event's id and a signature of its own time.
        let about = self.json::<Stripe>();
        let id = about.id.filter(|id| is_id(id));
        let key = Some(named_or(id.as_deref(), || self.of_body(time)));
        Ok(Delivery { key, signed: None, id, event: about.kind })
    }

    fn slack(&self) -> Result<Delivery, Refusal> {
        const SIGNATURE: &str = "X-Slack-Signature";
        const TIME: &str = "X-Slack-Request-Timestamp";
        let mac = prefixed(self.headers.one(SIGNATURE)?, "v0=", SIGNATURE)?;
        let (time, at) = self.time(TIME)?;
        self.made_by_key(&[b"v0:", time.as_bytes(), b":", self.body], &mac)?;
        self.fresh(at, WINDOW)?;
        let about = self.json::<Slack>();
        let id = about.event_id.filter(|id| is_id(id));
        let event = about.event.and_then(|event| event.kind).or(about.kind);
        Ok(Delivery { key: Some(named_or(id.as_deref(), || self.of_body(time))), signed: None, id, event })
    }

    fn linear(&self) -> Result<Delivery, Refusal> {
        const SIGNATURE: &str = "Linear-Signature";
        let mac = prefixed(self.headers.one(SIGNATURE)?, "", SIGNATURE)?;
        self.made_by_key(&[self.body], &mac)?;
        let at = self.json::<Linear>().webhook_timestamp.ok_or(Refusal::NoTime)?;
        self.fresh(at, LINEAR_WINDOW)?;
        let id = self.id("Linear-Delivery")?;
        let signed = self.of_body("");
        let key = Some(named_or(id.as_deref(), || signed.clone()));
        Ok(Delivery { key, signed: Some(signed), id, event: self.word("Linear-Event")? })
    }

    fn standard(&self) -> Result<Delivery, Refusal> {
        const SIGNATURE: &str = "webhook-signature";
        const ID: &str = "webhook-id";
        let given = self.headers.one(SIGNATURE)?;
        let id = self.id(ID)?.ok_or_else(|| Refusal::Missing { header: ID.into() })?;
        // Else the same signed text could be cut in another place.
        if id.contains('.') {
            return Err(Refusal::malformed(ID, "an id with a dot"));
        }
        let (time, at) = self.time("webhook-timestamp")?;
        let signed = [id.as_bytes(), b".", time.as_bytes(), b".", self.body];
        let mut macs = vec![];
        for signature in given.split(' ') {
            match signature.split_once(',') {
                Some(("v1", text)) => match STANDARD.decode(text) {
                    Ok(mac) if mac.len() == MAC_LENGTH => macs.push(mac),
                    _ => return Err(Refusal::malformed(SIGNATURE, "a `v1` is no MAC in base64")),
                },
                // Such as `v1a`, which is signed with another kind of key.
                Some(_) => {}
                None => return Err(Refusal::malformed(SIGNATURE, "not `v1,…`")),
            }
        }
        if macs.is_empty() || macs.len() > SIGNATURES_LIMIT {
            return Err(Refusal::malformed(SIGNATURE, "no `v1`, or too many"));
        }
        if !macs.iter().any(|mac| self.keys.made_standard(&signed, mac)) {
            return Err(Refusal::Signature);
        }
        self.fresh(at, WINDOW)?;
        let event = self.json::<Stripe>().kind;
        Ok(Delivery { key: Some(named(&id)), signed: None, id: Some(id), event })
    }

    fn generic(&self) -> Result<Delivery, Refusal> {
        let header = &self.scheme.signature_header;
        let mac = prefixed(self.headers.one(header)?, "", header)?;
        let (time, at) = self.time(&self.scheme.timestamp_header)?;
        self.made_by_key(&[time.as_bytes(), b".", self.body], &mac)?;
        self.fresh(at, WINDOW)?;
        let id = self.named_id()?;
        let signed = self.of_body(time);
        let key = Some(named_or(id.as_deref(), || signed.clone()));
        Ok(Delivery { key, signed: Some(signed), id, event: self.named_event()? })
    }

    fn bearer(&self) -> Result<Delivery, Refusal> {
        const TOKEN: &str = "X-Auth-Token";
        const AUTHORIZATION: &str = "Authorization";
        let token = match (self.headers.maybe(AUTHORIZATION)?, self.headers.maybe(TOKEN)?) {
            (None, None) => return Err(Refusal::Missing { header: AUTHORIZATION.into() }),
            (Some(_), Some(_)) => return Err(Refusal::Duplicate { header: format!("{AUTHORIZATION}/{TOKEN}") }),
            (None, Some(token)) => token,
            (Some(value), None) => match value.split_once(' ') {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token,
                _ => return Err(Refusal::malformed(AUTHORIZATION, "not `Bearer …`")),
            },
        };
        self.token(token)?;
        let id = self.named_id()?;
        Ok(Delivery { key: id.as_deref().map(named), signed: None, id, event: self.named_event()? })
    }

    fn made_by_key(&self, parts: &[&[u8]], mac: &[u8]) -> Result<(), Refusal> {
        if self.keys.made(parts, mac) { Ok(()) } else { Err(Refusal::Signature) }
    }

    fn token(&self, token: &str) -> Result<(), Refusal> {
        if self.keys.contain(token) { Ok(()) } else { Err(Refusal::Token) }
    }

    /// A header's time as it stands there, which is what was signed, and in milliseconds.
    fn time(&self, header: &str) -> Result<(&str, i64), Refusal> {
        let text = self.headers.one(header)?;
        let at = seconds(text).ok_or_else(|| Refusal::malformed(header, "no time in seconds"))?;
        Ok((text, at))
    }

    fn fresh(&self, at: i64, window: i64) -> Result<(), Refusal> {
        let age = self.now.as_millisecond().saturating_sub(at);
        let limit = window / 1000;
        match age {
            _ if age > window => Err(Refusal::Old { seconds: age / 1000, limit }),
            _ if age < -window => Err(Refusal::Early { seconds: age.saturating_neg() / 1000, limit }),
            _ => Ok(()),
        }
    }

    fn id(&self, header: &str) -> Result<Option<String>, Refusal> {
        match self.headers.maybe(header)? {
            None => Ok(None),
            Some(id) if is_id(id) => Ok(Some(id.into())),
            Some(_) => Err(Refusal::malformed(header, "no id: it is too long or has spaces")),
        }
    }

    fn word(&self, header: &str) -> Result<Option<String>, Refusal> {
        Ok(self.headers.maybe(header)?.map(str::to_owned))
    }

    fn named_id(&self) -> Result<Option<String>, Refusal> {
        self.scheme.id_header.as_deref().map_or(Ok(None), |header| self.id(header))
    }

    fn named_event(&self) -> Result<Option<String>, Refusal> {
        self.scheme.event_header.as_deref().map_or(Ok(None), |header| self.word(header))
    }

    /// Tells apart what has no id: the same bytes with the same `beside` are the same delivery.
    fn of_body(&self, beside: &str) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&(beside.len() as u64).to_be_bytes());
        context.update(beside.as_bytes());
        context.update(self.body);
        format!("body:{}", hex(context.finish().as_ref()))
    }

    /// What the body says of itself, as far as it is such JSON.
    fn json<T: for<'de> Deserialize<'de> + Default>(&self) -> T {
        serde_json::from_slice(self.body).unwrap_or_default()
    }
}

#[derive(Default, Deserialize)]
struct Stripe {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Default, Deserialize)]
struct Slack {
    event_id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    event: Option<SlackEvent>,
}

#[derive(Default, Deserialize)]
struct SlackEvent {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Linear {
    webhook_timestamp: Option<i64>,
}

const MAC_LENGTH: usize = 32;

fn prefixed(text: &str, prefix: &str, header: &str) -> Result<[u8; MAC_LENGTH], Refusal> {
    let hex = text.strip_prefix(prefix).ok_or_else(|| Refusal::malformed(header, "another kind of signature"))?;
    mac_of_hex(hex).ok_or_else(|| Refusal::malformed(header, "not 64 digits of hex in lower case"))
}

/// 64 digits in lower case, as every sender writes them: what differs from the form is not theirs.
fn mac_of_hex(text: &str) -> Option<[u8; MAC_LENGTH]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let digits: &[u8; 2 * MAC_LENGTH] = text.as_bytes().try_into().ok()?;
    let mut mac = [0; MAC_LENGTH];
    for (byte, pair) in mac.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(mac)
}

/// A time in whole seconds since 1970, in milliseconds.
fn seconds(text: &str) -> Option<i64> {
    let is_plain = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse::<i64>().ok()?.checked_mul(1000)).flatten()
}

fn is_id(text: &str) -> bool {
    (1..=ID_LIMIT).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn named(id: &str) -> String {
    format!("id:{id}")
}

fn named_or(id: Option<&str>, otherwise: impl FnOnce() -> String) -> String {
    id.map_or_else(otherwise, named)
}
