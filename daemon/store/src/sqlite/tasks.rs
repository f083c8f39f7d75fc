use std::sync::Arc;

use jiff::Timestamp;
use ow_model::{EventType, InboxName, PauseReason, RunId, TaskId, TaskName, TaskSource, TaskSpec, TaskState, Trigger};
use ow_schedule::{Gate, Schedule, check_edited_triggers};
use rusqlite::{params, params_from_iter, types::Value};
use serde_json::json;

use super::circle;
use super::claim::{Look, advance, close_account};
use super::ending::{Cancelled, cancel_open};
use super::events;
use super::life::paused_all;
use super::memory::Compiled;
use super::runs::open_runs;
use super::stream::tell;
use super::view::{Broken, Record, Source, View, json, micros};
use super::writer::Tx;
use super::zones;
use crate::{Page, PageRequest, SaveChange, Saved, StoreError, TaskError, TaskFilter, TaskRow};

const TASKS: Source = Source { table: "tasks", key: 0 };
const REVISIONS: Source = Source { table: "revisions", key: 0 };

/// What every fact about a task needs of its row.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) id: TaskId,
    pub(crate) name: TaskName,
    pub(crate) revision: u32,
    pub(crate) source: TaskSource,
    pub(crate) state: TaskState,
    pub(crate) file_gone: bool,
    pub(crate) created_at: Timestamp,
    pub(crate) accounted_until: Timestamp,
    pub(crate) failures_in_row: u32,
    pub(crate) waiting: u32,
    /// The hidden task of a chat.
    pub(crate) chat: bool,
}

const HEAD: &str = "SELECT id, name, revision, source, state_json, file_gone, created_at, accounted_until,
    failures_in_row, waiting, chat FROM tasks";

fn head_of(record: &Record<'_>) -> Result<Head, Broken> {
    Ok(Head {
        id: TaskId(record.int(0)?),
        name: record.parsed(1)?,
        revision: record.number(2)?,
        source: source_of(record, 3)?,
        state: record.json(4)?,
        file_gone: record.flag(5)?,
        created_at: record.time(6)?,
        accounted_until: record.time(7)?,
        failures_in_row: record.number(8)?,
        waiting: record.number(9)?,
        chat: record.flag(10)?,
    })
}

/// A task that is not deleted.
pub(crate) fn live(view: &View<'_>, name: &TaskName) -> Result<Option<Head>, StoreError> {
    view.row(TASKS, &format!("{HEAD} WHERE name = ?1 AND state <> 'deleted'"), [name.as_str()], head_of)
}

pub(crate) fn known(view: &View<'_>, name: &TaskName) -> Result<Head, TaskError> {
    let head = live(view, name)?.ok_or_else(|| TaskError::Unknown { name: name.clone() })?;
    no_chat(&head)?;
    Ok(head)
}

/// Nothing that is done to tasks can be done to a chat.
fn no_chat(head: &Head) -> Result<(), TaskError> {
    if head.chat {
        let why = "it belongs to a chat; see `owctl session`";
        return Err(TaskError::Refused { name: head.name.clone(), why: why.into() });
    }
    Ok(())
}

pub(crate) fn head(view: &View<'_>, task: TaskId) -> Result<Option<Head>, StoreError> {
    view.row(TASKS, &format!("{HEAD} WHERE id = ?1"), [task.0], head_of)
}

/// A revision, parsed and compiled. None if it cannot be read: it is then set aside.
pub(crate) fn compiled(tx: &mut Tx<'_>, head: &Head, revision: u32) -> Result<Option<Arc<Compiled>>, StoreError> {
    if let Some(compiled) = tx.memory.compiled(head.id, revision) {
        return Ok(Some(compiled));
    }
    let created_at = head.created_at;
    let found = tx.row(
        REVISIONS,
        "SELECT id, spec FROM revisions WHERE task = ?1 AND revision = ?2",
        params![head.id.0, revision],
        |record| {
            let spec: TaskSpec = record.json(1)?;
            let schedule =
                Schedule::compile(&spec, created_at).map_err(|error| record.broken(1, &error.to_string()))?;
            Ok(Arc::new(Compiled { spec: Arc::new(spec), schedule }))
        },
    )?;
    if let Some(compiled) = &found {
        tx.memory.remember(head.id, revision, compiled.clone());
    }
    Ok(found)
}

/// Where what a run made by this revision asks and tells goes, also once its task is gone.
pub(crate) fn inbox_of(view: &View<'_>, task: TaskId, revision: u32) -> Result<InboxName, StoreError> {
    let found: Option<Option<String>> = view.value(
        "SELECT json_extract(spec, '$.inbox') FROM revisions WHERE task = ?1 AND revision = ?2",
        params![task.0, revision],
    )?;
    Ok(found.flatten().and_then(|name| name.parse().ok()).unwrap_or_default())
}

/// A definition to be saved.
pub(crate) struct Definition {
    pub(crate) spec: TaskSpec,
    pub(crate) source: TaskSource,
    pub(crate) text: String,
    pub(crate) expect_revision: Option<u32>,
}

pub(crate) fn save_task(tx: &mut Tx<'_>, definition: &Definition, now: Timestamp) -> Result<Saved, TaskError> {
    let name = &definition.spec.name;
    let Some(head) = live(tx, name)? else {
        if let Some(expected) = definition.expect_revision.filter(|expected| *expected != 0) {
            return Err(TaskError::Revision { name: name.clone(), expected, found: 0 });
        }
        return create(tx, definition, now);
    };
    no_chat(&head)?;
    if definition.expect_revision == Some(0) {
        return Err(TaskError::Exists { name: name.clone() });
    }
    match (head.source, definition.source) {
        (TaskSource::File, TaskSource::Store) => return Err(TaskError::FromFile { name: name.clone() }),
        (TaskSource::Store, TaskSource::File) => {
            let why = "a task of this name was made by `owctl task add`; remove that one or rename the file";
            return Err(TaskError::Refused { name: name.clone(), why: why.into() });
        }
        (TaskSource::File, TaskSource::File) | (TaskSource::Store, TaskSource::Store) => {}
    }
    if let Some(expected) = definition.expect_revision.filter(|expected| *expected != head.revision) {
        return Err(TaskError::Revision { name: name.clone(), expected, found: head.revision });
    }
    let old = compiled(tx, &head, head.revision)?;
    let equal = old.as_ref().is_some_and(|old| *old.spec == definition.spec);
    let revision = if equal { head.revision } else { head.revision + 1 };
    if equal {
        // Comments and layout may differ: what is shown is the newest text.
        tx.change(
            "UPDATE revisions SET text = ?3 WHERE task = ?1 AND revision = ?2 AND text <> ?3",
            params![head.id.0, revision, definition.text],
        )?;
    } else {
        check(tx, definition, old.as_ref().map(|old| &*old.spec), now)?;
        revise(tx, &head, revision, definition, now)?;
    }
    if definition.source == TaskSource::File && head.file_gone {
        tx.change("UPDATE tasks SET file_gone = 0 WHERE id = ?1", [head.id.0])?;
        if matches!(head.state, TaskState::Paused { reason: PauseReason::FileGone, .. }) {
            resume_task(tx, name, now)?;
        }
    }
    let change = if equal { SaveChange::Unchanged } else { SaveChange::Revised };
    Ok(Saved { task: head.id, revision, change })
}

fn create(tx: &mut Tx<'_>, definition: &Definition, now: Timestamp) -> Result<Saved, TaskError> {
    check(tx, definition, None, now)?;
    let id = tx.insert(
        "INSERT INTO tasks (name, revision, source, state, state_json, created_at, updated_at, accounted_until,
             has_watch, has_startup)
         VALUES (?1, 1, ?2, 'active', ?3, ?4, ?4, ?4, 0, 0)",
        params![definition.spec.name.as_str(), source_word(definition.source), json(&TaskState::Active), micros(now)],
    )?;
    let task = TaskId(id);
    write_revision(tx, task, 1, definition, now)?;
    look_again(tx, task, now)?;
    tell_task(tx, EventType::TaskSaved, &definition.spec.name, &json!({ "revision": 1 }), now)?;
    Ok(Saved { task, revision: 1, change: SaveChange::Created })
}

fn revise(
    tx: &mut Tx<'_>,
    head: &Head,
    revision: u32,
    definition: &Definition,
    now: Timestamp,
) -> Result<(), TaskError> {
    // What was due until now is judged by the definition that stood until now.
    advance(tx, head, Look::AsItStands, now)?;
    close_account(tx, head.id, "task edited", now)?;
    write_revision(tx, head.id, revision, definition, now)?;
    tx.change(
        "UPDATE tasks SET revision = ?2, updated_at = ?3, accounted_until = max(accounted_until, ?3) WHERE id = ?1",
        params![head.id.0, revision, micros(now)],
    )?;
    look_again(tx, head.id, now)?;
    tell_task(tx, EventType::TaskSaved, &head.name, &json!({ "revision": revision }), now)?;
    Ok(())
}

/// Refuses what only the store can see to be wrong: a past `at`, a circle of `after`.
fn check(tx: &Tx<'_>, definition: &Definition, old: Option<&TaskSpec>, now: Timestamp) -> Result<(), TaskError> {
    let spec = &definition.spec;
    check_edited_triggers(spec, old, now)
        .map_err(|error| TaskError::Refused { name: spec.name.clone(), why: error.to_string() })?;
    if let Some(circle) = circle::closed_by(tx, spec)? {
        return Err(TaskError::Circle { name: spec.name.clone(), circle });
    }
    Ok(())
}

pub(crate) fn write_revision(
    tx: &Tx<'_>,
    task: TaskId,
    revision: u32,
    definition: &Definition,
    now: Timestamp,
) -> Result<(), StoreError> {
    let spec = &definition.spec;
    tx.change(
        "INSERT INTO revisions (task, revision, spec, text, saved_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![task.0, revision, json(spec), definition.text, micros(now)],
    )?;
    zones::note(tx, &spec.timezone)?;
    let watches = spec.triggers.iter().any(|trigger| matches!(trigger, Trigger::Watch { .. }));
    let starts = spec.triggers.contains(&Trigger::Startup);
    tx.change("UPDATE tasks SET has_watch = ?2, has_startup = ?3 WHERE id = ?1", params![task.0, watches, starts])?;
    tx.change("DELETE FROM event_sources WHERE task = ?1", [task.0])?;
    for source in spec.triggers.iter().filter_map(event_source) {
        tx.change("INSERT OR IGNORE INTO event_sources (source, task) VALUES (?1, ?2)", params![source, task.0])?;
    }
    tx.change("DELETE FROM after_edges WHERE task = ?1", [task.0])?;
    for trigger in &spec.triggers {
        if let Trigger::After { task: source, on } = trigger {
            tx.change(
                "INSERT OR IGNORE INTO after_edges (source, task, on_end) VALUES (?1, ?2, ?3)",
                params![source.as_str(), task.0, json(on)],
            )?;
        }
    }
    Ok(())
}

/// What a trigger listens to that comes from outside, whoever brings it.
fn event_source(trigger: &Trigger) -> Option<String> {
    match trigger {
        Trigger::Webhook { hook, when: _ } => Some(hook.source()),
        Trigger::Slack { channel, from: _, when: _ } => Some(ow_model::slack_source(channel)),
        Trigger::Mail(_) => Some("mail".into()),
        Trigger::Cron(_)
        | Trigger::Every { .. }
        | Trigger::At(_)
        | Trigger::Watch { .. }
        | Trigger::After { .. }
        | Trigger::Startup => None,
    }
}

pub(crate) fn tasks_on(view: &View<'_>, source: &str) -> Result<Vec<TaskRow>, StoreError> {
    let sql = format!(
        "{ROW} JOIN event_sources e ON e.task = t.id WHERE e.source = ?1 AND t.state <> 'deleted' ORDER BY t.name"
    );
    view.rows(REVISIONS, &sql, [source], row_of)
}

/// Plans a task anew from its row as it now is.
pub(crate) fn look_again(tx: &mut Tx<'_>, task: TaskId, now: Timestamp) -> Result<(), StoreError> {
    if let Some(head) = head(tx, task)? {
        advance(tx, &head, Look::AsItStands, now)?;
    }
    Ok(())
}

/// Deletes a task; returns the runs that must be stopped.
pub(crate) fn delete_task(tx: &mut Tx<'_>, name: &TaskName, now: Timestamp) -> Result<Vec<RunId>, TaskError> {
    let head = known(tx, name)?;
    if head.source == TaskSource::File && !head.file_gone {
        return Err(TaskError::FromFile { name: name.clone() });
    }
    let why = "task deleted";
    advance(tx, &head, Look::Closed(why), now)?;
    close_account(tx, head.id, why, now)?;
    events::refuse_waiting(tx, &head, why, now)?;
    let mut running = vec![];
    for id in open_runs(tx, head.id)? {
        if cancel_open(tx, id, why, now)? == Cancelled::Stop {
            running.push(id);
        }
    }
    // A later task of the same name starts without its permissions.
    tx.change("DELETE FROM rules WHERE task_name = ?1", [name.as_str()])?;
    tx.change("DELETE FROM event_sources WHERE task = ?1", [head.id.0])?;
    tx.change("DELETE FROM after_edges WHERE task = ?1", [head.id.0])?;
    tx.change("DELETE FROM watch_seen WHERE task = ?1", [head.id.0])?;
    tx.change(
        "UPDATE tasks SET state = 'deleted', state_json = ?2, updated_at = ?3, wake_at = NULL, next_due = NULL
         WHERE id = ?1",
        params![head.id.0, json(&TaskState::Deleted { at: now }), micros(now)],
    )?;
    tell_task(tx, EventType::TaskDeleted, name, &json!({}), now)?;
    Ok(running)
}

pub(crate) fn pause_task(
    tx: &mut Tx<'_>,
    name: &TaskName,
    reason: &PauseReason,
    now: Timestamp,
) -> Result<(), TaskError> {
    let head = known(tx, name)?;
    if *reason == PauseReason::FileGone {
        tx.change("UPDATE tasks SET file_gone = 1 WHERE id = ?1", [head.id.0])?;
    }
    match (&head.state, reason) {
        // Who paused it by hand resumes it by hand; a reason that came first stays otherwise.
        (TaskState::Paused { since, .. }, PauseReason::Person) => write_pause(tx, &head, reason, *since, now)?,
        (TaskState::Paused { .. }, PauseReason::FileGone | PauseReason::Failures(_)) => {}
        (TaskState::Active | TaskState::Deleted { .. }, _) => {
            advance(tx, &head, Look::AsItStands, now)?;
            write_pause(tx, &head, reason, now, now)?;
        }
    }
    Ok(())
}

pub(crate) fn write_pause(
    tx: &mut Tx<'_>,
    head: &Head,
    reason: &PauseReason,
    since: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    let state = TaskState::Paused { reason: reason.clone(), since };
    tx.change(
        "UPDATE tasks SET state = 'paused', state_json = ?2, updated_at = ?3, wake_at = NULL, next_due = NULL
         WHERE id = ?1",
        params![head.id.0, json(&state), micros(now)],
    )?;
    tell_task(tx, EventType::TaskPaused, &head.name, &json!({ "reason": reason }), now)
}

pub(crate) fn resume_task(tx: &mut Tx<'_>, name: &TaskName, now: Timestamp) -> Result<(), TaskError> {
    let head = known(tx, name)?;
    if !matches!(head.state, TaskState::Paused { .. }) {
        return Ok(());
    }
    advance(tx, &head, Look::Closed("paused"), now)?;
    tx.change(
        "UPDATE tasks SET state = 'active', state_json = ?2, updated_at = ?3, failures_in_row = 0
         WHERE id = ?1",
        params![head.id.0, json(&TaskState::Active), micros(now)],
    )?;
    look_again(tx, head.id, now)?;
    tell_task(tx, EventType::TaskResumed, name, &json!({}), now)?;
    Ok(())
}

/// Why the task may start nothing, if so.
pub(crate) fn gate(view: &View<'_>, head: &Head) -> Result<Gate, StoreError> {
    let closed = |why: &str| Gate::Closed { why: why.into() };
    Ok(match &head.state {
        _ if paused_all(view)?.is_some() => closed("paused: all"),
        TaskState::Active => Gate::Open,
        TaskState::Paused { .. } => closed("paused"),
        TaskState::Deleted { .. } => closed("task deleted"),
    })
}

fn tell_task(
    tx: &mut Tx<'_>,
    kind: EventType,
    name: &TaskName,
    payload: &serde_json::Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    tell(tx, kind, &format!("task:{name}"), payload, now)
}

// Without `text` first: the key of a damaged definition is its revision's row.
const ROW: &str = "SELECT r.id, t.id, r.spec, r.text, t.revision, t.source, t.state_json, t.created_at, t.updated_at,
    t.next_due, t.accounted_until, t.failures_in_row, t.waiting, t.name
    FROM tasks t JOIN revisions r ON r.task = t.id AND r.revision = t.revision";

fn row_of(record: &Record<'_>) -> Result<TaskRow, Broken> {
    Ok(TaskRow {
        id: TaskId(record.int(1)?),
        spec: record.json(2)?,
        text: record.text(3)?,
        revision: record.number(4)?,
        source: source_of(record, 5)?,
        state: record.json(6)?,
        created_at: record.time(7)?,
        updated_at: record.time(8)?,
        next_due: record.maybe_time(9)?,
        accounted_until: record.time(10)?,
        failures_in_row: record.number(11)?,
        waiting: record.number(12)?,
    })
}

pub(crate) fn task(view: &View<'_>, name: &TaskName) -> Result<Option<TaskRow>, StoreError> {
    view.row(REVISIONS, &format!("{ROW} WHERE t.name = ?1 AND t.state <> 'deleted'"), [name.as_str()], row_of)
}

pub(crate) fn revision(view: &View<'_>, task: TaskId, revision: u32) -> Result<Option<TaskSpec>, StoreError> {
    view.row(
        REVISIONS,
        "SELECT id, spec FROM revisions WHERE task = ?1 AND revision = ?2",
        params![task.0, revision],
        |record| record.json(1),
    )
}

pub(crate) fn tasks(view: &View<'_>, filter: &TaskFilter, page: &PageRequest) -> Result<Page<TaskRow>, StoreError> {
    let TaskFilter { name_contains, with_watch, paused, chats } = filter;
    let mut sql = format!("{ROW} WHERE t.state <> 'deleted'");
    let mut values: Vec<Value> = vec![];
    if !chats {
        sql.push_str(" AND t.chat = 0");
    }
    if *with_watch {
        sql.push_str(" AND t.has_watch = 1");
    }
    match paused {
        Some(true) => sql.push_str(" AND t.state = 'paused'"),
        Some(false) => sql.push_str(" AND t.state = 'active'"),
        None => {}
    }
    if let Some(part) = name_contains {
        sql.push_str(" AND instr(t.name, ?) > 0");
        values.push(part.clone().into());
    }
    if let Some(after) = &page.after {
        sql.push_str(" AND t.name > ?");
        values.push(after.clone().into());
    }
    sql.push_str(" ORDER BY t.name LIMIT ?");
    values.push(signed_limit(page.limit).into());
    // A damaged row counts toward the limit, so that a page of them does not look like the last one.
    let mut last: Option<String> = None;
    let mut seen = 0_usize;
    let rows = view.rows(REVISIONS, &sql, params_from_iter(values), |record| {
        seen += 1;
        if seen <= page.limit {
            last = record.text(13).ok();
        }
        row_of(record).map(|row| (seen <= page.limit).then_some(row))
    })?;
    let next = if seen > page.limit { last } else { None };
    Ok(Page { rows: rows.into_iter().flatten().collect(), next })
}

/// One row more than the page holds tells whether there is a next one.
pub(crate) fn signed_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}

fn source_word(source: TaskSource) -> &'static str {
    match source {
        TaskSource::File => "file",
        TaskSource::Store => "store",
    }
}

fn source_of(record: &Record<'_>, column: usize) -> Result<TaskSource, Broken> {
    match record.text(column)?.as_str() {
        "file" => Ok(TaskSource::File),
        "store" => Ok(TaskSource::Store),
        other => Err(record.broken(column, &format!("`{other}` is no source"))),
    }
}
