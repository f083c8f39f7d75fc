use jiff::{SignedDuration, Timestamp};
use ow_model::{
    Answer, AnswerBy, Item, ItemId, ItemKind, ItemState, Resolution, Rule, RuleId, RuleScope, RuleTarget, TaskName,
};
use rusqlite::params;
use serde_json::json;

use super::items::{self, ItemRow, Then, due, item_row, kind_word, settle, tell_item};
use super::rules;
use super::view::micros;
use super::writer::Tx;
use crate::{ResolveError, Resolved, StoreError, Tended};

/// Items reminded of and expired in one transaction.
const TENDED: usize = 256;

/// An answer, with who gave it.
pub(crate) struct Given {
    pub(crate) answer: Answer,
    pub(crate) by: AnswerBy,
}

/// Resolves an item once. The inner error is an answer that did not count although something was written:
/// an item past its time expires by it.
pub(crate) fn resolve(
    tx: &mut Tx<'_>,
    id: ItemId,
    given: &Given,
    now: Timestamp,
) -> Result<Result<Resolved, ResolveError>, ResolveError> {
    let row = item_row(tx, id)?.ok_or(ResolveError::Unknown { id })?;
    match &row.item.state {
        ItemState::Pending => {}
        ItemState::Resolved(Resolution { answer, by, at }) => {
            return Err(ResolveError::Already { id, decision: answer.word(), by: by.clone(), at: *at });
        }
        ItemState::Expired { at } => return Err(ResolveError::Expired { id, at: *at }),
        ItemState::Withdrawn { at, why } => {
            return Err(ResolveError::Withdrawn { id, at: *at, why: why.clone() });
        }
    }
    if let Some(at) = row.item.expires_at.filter(|at| *at <= now) {
        settle(tx, &row, &ItemState::Expired { at }, Then::GoOn, now)?;
        return Ok(Err(ResolveError::Expired { id, at }));
    }
    let answer = fit(&row.item, &given.answer)?;
    if answer == Answer::ForTask {
        let (task, target) = offer(&row.item)?;
        rules::remember(tx, &rule(task, target, &given.by, now), now)?;
    }
    let resolution = Resolution { answer, by: given.by.clone(), at: now };
    let state = ItemState::Resolved(resolution.clone());
    settle(tx, &row, &state, Then::GoOn, now)?;
    let item = Item { state, remind_at: None, ..row.item };
    Ok(Ok(Resolved { item, resolution }))
}

/// The answer as this kind of item takes it.
fn fit(item: &Item, answer: &Answer) -> Result<Answer, ResolveError> {
    let fits = match (&item.kind, answer) {
        (ItemKind::Notification { .. }, _) => return Ok(Answer::Acknowledge),
        (ItemKind::Approval { .. }, Answer::Edited { args }) => args.is_object(),
        (
            ItemKind::Approval { .. },
            Answer::Once | Answer::ForTask | Answer::AlwaysTool | Answer::AlwaysCommand | Answer::Deny { .. },
        )
        | (
            ItemKind::Plan { .. } | ItemKind::Directory { .. } | ItemKind::Budget { .. },
            Answer::Once | Answer::Deny { .. },
        )
        // A question may be refused: the agent then goes on without an answer.
        | (ItemKind::Question { .. }, Answer::Deny { .. }) => true,
        (ItemKind::Question { .. }, Answer::Text { text }) => !text.trim().is_empty(),
        (ItemKind::Approval { .. }, Answer::Text { .. } | Answer::Acknowledge)
        | (
            ItemKind::Question { .. },
            Answer::Once
            | Answer::ForTask
            | Answer::AlwaysTool
            | Answer::AlwaysCommand
            | Answer::Edited { .. }
            | Answer::Acknowledge,
        )
        | (
            ItemKind::Plan { .. } | ItemKind::Directory { .. } | ItemKind::Budget { .. },
            Answer::ForTask
            | Answer::AlwaysTool
            | Answer::AlwaysCommand
            | Answer::Edited { .. }
            | Answer::Text { .. }
            | Answer::Acknowledge,
        ) => false,
    };
    if fits {
        return Ok(answer.clone());
    }
    Err(ResolveError::Misfit { id: item.id, kind: kind_word(&item.kind), answer: answer_word(answer) })
}

fn answer_word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Once => "allow once",
        Answer::ForTask => "allow for this task",
        Answer::AlwaysTool => "allow this tool",
        Answer::AlwaysCommand => "allow this command",
        Answer::Deny { .. } => "deny",
        Answer::Edited { .. } => "edit",
        Answer::Text { .. } => "text",
        Answer::Acknowledge => "acknowledge",
    }
}

fn offer(item: &Item) -> Result<(&TaskName, &RuleTarget), ResolveError> {
    let none = |why: &str| ResolveError::NoRule { id: item.id, why: why.into() };
    let ItemKind::Approval { rule_offer, .. } = &item.kind else { return Err(none("it is no approval")) };
    let target = rule_offer.as_ref().ok_or_else(|| none("no rule may cover this call; allow it once"))?;
    let task = item.task.as_ref().ok_or_else(|| none("it belongs to no task; allow it once"))?;
    Ok((task, target))
}

/// The rule that "for this task" stores. Holes that the person saw named may be filled from outside.
fn rule(task: &TaskName, target: &RuleTarget, by: &AnswerBy, now: Timestamp) -> Rule {
    Rule {
        id: RuleId::random(),
        scope: RuleScope::Task(task.clone()),
        target: target.clone(),
        covers_outside: matches!(target, RuleTarget::Step { holes, .. } if !holes.is_empty()),
        created_at: now,
        created_by: by.person.0.clone(),
        expires_at: None,
        uses_left: None,
        used: 0,
    }
}

pub(crate) fn tend_items(tx: &mut Tx<'_>, now: Timestamp) -> Result<Tended, StoreError> {
    let mut tended = Tended::default();
    for row in due(tx, "expires_at", now, TENDED)? {
        let at = row.item.expires_at.unwrap_or(now);
        settle(tx, &row, &ItemState::Expired { at }, Then::GoOn, now)?;
        tended.expired.push(row.item.id);
    }
    for row in due(tx, "remind_at", now, TENDED)? {
        remind(tx, &row, now)?;
        tended.reminded.push(row.item.id);
    }
    Ok(tended)
}

/// The next reminder comes after twice the time, counted from this one: what was slept through is one reminder.
fn remind(tx: &mut Tx<'_>, row: &ItemRow, now: Timestamp) -> Result<(), StoreError> {
    let ItemRow { item, remind_after, .. } = row;
    let doubled = remind_after.unwrap_or(0).saturating_mul(2);
    let next = now.saturating_add(SignedDuration::from_millis(doubled)).unwrap_or(Timestamp::MAX);
    let next = (doubled > 0).then_some(micros(next));
    tx.change(
        "UPDATE items SET reminded = reminded + 1, remind_at = ?2, remind_after = ?3 WHERE ord = ?1",
        params![item.order, next, doubled],
    )?;
    let payload = json!({
        "task": item.task, "run": item.run, "title": item.title, "kind": items::kind_word(&item.kind),
        "reminded": item.reminded + 1,
    });
    tell_item(tx, "item.reminded", item.id, &payload, now)
}
