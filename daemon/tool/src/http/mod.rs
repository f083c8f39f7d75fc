//! `http_request` and `web_fetch`: one request behind the URL guard, answered as it came or read as a page.

mod body;
mod fetch;
mod html;
mod page;
mod run;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ow_model::{Call, CallError, CallErrorKind, Risk, Span};
use ow_policy::{Action, Facts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::{self, Arg, Hidden, Kind, Need};
use crate::{Place, Tool, ToolSpec};

pub(crate) use fetch::WebFetch;
pub(crate) use run::{fetch, run};

use fetch::{FETCH_TIME, FetchArgs, PAGES};

/// What may be reached, as the configuration and the task have it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Net {
    /// The person's `http.allow`: the only way to a private address.
    pub allow: Vec<String>,
    /// Addresses on which owd listens.
    pub own: Vec<SocketAddr>,
    /// The only hosts that a redirect may lead to, besides that of the call; none: any public one.
    pub hosts: Option<Vec<String>>,
}

const ARGS: &[Arg] = &[
    Arg { name: "method", kind: Kind::OneOf(METHODS), need: Need::Optional, about: "GET where it is left out" },
    Arg { name: "url", kind: Kind::Url, need: Need::Required, about: "an http or https address" },
    Arg {
        name: "headers",
        kind: Kind::HiddenMap,
        need: Need::Optional,
        about: "a value is a string or { secret = \"name\", prefix = \"Bearer \" }",
    },
    Arg {
        name: "body",
        kind: Kind::Hidden,
        need: Need::Optional,
        about: "what is sent; a string or { secret = \"name\" }",
    },
    Arg { name: "timeout", kind: Kind::Time, need: Need::Optional, about: "the longest time for all of it" },
];

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Headers that say where a message ends or who gets it: only the client itself may set them.
const OWN_HEADERS: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-authorization",
    "proxy-connection",
];

#[derive(Debug, Deserialize)]
pub(crate) struct HttpArgs {
    #[serde(default = "get")]
    pub(crate) method: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Hidden>,
    pub(crate) body: Option<Hidden>,
    pub(crate) timeout: Option<Span>,
}

fn get() -> String {
    "GET".into()
}

pub(crate) struct HttpRequest {
    spec: ToolSpec,
}

impl HttpRequest {
    pub(crate) fn new() -> Self {
        Self { spec: ToolSpec::own("http_request", args::schema(ARGS)) }
    }
}

impl Tool for HttpRequest {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("http_request", ARGS, value)?;
        let wrong = |name: &str, what: String| Err(format!("argument `{name}` of `http_request`: {what}"));
        if let Some(url) = value.get("url").and_then(Value::as_str)
            && let Err(error) = url::Url::parse(url)
        {
            return wrong("url", format!("expected an address such as https://example.com/, found {url:?} ({error})"));
        }
        for (name, value) in value.get("headers").and_then(Value::as_object).into_iter().flatten() {
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return wrong("headers", format!("{name:?} is not the name of a header"));
            }
            if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                return wrong("headers", format!("`{name}` is set by the client itself"));
            }
            if value.as_str().is_some_and(|value| reqwest::header::HeaderValue::from_str(value).is_err()) {
                return wrong("headers", format!("the value of `{name}` holds a line end or a control character"));
            }
        }
        Ok(())
    }

    fn facts(&self, call: &Call, _place: &Place) -> Result<Facts, CallError> {
        let bad = |message| CallError { kind: CallErrorKind::BadArguments, message };
        self.check(&call.args).map_err(bad)?;
        let args: HttpArgs = args::read(&call.args)?;
        let url = url::Url::parse(&args.url).map_err(|error| bad(format!("`{}`: {error}", args.url)))?;
        Ok(Facts {
            risk: Risk::External,
            action: Action::Url {
                method: args.method.to_ascii_uppercase(),
                url,
                has_body: args.body.is_some(),
                own_headers: !args.headers.is_empty(),
            },
        })
    }
}
