//! What went to models, byte for byte.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use ow_engine::{SentBody, SentRequest, sent_requests};
use ow_model::{Purpose, RunId};
use ow_protocol::{Page, SentView};

use crate::api::Api;
use crate::convert::instant;
use crate::extract::Path;
use crate::find;
use crate::guard::Caller;
use crate::problem::Problem;

type Body = ([(HeaderName, HeaderValue); 2], Vec<u8>);

pub(super) async fn of_run(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
) -> Result<Answer<Page<SentView>>, Problem> {
    list(&api, find::run(&api, &text).await?.id).await
}

pub(super) async fn of_session(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
) -> Result<Answer<Page<SentView>>, Problem> {
    list(&api, find::watchable(&api, &text).await?).await
}

pub(super) async fn body_of_run(
    State(api): State<Api>,
    _caller: Caller,
    Path((text, number)): Path<(String, String)>,
) -> Result<Body, Problem> {
    body(&api, find::run(&api, &text).await?.id, &number).await
}

pub(super) async fn body_of_session(
    State(api): State<Api>,
    _caller: Caller,
    Path((text, number)): Path<(String, String)>,
) -> Result<Body, Problem> {
    body(&api, find::watchable(&api, &text).await?, &number).await
}

async fn list(api: &Api, run: RunId) -> Result<Answer<Page<SentView>>, Problem> {
    let journal = api.store.journal(run).await?;
    let rows = sent_requests(&journal).map(|request| view(&request)).collect();
    Ok(Answer(Page { rows, next: None }))
}

fn view(request: &SentRequest) -> SentView {
    let SentRequest { number, at, model, purpose, sub_agent_of, is_answered, hash, body: _ } = request;
    let purpose = match purpose {
        Purpose::Turn => "turn",
        Purpose::Final => "final",
        Purpose::Summary => "summary",
    };
    SentView {
        number: *number,
        at: instant(*at),
        model: model.clone(),
        purpose: purpose.into(),
        sub_agent_of: sub_agent_of.map(|position| position.0),
        answered: *is_answered,
        hash: hash.to_string(),
    }
}

async fn body(api: &Api, run: RunId, number: &str) -> Result<Body, Problem> {
    let journal = api.store.journal(run).await?;
    let missing = || {
        let count = sent_requests(&journal).count();
        Problem::not_found(format!("run {run} has no request `{number}` on record: there are {count}, counted from 1"))
    };
    let wanted: u32 = number.parse().map_err(|_| missing())?;
    let found = sent_requests(&journal).find(|request| request.number == wanted).ok_or_else(missing)?;
    let gone = || Problem::not_found(format!("what request {wanted} of run {run} was cannot be told any more"));
    let bytes = match found.body.ok_or_else(gone)? {
        SentBody::Whole(bytes) => bytes.to_vec(),
        SentBody::File(hash) => api.store.blob(hash).await?.ok_or_else(gone)?,
    };
    // What a model was told is never to be taken for a page.
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, bytes))
}
