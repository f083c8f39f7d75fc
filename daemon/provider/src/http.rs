use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ow_clock::Clock;
use ow_model::{ModelFailure, Reply, Span};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, redirect};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::partial;
use crate::fault::{Answer, retry_after, shown};
use crate::repair::{MOST_REPAIRS, repaired};
use crate::router::Keys;
use crate::sse::Sse;
use crate::stream::{Assembly, Stage, StreamFault};
use crate::wire::{Parameters, Profile, body};
use crate::{
    Body, Completion, CompletionError, Deltas, ModelError, ModelTable, Provider, ProviderSettings, Request, Wire,
};

const CONNECT: Duration = Duration::from_secs(15);
/// An error's body that does not come by then is done without.
const ERROR_BODY: Duration = Duration::from_secs(10);
const LONGEST_ERROR_BODY: usize = 64 * 1024;
/// After the reply is complete: how long figures on tokens are waited for where the server neither ends the stream nor
/// says that it is done.
const AFTER_REPLY: Duration = Duration::from_secs(3);
const IDLE_CONNECTION: Duration = Duration::from_secs(90);
const AGENT: &str = concat!("owd/", env!("CARGO_PKG_VERSION"));
/// The date names the format, not the day.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A provider that is reached over HTTP.
pub struct HttpProvider {
    settings: ProviderSettings,
    models: Arc<ModelTable>,
    keys: Keys,
    clock: Clock,
    client: Client,
    /// What a model has refused before, by its name: not sent to it again.
    learned: Mutex<HashMap<String, Parameters>>,
}

impl std::fmt::Debug for HttpProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpProvider").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// How one request ended.
enum End {
    Reply(Reply),
    Cancelled(Option<String>),
    Failed(ModelError),
    /// A refusal that names a parameter, perhaps.
    Refused(Answer, ModelError),
}

impl HttpProvider {
    /// # Errors
    ///
    /// When no client can be made, as on a machine whose certificates cannot be read.
    pub fn new(
        settings: ProviderSettings,
        models: Arc<ModelTable>,
        keys: Keys,
        clock: Clock,
    ) -> Result<Self, ModelError> {
        let client = client(&settings).map_err(|error| {
            let message = format!("`{}`: no HTTP client: {}", settings.name, cause(&error.without_url()));
            ModelError::new(ModelFailure::Unreachable, message)
        })?;
        Ok(Self { settings, models, keys, clock, client, learned: Mutex::default() })
    }

    fn parameters(&self, model: &str) -> Parameters {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.get(model).copied().unwrap_or(Parameters {
            limit: self.settings.limit_field,
            stream_options: self.settings.stream_options,
            effort: true,
            tool_choice: true,
            cache: true,
        })
    }

    fn made(&self, request: &Request, parameters: Parameters) -> Body {
        let capabilities = self.models.capabilities(&self.settings.name, &request.model);
        let profile = Profile::new(&self.settings, &capabilities);
        Body { bytes: body(request, &profile, &capabilities, parameters), parameters }
    }

    fn learn(&self, model: &str, parameters: Parameters) {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).insert(model.to_owned(), parameters);
    }

    /// The headers, with the key; it is fetched for each call, so that a new one counts at once.
    fn headers(&self) -> Result<(HeaderMap, Option<String>), ModelError> {
        let ProviderSettings { name, key, needs_key, wire, .. } = &self.settings;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if *wire == Wire::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
        }
        let auth = |message: String| ModelError::new(ModelFailure::Auth, message);
        let Some(key) = key else { return Ok((headers, None)) };
        self.settings.check_key().map_err(|error| auth(error.to_string()))?;
        let Some(value) = self.keys.find(key) else {
            if *needs_key {
                let secret = key.to_ascii_lowercase();
                return Err(auth(format!(
                    "`{name}` needs a key and there is none; store it with: owctl secret set {secret} (or set ${key})"
                )));
            }
            return Ok((headers, None));
        };
        let bare = value.expose().trim();
        let text = if *wire == Wire::Anthropic { bare.to_owned() } else { format!("Bearer {bare}") };
        let Ok(mut header) = HeaderValue::from_str(&text) else {
            return Err(auth(format!(
                "the key `{key}` holds a line end or a character that no key has; store it again with: owctl secret set {}",
                key.to_ascii_lowercase()
            )));
        };
        header.set_sensitive(true);
        match wire {
            Wire::OpenAi => headers.insert(AUTHORIZATION, header),
            Wire::Anthropic => headers.insert("x-api-key", header),
        };
        Ok((headers, Some(bare.to_owned())))
    }

    async fn send(&self, model: &str, sent: &Bytes, deltas: &mut Deltas<'_>, cancel: &CancellationToken) -> End {
        let (headers, key) = match self.headers() {
            Ok(headers) => headers,
            Err(error) => return End::Failed(error),
        };
        let limits = self.settings.limits;
        let ends = Instant::now() + limits.whole;
        let asking = self.client.post(self.settings.endpoint()).headers(headers).body(sent.clone()).send();
        let response = tokio::select! {
            biased;
            () = cancel.cancelled() => return End::Cancelled(None),
            response = timeout(limits.silence, asking) => response,
        };
        let response = match response {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return End::Failed(self.unsent(error)),
            Err(_) => return End::Failed(self.silent(limits.silence)),
        };
        if !response.status().is_success() {
            return self.refused(response, key.as_deref(), cancel).await;
        }
        match kind(response.headers()).as_str() {
            "application/json" => return self.whole(model, response, deltas, cancel).await,
            "text/html" => {
                let message = "a web page instead of an answer".into();
                return End::Failed(self.fault(StreamFault { kind: ModelFailure::Garbage, message }, ""));
            }
            // Some servers name no kind, or a wrong one.
            _ => {}
        }
        self.stream(model, response, ends, deltas, cancel).await
    }

    async fn stream(
        &self,
        model: &str,
        mut response: Response,
        ends: Instant,
        deltas: &mut Deltas<'_>,
        cancel: &CancellationToken,
    ) -> End {
        let limits = self.settings.limits;
        let mut sse = Sse::default();
        let mut assembly = Assembly::new(self.settings.wire, limits);
        // What came before the first event, in case none comes: then it is no answer of a model.
        let (mut events, mut first) = (0_u64, vec![]);
        while assembly.stage() != Stage::Over {
            let is_complete = assembly.stage() == Stage::Complete;
            let silence = if is_complete { AFTER_REPLY.min(limits.silence) } else { limits.silence };
            let until = ends.min(Instant::now() + silence);
            let chunk = tokio::select! {
                biased;
                () = cancel.cancelled() => return End::Cancelled(partial(assembly.partial())),
                chunk = timeout_at(until, response.chunk()) => chunk,
            };
            let taken = match chunk {
                Ok(Ok(Some(chunk))) => {
                    if events == 0 && first.len() < LONGEST_ERROR_BODY {
                        first.extend_from_slice(&chunk[..chunk.len().min(LONGEST_ERROR_BODY)]);
                    }
                    sse.push(&chunk, &mut |event| {
                        events += 1;
                        assembly.event(&event, deltas)
                    })
                }
                Ok(Ok(None)) => {
                    if let Some(event) = sse.finish() {
                        events += 1;
                        if let Err(fault) = assembly.event(&event, deltas) {
                            return End::Failed(self.fault(fault, assembly.partial()));
                        }
                    }
                    if events == 0 && !first.is_empty() {
                        return End::Failed(self.fault(no_answer(&first), ""));
                    }
                    break;
                }
                // The reply is there; what is missing are figures.
                Ok(Err(_)) | Err(_) if is_complete => break,
                Ok(Err(error)) => {
                    let message = format!("the connection broke in the middle of the reply: {}", cause(&error));
                    let fault = StreamFault { kind: ModelFailure::Unavailable, message };
                    return End::Failed(self.fault(fault, assembly.partial()));
                }
                Err(_) if Instant::now() >= ends => {
                    let message = format!("the reply was not complete after {:?}", limits.whole);
                    let fault = StreamFault { kind: ModelFailure::Unavailable, message };
                    return End::Failed(self.fault(fault, assembly.partial()));
                }
                Err(_) => return End::Failed(self.silent(silence).with_partial(assembly.partial())),
            };
            if let Err(fault) = taken {
                return End::Failed(self.fault(fault, assembly.partial()));
            }
        }
        let so_far = assembly.partial().to_owned();
        match assembly.finish(&self.named(model), deltas) {
            Ok(reply) => End::Reply(reply),
            Err(fault) => End::Failed(self.fault(fault, &so_far)),
        }
    }

    /// An answer in one piece, from a server that does not stream.
    async fn whole(&self, model: &str, response: Response, deltas: &mut Deltas<'_>, cancel: &CancellationToken) -> End {
        let limits = self.settings.limits;
        let longest = limits.bytes * 2;
        let reading = timeout(limits.silence, read(response, longest));
        let body = tokio::select! {
            biased;
            () = cancel.cancelled() => return End::Cancelled(None),
            body = reading => body.unwrap_or_default(),
        };
        let mut assembly = Assembly::new(self.settings.wire, limits);
        let taken = match serde_json::from_slice::<Value>(&body) {
            Ok(value) if value["error"].is_object() || value["error"].is_string() => {
                let answer = Answer::of_stream(&value);
                Err(StreamFault { kind: answer.kind, message: answer.message })
            }
            Ok(value) => assembly.whole(&value, deltas),
            Err(_) if body.len() == longest => {
                Err(StreamFault::too_large(format!("the reply is longer than {} bytes", limits.bytes)))
            }
            Err(_) => Err(no_answer(&body)),
        };
        let so_far = assembly.partial().to_owned();
        match taken.and_then(|()| assembly.finish(&self.named(model), deltas)) {
            Ok(reply) => End::Reply(reply),
            Err(fault) => End::Failed(self.fault(fault, &so_far)),
        }
    }

    async fn refused(&self, response: Response, key: Option<&str>, cancel: &CancellationToken) -> End {
        let status = response.status().as_u16();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (after, millis, date) = (header("retry-after"), header("retry-after-ms"), header("date"));
        let body = tokio::select! {
            biased;
            () = cancel.cancelled() => return End::Cancelled(None),
            body = timeout(ERROR_BODY, read(response, LONGEST_ERROR_BODY)) => body.unwrap_or_default(),
        };
        let mut answer = Answer::of_status(status, &body);
        if let Some(key) = key.filter(|key| key.len() >= 4) {
            // Some vendors repeat the key that they refuse.
            answer.message = answer.message.replace(key, ow_secret::REDACTED);
        }
        let retry_after = retry_after(after.as_deref(), millis.as_deref(), date.as_deref(), self.clock.now());
        let said = match (answer.message.as_str(), answer.code.as_str()) {
            ("", "") => String::new(),
            ("", code) => format!(": {code}"),
            (message, "") => format!(": {message}"),
            (message, code) => format!(" ({code}): {message}"),
        };
        let name = &self.settings.name;
        // How long is said where it may be why nothing is tried again.
        let alone = retry_after.filter(|after| after.as_secs() > 0).map_or(String::new(), |after| {
            format!("; it wants to be left alone for {}", Span::from_secs(after.as_secs()))
        });
        let message = format!("`{name}` answered {status}{said}{alone}{}", self.remedy(answer.kind, status));
        let mut error = ModelError::new(answer.kind, message);
        (error.status, error.retry_after) = (Some(status), retry_after);
        End::Refused(answer, error)
    }

    /// What a person can do, after a semicolon.
    fn remedy(&self, kind: ModelFailure, status: u16) -> String {
        let ProviderSettings { name, base_url, key, .. } = &self.settings;
        let remedy = match (kind, key) {
            (ModelFailure::Auth, _) if status == 404 => {
                "choose a model that it has and that the key may use: owctl model list".into()
            }
            (ModelFailure::Auth, Some(key)) => {
                format!("store a key that is valid for this model: owctl secret set {}", key.to_ascii_lowercase())
            }
            (ModelFailure::Auth, None) => {
                format!("name its key in owd.toml: [provider.{name}] key = \"…\"")
            }
            (ModelFailure::Quota, _) => {
                "raise the limit or pay the bill of that account, or choose another model".into()
            }
            (ModelFailure::RateLimit, _) => "wait, or name another model to fail over to".into(),
            (ModelFailure::TooLarge, _) => {
                "none of it was used; ask for less at a time, or choose another model".into()
            }
            (ModelFailure::Garbage, _) => format!("is `{base_url}` the right base-url?"),
            (ModelFailure::BadRequest, _) if matches!(status, 404 | 405) => {
                format!("is `{base_url}` the right base-url?")
            }
            _ => return String::new(),
        };
        format!("; {remedy}")
    }

    /// Why no answer came at all.
    fn unsent(&self, error: reqwest::Error) -> ModelError {
        let ProviderSettings { name, base_url, is_local, .. } = &self.settings;
        let error = error.without_url();
        let why = cause(&error);
        if error.is_connect() || error.is_timeout() {
            let remedy = if *is_local { "is it running?" } else { "is this machine online?" };
            let message = format!("`{name}` cannot be reached at {base_url}: {why}; {remedy}");
            return ModelError::new(ModelFailure::Unreachable, message);
        }
        let message = format!("`{name}`: the connection broke before an answer came: {why}");
        ModelError::new(ModelFailure::Unavailable, message)
    }

    fn silent(&self, silence: Duration) -> ModelError {
        let name = &self.settings.name;
        let message = format!(
            "`{name}` was silent for {silence:?}; give it longer in owd.toml: [provider.{name}] silence = \"10m\", or name \
             another model to fail over to"
        );
        ModelError::new(ModelFailure::Unavailable, message)
    }

    fn fault(&self, fault: StreamFault, so_far: &str) -> ModelError {
        let StreamFault { kind, message } = fault;
        let remedy = self.remedy(kind, 200);
        ModelError::new(kind, format!("`{}`: {message}{remedy}", self.settings.name)).with_partial(so_far)
    }

    fn named(&self, model: &str) -> String {
        format!("{}:{model}", self.settings.name)
    }
}

#[async_trait]
impl Provider for HttpProvider {
    fn body(&self, request: &Request) -> Body {
        self.made(request, self.parameters(&request.model))
    }

    async fn complete(
        &self,
        request: &Request,
        first: Body,
        deltas: &mut Deltas<'_>,
        cancel: &CancellationToken,
    ) -> Result<Completion, CompletionError> {
        let model = request.model.as_str();
        let mut made = first;
        let mut repairs = 0;
        loop {
            let Body { bytes: sent, parameters } = made;
            let mut error = match self.send(model, &sent, deltas, cancel).await {
                End::Reply(reply) => {
                    if repairs > 0 {
                        self.learn(model, parameters);
                    }
                    return Ok(Completion { reply, sent });
                }
                End::Cancelled(partial) => return Err(CompletionError::Cancelled { partial }),
                End::Failed(error) => error,
                End::Refused(answer, error) => {
                    let is_repairable = matches!(error.status, Some(400 | 422))
                        && matches!(answer.kind, ModelFailure::BadRequest | ModelFailure::Overflow);
                    if is_repairable
                        && repairs < MOST_REPAIRS
                        && let Some(mended) = repaired(parameters, self.settings.wire, &answer)
                    {
                        tracing::debug!(provider = %self.settings.name, model, "a parameter was refused and is left out");
                        made = self.made(request, mended);
                        repairs += 1;
                        continue;
                    }
                    error
                }
            };
            error.sent = Some(sent);
            return Err(error.into());
        }
    }
}

fn client(settings: &ProviderSettings) -> reqwest::Result<Client> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails only where another part has set one already.
        drop(rustls::crypto::ring::default_provider().install_default());
    });
    let mut builder = Client::builder()
        .no_proxy()
        // A key must not follow to where it was not meant for.
        .redirect(redirect::Policy::none())
        .referer(false)
        .user_agent(AGENT)
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE_CONNECTION);
    if !settings.uses_tls() {
        // A machine without certificates can still speak plain HTTP.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// An answer in a form that no model gives.
fn no_answer(body: &[u8]) -> StreamFault {
    let text = shown(&String::from_utf8_lossy(body));
    let message = format!("an answer that is not JSON: `{}`", text.chars().take(80).collect::<String>());
    StreamFault { kind: ModelFailure::Garbage, message }
}

/// The media type of an answer, without its parameters.
fn kind(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A body as far as it comes, up to `most` bytes.
async fn read(mut response: Response, most: usize) -> Vec<u8> {
    let mut body = vec![];
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(most - body.len())]);
        if body.len() == most {
            break;
        }
    }
    body
}

/// The innermost reason, which says what happened.
fn cause(error: &dyn Error) -> String {
    let mut at = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}
