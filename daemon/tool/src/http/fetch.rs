use ow_model::{Call, CallError, CallErrorKind, Risk, Span};
use ow_policy::{Action, Facts};
use serde::Deserialize;
use serde_json::Value;

use crate::args::{self, Arg, Kind, Need};
use crate::{Place, Tool, ToolSpec};

pub(super) const FETCH_TIME: Span = Span::from_secs(30);
/// Characters of a page that are returned at once.
pub(super) const SHOWN: u64 = 20_000;
pub(super) const SHOWN_MOST: u64 = 100_000;
pub(super) const PAGES: &str =
    "text/markdown, text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

const ARGS: &[Arg] = &[
    Arg { name: "url", kind: Kind::Url, need: Need::Required, about: "an http or https address" },
    Arg {
        name: "from",
        kind: Kind::Count(0, u64::MAX),
        need: Need::Optional,
        about: "the first character of the text, counted from 0; the result says where to go on",
    },
    Arg {
        name: "limit",
        kind: Kind::Count(1, SHOWN_MOST),
        need: Need::Optional,
        about: "how many characters at most; 20000 if left out",
    },
    Arg {
        name: "timeout",
        kind: Kind::Time,
        need: Need::Optional,
        about: "the longest time for all of it; \"30s\" if left out",
    },
];

#[derive(Debug, Deserialize)]
pub(super) struct FetchArgs {
    pub(super) url: String,
    #[serde(default)]
    pub(super) from: u64,
    pub(super) limit: Option<u64>,
    pub(super) timeout: Option<Span>,
}

pub(crate) struct WebFetch {
    spec: ToolSpec,
}

impl WebFetch {
    pub(crate) fn new() -> Self {
        Self { spec: ToolSpec::own("web_fetch", args::schema(ARGS)) }
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("web_fetch", ARGS, value)?;
        let url = value.get("url").and_then(Value::as_str).unwrap_or_default();
        match url::Url::parse(url) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!(
                "argument `url` of `web_fetch`: expected an address such as https://example.com/, found {url:?} ({error})"
            )),
        }
    }

    fn facts(&self, call: &Call, _place: &Place) -> Result<Facts, CallError> {
        let bad = |message| CallError { kind: CallErrorKind::BadArguments, message };
        self.check(&call.args).map_err(bad)?;
        let args: FetchArgs = args::read(&call.args)?;
        let url = url::Url::parse(&args.url).map_err(|error| bad(format!("`{}`: {error}", args.url)))?;
        Ok(Facts {
            risk: Risk::Read,
            action: Action::Url { method: "GET".into(), url, has_body: false, own_headers: false },
        })
    }
}
