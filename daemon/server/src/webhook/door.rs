use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use jiff::Timestamp;
use ow_model::{EventKey, RunId, WebhookName};
use ow_store::StoreError;
use ow_webhook::{Headers, Profile, payload, verify};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::hooks::{Webhook, Webhooks};
use crate::limits::{HOOK_BODY_ROOM, HOOK_BODY_TIME, HOOK_RETRY, SLACK_BODY_LIMIT};

/// Takes deliveries whose sender is proven.
#[async_trait]
pub trait Deliveries: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Durable for every task that wants it before this returns.
    async fn accept(&self, delivery: NewDelivery) -> Result<Taken, StoreError>;

    /// Whether Slack posts here.
    fn hears_slack(&self) -> bool;

    /// Takes what Slack posts: a status, and a text to go with it; none: Slack posts nothing here.
    async fn take_from_slack(&self, posted: SlackPost<'_>) -> Option<(u16, String)>;
}

/// A request at `/slack/events` or `/slack/interactivity`; whether it is Slack's is not looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct SlackPost<'a> {
    /// `x-slack-request-timestamp`
    pub timestamp: Option<&'a str>,
    /// `x-slack-signature`
    pub signature: Option<&'a str>,
    pub body: &'a [u8],
}

/// A delivery at a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDelivery {
    pub hook: WebhookName,
    pub key: EventKey,
    /// What was signed, if the same under another key is this delivery again.
    pub signed: Option<String>,
    /// What templates read as `event`.
    pub data: Value,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Taken {
    New,
    /// All tasks that it is for had it already.
    Known,
    /// No task names its hook: it is kept nowhere.
    Nowhere,
}

/// What every request at the listener is served from.
struct Door {
    hooks: Arc<Webhooks>,
    deliveries: Arc<dyn Deliveries>,
    /// KiB of bodies that may be in memory at a time, whoever sends them.
    room: Semaphore,
}

/// The whole of what the listener answers to.
pub(crate) fn router(hooks: Arc<Webhooks>, deliveries: Arc<dyn Deliveries>) -> Router {
    let door = Door { hooks, deliveries, room: Semaphore::new(HOOK_BODY_ROOM / 1024) };
    Router::new()
        .route("/hooks/{name}", post(deliver))
        .route("/slack/events", post(from_slack))
        .route("/slack/interactivity", post(from_slack))
        .fallback(async || StatusCode::NOT_FOUND)
        .with_state(Arc::new(door))
}

async fn deliver(State(door): State<Arc<Door>>, Path(name): Path<String>, request: Request) -> Response {
    let hook = name.parse().ok().and_then(|name| door.hooks.find(&name));
    let Some(hook) = hook else { return StatusCode::NOT_FOUND.into_response() };
    match door.take(&hook, request).await {
        Ok(answer) => answer,
        Err(refused) => {
            if let Some(why) = &refused.why {
                hook.note_refused(why, door.deliveries.now());
            }
            refused.into_response()
        }
    }
}

/// Events and interactions of a Slack app, both signed alike.
async fn from_slack(State(door): State<Arc<Door>>, request: Request) -> Response {
    if !door.deliveries.hears_slack() {
        return StatusCode::NOT_FOUND.into_response();
    }
    let (parts, body) = request.into_parts();
    let (body, _room) = match door.read(body, SLACK_BODY_LIMIT).await {
        Ok(read) => read,
        Err(refused) => return refused.into_response(),
    };
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let posted = SlackPost {
        timestamp: header("x-slack-request-timestamp"),
        signature: header("x-slack-signature"),
        body: &body,
    };
    match door.deliveries.take_from_slack(posted).await {
        Some((status, text)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, [(CONTENT_TYPE, "text/plain")], text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A body, and the room that it takes up.
type Read<'d> = (Vec<u8>, Option<SemaphorePermit<'d>>);

impl Door {
    async fn take(&self, hook: &Webhook, request: Request) -> Result<Response, Refused> {
        let settings = &hook.settings;
        let (parts, body) = request.into_parts();
        // Kept until the delivery is stored.
        let (body, _room) = self.read(body, settings.body_limit).await?;
        let headers = headers(&parts.headers);
        let now = self.deliveries.now();
        let delivery = verify(&settings.scheme, &settings.keys, &headers, &body, now)
            .map_err(|refusal| Refused::with(StatusCode::UNAUTHORIZED, refusal.to_string()))?;
        hook.admit(Instant::now()).map_err(|wait| Refused::later(StatusCode::TOO_MANY_REQUESTS, wait.as_secs() + 1))?;
        let payload =
            payload(&headers, &body).map_err(|error| Refused::with(StatusCode::BAD_REQUEST, error.to_string()))?;
        if let Some(challenge) = challenge(settings.scheme.profile, &payload.value) {
            return Ok(([(CONTENT_TYPE, "text/plain")], challenge).into_response());
        }
        drop(body);
        // Without a way to tell it from others, each is one of its own.
        let key = delivery.key.clone().unwrap_or_else(|| format!("once:{}", RunId::random()));
        let new = NewDelivery {
            key: EventKey(format!("{}:{key}", settings.name.source())),
            signed: delivery.signed.clone(),
            data: payload.into_event(settings.name.as_str(), &delivery, &headers, (&settings.scheme, &settings.keys)),
            hook: settings.name.clone(),
        };
        let taken = self.deliveries.accept(new).await.map_err(|error| {
            tracing::error!(hook = %settings.name, error = &error as &dyn std::error::Error, "delivery not stored");
            Refused::later(StatusCode::SERVICE_UNAVAILABLE, HOOK_RETRY.as_secs())
        })?;
        let (status, word) = match taken {
            Taken::New => (StatusCode::ACCEPTED, "accepted"),
            Taken::Known => (StatusCode::OK, "known"),
            // Said yes to, it would be lost; so it comes again, perhaps when there is one.
            Taken::Nowhere => {
                let why = format!("no task has a trigger `webhook = \"{}\"`", settings.name);
                let refused = Refused::later(StatusCode::SERVICE_UNAVAILABLE, HOOK_RETRY.as_secs());
                return Err(Refused { why: Some(why), ..refused });
            }
        };
        hook.note_taken(taken == Taken::New);
        tracing::debug!(hook = %settings.name, status = word, "delivery taken");
        let answer = format!("{{\"status\":\"{word}\"}}\n");
        Ok((status, [(CONTENT_TYPE, "application/json")], answer).into_response())
    }

    /// Reads a body of at most `limit` bytes. A longer one is refused by its announced length before a byte of it is read,
    /// and without one as soon as it is too long.
    async fn read(&self, body: Body, limit: usize) -> Result<Read<'_>, Refused> {
        let too_large = || Refused::with(StatusCode::PAYLOAD_TOO_LARGE, format!("larger than {limit} bytes"));
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large());
        }
        let reading = async {
            let (mut body, mut read) = (body, vec![]);
            let mut room: Option<SemaphorePermit<'_>> = None;
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| Refused::with(StatusCode::BAD_REQUEST, "the body was cut off"))?;
                let Some(data) = frame.data_ref() else { continue };
                if read.len() + data.len() > limit {
                    return Err(too_large());
                }
                // Only what has come takes up room: what was announced costs its sender nothing.
                let held = room.as_ref().map_or(0, SemaphorePermit::num_permits);
                let more = (read.len() + data.len()).div_ceil(1024).saturating_sub(held);
                let more = self.room.try_acquire_many(u32::try_from(more).expect("a limit is a few MiB"));
                let more = more.map_err(|_| Refused::later(StatusCode::SERVICE_UNAVAILABLE, HOOK_RETRY.as_secs()))?;
                match &mut room {
                    Some(room) => room.merge(more),
                    None => room = Some(more),
                }
                read.extend_from_slice(data);
            }
            Ok((read, room))
        };
        let slow = |_| Err(Refused::with(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"));
        timeout(HOOK_BODY_TIME, reading).await.unwrap_or_else(slow)
    }
}

fn headers(map: &HeaderMap) -> Headers {
    Headers::new(map.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
}

/// What Slack wants back once, when the address is entered there.
fn challenge(profile: Profile, payload: &Value) -> Option<String> {
    const LIMIT: usize = 1024;
    let asks = profile == Profile::Slack && payload["type"] == "url_verification";
    payload["challenge"].as_str().filter(|text| asks && text.len() <= LIMIT).map(str::to_owned)
}

/// Why a delivery was not taken.
struct Refused {
    status: StatusCode,
    /// For the person whose owd this is, and not for the sender.
    why: Option<String>,
    retry_after: Option<u64>,
}

impl Refused {
    fn with(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: Some(why.into()), retry_after: None }
    }

    fn later(status: StatusCode, seconds: u64) -> Self {
        Self { status, why: None, retry_after: Some(seconds) }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
