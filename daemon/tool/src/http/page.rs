//! An answer as a page of text: what it is, its title, and a part of what it says.

use ow_model::{CallError, CallErrorKind, CallResult};
use reqwest::Response;
use serde_json::json;
use url::Url;

use super::body::{Body, decoded};
use super::fetch::{FetchArgs, SHOWN};
use super::html;
use super::run::{body_of, shown_url};
use crate::capture::Finished;
use crate::files::{kind_of, known_kind};
use crate::helper::work::Work;

/// More of a page is not read.
const PAGE_BYTES: usize = 5 * 1024 * 1024;
const TITLE: usize = 300;

/// Which characters of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    from: usize,
    limit: usize,
}

impl Part {
    pub(super) fn of(args: &FetchArgs) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self { from: number(args.from), limit: number(args.limit.unwrap_or(SHOWN)) }
    }
}

pub(super) async fn answer(mut response: Response, url: &Url, part: Part, work: &Work) -> Result<Finished, CallError> {
    let status = response.status();
    let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (bytes, is_whole) = body_of(&mut response, PAGE_BYTES.min(work.limits.kept_bytes)).await?;
    let mut output = json!({ "url": shown_url(url), "status": status.as_u16() });
    let mut error = (status.is_client_error() || status.is_server_error())
        .then(|| CallError { kind: CallErrorKind::Failed, message: format!("the server answered {status}") });
    let text = match (known_kind(&bytes), decoded(&bytes, content_type.as_deref(), is_whole)) {
        (None, Body::Text(text)) => Some(text),
        (Some(_), _) | (None, Body::Bytes(_)) => None,
    };
    if let Some(text) = text {
        let (kind, title, text) = read(text, content_type.as_deref(), url);
        // Before the cut, which could leave a part of a secret.
        let redactor = work.secrets.redactor();
        let text = redactor.redact(&text);
        output["type"] = kind.into();
        if let Some(title) = title {
            output["title"] = redactor.redact(&title).chars().take(TITLE).collect::<String>().into();
        }
        let total = text.chars().count();
        let shown: String = text.chars().skip(part.from).take(part.limit).collect();
        let next = part.from.saturating_add(shown.chars().count());
        output["text"] = shown.into();
        output["characters"] = total.into();
        if next < total {
            output["next"] = next.into();
            output["note"] = format!("there is more: go on with from = {next}").into();
        } else if part.from > 0 && part.from >= total {
            output["note"] = format!("the text ends at {total} characters").into();
        }
    } else {
        let kind = kind_of(&bytes);
        output["type"] = content_type.unwrap_or_else(|| "application/octet-stream".into()).into();
        output["kind"] = kind.into();
        output["bytes"] = bytes.len().into();
        let message = format!("the address leads to {kind}, which is no page of text");
        error = error.or(Some(CallError { kind: CallErrorKind::Failed, message }));
    }
    if !is_whole {
        output["cut"] = json!({ "text": format!("only the first {} bytes were read", bytes.len()) });
    }
    Ok(CallResult { output, kept: vec![], artifacts: vec![], outside: true, error }.into())
}

/// What kind of text it is, its title, and the text to read.
fn read(text: String, content_type: Option<&str>, url: &Url) -> (&'static str, Option<String>, String) {
    let named = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let begins = text.trim_start_matches('\u{feff}').trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    let looks_like_html = begins.starts_with("<!doctype html") || begins.starts_with("<html");
    match named.as_str() {
        "text/html" | "application/xhtml+xml" => html_page(&text, url),
        "text/markdown" | "text/x-markdown" => ("markdown", None, text),
        "application/json" => ("json", None, text),
        kind if kind.ends_with("+json") => ("json", None, text),
        "" | "text/plain" | "application/octet-stream" if looks_like_html => html_page(&text, url),
        _ => ("text", None, text),
    }
}

fn html_page(text: &str, url: &Url) -> (&'static str, Option<String>, String) {
    let page = html::read(text, url);
    ("html", page.title, page.text)
}
