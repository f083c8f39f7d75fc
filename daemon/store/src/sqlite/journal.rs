use jiff::Timestamp;
use ow_model::{EventType, Fact, RecordedFact, RuleId, RunId, SessionId};
use rusqlite::params;
use serde_json::json;

use super::audit;
use super::blobs;
use super::refusals;
use super::rules;
use super::runs::{RunRow, run_row, tell_run};
use super::sessions;
use super::view::{Source, View, json, micros};
use super::writer::Tx;
use crate::StoreError;

/// The key of a fact in a report of damage is its session: facts have no name of their own.
const JOURNAL: Source = Source { table: "journal", key: 0 };

/// The run of a session whose journal is `next` facts long and which has not ended.
pub(crate) fn fenced(view: &View<'_>, session: SessionId, next: u32) -> Result<RunRow, StoreError> {
    let row = run_row(view, session)?;
    let row = row.ok_or_else(|| StoreError::Unknown { kind: "session", id: session.to_string() })?;
    if row.next_seq != next || !row.run.state.is_open() {
        return Err(StoreError::Fenced { session, expected: next, found: row.next_seq });
    }
    Ok(row)
}

pub(crate) fn append(
    tx: &mut Tx<'_>,
    session: SessionId,
    next: u32,
    facts: &[Fact],
    used: Option<RuleId>,
    now: Timestamp,
) -> Result<u32, StoreError> {
    let row = fenced(tx, session, next)?;
    if let Some(rule) = used {
        rules::count_use(tx, rule, now)?;
    }
    write(tx, &row, facts, now)
}

/// Writes facts at the journal's end, wherever that is by now; returns the new length.
pub(crate) fn write(tx: &mut Tx<'_>, row: &RunRow, facts: &[Fact], now: Timestamp) -> Result<u32, StoreError> {
    let order = row.run.order;
    let count = u32::try_from(facts.len()).expect("a turn journals a few facts at a time");
    let length: Option<u32> =
        tx.value("UPDATE runs SET next_seq = next_seq + ?2 WHERE ord = ?1 RETURNING next_seq", params![order, count])?;
    let length = length.ok_or_else(|| StoreError::Unknown { kind: "session", id: row.run.id.to_string() })?;
    for (seq, fact) in (length - count..).zip(facts) {
        let text = json(fact);
        tx.group.bytes += text.len() as u64;
        tx.change(
            "INSERT INTO journal (run, seq, at, fact) VALUES (?1, ?2, ?3, ?4)",
            params![order, seq, micros(now), text],
        )?;
        if matches!(
            fact,
            Fact::Done { .. }
                | Fact::Intended { .. }
                | Fact::Reconciled { .. }
                | Fact::Input { .. }
                | Fact::Replied { .. }
                | Fact::Delegated { .. }
        ) {
            blobs::refer(tx, order, &text)?;
        }
        if let Fact::AddressRefused { address, .. } = fact.bare() {
            refusals::note(tx, row, address, now)?;
        }
        sessions::follow(tx, row, fact)?;
        if let Fact::Done { position, result, took_ms } = fact {
            let payload = json!({
                "task": row.run.task_name, "position": position, "took_ms": took_ms,
                "error": result.error.as_ref().map(|error| &error.message),
            });
            tell_run(tx, EventType::StepDone, row.run.id, &payload, now)?;
        }
    }
    tx.group.touch(row.run.id);
    audit::note(tx, row, facts, now)?;
    Ok(length)
}

/// The readable facts of a run, in order.
pub(crate) fn facts(view: &View<'_>, order: i64) -> Result<Vec<RecordedFact>, StoreError> {
    facts_from(view, order, 0)
}

fn facts_from(view: &View<'_>, order: i64, from: u32) -> Result<Vec<RecordedFact>, StoreError> {
    view.rows(
        JOURNAL,
        "SELECT run || ':' || seq, seq, at, fact FROM journal WHERE run = ?1 AND seq >= ?2 ORDER BY seq",
        params![order, from],
        |record| Ok(RecordedFact { seq: record.number(1)?, at: record.time(2)?, fact: record.json(3)? }),
    )
}

pub(crate) fn journal(view: &View<'_>, session: RunId, from: u32) -> Result<Vec<RecordedFact>, StoreError> {
    match view.value::<i64>("SELECT ord FROM runs WHERE id = ?1", [session.to_string()])? {
        Some(order) => facts_from(view, order, from),
        None => Ok(vec![]),
    }
}
