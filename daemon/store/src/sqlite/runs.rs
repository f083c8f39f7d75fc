use std::sync::atomic::Ordering;

use jiff::Timestamp;
use ow_model::{
    Cause, Disposition, EndedRun, EventId, EventPayload, EventType, Need, Outcome, Overlap, RecordedFact, Run, RunId,
    RunState, SlotKey, TaskId, TaskName, TaskSpec, WhileParked,
};
use ow_schedule::by_hand;
use rusqlite::{params, params_from_iter, types::Value};
use serde_json::json;

use super::claim::active;
use super::ending::{cancel_open, finish};
use super::events;
use super::journal;
use super::life::paused_all;
use super::memory::Compiled;
use super::sessions;
use super::slots::{missed_after_all, record_slot};
use super::stream::tell;
use super::tasks::{self, Head};
use super::view::{Broken, Record, Source, View, json, maybe_micros, micros};
use super::writer::Tx;
use crate::{FreeHands, HandedOut, Page, PageRequest, RunFilter, StoreError, TakenRun, TaskError};

const RUNS: Source = Source { table: "runs", key: 1 };

/// A run as stored, with what only the store needs.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) run: Run,
    pub(crate) next_seq: u32,
    pub(crate) stop_why: Option<String>,
    pub(crate) taken_at: Option<Timestamp>,
    pub(crate) chat: bool,
}

const ROW: &str = "SELECT ord, id, task, task_name, revision, cause, scheduled_for, created_at, started_at, ended_at,
    state, outcome, answered, not_before, holds, depth, attempt, retry_of, ran_for_ms, next_seq, stop_why, taken_at, chat
    FROM runs";

fn row_of(record: &Record<'_>) -> Result<RunRow, Broken> {
    let state = match record.text(10)?.as_str() {
        "queued" => RunState::Queued { not_before: record.maybe_time(13)?, answered: record.flag(12)? },
        "running" => RunState::Running,
        // Its items are read in a second step.
        "parked" => RunState::Parked { items: vec![], holds: record.flag(14)? },
        "interrupted" => RunState::Interrupted,
        "idle" => RunState::Idle,
        "ended" => RunState::Ended(EndedRun { outcome: record.json(11)? }),
        other => return Err(record.broken(10, &format!("`{other}` is no state"))),
    };
    let run = Run {
        id: record.parsed(1)?,
        order: record.int(0)?,
        task: TaskId(record.int(2)?),
        task_name: record.parsed(3)?,
        revision: record.number(4)?,
        cause: record.json(5)?,
        scheduled_for: record.time(6)?,
        created_at: record.time(7)?,
        started_at: record.maybe_time(8)?,
        ended_at: record.maybe_time(9)?,
        state,
        depth: record.number(15)?,
        attempt: record.number(16)?,
        retry_of: record.maybe_parsed(17)?,
        ran_for_ms: record.number(18)?,
    };
    Ok(RunRow {
        run,
        next_seq: record.number(19)?,
        stop_why: record.maybe_text(20)?,
        taken_at: record.maybe_time(21)?,
        chat: record.flag(22)?,
    })
}

fn with_items(view: &View<'_>, mut row: RunRow) -> Result<RunRow, StoreError> {
    if let RunState::Parked { items, .. } = &mut row.run.state {
        let ids: Vec<String> = view.column(
            "SELECT id FROM items WHERE run = ?1 AND asks = 1 AND state = 'pending' ORDER BY ord",
            [row.run.order],
        )?;
        *items = ids.iter().filter_map(|id| id.parse().ok()).collect();
    }
    Ok(row)
}

pub(crate) fn run_row(view: &View<'_>, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let row = view.row(RUNS, &format!("{ROW} WHERE id = ?1 AND state <> 'damaged'"), [run.to_string()], row_of)?;
    row.map(|row| with_items(view, row)).transpose()
}

pub(crate) fn run_at(view: &View<'_>, order: i64) -> Result<Option<RunRow>, StoreError> {
    let row = view.row(RUNS, &format!("{ROW} WHERE ord = ?1 AND state <> 'damaged'"), [order], row_of)?;
    row.map(|row| with_items(view, row)).transpose()
}

pub(crate) fn known_run(view: &View<'_>, run: RunId) -> Result<RunRow, TaskError> {
    run_row(view, run)?.ok_or(TaskError::UnknownRun { id: run })
}

/// A run to be created, queued.
pub(crate) struct NewRun<'a> {
    pub(crate) id: RunId,
    pub(crate) task: TaskId,
    pub(crate) task_name: &'a TaskName,
    pub(crate) revision: u32,
    pub(crate) spec: &'a TaskSpec,
    pub(crate) cause: Cause,
    pub(crate) scheduled_for: Timestamp,
    pub(crate) depth: u32,
    pub(crate) attempt: u32,
    pub(crate) retry_of: Option<RunId>,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) events: &'a [EventId],
}

pub(crate) fn create_run(tx: &mut Tx<'_>, new: &NewRun<'_>, now: Timestamp) -> Result<i64, StoreError> {
    let NewRun {
        id,
        task,
        task_name,
        revision,
        spec,
        cause,
        scheduled_for,
        depth,
        attempt,
        retry_of,
        not_before,
        events,
    } = new;
    let beside = match spec.overlap {
        Overlap::Allow { max } => max.max(1),
        Overlap::Skip | Overlap::Queue | Overlap::CancelPrevious => 1,
    };
    let order = tx.insert(
        "INSERT INTO runs (id, task, task_name, revision, cause, scheduled_for, created_at, state, not_before,
             concurrency, needs_network, beside, counts_parked, depth, attempt, retry_of)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'queued', ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            id.to_string(),
            task.0,
            task_name.as_str(),
            revision,
            json(cause),
            micros(*scheduled_for),
            micros(now),
            maybe_micros(not_before.filter(|at| *at > now)),
            spec.concurrency,
            spec.needs.contains(&Need::Network),
            beside,
            spec.while_parked != WhileParked::Release,
            depth,
            attempt,
            retry_of.map(|run| run.to_string()),
        ],
    )?;
    for event in *events {
        tx.change("INSERT INTO run_events (run, event) VALUES (?1, ?2)", params![order, event.0])?;
        tx.change("UPDATE events SET state = 1 WHERE id = ?1", [event.0])?;
    }
    tx.group.ready |= not_before.is_none();
    tell_run(tx, EventType::RunQueued, *id, &json!({ "task": task_name, "cause": cause }), now)?;
    Ok(order)
}

pub(crate) fn tell_run(
    tx: &mut Tx<'_>,
    kind: EventType,
    run: RunId,
    payload: &serde_json::Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    tell(tx, kind, &format!("run:{run}"), payload, now)
}

/// Puts a run that stood still back into the queue.
pub(crate) fn queue_again(tx: &mut Tx<'_>, row: &RunRow, answered: bool, now: Timestamp) -> Result<(), StoreError> {
    tx.change(
        "UPDATE runs SET state = 'queued', not_before = NULL, holds = 0, answered = max(answered, ?2) WHERE ord = ?1",
        params![row.run.order, answered],
    )?;
    if row.chat {
        sessions::note_queued(tx, row.run.order, now)?;
    }
    tx.group.ready = true;
    let payload = json!({ "task": row.run.task_name, "answered": answered });
    tell_run(tx, EventType::RunQueued, row.run.id, &payload, now)
}

/// The states in which a run of a task counts whatever its rules: each with an index by task.
pub(crate) const ACTIVE: &str = "state IN ('queued', 'running', 'interrupted', 'idle')";

/// All open runs of a task, oldest first.
pub(crate) fn open_runs(view: &View<'_>, task: TaskId) -> Result<Vec<RunId>, StoreError> {
    let ids: Vec<String> = view.column(
        &format!(
            "SELECT id FROM (SELECT ord, id FROM runs WHERE task = ?1 AND {ACTIVE}
             UNION ALL SELECT ord, id FROM runs WHERE task = ?1 AND state = 'parked') ORDER BY ord"
        ),
        [task.0],
    )?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// What a queued run must meet to be taken, apart from its time. `?1` says whether the network is there.
///
/// As `ow_schedule::may_begin`: those that begin are held to how many of their task may be under way; one that goes
/// on had its place already.
///
/// Chats have places of their own: see `take_chats`. An idle run of a task sleeps until something happens, and a queued
/// one that has begun until its time comes: both are under way.
pub(crate) const FREE: &str = "state = 'queued' AND not_before IS NULL AND chat = 0 AND (needs_network = 0 OR ?1)
    AND (concurrency IS NULL
        OR NOT EXISTS (SELECT 1 FROM runs g WHERE g.state = 'running' AND g.concurrency = q.concurrency))
    AND (started_at IS NOT NULL OR q.beside >
        (SELECT count(*) FROM runs b WHERE b.task = q.task AND b.state IN ('running', 'interrupted', 'idle'))
        + (SELECT count(*) FROM runs s WHERE s.task = q.task AND s.state IN ('queued', 'running', 'interrupted', 'idle')
           AND s.state = 'queued' AND s.not_before IS NOT NULL AND s.started_at IS NOT NULL)
        + (SELECT count(*) FROM runs p WHERE p.task = q.task AND p.state = 'parked' AND p.holds = q.counts_parked
           AND q.counts_parked = 1))";

/// How many runs are taken at most.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) answered: usize,
    pub(crate) fresh: usize,
    /// Both together.
    pub(crate) all: usize,
    pub(crate) network: bool,
}

#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) answered: Vec<TakenRun>,
    pub(crate) fresh: Vec<TakenRun>,
}

pub(crate) fn take_runs(tx: &mut Tx<'_>, wanted: Wanted, now: Timestamp) -> Result<Taken, StoreError> {
    tx.memory.shared.network.store(wanted.network, Ordering::Relaxed);
    if paused_all(tx)?.is_some() {
        return Ok(Taken::default());
    }
    time_has_come(tx, now)?;
    take_ready(tx, wanted, now)
}

fn take_ready(tx: &mut Tx<'_>, wanted: Wanted, now: Timestamp) -> Result<Taken, StoreError> {
    let answered = take_some(tx, true, wanted.answered.min(wanted.all), wanted.network, now)?;
    let left = wanted.all.saturating_sub(answered.len());
    let fresh = take_some(tx, false, wanted.fresh.min(left), wanted.network, now)?;
    Ok(Taken { answered, fresh })
}

fn take_some(
    tx: &mut Tx<'_>,
    answered: bool,
    limit: usize,
    network: bool,
    now: Timestamp,
) -> Result<Vec<TakenRun>, StoreError> {
    let sql = format!("SELECT ord FROM runs q WHERE {FREE} AND answered = ?2 ORDER BY ord LIMIT 1");
    let mut taken = vec![];
    while taken.len() < limit {
        // One at a time: each that is taken may close its group to the next.
        let Some(order) = tx.value::<i64>(&sql, params![network, answered])? else { break };
        taken.extend(take(tx, order, now)?);
    }
    Ok(taken)
}

/// What became ready is taken by free hands. Runs that need the network are left to who has looked for one.
pub(crate) fn hand_out(tx: &mut Tx<'_>, free: FreeHands) -> Result<HandedOut, StoreError> {
    if paused_all(tx)?.is_some() {
        return Ok(HandedOut::default());
    }
    let (now, all) = (tx.memory.latest, free.any + free.kept);
    let wanted = Wanted { answered: all, fresh: free.any, all, network: false };
    let Taken { answered, fresh } = take_ready(tx, wanted, now)?;
    let chats = take_ready_chats(tx, free.chats, now)?;
    Ok(HandedOut { answered, fresh, chats })
}

/// Hands out chats that have something to do: who has waited longest goes first.
pub(crate) fn take_chats(tx: &mut Tx<'_>, limit: usize, now: Timestamp) -> Result<Vec<TakenRun>, StoreError> {
    if paused_all(tx)?.is_some() {
        return Ok(vec![]);
    }
    time_has_come(tx, now)?;
    take_ready_chats(tx, limit, now)
}

fn take_ready_chats(tx: &mut Tx<'_>, limit: usize, now: Timestamp) -> Result<Vec<TakenRun>, StoreError> {
    if limit == 0 {
        return Ok(vec![]);
    }
    let ready: Vec<i64> = tx.column(
        "SELECT r.ord FROM runs r LEFT JOIN sessions s ON s.run = r.ord
         WHERE r.state = 'queued' AND r.not_before IS NULL AND r.chat = 1 ORDER BY s.queued_at, r.ord LIMIT ?1",
        [limit.cast_signed()],
    )?;
    let mut taken = vec![];
    for order in ready {
        taken.extend(take(tx, order, now)?);
    }
    Ok(taken)
}

/// Runs whose time has come wait only for a worker.
fn time_has_come(tx: &Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    tx.change(
        "UPDATE runs SET not_before = NULL WHERE state = 'queued' AND not_before IS NOT NULL AND not_before <= ?1",
        [micros(now)],
    )?;
    Ok(())
}

/// Marks one run running. None: it ended instead, or cannot be read.
fn take(tx: &mut Tx<'_>, order: i64, now: Timestamp) -> Result<Option<TakenRun>, StoreError> {
    let unreadable = |what: &str| Outcome::Failed {
        failure: ow_model::Failure::Internal,
        message: format!("{what} cannot be read any more; `owctl doctor` lists what was set aside"),
    };
    let Some(row) = run_at(tx, order)? else {
        let broken = tx.take_broken();
        super::damage::set_aside(tx, &broken)?;
        return Ok(None);
    };
    let compiled = match tasks::head(tx, row.run.task)? {
        Some(head) => tasks::compiled(tx, &head, row.run.revision)?,
        None => None,
    };
    let Some(compiled) = compiled else {
        finish(tx, &row, &unreadable("its definition"), row.run.ran_for_ms, None, now)?;
        return Ok(None);
    };
    if let Some(why) = too_late(&row.run, &compiled, now) {
        missed_after_all(tx, row.run.task, row.run.scheduled_for, row.run.id, &why)?;
        finish(tx, &row, &Outcome::Missed { why }, row.run.ran_for_ms, None, now)?;
        return Ok(None);
    }
    let journal = journal::facts(tx, order)?;
    if journal.len() != row.next_seq as usize {
        finish(tx, &row, &unreadable("a part of its journal"), row.run.ran_for_ms, None, now)?;
        return Ok(None);
    }
    mark_running(tx, row, journal, &compiled.spec, now).map(Some)
}

fn mark_running(
    tx: &mut Tx<'_>,
    row: RunRow,
    journal: Vec<RecordedFact>,
    spec: &TaskSpec,
    now: Timestamp,
) -> Result<TakenRun, StoreError> {
    let mut run = row.run;
    tx.change(
        "UPDATE runs SET state = 'running', started_at = coalesce(started_at, ?2), taken_at = ?2 WHERE ord = ?1",
        params![run.order, micros(now)],
    )?;
    run.state = RunState::Running;
    run.started_at = run.started_at.or(Some(now));
    tx.group.touch(run.id);
    tell_run(tx, EventType::RunRunning, run.id, &json!({ "task": run.task_name }), now)?;
    Ok(TakenRun { run, spec: spec.clone(), journal })
}

/// Only a schedule's slot can be too late, and only before its run was begun.
fn too_late(run: &Run, compiled: &Compiled, now: Timestamp) -> Option<String> {
    let deadline = compiled.spec.start_deadline?;
    let scheduled = matches!(run.cause, Cause::Schedule | Cause::CatchUp { .. });
    let late = now.duration_since(compiled.schedule.due(run.scheduled_for)) > deadline.signed();
    (scheduled && run.started_at.is_none() && late).then(|| format!("not begun within {deadline} (start-deadline)"))
}

/// Who asks for a run, and with what.
pub(crate) struct ByHand {
    pub(crate) by: String,
    pub(crate) payload: Option<serde_json::Value>,
}

pub(crate) fn run_now(tx: &mut Tx<'_>, name: &TaskName, asked: &ByHand, now: Timestamp) -> Result<RunId, TaskError> {
    let head = tasks::known(tx, name)?;
    let id = RunId::random();
    let events = match &asked.payload {
        Some(data) => {
            let payload = EventPayload { kind: "event".into(), data: data.clone() };
            vec![events::keep_payload(tx, head.id, id, &payload, now)?]
        }
        None => vec![],
    };
    let cause = Cause::Manual { by: asked.by.clone() };
    create_by_hand(tx, &head, id, cause, now, &events, None, now)?;
    Ok(id)
}

pub(crate) fn retry_run(tx: &mut Tx<'_>, run: RunId, by: &str, now: Timestamp) -> Result<RunId, TaskError> {
    let old = known_run(tx, run)?;
    if old.run.state.is_open() {
        return Err(TaskError::Open { id: run, state: old.run.state.word().into() });
    }
    let unknown = || TaskError::Unknown { name: old.run.task_name.clone() };
    let head = tasks::head(tx, old.run.task)?.ok_or_else(unknown)?;
    if matches!(head.state, ow_model::TaskState::Deleted { .. }) {
        return Err(unknown());
    }
    let events: Vec<i64> = tx.column("SELECT event FROM run_events WHERE run = ?1 ORDER BY event", [old.run.order])?;
    let events: Vec<EventId> = events.into_iter().map(EventId).collect();
    let id = RunId::random();
    let cause = Cause::Retry { of: run, by: Some(by.to_owned()) };
    create_by_hand(tx, &head, id, cause, old.run.scheduled_for, &events, Some(run), now)?;
    tx.change("UPDATE runs SET depth = ?2 WHERE id = ?1", params![id.to_string(), old.run.depth])?;
    Ok(id)
}

#[expect(clippy::too_many_arguments, reason = "the differing parts of two facts that are otherwise one")]
fn create_by_hand(
    tx: &mut Tx<'_>,
    head: &Head,
    id: RunId,
    cause: Cause,
    scheduled_for: Timestamp,
    events: &[EventId],
    retry_of: Option<RunId>,
    now: Timestamp,
) -> Result<(), TaskError> {
    let refused = |why: String| TaskError::Refused { name: head.name.clone(), why };
    if let Some(by) = paused_all(tx)? {
        return Err(refused(format!("all is paused by {by}; `owctl resume --all` first")));
    }
    let compiled = tasks::compiled(tx, head, head.revision)?
        .ok_or_else(|| refused("its definition cannot be read any more; save it again".into()))?;
    // A run by hand is an occasion like a slot: the overlap rule says who makes way.
    let active = active(tx, head, compiled.spec.while_parked)?;
    let leaving = by_hand(&compiled.spec, &active, id).map_err(|busy| refused(busy.to_string()))?;
    for (run, why) in leaving {
        cancel_open(tx, run, &why, now)?;
    }
    let new = NewRun {
        id,
        task: head.id,
        task_name: &head.name,
        revision: head.revision,
        spec: &compiled.spec,
        cause,
        scheduled_for,
        depth: 0,
        attempt: 1,
        retry_of,
        not_before: None,
        events,
    };
    create_run(tx, &new, now)?;
    record_slot(tx, head, &SlotKey::Manual(id), &Disposition::Fired { run: id }, now)?;
    Ok(())
}

/// The words of states in which a run is open.
const OPEN_WORDS: [&str; 4] = ["queued", "running", "parked", "interrupted"];

pub(crate) fn runs(view: &View<'_>, filter: &RunFilter, page: &PageRequest) -> Result<Page<Run>, StoreError> {
    let RunFilter { task, state, open_only, chats } = filter;
    let open = *open_only || state.as_deref().is_some_and(|state| OPEN_WORDS.contains(&state));
    // The few that are open have an index of their own; the planner would rather go through all.
    let index = if open && task.is_none() { " INDEXED BY runs_open" } else { "" };
    let mut sql = format!("{ROW}{index} WHERE state <> 'damaged'");
    let mut values: Vec<Value> = vec![];
    if let Some(name) = task {
        // Runs of deleted tasks of that name are part of its history.
        sql.push_str(" AND task_name = ?");
        values.push(name.as_str().to_owned().into());
    } else if !chats {
        sql.push_str(" AND chat = 0");
    }
    if open {
        sql.push_str(" AND state IN ('queued', 'running', 'parked', 'interrupted')");
    }
    match state.as_deref() {
        None => {}
        Some(state) if OPEN_WORDS.contains(&state) => {
            sql.push_str(" AND state = ?");
            values.push(state.to_owned().into());
        }
        Some("idle") => sql.push_str(" AND state = 'idle'"),
        Some("succeeded") => sql.push_str(" AND outcome_word = 'succeeded'"),
        Some(ended) => {
            sql.push_str(" AND outcome_word = ? AND outcome_word <> 'succeeded'");
            values.push(ended.to_owned().into());
        }
    }
    page_of(view, sql, values, page)
}

fn page_of(
    view: &View<'_>,
    mut sql: String,
    mut values: Vec<Value>,
    page: &PageRequest,
) -> Result<Page<Run>, StoreError> {
    if let Some(after) = cursor(page)? {
        sql.push_str(" AND ord < ?");
        values.push(after.into());
    }
    sql.push_str(" ORDER BY ord DESC LIMIT ?");
    values.push(tasks::signed_limit(page.limit).into());
    let (mut seen, mut last) = (0_usize, None);
    let rows = view.rows(RUNS, &sql, params_from_iter(values), |record| {
        seen += 1;
        if seen <= page.limit {
            last = record.int(0).ok();
        }
        row_of(record).map(|row| (seen <= page.limit).then_some(row))
    })?;
    let rows: Result<Vec<Run>, StoreError> =
        rows.into_iter().flatten().map(|row| with_items(view, row).map(|row| row.run)).collect();
    let next = if seen > page.limit { last.map(|order| order.to_string()) } else { None };
    Ok(Page { rows: rows?, next })
}

/// The order number after which a page begins.
pub(crate) fn cursor(page: &PageRequest) -> Result<Option<i64>, StoreError> {
    let Some(cursor) = &page.after else { return Ok(None) };
    let order = cursor.parse().map_err(|_| StoreError::Cursor { cursor: cursor.clone() })?;
    Ok(Some(order))
}

/// The ids in `table` that begin with what a person typed, look-alikes and case folded. Of runs, `chats` are a part.
pub(crate) fn by_prefix<T: std::str::FromStr>(
    view: &View<'_>,
    table: &str,
    prefix: &str,
    limit: usize,
) -> Result<Vec<T>, StoreError> {
    let fold = |letter: char| match letter.to_ascii_lowercase() {
        'o' => '0',
        'i' | 'l' => '1',
        other => other,
    };
    let prefix: String = prefix.chars().map(fold).collect();
    let (table, more) = if table == "chats" { ("runs", " AND chat = 1") } else { (table, "") };
    let ids: Vec<String> = view.column(
        &format!("SELECT id FROM {table} WHERE id >= ?1 AND id < ?1 || '~'{more} ORDER BY id LIMIT ?2"),
        params![prefix, limit.cast_signed()],
    )?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}
