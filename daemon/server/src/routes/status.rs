use std::path::Path;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use ow_protocol::{BackupRequest, BackupView, ErrorCode, StatusView};
use ow_store::StoreError;

use crate::api::Api;
use crate::convert::{Status, backup_view, status_view};
use crate::extract::{Json, NoBody};
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn status(State(api): State<Api>) -> Result<Answer<StatusView>, Problem> {
    let status = Status {
        about: api.control.about(),
        now: api.control.now(),
        stats: api.store.stats().await?,
        wake: api.store.wake_times().await?,
        warnings: api.control.warnings(),
        damage: api.store.damage().await?,
    };
    Ok(Answer(status_view(status)))
}

pub(super) async fn pause_all(State(api): State<Api>, caller: Caller, _: NoBody) -> Result<StatusCode, Problem> {
    api.control.pause_all(caller.name()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn resume_all(State(api): State<Api>, _caller: Caller, _: NoBody) -> Result<StatusCode, Problem> {
    api.control.resume_all().await?;
    api.control.wake();
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn reload(State(api): State<Api>, _caller: Caller, _: NoBody) -> Result<Answer<StatusView>, Problem> {
    api.control.reload().await.map_err(|faults| {
        Problem::invalid("the configuration has faults; what was right before stays in force")
            .with_details(faults)
            .with_hint("`owctl config check` names file, key and value")
    })?;
    status(State(api)).await
}

pub(super) async fn backup(
    State(api): State<Api>,
    _caller: Caller,
    Json(BackupRequest { into }): Json<BackupRequest>,
) -> Result<Answer<BackupView>, Problem> {
    let folder = Path::new(&into);
    if !folder.is_absolute() {
        return Err(Problem::invalid(format!("`{into}` is not an absolute path"))
            .with_hint("owd has a working directory of its own; name the folder from the root"));
    }
    let report = api.store.backup(folder).await.map_err(|error| match error {
        // The path is the caller's own, so saying what is wrong with it gives nothing away.
        StoreError::Write { path, source } if path.starts_with(folder) => {
            Problem::new(ErrorCode::Unavailable, format!("cannot write {}: {source}", path.display()))
                .with_hint("name a folder that owd's user may create")
        }
        other => other.into(),
    })?;
    Ok(Answer(backup_view(report)))
}
