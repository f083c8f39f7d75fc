use std::fmt::Write;

use jiff::Timestamp;
use ow_model::{
    AfterEnd, Artifact, Cause, EventId, EventKey, EventPayload, EventType, Fact, Failure, ItemKind, NewEvent, Outcome,
    PauseReason, RunId, RunState, TaskId, TaskState,
};
use ow_schedule::{counts_toward_pause, failures_in_row};
use rusqlite::params;
use serde_json::json;

use super::events;
use super::items;
use super::journal;
use super::life::resumed_since;
use super::runs::{NewRun, RunRow, create_run, known_run, queue_again, run_row, tell_run};
use super::tasks::{self, Head};
use super::view::{Source, View, json, micros, signed};
use super::writer::Tx;
use crate::{EndRequest, NewItem, StoreError, TaskError};

/// What `cancel_open` did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cancelled {
    /// The run has ended.
    Ended,
    /// It is running: whoever runs it must stop it, then end it.
    Stop,
    /// It had ended already, or there is none.
    Nothing,
}

/// Cancels a run that stands still; asks a running one to stop.
pub(crate) fn cancel_open(tx: &mut Tx<'_>, run: RunId, why: &str, now: Timestamp) -> Result<Cancelled, StoreError> {
    let Some(row) = run_row(tx, run)? else { return Ok(Cancelled::Nothing) };
    match row.run.state {
        RunState::Ended(_) => Ok(Cancelled::Nothing),
        RunState::Running => {
            tx.change("UPDATE runs SET stop_why = coalesce(stop_why, ?2) WHERE ord = ?1", params![row.run.order, why])?;
            Ok(Cancelled::Stop)
        }
        RunState::Queued { .. } | RunState::Parked { .. } | RunState::Interrupted | RunState::Idle => {
            finish(tx, &row, &Outcome::Cancelled { why: why.into() }, row.run.ran_for_ms, None, now)?;
            Ok(Cancelled::Ended)
        }
    }
}

pub(crate) fn cancel_run(tx: &mut Tx<'_>, run: RunId, why: &str, now: Timestamp) -> Result<bool, TaskError> {
    let row = known_run(tx, run)?;
    if !row.run.state.is_open() {
        return Err(TaskError::Ended { id: run, state: row.run.state.word().into() });
    }
    let stop = cancel_open(tx, run, why, now)? == Cancelled::Stop;
    if stop {
        // Whoever asked is told here.
        tx.change("UPDATE runs SET stop_told = 1 WHERE ord = ?1", [row.run.order])?;
    }
    Ok(stop)
}

pub(crate) fn end_run(tx: &mut Tx<'_>, request: &EndRequest, now: Timestamp) -> Result<(), StoreError> {
    let EndRequest { run, next, facts, outcome, ran_for_ms, retry_at } = request;
    let row = journal::fenced(tx, *run, *next)?;
    journal::write(tx, &row, facts, now)?;
    finish(tx, &row, outcome, *ran_for_ms, *retry_at, now)
}

pub(crate) fn interrupt_run(
    tx: &mut Tx<'_>,
    run: RunId,
    next: u32,
    facts: &[Fact],
    ran_for_ms: u64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = journal::fenced(tx, run, next)?;
    journal::write(tx, &row, facts, now)?;
    tx.change(
        "UPDATE runs SET state = 'interrupted', ran_for_ms = ?2 WHERE ord = ?1",
        params![row.run.order, signed(ran_for_ms)],
    )?;
    // The switch that stopped it may be open again by the time that it stands still.
    if resumed_since(tx, row.taken_at)? {
        queue_again(tx, &row, false, now)?;
    }
    Ok(())
}

/// The one way in which a run ends.
pub(crate) fn finish(
    tx: &mut Tx<'_>,
    row: &RunRow,
    outcome: &Outcome,
    ran_for_ms: u64,
    retry_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let run = &row.run;
    let refused_by_person = items::denied_by_person(tx, run.order)?;
    items::withdraw_of_run(tx, row, "its run has ended", now)?;
    journal::write(tx, row, &[Fact::Ended { outcome: outcome.clone() }], now)?;
    tx.change(
        "UPDATE runs SET state = 'ended', outcome = ?2, outcome_word = ?3, ended_at = ?4, ran_for_ms = ?5,
             not_before = NULL, stop_why = NULL
         WHERE ord = ?1",
        params![run.order, json(outcome), outcome.word(), micros(now), signed(ran_for_ms)],
    )?;
    tx.group.touch(run.id);
    let payload = json!({ "task": run.task_name, "outcome": outcome });
    tell_run(tx, EventType::RunEnded, run.id, &payload, now)?;
    let head = tasks::head(tx, run.task)?;
    if let (Some(head), Some(at)) = (&head, retry_at) {
        retry(tx, row, head, at, now)?;
    } else {
        // An attempt that is tried again is not the end of the work.
        tell_person(tx, row, outcome, refused_by_person, now)?;
        fire_after(tx, row, outcome, now)?;
        if let Some(head) = &head {
            count_failures(tx, head, outcome, now)?;
        }
    }
    tx.change(
        "UPDATE tasks SET wake_at = min(coalesce(wake_at, ?2), ?2) WHERE id = ?1 AND waiting > 0 AND state = 'active'",
        params![run.task.0, micros(now)],
    )?;
    Ok(())
}

fn retry(tx: &mut Tx<'_>, row: &RunRow, head: &Head, at: Timestamp, now: Timestamp) -> Result<(), StoreError> {
    let run = &row.run;
    let Some(compiled) = tasks::compiled(tx, head, run.revision)? else { return Ok(()) };
    let events: Vec<i64> = tx.column("SELECT event FROM run_events WHERE run = ?1 ORDER BY event", [run.order])?;
    let events: Vec<EventId> = events.into_iter().map(EventId).collect();
    let new = NewRun {
        id: RunId::random(),
        task: run.task,
        task_name: &run.task_name,
        revision: run.revision,
        spec: &compiled.spec,
        cause: Cause::Retry { of: run.id, by: None },
        scheduled_for: run.scheduled_for,
        depth: run.depth,
        attempt: run.attempt + 1,
        retry_of: Some(run.id),
        not_before: Some(at),
        events: &events,
    };
    create_run(tx, &new, now)?;
    Ok(())
}

/// Notifies of an end that nobody asked for. Who cancelled or denied knows it already.
fn tell_person(
    tx: &mut Tx<'_>,
    row: &RunRow,
    outcome: &Outcome,
    refused_by_person: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let text = match outcome {
        Outcome::Succeeded | Outcome::Cancelled { .. } => return Ok(()),
        Outcome::Refused { .. } if refused_by_person => return Ok(()),
        Outcome::Failed { message, .. } | Outcome::Refused { message } => message.clone(),
        Outcome::Expired { .. } => "nobody answered in time".into(),
        Outcome::Missed { why } => why.clone(),
    };
    let name = &row.run.task_name;
    let title = match outcome {
        Outcome::Missed { .. } => format!("{name} did not run"),
        _ => format!("{name} {}", outcome.word()),
    };
    let key = format!("end:{}:{}", row.run.task, ow_model::BlobHash::of(format!("{title}\n{text}").as_bytes()));
    let text = text + &made(tx, row)?;
    let item = NewItem {
        task: Some(name.clone()),
        run: Some(row.run.id),
        title,
        kind: ItemKind::Notification { text },
        expires_in: None,
        remind_after: None,
        inbox: tasks::inbox_of(tx, row.run.task, row.run.revision)?,
    };
    items::fold(tx, &item, &key, now)?;
    Ok(())
}

/// What the run had made by its end, a line each; empty if nothing.
fn made(view: &View<'_>, row: &RunRow) -> Result<String, StoreError> {
    const SHOWN: usize = 20;
    let facts = journal::facts(view, row.run.order)?;
    let artifacts: Vec<&Artifact> = facts.iter().flat_map(|recorded| recorded.fact.artifacts()).collect();
    if artifacts.is_empty() {
        return Ok(String::new());
    }
    let mut text = String::from("\nIt had made:");
    for (artifact, number) in artifacts.iter().zip(1..).take(SHOWN) {
        match artifact {
            Artifact::File { path, bytes, hash: _ } => {
                write!(text, "\n{number}. {} ({bytes} bytes)", path.display()).expect("a String takes all");
            }
            Artifact::Message { to, id: _ } => {
                write!(text, "\n{number}. a message to {to}").expect("a String takes all");
            }
        }
    }
    if artifacts.len() > SHOWN {
        let more = artifacts.len() - SHOWN;
        write!(text, "\nand {more} more: `owctl run show {}`", row.run.id).expect("a String takes all");
    }
    Ok(text)
}

/// Gives the tasks that run after this one their event.
fn fire_after(tx: &mut Tx<'_>, row: &RunRow, outcome: &Outcome, now: Timestamp) -> Result<(), StoreError> {
    let run = &row.run;
    let source = Source { table: "after_edges", key: 0 };
    let edges: Vec<(i64, AfterEnd)> = tx.rows(
        source,
        "SELECT task, on_end FROM after_edges WHERE source = ?1 ORDER BY task",
        [run.task_name.as_str()],
        |record| Ok((record.int(0)?, record.json(1)?)),
    )?;
    for (task, on) in edges {
        let fires = match on {
            AfterEnd::Any => true,
            AfterEnd::Success => *outcome == Outcome::Succeeded,
            AfterEnd::Failure => {
                matches!(outcome, Outcome::Failed { .. } | Outcome::Refused { .. } | Outcome::Expired { .. })
            }
        };
        let Some(follower) = tasks::head(tx, TaskId(task))?.filter(|_| fires) else { continue };
        let data = json!({
            "task": run.task_name, "run": run.id, "outcome": outcome.word(), "ended_at": now,
            "scheduled_for": run.scheduled_for,
        });
        let event = NewEvent {
            task: follower.name,
            key: EventKey(format!("after:{}", run.id)),
            payload: EventPayload { kind: "after".into(), data },
            depth: run.depth + 1,
        };
        events::accept(tx, follower.id, &event, now)?;
    }
    Ok(())
}

/// Counts failures in a row; at the task's limit it pauses itself and says so.
fn count_failures(tx: &mut Tx<'_>, head: &Head, outcome: &Outcome, now: Timestamp) -> Result<(), StoreError> {
    let failures = failures_in_row(head.failures_in_row, outcome);
    if failures != head.failures_in_row {
        tx.change("UPDATE tasks SET failures_in_row = ?2 WHERE id = ?1", params![head.id.0, failures])?;
    }
    let Some(compiled) = tasks::compiled(tx, head, head.revision)? else { return Ok(()) };
    let limit = compiled.spec.auto_pause_after;
    if limit == 0 || failures < limit || !counts_toward_pause(outcome) || head.state != TaskState::Active {
        return Ok(());
    }
    tasks::write_pause(tx, head, &PauseReason::Failures(failures), now, now)?;
    let item = NewItem {
        task: Some(head.name.clone()),
        run: None,
        title: format!("{} was paused", head.name),
        kind: ItemKind::Notification {
            text: format!("failed {failures} times in a row; `owctl task resume {}` lets it run again", head.name),
        },
        expires_in: None,
        remind_after: None,
        inbox: compiled.spec.inbox.clone(),
    };
    items::fold(tx, &item, &format!("pause:{}", head.id), now)?;
    Ok(())
}

/// Ends what a restored store cannot know: see `life`.
pub(crate) fn finish_unknown(tx: &mut Tx<'_>, row: &RunRow, now: Timestamp) -> Result<(), StoreError> {
    let message = "the store was restored from a backup; what this run did since is not known".into();
    let outcome = Outcome::Failed { failure: Failure::Unknown, message };
    finish(tx, row, &outcome, row.run.ran_for_ms, None, now)
}
