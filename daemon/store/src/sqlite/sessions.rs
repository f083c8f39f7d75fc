use jiff::Timestamp;
use ow_model::{
    Cause, EventType, Fact, Failure, Input, Mode, Outcome, RunId, RunState, TaskId, TaskName, TaskSource, TaskState,
    TurnOutcome,
};
use rusqlite::params;
use serde_json::json;

use super::blobs;
use super::ending::{Cancelled, cancel_open, finish};
use super::items;
use super::journal;
use super::life::RESTORED_TURN;
use super::runs::{RunRow, queue_again, run_at, run_row, tell_run};
use super::stream::tell;
use super::tasks::{self, Definition, signed_limit};
use super::view::{Source, View, json, maybe_micros, micros, signed, unsigned};
use super::wakes;
use super::writer::Tx;
use crate::{NewSession, Page, PageRequest, RestRequest, Said, SessionError, SessionFilter, SessionRow, StoreError};

const SESSIONS: Source = Source { table: "sessions", key: 0 };
const INPUTS: Source = Source { table: "inputs", key: 0 };

/// How many letters of a session's id name its task.
const NAME_LETTERS: usize = 8;
const TITLE_LETTERS: usize = 60;

pub(crate) fn create(tx: &mut Tx<'_>, new: &NewSession, now: Timestamp) -> Result<RunId, StoreError> {
    let NewSession { spec, title, by } = new;
    let (id, name) = free_name(tx)?;
    let spec = ow_model::TaskSpec { name, ..spec.clone() };
    let task = TaskId(tx.insert(
        "INSERT INTO tasks (name, revision, source, state, state_json, created_at, updated_at, accounted_until,
             has_watch, has_startup, chat)
         VALUES (?1, 1, 'store', 'active', ?2, ?3, ?3, ?3, 0, 0, 1)",
        params![spec.name.as_str(), json(&TaskState::Active), micros(now)],
    )?);
    let definition = Definition { spec, source: TaskSource::Store, text: String::new(), expect_revision: None };
    tasks::write_revision(tx, task, 1, &definition, now)?;
    let order = tx.insert(
        "INSERT INTO runs (id, task, task_name, revision, cause, scheduled_for, created_at, state, needs_network,
             beside, counts_parked, depth, attempt, chat)
         VALUES (?1, ?2, ?3, 1, ?4, ?5, ?5, 'idle', 0, 1, 1, 0, 1, 1)",
        params![
            id.to_string(),
            task.0,
            definition.spec.name.as_str(),
            json(&Cause::Manual { by: by.clone() }),
            micros(now)
        ],
    )?;
    tx.change("INSERT INTO sessions (run, title, active_at) VALUES (?1, ?2, ?3)", params![order, title, micros(now)])?;
    tell_session(tx, EventType::SessionCreated, id, &json!({ "task": definition.spec.name, "title": title }), now)?;
    Ok(id)
}

/// An id whose beginning names no task yet.
fn free_name(tx: &Tx<'_>) -> Result<(RunId, TaskName), StoreError> {
    loop {
        let id = RunId::random();
        let name = format!("chat-{}", &id.to_string()[..NAME_LETTERS]);
        let name: TaskName = name.parse().expect("letters and digits after a word are a task's name");
        if tasks::live(tx, &name)?.is_none() {
            return Ok((id, name));
        }
    }
}

/// Puts an input into a session's queue; a session that waits for one goes on.
pub(crate) fn say(
    tx: &mut Tx<'_>,
    session: RunId,
    input: &Input,
    key: Option<&str>,
    now: Timestamp,
) -> Result<Said, SessionError> {
    let row = open_session(tx, session)?;
    Ok(put(tx, &row, input, key, now)?)
}

/// The same for the run of a session that has not ended.
pub(crate) fn put(
    tx: &mut Tx<'_>,
    row: &RunRow,
    input: &Input,
    key: Option<&str>,
    now: Timestamp,
) -> Result<Said, StoreError> {
    let (order, session) = (row.run.order, row.run.id);
    if let Some(key) = key {
        let known = tx.value("SELECT number FROM inputs WHERE run = ?1 AND key = ?2", params![order, key])?;
        if let Some(number) = known {
            return Ok(Said { number: unsigned(number), new: false });
        }
    }
    let number = tx.value("UPDATE runs SET inputs = inputs + 1 WHERE ord = ?1 RETURNING inputs", [order])?;
    let number = unsigned(number.ok_or_else(|| StoreError::Unknown { kind: "session", id: session.to_string() })?);
    let text = json(input);
    tx.group.bytes += text.len() as u64;
    blobs::refer(tx, order, &text)?;
    tx.change(
        "INSERT INTO inputs (run, number, key, input) VALUES (?1, ?2, ?3, ?4)",
        params![order, signed(number), key, text],
    )?;
    if row.chat {
        note_active(tx, order, now)?;
        tx.change("UPDATE sessions SET title = coalesce(title, ?2) WHERE run = ?1", params![order, title_of(input)])?;
    }
    match row.run.state {
        RunState::Idle | RunState::Queued { not_before: Some(_), .. } => queue_again(tx, row, true, now)?,
        RunState::Queued { not_before: None, .. }
        | RunState::Running
        | RunState::Parked { .. }
        | RunState::Interrupted
        | RunState::Ended(_) => {}
    }
    tx.group.touch(session);
    tx.group.said += 1;
    tell_session(tx, EventType::SessionSaid, session, &json!({ "number": number, "source": input.source }), now)?;
    Ok(Said { number, new: true })
}

/// The beginning of what was said first.
fn title_of(input: &Input) -> Option<String> {
    let line = input.text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_LETTERS).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    Some(title)
}

/// The run of an agent that has not ended.
fn open_session(tx: &mut Tx<'_>, session: RunId) -> Result<RunRow, SessionError> {
    let row = run_row(tx, session)?.ok_or(SessionError::Unknown { id: session })?;
    if let RunState::Ended(ended) = &row.run.state {
        return Err(SessionError::Ended { id: session, state: ended.outcome.word().into() });
    }
    let head = tasks::head(tx, row.run.task)?;
    let compiled = head.map(|head| tasks::compiled(tx, &head, row.run.revision)).transpose()?.flatten();
    match compiled {
        Some(compiled) if compiled.spec.agent.is_none() => Err(SessionError::NoAgent { id: session }),
        // A definition that cannot be read ends its run when a worker takes it.
        Some(_) | None => Ok(row),
    }
}

/// The chat of this id that has not ended.
fn open_chat(tx: &mut Tx<'_>, session: RunId) -> Result<RunRow, SessionError> {
    let row = open_session(tx, session)?;
    if row.chat { Ok(row) } else { Err(SessionError::NoChat { id: session }) }
}

pub(crate) fn inputs(view: &View<'_>, session: RunId) -> Result<Vec<(u64, Input)>, StoreError> {
    view.rows(
        INPUTS,
        "SELECT run || ':' || number, number, input FROM inputs
         WHERE run = (SELECT ord FROM runs WHERE id = ?1) AND input IS NOT NULL ORDER BY number",
        [session.to_string()],
        |record| Ok((record.number(1)?, record.json(2)?)),
    )
}

/// What a fact in the journal changes outside it: an input is in the history now and waits no longer.
pub(crate) fn follow(tx: &mut Tx<'_>, row: &RunRow, fact: &Fact) -> Result<(), StoreError> {
    let order = row.run.order;
    if let Fact::Input { input, .. } = fact
        && !matches!(input.source, ow_model::Source::Owd { .. })
    {
        wakes::forget(tx, order)?;
    }
    match fact {
        Fact::Input { number: Some(number), .. } => {
            let of = params![order, signed(*number)];
            let gone = tx.change("DELETE FROM inputs WHERE run = ?1 AND number = ?2 AND key IS NULL", of)?
                + tx.change("UPDATE inputs SET input = NULL WHERE run = ?1 AND number = ?2 AND input IS NOT NULL", of)?;
            if gone == 0 {
                let what = format!("input {number} of session {} does not wait any more", row.run.id);
                return Err(StoreError::Failed { what });
            }
        }
        Fact::Slept { on, .. } => wakes::wait(tx, order, on)?,
        Fact::TurnInterrupted { .. } | Fact::Ended { .. } => wakes::forget(tx, order)?,
        Fact::ModeSet { mode } => {
            tx.change("UPDATE sessions SET mode = ?2 WHERE run = ?1", params![order, json(mode)])?;
        }
        Fact::ModelSet { model } => {
            tx.change("UPDATE sessions SET model = ?2 WHERE run = ?1", params![order, model])?;
        }
        _ => {}
    }
    Ok(())
}

/// A worker leaves a session: it waits for an input or its time, or goes on at once with inputs that wait already.
pub(crate) fn rest(
    tx: &mut Tx<'_>,
    request: &RestRequest,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let RestRequest { session, next, facts, ran_for_ms } = request;
    let row = journal::fenced(tx, *session, *next)?;
    journal::write(tx, &row, facts, now)?;
    let order = row.run.order;
    tx.change("UPDATE runs SET ran_for_ms = ?2 WHERE ord = ?1", params![order, signed(*ran_for_ms)])?;
    if let Some(why) = &row.stop_why {
        // Whoever asked for the end would wait for it in vain.
        finish(tx, &row, &Outcome::Cancelled { why: why.clone() }, *ran_for_ms, None, now)?;
        return Ok(());
    }
    if row.chat {
        note_active(tx, order, now)?;
    }
    let waits = tx.exists("SELECT 1 FROM inputs WHERE run = ?1 AND input IS NOT NULL LIMIT 1", [order])?;
    if waits || until.is_some_and(|until| until <= now) {
        return queue_again(tx, &row, true, now);
    }
    let state = if until.is_some() { "queued" } else { "idle" };
    tx.change(
        "UPDATE runs SET state = ?2, not_before = ?3, answered = 0 WHERE ord = ?1",
        params![order, state, maybe_micros(until)],
    )?;
    let payload = json!({ "task": row.run.task_name, "until": until });
    tell_run(tx, EventType::RunIdle, *session, &payload, now)
}

/// Writes facts to a session that no worker has; false: one has it, and nothing was written. With `withdraw`, what it asks
/// is withdrawn for this reason, and it goes on.
pub(crate) fn note(
    tx: &mut Tx<'_>,
    session: RunId,
    facts: &[Fact],
    withdraw: Option<&str>,
    now: Timestamp,
) -> Result<bool, SessionError> {
    let row = open_session(tx, session)?;
    if row.run.state == RunState::Running {
        return Ok(false);
    }
    journal::write(tx, &row, facts, now)?;
    if let Some(why) = withdraw {
        items::ask_anew(tx, &row, why, now)?;
    }
    Ok(true)
}

/// A session that stands still is to be looked at by a worker, without an input.
pub(crate) fn rouse(tx: &mut Tx<'_>, session: RunId, now: Timestamp) -> Result<(), SessionError> {
    let row = open_session(tx, session)?;
    if row.run.state == RunState::Idle {
        queue_again(tx, &row, true, now)?;
        tx.group.touch(session);
    }
    Ok(())
}

pub(crate) fn rename(tx: &mut Tx<'_>, session: RunId, title: &str, now: Timestamp) -> Result<(), SessionError> {
    let row = open_chat(tx, session)?;
    tx.change("UPDATE sessions SET title = ?2 WHERE run = ?1", params![row.run.order, title])?;
    tx.group.touch(session);
    tell_session(tx, EventType::SessionRenamed, session, &json!({ "title": title }), now)?;
    Ok(())
}

/// Ends a chat for good. True: a worker has it, and must be told to stop.
pub(crate) fn remove(tx: &mut Tx<'_>, session: RunId, why: &str, now: Timestamp) -> Result<bool, SessionError> {
    let row = open_chat(tx, session)?;
    tx.change("DELETE FROM inputs WHERE run = ?1", [row.run.order])?;
    let stop = cancel_open(tx, session, why, now)? == Cancelled::Stop;
    if stop {
        // Whoever asked is told here.
        tx.change("UPDATE runs SET stop_told = 1 WHERE ord = ?1", [row.run.order])?;
    }
    tx.change(
        "UPDATE tasks SET state = 'deleted', state_json = ?2, updated_at = ?3 WHERE id = ?1",
        params![row.run.task.0, json(&TaskState::Deleted { at: now }), micros(now)],
    )?;
    tx.change("DELETE FROM rules WHERE task_name = ?1", [row.run.task_name.as_str()])?;
    tell_session(tx, EventType::SessionRemoved, session, &json!({}), now)?;
    Ok(stop)
}

/// Nobody knows what a chat did after the backup: its turn is over, and what waits is said again by the next input.
pub(crate) fn settle_restored(tx: &mut Tx<'_>, row: &RunRow, now: Timestamp) -> Result<(), StoreError> {
    if row.next_seq > 0 {
        let outcome = TurnOutcome::Failed { failure: Failure::Unknown, message: RESTORED_TURN.into() };
        let interrupted = Fact::TurnInterrupted { by: "the restore of a backup".into(), partial: None };
        journal::write(tx, row, &[interrupted, Fact::TurnEnded { outcome }], now)?;
    }
    tx.change("UPDATE runs SET state = 'idle', not_before = NULL, answered = 0 WHERE ord = ?1", [row.run.order])?;
    Ok(())
}

pub(crate) fn note_queued(tx: &Tx<'_>, order: i64, now: Timestamp) -> Result<(), StoreError> {
    tx.change("UPDATE sessions SET queued_at = ?2 WHERE run = ?1", params![order, micros(now)])?;
    Ok(())
}

pub(crate) fn note_active(tx: &Tx<'_>, order: i64, now: Timestamp) -> Result<(), StoreError> {
    tx.change("UPDATE sessions SET active_at = ?2 WHERE run = ?1", params![order, micros(now)])?;
    Ok(())
}

fn tell_session(
    tx: &mut Tx<'_>,
    kind: EventType,
    session: RunId,
    payload: &serde_json::Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    tell(tx, kind, &format!("session:{session}"), payload, now)
}

/// What the table of sessions says of one.
struct Entry {
    order: i64,
    title: Option<String>,
    active_at: Timestamp,
    mode: Option<Mode>,
    model: Option<String>,
    waiting: u32,
}

const ENTRY: &str = "SELECT s.run, s.title, s.active_at, s.mode, s.model,
    (SELECT count(*) FROM inputs i WHERE i.run = s.run AND i.input IS NOT NULL) FROM sessions s";

fn entry_of(record: &super::view::Record<'_>) -> Result<Entry, super::view::Broken> {
    let mode = match record.maybe_text(3)? {
        Some(_) => Some(record.json(3)?),
        None => None,
    };
    Ok(Entry {
        order: record.int(0)?,
        title: record.maybe_text(1)?,
        active_at: record.time(2)?,
        mode,
        model: record.maybe_text(4)?,
        waiting: record.number(5)?,
    })
}

fn with_run(view: &View<'_>, entry: Entry) -> Result<Option<SessionRow>, StoreError> {
    let Some(row) = run_at(view, entry.order)? else { return Ok(None) };
    let Some(spec) = tasks::revision(view, row.run.task, row.run.revision)? else { return Ok(None) };
    let Entry { order: _, title, active_at, mode, model, waiting } = entry;
    let mode = mode.unwrap_or(spec.mode);
    let model = model.or_else(|| spec.agent.as_ref().and_then(|agent| agent.model.clone()));
    Ok(Some(SessionRow { run: row.run, spec, title, mode, model, active_at, waiting, length: row.next_seq }))
}

pub(crate) fn session(view: &View<'_>, session: RunId) -> Result<Option<SessionRow>, StoreError> {
    let sql = format!("{ENTRY} WHERE s.run = (SELECT ord FROM runs WHERE id = ?1)");
    match view.row(SESSIONS, &sql, [session.to_string()], entry_of)? {
        Some(entry) => with_run(view, entry),
        None => Ok(None),
    }
}

/// The last active first; the cursor is when and which that was.
pub(crate) fn sessions(
    view: &View<'_>,
    filter: &SessionFilter,
    page: &PageRequest,
) -> Result<Page<SessionRow>, StoreError> {
    let (at, run) = match &page.after {
        Some(cursor) => read_cursor(cursor).ok_or_else(|| StoreError::Cursor { cursor: cursor.clone() })?,
        None => (i64::MAX, i64::MAX),
    };
    let ended = if filter.removed { "" } else { " AND r.state <> 'ended'" };
    let sql = format!(
        "{ENTRY} JOIN runs r ON r.ord = s.run WHERE (s.active_at, s.run) < (?1, ?2){ended}
         ORDER BY s.active_at DESC, s.run DESC LIMIT ?3"
    );
    let mut entries = view.rows(SESSIONS, &sql, params![at, run, signed_limit(page.limit)], entry_of)?;
    let more = entries.len() > page.limit;
    entries.truncate(page.limit);
    let next = entries.last().filter(|_| more).map(|last| format!("{}:{}", micros(last.active_at), last.order));
    let mut rows = vec![];
    for entry in entries {
        rows.extend(with_run(view, entry)?);
    }
    Ok(Page { rows, next })
}

fn read_cursor(cursor: &str) -> Option<(i64, i64)> {
    let (at, run) = cursor.split_once(':')?;
    Some((at.parse().ok()?, run.parse().ok()?))
}
