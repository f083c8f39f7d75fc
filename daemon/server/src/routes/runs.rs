use axum::Json as Answer;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_TYPE, HeaderName, X_CONTENT_TYPE_OPTIONS};
use ow_model::{BlobHash, Run, RunId};
use ow_protocol::{Page, PageQuery, RunDetail, RunView};
use ow_store::{RunFilter, TaskError};

use crate::api::Api;
use crate::convert::{answer, artifacts, calls, event_value, fact_view, keeps, run_view, sleeps_until};
use crate::extract::{NoBody, Path, Query, page, refuse_filters};
use crate::find;
use crate::guard::Caller;
use crate::problem::Problem;

/// The words that a run's state can have.
const STATES: [&str; 10] =
    ["queued", "running", "parked", "interrupted", "succeeded", "failed", "refused", "expired", "cancelled", "missed"];

pub(super) async fn list(
    State(api): State<Api>,
    _caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Answer<Page<RunView>>, Problem> {
    let PageQuery { after, limit, task, state, run, name } = query;
    refuse_filters("runs", &[("run", run.is_some()), ("name", name.is_some())])?;
    let open_only = state.as_deref() == Some("open");
    let state = state.filter(|_| !open_only);
    if let Some(other) = state.as_deref().filter(|state| !STATES.contains(state)) {
        return Err(Problem::bad_request(format!("`state={other}` is no state of runs"))
            .with_hint(format!("use `open` or one of {}", STATES.join(", "))));
    }
    let task = task.map(|task| task.parse()).transpose()?;
    let found = api.store.runs(&RunFilter { task, state, open_only, chats: false }, &page(after, limit)?).await?;
    Ok(Answer(Page { rows: found.rows.iter().map(run_view).collect(), next: found.next }))
}

pub(super) async fn show(
    State(api): State<Api>,
    _caller: Caller,
    Path(text): Path<String>,
) -> Result<Answer<RunDetail>, Problem> {
    let run = find::run(&api, &text).await?;
    let facts = api.store.journal(run.id).await?;
    let events = api.store.run_events(run.id).await?;
    let mut shown = run_view(&run);
    if let Some(sleeps) = sleeps_until(&run.state, &facts) {
        shown.message = Some(sleeps);
    }
    Ok(Answer(RunDetail {
        answer: answer(&run, &facts),
        calls: calls(&run, &facts),
        artifacts: artifacts(&facts),
        events: events.into_iter().map(event_value).collect(),
        facts: facts.iter().map(fact_view).collect(),
        run: shown,
    }))
}

pub(super) async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    Path(text): Path<String>,
    _: NoBody,
) -> Result<Answer<RunView>, Problem> {
    let run = find::run(&api, &text).await?.id;
    let why = format!("cancelled by {}", caller.name());
    if api.store.cancel_run(run, &why, api.control.now()).await? {
        api.control.stop_run(run, &why).await;
    }
    api.control.wake();
    Ok(Answer(run_view(&present(&api, run).await?)))
}

pub(super) async fn retry(
    State(api): State<Api>,
    caller: Caller,
    Path(text): Path<String>,
    _: NoBody,
) -> Result<Answer<RunView>, Problem> {
    let run = find::run(&api, &text).await?.id;
    let again = api.store.retry_run(run, caller.name(), api.control.now()).await?;
    api.control.wake();
    Ok(Answer(run_view(&present(&api, again).await?)))
}

/// The whole text of an output, of this run and no other: a hash alone opens nothing.
pub(super) async fn output(
    State(api): State<Api>,
    _caller: Caller,
    Path((text, hash)): Path<(String, String)>,
) -> Result<([(HeaderName, HeaderValue); 2], Vec<u8>), Problem> {
    let run = find::run(&api, &text).await?;
    let missing = || Problem::not_found(format!("run {} keeps no output `{hash}`", run.id));
    let wanted: BlobHash = hash.parse().map_err(|_| missing())?;
    if !keeps(&api.store.journal(run.id).await?, wanted) {
        return Err(missing());
    }
    let bytes = api.store.blob(wanted).await?.ok_or_else(missing)?;
    let kind =
        if std::str::from_utf8(&bytes).is_ok() { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    // What a command printed is never to be taken for a page.
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static(kind)), (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))];
    Ok((headers, bytes))
}

async fn present(api: &Api, id: RunId) -> Result<Run, Problem> {
    Ok(api.store.run(id).await?.ok_or(TaskError::UnknownRun { id })?)
}
