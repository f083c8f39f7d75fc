use jiff::{SignedDuration, Timestamp};
use ow_model::{Disposition, ItemId, RunId, TaskId, TaskState, WhileParked};
use ow_schedule::{ActiveRun, ActiveState, Gate, PlanInput, Rewind, close, plan, rewind};
use rusqlite::params;

use super::damage;
use super::ending::cancel_open;
use super::events;
use super::life::paused_all;
use super::runs::{ACTIVE, NewRun, create_run};
use super::slots::{self, record_slot};
use super::tasks::{self, Head};
use super::view::{Broken, Record, Source, View, maybe_micros, micros, signed};
use super::writer::Tx;
use crate::{Claim, Claimed, StoreError};

/// Why slots since a backup have no run.
pub(crate) const RESTORED: &str = "restored";

/// The planner's next look is at least this far away, so that no disagreement about rounding spins.
const BREATH: SignedDuration = SignedDuration::from_millis(1);

pub(crate) fn claim_due(tx: &mut Tx<'_>, claim: &Claim) -> Result<Claimed, StoreError> {
    tx.memory.awake_since = Some(claim.awake_since);
    if paused_all(tx)?.is_some() {
        // What falls due stays due, and is accounted for as one range when the switch opens.
        return Ok(Claimed { created: 0, stop: to_stop(tx)?, more: false });
    }
    let now = claim.now;
    let limit = tasks::signed_limit(claim.limit);
    let mut due: Vec<i64> = tx.column(
        "SELECT id FROM tasks WHERE wake_at <= ?1 ORDER BY wake_at, id LIMIT ?2",
        params![micros(now), limit],
    )?;
    let more = due.len() > claim.limit;
    due.truncate(claim.limit);
    let mut created = 0;
    for task in due {
        let task = TaskId(task);
        // A task that cannot be read is out of the index by the time that this returns.
        match tasks::head(tx, task)? {
            Some(head) => created += advance(tx, &head, Look::AsItStands, now)?,
            None => put_away(tx)?,
        }
    }
    Ok(Claimed { created, stop: to_stop(tx)?, more })
}

/// Running runs that were asked to stop and of which nobody was told yet.
fn to_stop(tx: &Tx<'_>) -> Result<Vec<(RunId, String)>, StoreError> {
    let source = Source { table: "runs", key: 1 };
    let stop = tx.rows(
        source,
        "SELECT ord, id, stop_why FROM runs
         WHERE state = 'running' AND stop_why IS NOT NULL AND stop_told = 0 ORDER BY ord",
        [],
        |record| Ok((record.parsed(1)?, record.text(2)?)),
    )?;
    if !stop.is_empty() {
        tx.change(
            "UPDATE runs SET stop_told = 1 WHERE state = 'running' AND stop_why IS NOT NULL AND stop_told = 0",
            [],
        )?;
    }
    Ok(stop)
}

/// By what a task is accounted for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    /// The task's own state and the kill switch.
    AsItStands,
    /// Nothing may start, for this reason.
    Closed(&'static str),
    /// The store was restored: what was due since the backup may or may not have run.
    Restored,
}

/// Accounts for a task until `now` and plans its next look; returns how many runs it created.
pub(crate) fn advance(tx: &mut Tx<'_>, head: &Head, look: Look, now: Timestamp) -> Result<u64, StoreError> {
    let Some(compiled) = tasks::compiled(tx, head, head.revision)? else {
        put_away(tx)?;
        return Ok(0);
    };
    let gate = match look {
        Look::AsItStands => tasks::gate(tx, head)?,
        Look::Closed(why) => Gate::Closed { why: why.into() },
        Look::Restored => Gate::Closed { why: RESTORED.into() },
    };
    let open = gate == Gate::Open;
    let active = active(tx, head, compiled.spec.while_parked)?;
    let waiting = if head.waiting > 0 { events::waiting(tx, head)? } else { vec![] };
    let fired_ahead = fired_ahead(tx, head)?;
    let planned = plan(
        &PlanInput {
            spec: &compiled.spec,
            schedule: &compiled.schedule,
            now,
            awake_since: tx.memory.awake_since.unwrap_or(now).min(now),
            accounted_until: head.accounted_until,
            fired_ahead: &fired_ahead,
            gate,
            active: &active,
            waiting: &waiting,
        },
        &mut RunId::random,
    );
    let restored = Disposition::Missed { why: RESTORED.into(), folded_into: None };
    for (key, disposition) in &planned.records {
        let skipped = matches!(disposition, Disposition::Skipped { .. });
        let disposition = if skipped && look == Look::Restored { &restored } else { disposition };
        record_slot(tx, head, key, disposition, now)?;
    }
    let mut given = planned.refused.len();
    for run in &planned.runs {
        given += run.events.len();
        create_run(
            tx,
            &NewRun {
                id: run.id,
                task: head.id,
                task_name: &head.name,
                revision: head.revision,
                spec: &compiled.spec,
                cause: run.cause.clone(),
                scheduled_for: run.scheduled_for,
                depth: run.depth,
                attempt: 1,
                retry_of: None,
                not_before: None,
                events: &run.events,
            },
            now,
        )?;
    }
    for (event, _) in &planned.refused {
        tx.change("UPDATE events SET state = 2 WHERE id = ?1", [event.0])?;
    }
    for (run, why) in &planned.cancel {
        cancel_open(tx, *run, why, now)?;
    }
    for (item, slots) in &planned.held_back {
        tx.change(
            "UPDATE items SET holds_back = holds_back + ?2 WHERE id = ?1",
            params![item.to_string(), signed(*slots)],
        )?;
    }
    let accounted_until = planned.accounted_until.unwrap_or(head.accounted_until).max(head.accounted_until);
    // Behind a closed gate the planner names no next look: it comes as soon as the gate is open.
    let next_due = planned.wake_at.map(|at| at.max(now + BREATH));
    let wake_at = if open { next_due } else { Some(now) };
    let active = head.state == TaskState::Active;
    tx.change(
        "UPDATE tasks SET accounted_until = ?2, wake_at = ?3, next_due = ?4, waiting = max(0, waiting - ?5)
         WHERE id = ?1",
        params![
            head.id.0,
            micros(accounted_until),
            maybe_micros(wake_at.filter(|_| active)),
            maybe_micros(next_due.filter(|_| active)),
            given.cast_signed()
        ],
    )?;
    Ok(planned.runs.len() as u64)
}

/// Gives the slots of a definition that ends now, whose jittered time had not come, their record.
pub(crate) fn close_account(tx: &mut Tx<'_>, task: TaskId, why: &str, now: Timestamp) -> Result<(), StoreError> {
    let Some(head) = tasks::head(tx, task)? else { return Ok(()) };
    let Some(compiled) = tasks::compiled(tx, &head, head.revision)? else { return put_away(tx) };
    let fired_ahead = fired_ahead(tx, &head)?;
    for (key, disposition) in close(&compiled.schedule, head.accounted_until, &fired_ahead, why, now) {
        record_slot(tx, &head, &key, &disposition, now)?;
    }
    Ok(())
}

/// Sets broken rows aside within this fact, so that what comes next no longer meets them.
fn put_away(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let broken = tx.take_broken();
    damage::set_aside(tx, &broken)
}

/// The open runs that count for the task's rules. Parked ones that hold nothing back may be many, and do not.
pub(crate) fn active(view: &View<'_>, head: &Head, while_parked: WhileParked) -> Result<Vec<ActiveRun>, StoreError> {
    let source = Source { table: "runs", key: 0 };
    let active = format!("SELECT id, state, holds, NULL, ord FROM runs WHERE task = ?1 AND {ACTIVE}");
    let parked = "SELECT r.id, r.state, r.holds,
            (SELECT i.id FROM items i WHERE i.run = r.ord AND i.asks = 1 AND i.state = 'pending' ORDER BY i.ord LIMIT 1),
            r.ord
        FROM runs r WHERE r.task = ?1 AND r.state = 'parked' AND r.holds = 1";
    let sql = match while_parked {
        WhileParked::Release => format!("{active} ORDER BY ord"),
        WhileParked::Hold | WhileParked::Supersede => format!("{active} UNION ALL {parked} ORDER BY ord"),
    };
    view.rows(source, &sql, [head.id.0], active_of)
}

fn active_of(record: &Record<'_>) -> Result<ActiveRun, Broken> {
    let item: Option<ItemId> = record.maybe_parsed(3)?;
    let state = match (record.text(1)?.as_str(), item) {
        ("queued", _) => ActiveState::Queued,
        ("running" | "interrupted" | "idle", _) => ActiveState::Running,
        ("parked", Some(item)) => ActiveState::Parked { item, holds: record.flag(2)? },
        (state, _) => return Err(record.broken(1, &format!("`{state}` with no item to wait for"))),
    };
    Ok(ActiveRun { run: record.parsed(0)?, state })
}

/// Instants past the mark that have fired: the clock was set back since.
fn fired_ahead(view: &View<'_>, head: &Head) -> Result<Vec<Timestamp>, StoreError> {
    let source = Source { table: "slots", key: 0 };
    view.rows(
        source,
        "SELECT id, starts FROM slots WHERE task = ?1 AND kind = 0 AND starts > ?2 AND fired = 1 ORDER BY starts",
        params![head.id.0, micros(head.accounted_until)],
        |record| record.time(1),
    )
}

/// The kill switch opens: what fell due behind it is recorded as skipped, and what waits is looked at.
pub(crate) fn account_for_pause(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    // Whatever was looked at behind the switch is due since then.
    let due: Vec<i64> = tx.column("SELECT id FROM tasks WHERE wake_at <= ?1", [micros(now)])?;
    for task in due {
        match tasks::head(tx, TaskId(task))? {
            Some(head) => advance(tx, &head, Look::AsItStands, now).map(|_| ())?,
            None => put_away(tx)?,
        }
    }
    Ok(())
}

/// The clock was set back: what did not fire past `now` is voided, marks return, what fired stays.
pub(crate) fn clock_changed(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    tx.memory.latest = now;
    let awake_since = tx.memory.awake_since.map(|since| since.min(now));
    tx.memory.awake_since = awake_since;
    let scheduled: Vec<i64> = tx.column(
        "SELECT id FROM tasks WHERE state <> 'deleted' AND (accounted_until > ?1 OR wake_at IS NOT NULL)",
        [micros(now)],
    )?;
    // A new zone database speaks by recompiling.
    tx.memory.forget();
    for task in scheduled {
        let Some(head) = tasks::head(tx, TaskId(task))? else {
            put_away(tx)?;
            continue;
        };
        if head.accounted_until > now {
            let mark = set_back(tx, &head, now)?;
            tx.change("UPDATE tasks SET accounted_until = ?2 WHERE id = ?1", params![task, micros(mark)])?;
        }
        if head.state == TaskState::Active {
            tasks::look_again(tx, head.id, now)?;
        }
    }
    Ok(())
}

/// Takes back the records past `now` of slots that did not fire: each will get its record again. Returns the new mark.
///
/// A slot that a catch-up run stood for has had its run, so the mark never falls behind the last of these.
fn set_back(tx: &mut Tx<'_>, head: &Head, now: Timestamp) -> Result<Timestamp, StoreError> {
    let Some(compiled) = tasks::compiled(tx, head, head.revision)? else {
        put_away(tx)?;
        return Ok(head.accounted_until);
    };
    let past = slots::past(tx, head.id, now)?;
    let stood_for = past
        .iter()
        .filter(|(_, record)| matches!(record.disposition, Disposition::Missed { folded_into: Some(_), .. }));
    let mark = stood_for.map(|(_, record)| slots::end_of(&record.key, now)).fold(now, Timestamp::max);
    for (id, record) in past {
        let why = format!("the clock was set back to {now}; before: {}", slots::in_words(&record.disposition));
        match rewind(&compiled.schedule, &record.key, &record.disposition, mark) {
            Rewind::Keep => {}
            Rewind::Void => slots::void(tx, id, &why)?,
            Rewind::Split { keep, void } => {
                slots::shorten(tx, id, &keep)?;
                slots::voided_note(tx, head, &void, &why, now)?;
            }
        }
    }
    Ok(mark)
}
