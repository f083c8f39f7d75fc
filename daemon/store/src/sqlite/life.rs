use jiff::Timestamp;
use ow_model::{
    Audited, Decided, EventKey, EventPayload, EventType, Fact, InboxName, ItemKind, NewEvent, Outcome, Position,
    RunState, TaskId, TaskState,
};
use rusqlite::params;
use serde_json::json;

use super::audit;
use super::claim::{Look, RESTORED, account_for_pause, advance};
use super::ending::{finish, finish_unknown};
use super::events;
use super::intake;
use super::items::{ask_anew, notify};
use super::journal;
use super::outbox;
use super::runs::{RunRow, queue_again, run_at};
use super::sessions;
use super::slots::missed_after_all;
use super::stream::tell;
use super::tasks;
use super::view::{Source, View, micros, signed};
use super::writer::Tx;
use crate::{NewItem, Start, StoreError};

/// In a store that a backup has just become; taken out when a life has dealt with it.
pub(crate) const WAS_RESTORED: &str = "restored";

/// Why a turn ended that was under way in a backup.
pub(crate) const RESTORED_TURN: &str = "the store was restored from a backup; what this turn did since is not known";

pub(crate) fn begin_life(tx: &mut Tx<'_>, life: &str, now: Timestamp) -> Result<Start, StoreError> {
    tx.memory.awake_since = Some(now);
    let source = Source { table: "stream", key: 0 };
    let last_seen =
        tx.row(source, "SELECT position, at FROM stream ORDER BY position DESC LIMIT 1", [], |record| record.time(1))?;
    let epoch = epoch(tx)?;
    set_meta(tx, "life", life)?;
    if tx.meta(WAS_RESTORED)?.is_some() {
        settle_restored(tx, epoch, now)?;
    }
    let interrupted = go_on(tx, now)?;
    outbox::begin_life(tx)?;
    tell(tx, EventType::OwdStarted, "owd", &json!({ "life": life, "epoch": epoch, "interrupted": interrupted }), now)?;
    Ok(Start { interrupted, last_seen, paused_all: paused_all(tx)?.is_some(), epoch })
}

/// Queues what stood in the middle; what was to be stopped is not begun again.
fn go_on(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, StoreError> {
    let mut count = 0;
    for mut row in in_states(tx, &["running", "interrupted"])? {
        if row.run.state == RunState::Running {
            row.run.ran_for_ms += ran_until_the_crash(tx, &row)?;
            let ran_for_ms = row.run.ran_for_ms;
            tx.change("UPDATE runs SET ran_for_ms = ?2 WHERE ord = ?1", params![row.run.order, signed(ran_for_ms)])?;
        }
        match &row.stop_why {
            Some(why) => {
                finish(tx, &row, &Outcome::Cancelled { why: why.clone() }, row.run.ran_for_ms, None, now)?;
            }
            None => queue_again(tx, &row, false, now)?,
        }
        count += 1;
    }
    Ok(count)
}

/// How long a run went on that nobody could interrupt: from when it was taken to the last that it wrote down. What it
/// did after that is not known; without it a run that kills owd each time would never reach its limit.
fn ran_until_the_crash(tx: &Tx<'_>, row: &RunRow) -> Result<u64, StoreError> {
    let last: Option<i64> =
        tx.value("SELECT at FROM journal WHERE run = ?1 ORDER BY seq DESC LIMIT 1", [row.run.order])?;
    let ran = last.zip(row.taken_at).map_or(0, |(last, taken)| last.saturating_sub(micros(taken)) / 1000);
    Ok(u64::try_from(ran).unwrap_or(0))
}

fn in_states(tx: &Tx<'_>, states: &[&'static str]) -> Result<Vec<RunRow>, StoreError> {
    let mut rows = vec![];
    for state in states {
        // The list of open states is the index's own condition.
        let orders: Vec<i64> = tx.column(
            "SELECT ord FROM runs INDEXED BY runs_open WHERE state = ?1 AND state IN ('queued', 'running', 'parked', 'interrupted')
             ORDER BY ord",
            [state],
        )?;
        for order in orders {
            rows.extend(run_at(tx, order)?);
        }
    }
    Ok(rows)
}

pub(crate) fn fire_startup(tx: &mut Tx<'_>, life: &str, now: Timestamp) -> Result<(), StoreError> {
    let waiting: Vec<i64> =
        tx.column("SELECT id FROM tasks WHERE has_startup = 1 AND state <> 'deleted' ORDER BY id", [])?;
    for task in waiting {
        let Some(head) = tasks::head(tx, TaskId(task))? else { continue };
        let event = NewEvent {
            task: head.name,
            key: EventKey(format!("startup:{life}")),
            payload: EventPayload { kind: "startup".into(), data: json!({ "life": life }) },
            depth: 0,
        };
        events::accept(tx, head.id, &event, now)?;
    }
    Ok(())
}

/// Deals with a restored store: nobody knows what happened after the backup was made.
///
/// What was asked is asked anew. A run in the middle of a call goes on and that call is asked about. A run that
/// had begun otherwise, or whose slot waited for a worker, may have gone on to its end: it is not repeated.
/// Slots since the backup, and events that waited in it, are recorded as missed. What came to a mailbox or to a
/// watched folder since is left alone, for it may have been worked off.
fn settle_restored(tx: &mut Tx<'_>, epoch: u64, now: Timestamp) -> Result<(), StoreError> {
    let restored = Audited { decided: vec![Decided::Restore { epoch }], ..Audited::default() };
    audit::append(tx, vec![restored], now)?;
    outbox::settle_restored(tx, now)?;
    let mut unknown = 0_u64;
    for row in in_states(tx, &["queued", "running", "interrupted", "parked"])? {
        match &row.run.state {
            // A chat's person is told where it stands, and says how it goes on.
            RunState::Queued { .. } | RunState::Running | RunState::Interrupted if row.chat => {
                sessions::settle_restored(tx, &row, now)?;
            }
            RunState::Parked { .. } => ask_anew(tx, &row, "the store was restored; it is asked again", now)?,
            RunState::Queued { .. } if row.next_seq == 0 => {
                missed_after_all(tx, row.run.task, row.run.scheduled_for, row.run.id, RESTORED)?;
                finish(tx, &row, &Outcome::Missed { why: RESTORED.into() }, row.run.ran_for_ms, None, now)?;
            }
            _ if in_a_call(tx, &row)? => {
                tx.change("UPDATE runs SET state = 'interrupted' WHERE ord = ?1", [row.run.order])?;
            }
            _ => {
                unknown += 1;
                finish_unknown(tx, &row, now)?;
            }
        }
    }
    intake::settle_restored(tx)?;
    // Mails that came since may have been answers and triggers, and were read: it is read on from now.
    tx.change("DELETE FROM mailboxes", [])?;
    // The same of files: a watch that has not looked yet takes as seen what is older than its task.
    tx.change("DELETE FROM watch_seen", [])?;
    tx.change("UPDATE tasks SET updated_at = ?1 WHERE has_watch = 1 AND state <> 'deleted'", [micros(now)])?;
    let mut missed = 0;
    let live: Vec<i64> = tx.column("SELECT id FROM tasks WHERE state <> 'deleted' AND chat = 0 ORDER BY id", [])?;
    for task in live {
        let Some(head) = tasks::head(tx, TaskId(task))? else { continue };
        missed += events::miss_waiting(tx, &head, RESTORED, now)?;
        if head.state == TaskState::Active {
            advance(tx, &head, Look::Restored, now)?;
        }
    }
    tx.change("DELETE FROM meta WHERE key = ?1", [WAS_RESTORED])?;
    let text = format!(
        "the store was restored from a backup: slots since then are recorded as missed, as are {missed} events that \
         waited in it; open questions are asked again, and {unknown} runs ended because what they did since is not \
         known. Mailboxes and watched files are looked at from now on: for what came in between and was not worked \
         off, start the task by hand"
    );
    let told = NewItem {
        task: None,
        run: None,
        title: "The store was restored".into(),
        kind: ItemKind::Notification { text },
        expires_in: None,
        remind_after: None,
        inbox: InboxName::default(),
    };
    notify(tx, &told, &format!("restored:{epoch}"), now)?;
    Ok(())
}

/// Whether the run's last call with a side effect was begun and its end is not known.
fn in_a_call(tx: &Tx<'_>, row: &RunRow) -> Result<bool, StoreError> {
    let mut open: Option<Position> = None;
    for recorded in journal::facts(tx, row.run.order)? {
        match recorded.fact {
            Fact::Intended { position, repeatable, .. } => open = (!repeatable).then_some(position),
            Fact::Done { position, .. } | Fact::Reconciled { position, .. } if open == Some(position) => open = None,
            _ => {}
        }
    }
    Ok(open.is_some())
}

/// Who paused everything, if someone did.
pub(crate) fn paused_all(view: &View<'_>) -> Result<Option<String>, StoreError> {
    view.meta("paused_all")
}

pub(crate) fn pause_all(tx: &mut Tx<'_>, by: &str, now: Timestamp) -> Result<(), StoreError> {
    if paused_all(tx)?.is_some() {
        return Ok(());
    }
    set_meta(tx, "paused_all", by)?;
    set_meta(tx, "paused_at", &micros(now).to_string())?;
    tell(tx, EventType::OwdPaused, "owd", &json!({ "by": by }), now)
}

pub(crate) fn resume_all(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    if paused_all(tx)?.is_none() {
        return Ok(());
    }
    account_for_pause(tx, now)?;
    tx.change("DELETE FROM meta WHERE key = 'paused_all'", [])?;
    set_meta(tx, "resumed_at", &micros(now).to_string())?;
    for row in in_states(tx, &["interrupted"])? {
        queue_again(tx, &row, false, now)?;
    }
    tell(tx, EventType::OwdResumed, "owd", &json!({}), now)
}

/// Whether the kill switch was thrown and opened again after a run was taken at `taken_at`.
pub(crate) fn resumed_since(view: &View<'_>, taken_at: Option<Timestamp>) -> Result<bool, StoreError> {
    let instant = |key| -> Result<Option<i64>, StoreError> { Ok(view.meta(key)?.and_then(|at| at.parse().ok())) };
    let (Some(paused), Some(resumed), Some(taken)) = (instant("paused_at")?, instant("resumed_at")?, taken_at) else {
        return Ok(false);
    };
    Ok(paused_all(view)?.is_none() && micros(taken) <= paused && paused <= resumed)
}

pub(crate) fn epoch(view: &View<'_>) -> Result<u64, StoreError> {
    Ok(view.meta("epoch")?.and_then(|epoch| epoch.parse().ok()).unwrap_or(1))
}

pub(crate) fn set_meta(view: &View<'_>, key: &str, value: &str) -> Result<(), StoreError> {
    view.change(
        "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
        params![key, value],
    )?;
    Ok(())
}
