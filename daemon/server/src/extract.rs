//! Reads paths, queries and bodies; what cannot be read is refused by name.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::request::Parts;
use http_body_util::BodyExt;
use jiff::Timestamp;
use ow_model::TaskName;
use ow_protocol::ErrorCode;
use ow_store::PageRequest;
use serde::de::DeserializeOwned;

use crate::guard::Caller;
use crate::limits::{BODY_LIMIT, BODY_TIME, DISCARD_LIMIT, PAGE_DEFAULT, PAGE_LIMIT};
use crate::problem::Problem;

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub(crate) struct Path<T>(pub(crate) T);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub(crate) struct Query<T>(pub(crate) T);

/// The task that the path names. That there is one is not checked.
pub(crate) struct Named(pub(crate) TaskName);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name): Path<String> = Path::from_request_parts(parts, state).await?;
        Ok(Self(name.parse()?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // The guard lets nothing in without one.
        parts.extensions.get().cloned().ok_or_else(|| Problem::new(ErrorCode::Forbidden, "nobody is known to ask"))
    }
}

/// A JSON body of at most so many bytes.
pub(crate) struct Json<T, const MOST: usize = BODY_LIMIT>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync, const MOST: usize> FromRequest<S> for Json<T, MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        parse(&read(request, MOST).await?).map(Self)
    }
}

/// A JSON body that may be left out.
pub(crate) struct JsonOrDefault<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for JsonOrDefault<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let body = read(request, BODY_LIMIT).await?;
        if body.is_empty() { Ok(Self(T::default())) } else { parse(&body).map(Self) }
    }
}

/// That there is no body. What an operation does not read would be ignored, and whoever sends `{"task": "reports"}` to
/// the kill switch means something else than all.
pub(crate) struct NoBody;

impl<S: Send + Sync> FromRequest<S> for NoBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        match read(request, BODY_LIMIT).await?.trim_ascii() {
            b"" | b"{}" | b"null" => Ok(Self),
            _ => Err(Problem::bad_request("this operation takes no body")
                .with_hint("leave the body out; GET /v1/openapi.json says what each operation takes")),
        }
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let what = if error.is_data() { "the body does not fit" } else { "the body is not JSON" };
        Problem::bad_request(format!("{what}: {error}")).with_hint("GET /v1/openapi.json says what it must be")
    })
}

async fn read(request: Request, most: usize) -> Result<Vec<u8>, Problem> {
    let (parts, body) = request.into_parts();
    let announced = announced(&parts.headers);
    // One who asks before sending is told before sending.
    let asks_first = parts.headers.contains_key(EXPECT);
    if announced.is_some_and(|length| length > DISCARD_LIMIT || (asks_first && length > most)) {
        return Err(too_large(most));
    }
    let collected = tokio::time::timeout(BODY_TIME, collect(body, announced.unwrap_or(0), most)).await;
    collected.unwrap_or_else(|_| Err(Problem::bad_request("the body did not come in time")))
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

async fn collect(mut body: Body, announced: usize, most: usize) -> Result<Vec<u8>, Problem> {
    let mut kept = Vec::with_capacity(announced.min(64 * 1024));
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::bad_request("the body was cut off"))?;
        let Some(data) = frame.data_ref() else { continue };
        length += data.len();
        if length > DISCARD_LIMIT {
            break;
        }
        if length <= most {
            kept.extend_from_slice(data);
        } else {
            // Read on without keeping: a sender whose connection breaks while it sends never reads the refusal.
            kept = Vec::new();
        }
    }
    if length > most { Err(too_large(most)) } else { Ok(kept) }
}

fn too_large(most: usize) -> Problem {
    Problem::new(ErrorCode::TooLarge, format!("the body is larger than {} MiB", most / 1024 / 1024))
}

/// Checks a page's bounds.
pub(crate) fn page(after: Option<String>, limit: Option<usize>) -> Result<PageRequest, Problem> {
    Ok(PageRequest { after, limit: bounded(limit, PAGE_DEFAULT, PAGE_LIMIT)? })
}

/// A number of rows, from 1 to `most`.
pub(crate) fn bounded(limit: Option<usize>, default: usize, most: usize) -> Result<usize, Problem> {
    match limit.unwrap_or(default) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        limit => Err(Problem::bad_request(format!("`limit={limit}` is out of bounds: use 1 to {most}"))),
    }
}

/// An instant of a query.
pub(crate) fn instant(key: &str, text: &str) -> Result<Timestamp, Problem> {
    text.parse().map_err(|_| {
        Problem::bad_request(format!("`{key}={text}` is not an instant"))
            .with_hint("write it as in `2026-03-29T09:00:00+02:00`; in a URL `+` is written `%2B`")
    })
}

/// Refuses filters that a list does not have, instead of answering with more than was asked for.
pub(crate) fn refuse_filters(list: &str, given: &[(&str, bool)]) -> Result<(), Problem> {
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((filter, _)) => Err(Problem::bad_request(format!("{list} have no filter `{filter}`"))),
    }
}
