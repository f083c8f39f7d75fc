use std::collections::BTreeSet;
use std::time::Duration;

use ow_secret::SecretValue;
use reqwest::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER};
use reqwest::{StatusCode, redirect};
use serde_json::{Map, Value};
use url::Url;

use crate::Fault;
use crate::fault::{is_doubtful, is_passing};
use crate::websocket::{WebSocket, WebSocketError};

/// Slack's own address.
pub const API: &str = "https://slack.com/api/";
const CONNECT: Duration = Duration::from_secs(10);
const CALL: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_mins(1);
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;
const AGENT: &str = concat!("owd/", env!("CARGO_PKG_VERSION"));
/// Without a word of Slack's, a limited call waits so long.
const LIMITED: Duration = Duration::from_secs(30);

/// Calls Slack's Web API. Each call is made once: when to try again is its caller's to say.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    /// Ends with a slash.
    base: Url,
    bot: SecretValue,
    app: Option<SecretValue>,
}

/// The app's own user, and what it may do.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Me {
    /// The user id of the bot, as in `<@U…>`.
    pub user: String,
    pub bot: String,
    pub team: String,
    pub team_name: String,
    pub scopes: BTreeSet<String>,
}

impl Client {
    /// `base`: Slack's own address unless another is given; `app`: for Socket Mode.
    ///
    /// # Errors
    ///
    /// When no client can be made, as on a machine whose certificates cannot be read.
    pub fn new(base: Option<&Url>, bot: SecretValue, app: Option<SecretValue>) -> Result<Self, reqwest::Error> {
        // Another part may have made it already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let is_clear = base.is_some_and(|base| base.scheme() == "http");
        let mut http = reqwest::Client::builder()
            .no_proxy()
            .referer(false)
            .user_agent(AGENT)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            // A token goes to no other host, and a socket is made of HTTP/1.1.
            .redirect(redirect::Policy::none())
            .http1_only();
        if is_clear {
            // A machine without certificates can still speak to a Slack of its own.
            http = http.tls_certs_only([]);
        }
        let http = http.build()?;
        let mut base = base.cloned().unwrap_or_else(|| Url::parse(API).expect("a constant address"));
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self { http, base, bot, app })
    }

    /// Calls a method with the bot's token.
    pub async fn call(&self, method: &'static str, args: &Value) -> Result<Value, Fault> {
        self.call_as(method, args, &self.bot).await.map(|(answer, _)| answer)
    }

    /// Who the bot's token is.
    pub async fn me(&self) -> Result<Me, Fault> {
        let (answer, scopes) = self.call_as("auth.test", &Value::Null, &self.bot).await?;
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        Ok(Me {
            user: text("user_id"),
            bot: text("bot_id"),
            team: text("team_id"),
            team_name: text("team"),
            scopes: scopes.split(',').map(|scope| scope.trim().to_owned()).filter(|scope| !scope.is_empty()).collect(),
        })
    }

    /// Whether Socket Mode can be had: an app's token is there.
    #[must_use]
    pub const fn has_app_token(&self) -> bool {
        self.app.is_some()
    }

    /// Whether Slack would open a socket; none is opened.
    pub(crate) async fn can_open_socket(&self) -> Result<(), Fault> {
        let method = "apps.connections.open";
        let Some(app) = &self.app else { return Err(Fault::Never { method, error: "not_authed".into() }) };
        self.call_as(method, &Value::Null, app).await.map(drop)
    }

    /// Asks for a new socket and opens it.
    pub(crate) async fn open_socket(&self) -> Result<Result<WebSocket, WebSocketError>, Fault> {
        let method = "apps.connections.open";
        let Some(app) = &self.app else { return Err(Fault::Never { method, error: "not_authed".into() }) };
        let (answer, _) = self.call_as(method, &Value::Null, app).await?;
        let address = answer["url"].as_str().unwrap_or_default();
        // In the clear only where the whole of Slack is: a local one, for tests.
        if self.base.scheme() == "https" && !address.starts_with("wss:") {
            return Ok(Err(WebSocketError::Address));
        }
        Ok(WebSocket::open(&self.http, address).await)
    }

    async fn call_as(&self, method: &'static str, args: &Value, token: &SecretValue) -> Result<(Value, String), Fault> {
        let later = |after, why: String| Fault::Later { after, why };
        let address = self.base.join(method).map_err(|error| later(None, format!("{method}: {error}")))?;
        let Ok(mut header) = HeaderValue::from_str(&format!("Bearer {}", token.expose().trim())) else {
            return Err(Fault::Never { method, error: "invalid_auth".into() });
        };
        header.set_sensitive(true);
        let sent = self.http.post(address).header(AUTHORIZATION, header).timeout(CALL).body(form(args));
        let sent = sent.header("content-type", "application/x-www-form-urlencoded; charset=utf-8").send().await;
        let mut response = sent.map_err(|error| {
            let is_unsent = error.is_connect() || error.is_builder();
            let why = cause(&error.without_url());
            if is_unsent {
                later(None, format!("Slack cannot be reached ({method}): {why}"))
            } else {
                Fault::Lost { why: format!("Slack did not answer ({method}): {why}") }
            }
        })?;
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if status == StatusCode::TOO_MANY_REQUESTS {
            let after = header(RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            return Err(later(Some(after.unwrap_or(LIMITED)), format!("Slack wants {method} later")));
        }
        let scopes = header("x-oauth-scopes").unwrap_or_default();
        let mut body = vec![];
        loop {
            match response.chunk().await {
                Ok(Some(piece)) if body.len() + piece.len() <= LONGEST_ANSWER => body.extend_from_slice(&piece),
                Ok(Some(_)) => return Err(Fault::Never { method, error: "the answer is too long".into() }),
                Ok(None) => break,
                Err(error) => {
                    let why = format!("Slack's answer broke ({method}): {}", cause(&error.without_url()));
                    return Err(Fault::Lost { why });
                }
            }
        }
        let answer: Value = match serde_json::from_slice(&body) {
            Ok(answer) if status.is_success() => answer,
            Ok(_) | Err(_) => return Err(Fault::Lost { why: format!("Slack answered {status} to {method}") }),
        };
        if answer["ok"] == true {
            return Ok((answer, scopes));
        }
        let error = answer["error"].as_str().unwrap_or("no reason").to_owned();
        if is_doubtful(&error) {
            return Err(Fault::Lost { why: format!("Slack says of {method} only: {error}") });
        }
        if is_passing(&error) {
            return Err(later(None, format!("Slack refuses {method} just now: {error}")));
        }
        let more = answer["needed"].as_str().or_else(|| answer["response_metadata"]["messages"][0].as_str());
        Err(Fault::Never { method, error: more.map_or(error.clone(), |more| format!("{error}: {more}")) })
    }
}

/// Every method takes a form, but not every one JSON; what is no text goes as JSON in its field.
fn form(args: &Value) -> String {
    let empty = Map::new();
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in args.as_object().unwrap_or(&empty) {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        form.append_pair(name, &text);
    }
    form.finish()
}

/// The innermost cause: what reqwest says itself is only that it failed.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
