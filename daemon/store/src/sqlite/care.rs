use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use ow_model::{Answer, ItemKind, ItemState, Resolution};
use rusqlite::params;

use super::blobs;
use super::connection::MIGRATIONS;
use super::directory::beside;
use super::intake;
use super::life::{epoch, paused_all};
use super::outbox;
use super::refusals;
use super::runs::FREE;
use super::threads;
use super::view::{Source, View, json, micros, unsigned};
use super::writer::Tx;
use crate::{Retention, StoreError, StoreStats, WakeTimes};

/// Bytes that nothing refers to yet may belong to a fact that is still being written.
pub(crate) const LOOSE_GRACE: SignedDuration = SignedDuration::from_hours(24);

pub(crate) fn wake_times(view: &View<'_>, network: bool) -> Result<WakeTimes, StoreError> {
    let earliest = |sql: &str| -> Result<Option<Timestamp>, StoreError> {
        let at: Option<Option<i64>> = view.value(sql, [])?;
        Ok(at.flatten().and_then(|at| Timestamp::from_microsecond(at).ok()))
    };
    // A run that was asked to stop, of which nobody was told, is due since it was taken.
    let stop =
        earliest("SELECT min(taken_at) FROM runs WHERE state = 'running' AND stop_why IS NOT NULL AND stop_told = 0")?;
    let items = earliest(
        "SELECT min(at) FROM (SELECT min(expires_at) AS at FROM items WHERE state = 'pending' AND expires_at IS NOT NULL
         UNION ALL SELECT min(remind_at) FROM items WHERE state = 'pending' AND remind_at IS NOT NULL
         UNION ALL SELECT min(escalate_at) FROM items WHERE state = 'pending' AND escalate_at IS NOT NULL)",
    )?;
    if paused_all(view)?.is_some() {
        return Ok(WakeTimes { tasks: stop, runs: None, items, ready: false, ready_chats: false });
    }
    let tasks = earliest("SELECT min(wake_at) FROM tasks WHERE wake_at IS NOT NULL")?;
    let tasks = [stop, tasks].into_iter().flatten().min();
    let runs = earliest("SELECT min(not_before) FROM runs WHERE state = 'queued' AND not_before IS NOT NULL")?;
    let ready = view.exists(&format!("SELECT 1 FROM runs q WHERE {FREE} LIMIT 1"), [network])?;
    let ready_chats =
        view.exists("SELECT 1 FROM runs WHERE state = 'queued' AND not_before IS NULL AND chat = 1 LIMIT 1", [])?;
    Ok(WakeTimes { tasks, runs, items, ready, ready_chats })
}

pub(crate) fn stats(view: &View<'_>, file: &Path) -> Result<StoreStats, StoreError> {
    let open = view.rows(
        Source { table: "runs", key: 0 },
        "SELECT state, count(*) FROM runs INDEXED BY runs_open
         WHERE state IN ('queued', 'running', 'parked', 'interrupted') AND chat = 0 GROUP BY state",
        [],
        |record| Ok((record.text(0)?, record.number::<u64>(1)?)),
    )?;
    let runs = |word: &str| open.iter().find(|(state, _)| state == word).map_or(0, |(_, count)| *count);
    let (queued, running, parked) = (runs("queued"), runs("running"), runs("parked"));
    let interrupted = runs("interrupted");
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    let kept = view.count("SELECT coalesce(sum(bytes), 0) FROM blobs", [])?;
    Ok(StoreStats {
        tasks: view.count("SELECT count(*) FROM tasks WHERE state <> 'deleted' AND chat = 0", [])?,
        tasks_paused: view.count("SELECT count(*) FROM tasks WHERE state = 'paused'", [])?,
        runs_open: queued + running + parked + interrupted,
        runs_parked: parked,
        runs_queued: queued,
        runs_running: running,
        runs_interrupted: interrupted,
        sessions: view.count("SELECT count(*) FROM tasks WHERE state <> 'deleted' AND chat = 1", [])?,
        items_pending: view.count("SELECT count(*) FROM items WHERE state = 'pending'", [])?,
        deliveries_waiting: view.count("SELECT count(*) FROM outbox WHERE state = 'waiting'", [])?
            + view.count("SELECT count(*) FROM outbox WHERE state = 'taken'", [])?,
        deliveries_failed: view.count("SELECT count(*) FROM outbox WHERE state = 'failed'", [])?,
        events_waiting: view.count("SELECT coalesce(sum(waiting), 0) FROM tasks WHERE waiting > 0", [])?,
        addresses_refused: refusals::count(view)?,
        paused_all: paused_all(view)?,
        format: u32::try_from(MIGRATIONS.len()).expect("formats are few"),
        epoch: epoch(view)?,
        bytes: length(file) + length(&beside(file, "-wal")) + kept,
    })
}

/// Removes one small step of what may go: the first kind of record of which something may.
pub(crate) fn retain(tx: &mut Tx<'_>, retention: &Retention, now: Timestamp) -> Result<bool, StoreError> {
    let before = |span: ow_model::Span| now.saturating_sub(span.signed()).unwrap_or(Timestamp::MIN);
    let step = retention.step.max(1);
    Ok(prune_stream(tx, retention.stream, step)? > 0
        || remove_runs(tx, before(retention.runs), step)? > 0
        || trim_items(tx, before(retention.items), step)? > 0
        || outbox::remove_done(tx, before(retention.items), step)? > 0
        || remove_slots(tx, before(retention.slots), step)? > 0
        || remove_events(tx, before(retention.event_keys), step)? > 0
        || intake::forget(tx, before(retention.event_keys), step)? > 0
        || threads::forget(tx, before(retention.runs), step)? > 0
        || blobs::remove_loose(tx, now.saturating_sub(LOOSE_GRACE).unwrap_or(Timestamp::MIN), step)? > 0)
}

/// Numbers are never used again, so the newest row of each table stays.
fn prune_stream(view: &View<'_>, bound: u64, step: usize) -> Result<usize, StoreError> {
    let keep = i64::try_from(bound.max(1)).unwrap_or(i64::MAX);
    view.change(
        "DELETE FROM stream WHERE position IN (SELECT position FROM stream
             WHERE position <= (SELECT max(position) FROM stream) - ?1 ORDER BY position LIMIT ?2)",
        params![keep, step.cast_signed()],
    )
}

fn remove_runs(tx: &Tx<'_>, before: Timestamp, step: usize) -> Result<usize, StoreError> {
    let old: Vec<i64> = tx.column(
        "SELECT ord FROM runs WHERE ended_at < ?1 AND ended_at IS NOT NULL AND ord < (SELECT max(ord) FROM runs)
         ORDER BY ended_at LIMIT ?2",
        params![micros(before), step.cast_signed()],
    )?;
    for run in &old {
        tx.change("DELETE FROM journal WHERE run = ?1", [run])?;
        tx.change("DELETE FROM run_events WHERE run = ?1", [run])?;
        tx.change("DELETE FROM inputs WHERE run = ?1", [run])?;
        blobs::release(tx, *run)?;
        // Nobody can make another run by a chat's definition; its row stays, for numbers are not used again.
        tx.change("DELETE FROM revisions WHERE task = (SELECT task FROM runs WHERE ord = ?1 AND chat = 1)", [run])?;
        tx.change("DELETE FROM sessions WHERE run = ?1", [run])?;
        // An old definition goes with the last run that was made by it.
        tx.change(
            "DELETE FROM revisions WHERE (task, revision) IN (SELECT r.task, r.revision FROM runs r WHERE r.ord = ?1
                 AND NOT EXISTS (SELECT 1 FROM runs o WHERE o.task_name = r.task_name AND o.task = r.task
                     AND o.revision = r.revision AND o.ord <> ?1)
                 AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = r.task AND t.revision = r.revision))",
            [run],
        )?;
        tx.change("UPDATE items SET run = NULL WHERE run = ?1 AND state <> 'pending'", [run])?;
        tx.change("DELETE FROM runs WHERE ord = ?1", [run])?;
    }
    Ok(old.len())
}

/// Of a settled item stay its id, the decision, who and when.
fn trim_items(tx: &Tx<'_>, before: Timestamp, step: usize) -> Result<usize, StoreError> {
    let source = Source { table: "items", key: 1 };
    let old: Vec<(i64, ItemState)> = tx.rows(
        source,
        "SELECT ord, id, state_json FROM items
         WHERE settled_at < ?1 AND settled_at IS NOT NULL AND trimmed = 0 AND state <> 'damaged'
         ORDER BY settled_at LIMIT ?2",
        params![micros(before), step.cast_signed()],
        |record| Ok((record.int(0)?, record.json(2)?)),
    )?;
    let kind = json(&ItemKind::Notification { text: "removed after its time of retention".into() });
    for (order, state) in &old {
        tx.change(
            "UPDATE items SET trimmed = 1, title = '(removed)', kind = ?2, state_json = ?3, digest = '' WHERE ord = ?1",
            params![order, kind, json(&bare(state))],
        )?;
        tx.change("DELETE FROM item_calls WHERE item = ?1", [order])?;
    }
    Ok(old.len())
}

fn bare(state: &ItemState) -> ItemState {
    let ItemState::Resolved(Resolution { answer, by, at }) = state else { return state.clone() };
    let answer = match answer {
        Answer::Once => Answer::Once,
        Answer::ForTask => Answer::ForTask,
        Answer::AlwaysTool => Answer::AlwaysTool,
        Answer::AlwaysCommand => Answer::AlwaysCommand,
        Answer::Deny { .. } => Answer::Deny { reason: None },
        Answer::Edited { .. } => Answer::Edited { args: serde_json::json!({}) },
        Answer::Text { .. } => Answer::Text { text: String::new() },
        Answer::Acknowledge => Answer::Acknowledge,
    };
    ItemState::Resolved(Resolution { answer, by: by.clone(), at: *at })
}

/// Records are written in the order of their numbers, so the oldest stand first. A task's mark stays in its row.
fn remove_slots(view: &View<'_>, before: Timestamp, step: usize) -> Result<usize, StoreError> {
    view.change(
        "DELETE FROM slots WHERE recorded_at < ?1 AND ends < ?1
             AND id IN (SELECT id FROM slots WHERE id < (SELECT max(id) FROM slots) ORDER BY id LIMIT ?2)",
        params![micros(before), step.cast_signed()],
    )
}

fn remove_events(view: &View<'_>, before: Timestamp, step: usize) -> Result<usize, StoreError> {
    let removed: Vec<i64> = view.column(
        "DELETE FROM events WHERE received_at < ?1 AND id IN (
             SELECT e.id FROM events e
             WHERE e.state <> 0 AND e.id < (SELECT max(id) FROM events)
                 AND NOT EXISTS (SELECT 1 FROM run_events g JOIN runs r ON r.ord = g.run
                     WHERE g.event = e.id AND r.ended_at IS NULL)
             ORDER BY e.id LIMIT ?2) RETURNING id",
        params![micros(before), step.cast_signed()],
    )?;
    for event in &removed {
        blobs::release(view, blobs::owner_of_event(*event))?;
    }
    Ok(removed.len())
}

/// How many bytes a folder's store takes, for reports.
pub(crate) fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| unsigned(found.len().cast_signed()))
}
