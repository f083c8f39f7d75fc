use axum::Json as Answer;
use axum::extract::State;
use ow_protocol::{AuditCheckView, AuditEntryView, Page, PageQuery};
use ow_store::AuditFilter;

use crate::api::Api;
use crate::convert::{audit_check_view, audit_entry_view};
use crate::extract::{Query, page, refuse_filters};
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn list(
    State(api): State<Api>,
    _caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Answer<Page<AuditEntryView>>, Problem> {
    let PageQuery { after, limit, task, state, run, name } = query;
    refuse_filters("the audit's entries", &[("state", state.is_some()), ("name", name.is_some())])?;
    let request = page(after, limit)?;
    let task = task.map(|task| task.parse()).transpose()?;
    // An entry outlives its run, so that a whole id need not be one that is still there.
    let run = match run {
        Some(run) => Some(match run.parse() {
            Ok(run) => run,
            Err(_) => crate::find::run(&api, &run).await?.id,
        }),
        None => None,
    };
    let found = api.store.audit(&AuditFilter { task, run }, &request).await?;
    Ok(Answer(Page { rows: found.rows.iter().map(audit_entry_view).collect(), next: found.next }))
}

pub(super) async fn check(State(api): State<Api>, _caller: Caller) -> Result<Answer<AuditCheckView>, Problem> {
    Ok(Answer(audit_check_view(api.store.check_audit().await?)))
}
