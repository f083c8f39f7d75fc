use std::collections::BTreeMap;

use axum::Json as Answer;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use ow_model::{TaskState, Trigger};
use ow_protocol::{ForecastEntry, Page};
use ow_schedule::Schedule;
use ow_store::{PageRequest, TaskFilter, TaskRow};
use serde::Deserialize;

use super::tasks::find;
use crate::api::Api;
use crate::convert::pause_words;
use crate::extract::{Query, bounded, instant};
use crate::guard::Caller;
use crate::limits::{PAGE_DEFAULT, PAGE_LIMIT};
use crate::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForecastQuery {
    from: Option<String>,
    until: Option<String>,
    task: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn forecast(
    State(api): State<Api>,
    _caller: Caller,
    Query(ForecastQuery { from, until, task, after, limit }): Query<ForecastQuery>,
) -> Result<Answer<Page<ForecastEntry>>, Problem> {
    let from = from.map(|text| instant("from", &text)).transpose()?.unwrap_or_else(|| api.control.now());
    let until = until.map(|text| instant("until", &text)).transpose()?.unwrap_or(Timestamp::MAX);
    if from > until {
        return Err(Problem::bad_request("`from` is later than `until`"));
    }
    let after = after.map(Place::parse).transpose()?;
    let limit = bounded(limit, PAGE_DEFAULT, PAGE_LIMIT)?;
    let paused_all = api.store.stats().await?.paused_all.is_some();
    let tasks = match task {
        Some(name) => vec![find(&api, &name.parse()?).await?],
        None => scheduled_tasks(&api).await?,
    };
    let asked = Asked { from, until, after, limit, paused_all };
    // As many tasks as there are may have to be looked at; other requests need not wait for that.
    let page = tokio::task::spawn_blocking(move || forecast_page(&tasks, asked));
    Ok(Answer(page.await.map_err(|error| Problem::internal(&error))?))
}

async fn scheduled_tasks(api: &Api) -> Result<Vec<TaskRow>, Problem> {
    let mut scheduled = vec![];
    let mut after = None;
    loop {
        let page = api.store.tasks(&TaskFilter::default(), &PageRequest { after, limit: PAGE_LIMIT }).await?;
        scheduled.extend(page.rows.into_iter().filter(has_schedule));
        after = page.next;
        if after.is_none() {
            return Ok(scheduled);
        }
    }
}

fn has_schedule(task: &TaskRow) -> bool {
    task.spec.triggers.iter().any(|trigger| match trigger {
        Trigger::Cron(_) | Trigger::Every { .. } | Trigger::At(_) => true,
        Trigger::Watch { .. }
        | Trigger::After { .. }
        | Trigger::Startup
        | Trigger::Webhook { .. }
        | Trigger::Slack { .. }
        | Trigger::Mail(_) => false,
    })
}

/// A place in the forecast: by instant, then by name. The cursor of its pages.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    due: Timestamp,
    task: String,
}

impl Place {
    fn parse(text: String) -> Result<Self, Problem> {
        let read =
            text.split_once('/').and_then(|(due, task)| Some(Self { due: due.parse().ok()?, task: task.into() }));
        read.ok_or_else(|| ow_store::StoreError::Cursor { cursor: text }.into())
    }
}

/// Which slots are asked for: of `(from, until]` those that come after a place.
struct Asked {
    from: Timestamp,
    until: Timestamp,
    after: Option<Place>,
    limit: usize,
    paused_all: bool,
}

fn forecast_page(tasks: &[TaskRow], asked: Asked) -> Page<ForecastEntry> {
    let Asked { from, until, after, limit, paused_all } = asked;
    // A saved definition compiles; one that no longer does (a zone that the database lost) has no slots.
    let compiled: BTreeMap<_, _> = tasks
        .iter()
        .filter_map(|task| Some((&task.spec.name, (task, Schedule::compile(&task.spec, task.created_at).ok()?))))
        .collect();
    // The page begins within an instant when tasks share it.
    let resumed = after.as_ref().and_then(|after| after.due.checked_sub(SignedDuration::from_nanos(1)).ok());
    let from = resumed.map_or(from, |resumed| resumed.max(from));
    let schedules = compiled.iter().map(|(name, (_, schedule))| (*name, schedule));
    let mut slots = ow_schedule::forecast(schedules, from, until)
        .map(|slot| (Place { due: slot.due, task: slot.task.to_string() }, slot.task))
        .skip_while(|(place, _)| after.as_ref().is_some_and(|after| place <= after));
    let shown: Vec<_> = slots.by_ref().take(limit).collect();
    let next = slots.next().and(shown.last()).map(|(Place { due, task }, _)| format!("{due}/{task}"));
    let rows = shown
        .into_iter()
        .map(|(Place { due, task }, name)| {
            let TaskRow { spec, state, .. } = compiled[name].0;
            ForecastEntry { at: due.to_string(), task, title: spec.title.clone(), held: held(state, paused_all) }
        })
        .collect();
    Page { rows, next }
}

fn held(state: &TaskState, paused_all: bool) -> Option<String> {
    match state {
        _ if paused_all => Some("paused: all".into()),
        TaskState::Active => None,
        TaskState::Paused { reason, since: _ } => Some(format!("paused: {}", pause_words(reason))),
        TaskState::Deleted { .. } => Some("deleted".into()),
    }
}
