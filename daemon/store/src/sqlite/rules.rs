use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use ow_model::{Audited, Decided, Rule, RuleId, RuleScope, TaskName};
use rusqlite::params;

use super::audit;
use super::view::{Broken, Record, Source, View, json, maybe_micros, micros, signed};
use super::writer::Tx;
use crate::StoreError;

const RULES: Source = Source { table: "rules", key: 0 };
const ROW: &str = "SELECT id, rule, uses_left, used FROM rules";

/// The counters stand in columns of their own: they alone change.
fn rule_of(record: &Record<'_>) -> Result<Rule, Broken> {
    let uses_left = record.maybe_int(2)?.map(|left| u32::try_from(left).unwrap_or(0));
    Ok(Rule { uses_left, used: record.number(3)?, ..record.json(1)? })
}

/// Whether there is any rule at all, as far as it is known: mostly there is none, and then calls are judged without
/// a look into the store.
#[derive(Debug, Default)]
pub(crate) struct NoRules {
    /// How often rules were added.
    added: AtomicU64,
    /// One more than `added` was when there was none; 0: not known.
    none_at: AtomicU64,
}

impl NoRules {
    pub(crate) fn hold(&self) -> bool {
        // In this order: what is added in between is noticed.
        let none_at = self.none_at.load(Ordering::SeqCst);
        none_at == self.added.load(Ordering::SeqCst) + 1
    }

    /// After the commit, and before anyone is told of it.
    pub(crate) fn note_added(&self) {
        self.added.fetch_add(1, Ordering::SeqCst);
    }

    /// To be asked before a reading begins, for [`NoRules::note_none`] after it.
    pub(crate) fn version(&self) -> u64 {
        self.added.load(Ordering::SeqCst)
    }

    pub(crate) fn note_none(&self, version: u64) {
        self.none_at.store(version + 1, Ordering::SeqCst);
    }
}

pub(crate) fn add_rule(tx: &mut Tx<'_>, rule: &Rule) -> Result<(), StoreError> {
    let task = match &rule.scope {
        RuleScope::Task(name) => Some(name.as_str()),
        RuleScope::Everywhere => None,
    };
    tx.group.rule_added = true;
    tx.change(
        "INSERT INTO rules (id, task_name, rule, expires_at, uses_left, used) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (id) DO UPDATE SET task_name = ?2, rule = ?3, expires_at = ?4, uses_left = ?5, used = ?6",
        params![
            rule.id.to_string(),
            task,
            json(rule),
            maybe_micros(rule.expires_at),
            rule.uses_left,
            signed(rule.used)
        ],
    )?;
    Ok(())
}

pub(crate) fn note_added(tx: &mut Tx<'_>, rule: &Rule, now: Timestamp) -> Result<(), StoreError> {
    let task = match &rule.scope {
        RuleScope::Task(name) => Some(name.clone()),
        RuleScope::Everywhere => None,
    };
    let decided = vec![Decided::AddRule { rule: Box::new(rule.clone()) }];
    audit::append(tx, vec![Audited { task, decided, ..Audited::default() }], now)
}

/// Adds a rule unless one stands that permits the same, as long and as often.
pub(crate) fn remember(tx: &mut Tx<'_>, rule: &Rule, now: Timestamp) -> Result<(), StoreError> {
    let RuleScope::Task(name) = &rule.scope else { return add_rule(tx, rule) };
    let standing = tx.rows(RULES, &format!("{ROW} WHERE task_name = ?1"), [name.as_str()], rule_of)?;
    let same = |known: &Rule| {
        known.target == rule.target
            && known.covers_outside >= rule.covers_outside
            && known.expires_at.is_none()
            && known.uses_left.is_none()
    };
    if standing.iter().any(same) {
        return Ok(());
    }
    add_rule(tx, rule)?;
    note_added(tx, rule, now)
}

pub(crate) fn remove_rule(tx: &mut Tx<'_>, rule: RuleId) -> Result<bool, StoreError> {
    let removed = tx.change("DELETE FROM rules WHERE id = ?1", [rule.to_string()])? > 0;
    if removed {
        let (decided, now) = (vec![Decided::RemoveRule { rule }], tx.memory.latest);
        audit::append(tx, vec![Audited { decided, ..Audited::default() }], now)?;
    }
    Ok(removed)
}

pub(crate) fn rules(view: &View<'_>, task: Option<&TaskName>, now: Timestamp) -> Result<Vec<Rule>, StoreError> {
    match task {
        None => view.rows(RULES, &format!("{ROW} ORDER BY ord"), [], rule_of),
        Some(name) => view.rows(
            RULES,
            &format!(
                "{ROW} WHERE (task_name = ?1 OR task_name IS NULL) AND (expires_at IS NULL OR expires_at > ?2)
                 AND (uses_left IS NULL OR uses_left > 0) ORDER BY ord"
            ),
            params![name.as_str(), micros(now)],
            rule_of,
        ),
    }
}

/// Whether there is none, for whatever task.
pub(crate) fn are_none(view: &View<'_>) -> Result<bool, StoreError> {
    Ok(!view.exists("SELECT 1 FROM rules", [])?)
}

/// Counts a use. A rule that was removed, used up or expired meanwhile permits nothing: the caller judges again.
pub(crate) fn count_use(view: &View<'_>, rule: RuleId, now: Timestamp) -> Result<(), StoreError> {
    let used = view.change(
        "UPDATE rules SET used = used + 1, uses_left = uses_left - 1
         WHERE id = ?1 AND (uses_left IS NULL OR uses_left > 0) AND (expires_at IS NULL OR expires_at > ?2)",
        params![rule.to_string(), micros(now)],
    )?;
    if used == 0 {
        return Err(StoreError::Unknown { kind: "rule", id: rule.to_string() });
    }
    Ok(())
}
