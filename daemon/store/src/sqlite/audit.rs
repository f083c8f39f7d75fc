//! Who decided what about which call and what came of it, written with the facts that it is drawn from.
//!
//! Each entry's hash covers the entry and the hash before it, and the newest one is also kept in `meta`: a changed, a
//! removed and a moved entry all show. Who can write to the whole file can of course write a whole new chain; only a
//! hash that was noted elsewhere tells of that.

use jiff::Timestamp;
use ow_model::{Answered, AuditEffect, AuditEntry, Audited, BlobHash, Call, Decided, Fact, Position, Reconciled};
use rusqlite::{params, params_from_iter, types::Value};
use serde::Serialize;

use super::journal;
use super::life::set_meta;
use super::memory::NamedCall;
use super::runs::{RunRow, cursor};
use super::tasks::signed_limit;
use super::view::{Record, Source, View, json, micros};
use super::writer::Tx;
use crate::{AuditCheck, AuditFault, AuditFilter, Page, PageRequest, StoreError};

/// `<seq> <hash>` of the newest entry.
const HEAD: &str = "audit_head";
const AUDIT: Source = Source { table: "audit", key: 0 };
/// Entries looked at with one statement.
const CHECKED: i64 = 1000;
/// Calls whose names are kept at hand.
const REMEMBERED: usize = 512;

/// What an entry's hash covers, besides the hash before it.
#[derive(Serialize)]
struct Canonical<'a> {
    seq: u64,
    at: i64,
    audited: &'a Audited,
}

/// Writes what these facts of a run decide and effect: one entry for each call that they speak of.
pub(crate) fn note(tx: &mut Tx<'_>, row: &RunRow, facts: &[Fact], now: Timestamp) -> Result<(), StoreError> {
    let mut told: Vec<Told> = vec![];
    for fact in facts {
        tell(&mut told, fact);
    }
    for told in told.iter().filter(|told| !told.speaks && told.audited.tool.is_some()) {
        if let Some(position) = told.position {
            remember(tx, row, position, &told.audited);
        }
    }
    told.retain(|told| told.speaks);
    if told.is_empty() {
        return Ok(());
    }
    let arguments = tx.memory.shared.arguments();
    let run = row.run.id;
    let mut audited = Vec::with_capacity(told.len());
    for Told { position, audited: mut said, args, .. } in told {
        if let Some(position) = position {
            let (tool, call) = match &said.tool {
                Some(tool) => (Some(tool.clone()), said.call),
                None => known(tx, row, position)?,
            };
            said.tool = tool;
            said.call = said.call.or(call);
            remember(tx, row, position, &said);
        }
        said.arguments = arguments.as_ref().and_then(|show| args.map(|args| show(&args)));
        audited.push(Audited { task: Some(row.run.task_name.clone()), run: Some(run), position, ..said });
    }
    append(tx, audited, now)
}

/// What a list of facts tells of one call.
#[derive(Default)]
struct Told {
    position: Option<Position>,
    audited: Audited,
    args: Option<serde_json::Value>,
    /// Something was decided or took effect.
    speaks: bool,
}

fn of_call(told: &mut Vec<Told>, position: Option<Position>) -> &mut Told {
    let index = told.iter().position(|told| told.position == position).unwrap_or_else(|| {
        told.push(Told { position, ..Told::default() });
        told.len() - 1
    });
    &mut told[index]
}

fn tell(told: &mut Vec<Told>, fact: &Fact) {
    let mut decide = |position: Position, decided: Decided| {
        let told = of_call(told, Some(position));
        told.audited.decided.push(decided);
        told.speaks = true;
    };
    // What a sub-agent does is decided and done in its session, at positions of its own.
    match fact.bare() {
        Fact::Rendered { call, .. } => name(told, call),
        Fact::Edited { position, call } => {
            decide(*position, Decided::Edit);
            name(told, call);
        }
        Fact::Named { position, tool, hash } => {
            let told = of_call(told, Some(*position));
            told.audited.tool = Some(tool.clone());
            told.audited.call = Some(*hash);
        }
        Fact::Allowed { position, rule, by_rule } | Fact::Admitted { position, rule, by_rule, .. } => {
            decide(*position, Decided::Allow { rule: rule.clone(), by_rule: *by_rule });
        }
        Fact::Refused { position, rule } => decide(*position, Decided::Refuse { rule: rule.clone() }),
        Fact::Parked { position, item } => decide(*position, Decided::Ask { item: *item }),
        Fact::Answered { position, item, answered } => {
            let item = *item;
            let decided = match answered {
                Answered::Resolved(resolution) => {
                    let (answer, by) = (resolution.answer.kind_word().to_owned(), resolution.by.clone());
                    Decided::Answer { item, answer, by }
                }
                Answered::Expired => Decided::Expire { item },
                Answered::Withdrawn { .. } => Decided::Withdraw { item },
            };
            decide(*position, decided);
        }
        Fact::Voided { position, item, .. } => decide(*position, Decided::Void { item: *item }),
        Fact::Hooked { position, report } => {
            let told = of_call(told, *position);
            told.audited.hooks.push(report.clone());
            told.speaks = true;
        }
        Fact::Intended { position, hash, .. } => {
            of_call(told, Some(*position)).audited.call = Some(*hash);
            effect(told, *position, AuditEffect::Begun);
        }
        Fact::Done { position, result, took_ms } => {
            let how =
                result.error.as_ref().map_or(AuditEffect::Done, |error| AuditEffect::Failed { error: error.kind });
            effect(told, *position, how).audited.took_ms = Some(*took_ms);
        }
        Fact::Stopped { position } => {
            effect(told, *position, AuditEffect::Stopped);
        }
        Fact::Reconciled { position, found } => {
            let how = match found {
                Reconciled::Happened { .. } => AuditEffect::Happened,
                Reconciled::DidNotHappen => AuditEffect::DidNotHappen,
                Reconciled::Unknown { .. } => AuditEffect::Unknown,
            };
            effect(told, *position, how);
        }
        // What a session says and hears is its journal's matter.
        _ => {}
    }
}

fn name(told: &mut Vec<Told>, call: &Call) {
    let told = of_call(told, Some(call.position));
    told.audited.tool = Some(call.tool.to_string());
    told.audited.call = Some(call.hash());
    told.args = Some(call.args.clone());
}

fn effect(told: &mut Vec<Told>, position: Position, how: AuditEffect) -> &mut Told {
    let told = of_call(told, Some(position));
    told.audited.effect = Some(how);
    told.speaks = true;
    told
}

/// Tool and hash of a call, as an earlier entry or the journal has them.
fn known(tx: &Tx<'_>, row: &RunRow, position: Position) -> Result<NamedCall, StoreError> {
    if let Some(named) = tx.memory.audit.calls.get(&(row.run.order, position.0)) {
        return Ok(named.clone());
    }
    let sql = "SELECT entry FROM audit WHERE run = ?1 AND position = ?2 ORDER BY seq DESC LIMIT 1";
    let earlier: Option<String> = tx.value(sql, params![row.run.id.to_string(), position.0])?;
    if let Some(Audited { tool: Some(tool), call, .. }) = earlier.as_deref().and_then(audited_of) {
        return Ok((Some(tool), call));
    }
    let mut found = (None, None);
    for recorded in journal::facts(tx, row.run.order)? {
        match recorded.fact.bare() {
            Fact::Rendered { call, .. } | Fact::Edited { call, .. } if call.position == position => {
                found = (Some(call.tool.to_string()), Some(call.hash()));
            }
            Fact::Named { position: at, tool, hash } if *at == position => found = (Some(tool.clone()), Some(*hash)),
            _ => {}
        }
    }
    Ok(found)
}

/// A call's entries mostly follow one another; what is forgotten is looked up.
fn remember(tx: &mut Tx<'_>, row: &RunRow, position: Position, said: &Audited) {
    let calls = &mut tx.memory.audit.calls;
    if calls.len() >= REMEMBERED {
        calls.clear();
    }
    calls.insert((row.run.order, position.0), (said.tool.clone(), said.call));
}

fn audited_of(entry: &str) -> Option<Audited> {
    #[derive(serde::Deserialize)]
    struct Read {
        audited: Audited,
    }
    serde_json::from_str::<Read>(entry).ok().map(|read| read.audited)
}

/// Adds entries at the end of the chain.
pub(crate) fn append(tx: &mut Tx<'_>, entries: Vec<Audited>, now: Timestamp) -> Result<(), StoreError> {
    let (mut seq, mut hash) = match tx.memory.audit.head.take() {
        Some(head) => head,
        None => head(tx)?,
    };
    for audited in entries {
        seq += 1;
        let entry = json(&Canonical { seq, at: micros(now), audited: &audited });
        hash = link(&hash, &entry);
        tx.group.bytes += entry.len() as u64;
        tx.change(
            "INSERT INTO audit (seq, task, run, position, entry, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                seq.cast_signed(),
                audited.task.as_ref().map(ow_model::TaskName::as_str),
                audited.run.map(|run| run.to_string()),
                audited.position.map(|position| position.0),
                entry,
                hash,
            ],
        )?;
    }
    set_meta(tx, HEAD, &format!("{seq} {hash}"))?;
    tx.memory.audit.head = Some((seq, hash));
    Ok(())
}

/// Position and hash of the newest entry; of an empty audit 0 and nothing.
fn head(view: &View<'_>) -> Result<(u64, String), StoreError> {
    let Some(head) = view.meta(HEAD)? else { return Ok((0, String::new())) };
    let read = head.split_once(' ').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash.to_owned())));
    read.ok_or_else(|| StoreError::Failed { what: "the audit's head in the store cannot be read".into() })
}

fn link(before: &str, entry: &str) -> String {
    BlobHash::of(format!("{before}\n{entry}").as_bytes()).to_string()
}

/// Newest first.
pub(crate) fn entries(
    view: &View<'_>,
    filter: &AuditFilter,
    page: &PageRequest,
) -> Result<Page<AuditEntry>, StoreError> {
    let AuditFilter { task, run } = filter;
    let mut sql = String::from("SELECT seq, entry, hash FROM audit WHERE 1");
    let mut values: Vec<Value> = vec![];
    if let Some(task) = task {
        sql.push_str(" AND task = ?");
        values.push(task.as_str().to_owned().into());
    }
    if let Some(run) = run {
        sql.push_str(" AND run = ?");
        values.push(run.to_string().into());
    }
    if let Some(after) = cursor(page)? {
        sql.push_str(" AND seq < ?");
        values.push(after.into());
    }
    sql.push_str(" ORDER BY seq DESC LIMIT ?");
    values.push(signed_limit(page.limit).into());
    let mut rows = view.rows(AUDIT, &sql, params_from_iter(values), entry_of)?;
    let next = (rows.len() > page.limit).then(|| rows[page.limit - 1].seq.to_string());
    rows.truncate(page.limit);
    Ok(Page { rows, next })
}

fn entry_of(record: &Record<'_>) -> Result<AuditEntry, super::view::Broken> {
    #[derive(serde::Deserialize)]
    struct Read {
        seq: u64,
        at: i64,
        audited: Audited,
    }
    let Read { seq, at, audited } = record.json(1)?;
    let at = Timestamp::from_microsecond(at).map_err(|_| record.broken(1, "not an instant"))?;
    Ok(AuditEntry { seq, at, audited, hash: record.parsed(2)? })
}

/// Walks the whole chain and says where it is broken first, if it is.
pub(crate) fn check(view: &View<'_>) -> Result<AuditCheck, StoreError> {
    type Row = (i64, String, String, Option<String>, Option<String>, Option<u32>);
    let (last, head) = head(view)?;
    let (mut count, mut hash) = (0_u64, String::new());
    let broken = |entries: u64, seq: u64, why: &str| {
        Ok(AuditCheck { entries, head: None, fault: Some(AuditFault { seq, why: why.into() }) })
    };
    loop {
        let rows: Vec<Row> = view.plain(
            "SELECT seq, entry, hash, task, run, position FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2",
            params![count.cast_signed(), CHECKED],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?)),
        )?;
        if rows.is_empty() {
            break;
        }
        for (seq, entry, found, task, run, position) in rows {
            let expected = count + 1;
            if seq.cast_unsigned() != expected {
                return broken(count, expected, "it is missing");
            }
            if link(&hash, &entry) != found {
                return broken(count, expected, "it is not what was written, or not in its place");
            }
            let Some(audited) = audited_of(&entry) else {
                return broken(count, expected, "it cannot be read");
            };
            let named = (audited.task.map(|task| task.to_string()), audited.run.map(|run| run.to_string()));
            if named != (task, run) || audited.position.map(|position| position.0) != position {
                return broken(count, expected, "it is filed under another call than it speaks of");
            }
            (count, hash) = (expected, found);
        }
    }
    match () {
        () if count < last => broken(count, count + 1, "it and all behind it are missing"),
        () if count > last => broken(last, last + 1, "it was added behind the end"),
        () if hash != head => broken(count, count, "the last entry is not the one that was written last"),
        () => Ok(AuditCheck { entries: count, head: Some(head).filter(|head| !head.is_empty()), fault: None }),
    }
}
