use std::path::PathBuf;
use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use ow_engine::{Offer, OfferedHook, Trust, TrustError};
use ow_model::BlobHash;
use ow_protocol::{ErrorCode, NewTrust, Page, TrustHookView, TrustQuery, TrustView};

use crate::api::Api;
use crate::convert::instant;
use crate::extract::{Json, NoBody, Query};
use crate::guard::Caller;
use crate::problem::Problem;

/// All that are trusted, or the one that is named, trusted or not.
pub(super) async fn list(
    State(api): State<Api>,
    _caller: Caller,
    Query(TrustQuery { path }): Query<TrustQuery>,
) -> Result<Answer<Page<TrustView>>, Problem> {
    let path = path.as_deref().map(absolute).transpose()?;
    let rows = looking(&api, move |trust| match path {
        Some(path) => vec![trust.look(&path)],
        None => trust.all(),
    });
    let rows = rows.await.iter().map(view).collect();
    Ok(Answer(Page { rows, next: None }))
}

pub(super) async fn give(
    State(api): State<Api>,
    caller: Caller,
    Json(NewTrust { path, hooks }): Json<NewTrust>,
) -> Result<Answer<TrustView>, Problem> {
    let path = absolute(&path)?;
    let shown = hooks.iter().map(|hash| hash.parse::<BlobHash>()).collect::<Result<Vec<_>, _>>();
    let shown = shown.map_err(|error| Problem::invalid(format!("`hooks`: {error}")))?;
    let (by, now) = (caller.name().to_owned(), api.control.now());
    let given = looking(&api, move |trust| trust.give(&path, &shown, &by, now));
    let offer = given.await.map_err(|error| problem(&error))?;
    tracing::info!(path = %offer.path.display(), by = caller.name(), "the hooks of a workspace are trusted");
    Ok(Answer(view(&offer)))
}

pub(super) async fn take(
    State(api): State<Api>,
    caller: Caller,
    Query(TrustQuery { path }): Query<TrustQuery>,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    let path = path.ok_or_else(|| Problem::invalid("`path` is missing: whose trust is taken back?"))?;
    let folder = absolute(&path)?;
    if !looking(&api, move |trust| trust.take(&folder)).await.map_err(|error| problem(&error))? {
        return Err(
            Problem::not_found(format!("nothing of `{path}` is trusted")).with_hint("`owctl trust list` shows what is")
        );
    }
    tracing::info!(path, by = caller.name(), "trust in a workspace is taken back");
    Ok(StatusCode::NO_CONTENT)
}

async fn looking<T: Send + 'static>(api: &Api, work: impl FnOnce(&Trust) -> T + Send + 'static) -> T {
    let trust: Arc<Trust> = api.control.trust();
    match tokio::task::spawn_blocking(move || work(&trust)).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn absolute(path: &str) -> Result<PathBuf, Problem> {
    let folder = PathBuf::from(path);
    if folder.is_absolute() { Ok(folder) } else { Err(Problem::invalid(format!("`path`: `{path}` is not absolute"))) }
}

fn problem(error: &TrustError) -> Problem {
    let text = error.to_string();
    match error {
        TrustError::NoFolder { .. } => Problem::not_found(text).with_hint("name the folder of the workspace"),
        TrustError::NoHooks { .. } => {
            Problem::invalid(text).with_hint("hooks stand in .owd/workspace.toml; what it forbids holds without trust")
        }
        TrustError::Faulty(faults) => Problem::invalid("what the workspace brings is faulty")
            .with_details(faults.faults.iter().map(ToString::to_string).collect())
            .with_hint("mend it, then look at it again"),
        TrustError::NoProgram { .. } => Problem::invalid(text).with_hint("put its program into .owd/hooks"),
        TrustError::Changed { .. } => Problem::new(ErrorCode::Conflict, text).with_hint("look at them again"),
        TrustError::Write { .. } => Problem::internal(error),
    }
}

fn view(offer: &Offer) -> TrustView {
    let (deny, ignored, faults) = match &offer.brings {
        Ok(Some(workspace)) => (workspace.deny.clone(), workspace.ignored.clone(), vec![]),
        Ok(None) => (vec![], vec![], vec![]),
        Err(error) => (vec![], vec![], error.faults.iter().map(ToString::to_string).collect()),
    };
    TrustView {
        path: offer.path.display().to_string(),
        trusted_by: offer.trusted.as_ref().map(|trusted| trusted.by.clone()),
        trusted_at: offer.trusted.as_ref().map(|trusted| instant(trusted.at)),
        deny,
        ignored,
        faults,
        hooks: offer.hooks.iter().map(hook_view).collect(),
    }
}

fn hook_view(OfferedHook { hook, hash, trusted }: &OfferedHook) -> TrustHookView {
    let state = match (hash, trusted) {
        (Err(_), _) => "broken",
        (Ok(_), true) => "trusted",
        (Ok(_), false) => "untrusted",
    };
    TrustHookView {
        event: hook.event.word().into(),
        matcher: hook.matcher.as_ref().map(|matcher| matcher.as_str().to_owned()),
        command: hook.command.display().to_string(),
        state: state.into(),
        hash: hash.as_ref().ok().map(ToString::to_string),
        why: hash.as_ref().err().cloned(),
    }
}
