use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use ow_model::{PauseReason, TaskName, TaskSource};
use ow_protocol::{Page, PageQuery, PlanView, RunNowRequest, RunView, SaveTask, SavedTask, TaskView};
use ow_store::{PageRequest, RunFilter, Saved, TaskError, TaskFilter, TaskRow};

use crate::api::Api;
use crate::convert::{Shown, change_word, plan_step, run_view, task_view};
use crate::extract::{Json, JsonOrDefault, Named, NoBody, Query, page, refuse_filters};
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn list(
    State(api): State<Api>,
    _caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Answer<Page<TaskView>>, Problem> {
    let PageQuery { after, limit, task, state, run, name } = query;
    refuse_filters("tasks", &[("task", task.is_some()), ("run", run.is_some())])?;
    let paused = match state.as_deref() {
        None => None,
        Some("paused") => Some(true),
        Some("active") => Some(false),
        Some(other) => {
            return Err(Problem::bad_request(format!(
                "`state={other}` is no state of tasks: use `active` or `paused`"
            )));
        }
    };
    let filter = TaskFilter { name_contains: name, with_watch: false, paused, chats: false };
    let found = api.store.tasks(&filter, &page(after, limit)?).await?;
    let rows = found.rows.into_iter().map(|task| task_view(task, Shown::Row)).collect();
    Ok(Answer(Page { rows, next: found.next }))
}

pub(super) async fn show(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
) -> Result<Answer<TaskView>, Problem> {
    let task = find(&api, &name).await?;
    let filter = RunFilter { task: Some(name), ..RunFilter::default() };
    let newest = api.store.runs(&filter, &PageRequest { after: None, limit: 1 }).await?;
    // A deleted task's runs keep its name; they are not this one's.
    let last_run = newest.rows.first().filter(|run| run.task == task.id).map(run_view).map(Box::new);
    Ok(Answer(task_view(task, Shown::Whole { last_run })))
}

pub(super) async fn save(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
    Json(SaveTask { definition, must_be_new, expect_revision }): Json<SaveTask>,
) -> Result<Answer<SavedTask>, Problem> {
    let before = if must_be_new { None } else { api.store.task(&name).await?.map(|task| task.spec) };
    let spec = api.control.check_task(&name, &definition, before.as_ref()).map_err(|faults| {
        Problem::invalid(format!("task `{name}` was not saved: its definition is wrong")).with_details(faults)
    })?;
    let expected = if must_be_new { Some(0) } else { expect_revision };
    let now = api.control.now();
    let saved = api.store.save_task(&spec, TaskSource::Store, &definition, expected, now).await?;
    let Saved { task: _, revision, change } = saved;
    api.control.wake();
    let next_due = api.store.task(&name).await?.and_then(|task| task.next_due);
    Ok(Answer(SavedTask {
        name: name.to_string(),
        revision,
        change: change_word(change).into(),
        next_due: next_due.map(|at| at.to_string()),
    }))
}

pub(super) async fn delete(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    for run in api.store.delete_task(&name, api.control.now()).await? {
        api.control.stop_run(run, "its task was deleted").await;
    }
    api.control.wake();
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn run(
    State(api): State<Api>,
    caller: Caller,
    Named(name): Named,
    JsonOrDefault(RunNowRequest { payload }): JsonOrDefault<RunNowRequest>,
) -> Result<Answer<RunView>, Problem> {
    let id = api.store.run_now(&name, caller.name(), payload, api.control.now()).await?;
    api.control.wake();
    let run = api.store.run(id).await?.ok_or(TaskError::UnknownRun { id })?;
    Ok(Answer(run_view(&run)))
}

pub(super) async fn plan(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
    JsonOrDefault(RunNowRequest { payload }): JsonOrDefault<RunNowRequest>,
) -> Result<Answer<PlanView>, Problem> {
    let task = find(&api, &name).await?;
    let planned = api.control.plan(&task, payload).await;
    let planned = planned.map_err(|why| Problem::invalid(format!("task `{name}` cannot be planned: {why}")))?;
    let steps = planned.into_iter().map(plan_step).collect();
    Ok(Answer(PlanView { task: name.to_string(), revision: task.revision, steps }))
}

pub(super) async fn pause(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    api.store.pause_task(&name, PauseReason::Person, api.control.now()).await?;
    api.control.wake();
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn resume(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
    _: NoBody,
) -> Result<StatusCode, Problem> {
    api.store.resume_task(&name, api.control.now()).await?;
    api.control.wake();
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn find(api: &Api, name: &TaskName) -> Result<TaskRow, Problem> {
    let task = api.store.task(name).await?;
    task.ok_or_else(|| TaskError::Unknown { name: name.clone() }.into())
}
