use jiff::{SignedDuration, Timestamp};
use ow_model::{
    Answer, AnswerBy, EventType, InboxName, Item, ItemId, ItemKind, ItemState, Occasion, Resolution, Rule, RuleId,
    RuleScope, RuleTarget, Span, TaskName,
};
use rusqlite::params;
use serde_json::json;

use super::items::{self, ItemRow, Then, due, item_row, kind_word, settle, tell_item};
use super::outbox::{self, Bundles, Telling};
use super::rules;
use super::view::{json, maybe_micros, micros};
use super::writer::Tx;
use crate::{ResolveError, Resolved, Routing, StoreError, Tended};

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
    let row = pending(tx, id)?;
    if let Some(at) = row.item.expires_at.filter(|at| *at <= now) {
        settle(tx, &row, &ItemState::Expired { at }, Then::GoOn, now)?;
        return Ok(Err(ResolveError::Expired { id, at }));
    }
    let answer = fit(&row.item, &given.answer)?;
    session_wide(&row.item, &answer)?;
    if let (ItemKind::Approval { call, .. }, Answer::Edited { args }) = (&row.item.kind, &answer)
        && let Some(why) = tx.memory.shared.misfit(&call.tool, args)
    {
        return Err(ResolveError::BadEdit { id, why });
    }
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

/// The item, if nobody has answered it yet.
fn pending(tx: &Tx<'_>, id: ItemId) -> Result<ItemRow, ResolveError> {
    let row = item_row(tx, id)?.ok_or(ResolveError::Unknown { id })?;
    match &row.item.state {
        ItemState::Pending => Ok(row),
        ItemState::Resolved(Resolution { answer, by, at }) => {
            Err(ResolveError::Already { id, decision: answer.word(), by: by.clone(), at: *at })
        }
        ItemState::Expired { at } => Err(ResolveError::Expired { id, at: *at }),
        ItemState::Withdrawn { at, why } => Err(ResolveError::Withdrawn { id, at: *at, why: why.clone() }),
    }
}

/// Puts an open item into another inbox too; where it is already, nothing changes.
pub(crate) fn delegate(
    tx: &mut Tx<'_>,
    id: ItemId,
    to: &InboxName,
    by: &AnswerBy,
    now: Timestamp,
) -> Result<Item, ResolveError> {
    let ItemRow { item, .. } = pending(tx, id)?;
    if let Some(at) = item.expires_at.filter(|at| *at <= now) {
        return Err(ResolveError::Expired { id, at });
    }
    if item.inboxes().any(|inbox| inbox == to) {
        return Ok(item);
    }
    let routing = outbox::routing(tx, to, now);
    // Where the new inbox says nothing of escalation, that of the one before goes on.
    match routing.as_ref().and_then(|routing| routing.escalation.as_ref()) {
        next @ Some(_) => come_to(tx, &item, to, next, outbox::told_at(routing.as_ref(), None, now))?,
        None => {
            tx.change("UPDATE items SET also = ?2 WHERE ord = ?1", params![item.order, json(&with(&item, to))])
                .map(drop)?;
        }
    }
    let payload = json!({
        "task": item.task, "run": item.run, "title": item.title, "inbox": to, "by": by.person,
    });
    tell_item(tx, EventType::ItemDelegated, id, &payload, now)?;
    if let Some(routing) = &routing {
        outbox::tell(tx, &Telling::of(id, Occasion::Delegated), routing, &mut Bundles::new(), now)?;
    }
    outbox::tell_handed_on(tx, &item, routing.as_ref(), now)?;
    let also = with(&item, to).into_iter().cloned().collect();
    Ok(Item { also, ..item })
}

/// The inboxes that an item has come to, this one too.
fn with<'i>(item: &'i Item, to: &'i InboxName) -> Vec<&'i InboxName> {
    item.also.iter().chain([to]).collect()
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

/// An "always" that would change nothing is no answer.
fn session_wide(item: &Item, answer: &Answer) -> Result<(), ResolveError> {
    let ItemKind::Approval { session_offer, .. } = &item.kind else { return Ok(()) };
    let (is_offered, what) = match answer {
        Answer::AlwaysTool => (session_offer.tool.is_some(), "an equal call of this tool"),
        Answer::AlwaysCommand => (session_offer.command.is_some(), "the same command"),
        _ => return Ok(()),
    };
    let none =
        || ResolveError::NoRule { id: item.id, why: format!("{what} would ask again all the same; allow it once") };
    if is_offered { Ok(()) } else { Err(none()) }
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
    for row in due(tx, "escalate_at", now, TENDED)? {
        escalate(tx, &row, now)?;
        tended.escalated.push(row.item.id);
    }
    for row in due(tx, "remind_at", now, TENDED)? {
        remind(tx, &row, now)?;
        tended.reminded.push(row.item.id);
    }
    Ok(tended)
}

/// The next reminder comes after twice the time, counted from when this one is told: what was slept through is one reminder.
fn remind(tx: &mut Tx<'_>, row: &ItemRow, now: Timestamp) -> Result<(), StoreError> {
    let ItemRow { item, remind_after, .. } = row;
    let doubled = remind_after.unwrap_or(0).saturating_mul(2);
    let routings: Vec<Routing> = item.inboxes().filter_map(|inbox| outbox::routing(tx, inbox, now)).collect();
    let told_at = routings.iter().map(|routing| outbox::told_at(Some(routing), None, now)).max().unwrap_or(now);
    let next = told_at.saturating_add(SignedDuration::from_millis(doubled)).unwrap_or(Timestamp::MAX);
    let next = (doubled > 0).then_some(micros(next));
    tx.change(
        "UPDATE items SET reminded = reminded + 1, remind_at = ?2, remind_after = ?3 WHERE ord = ?1",
        params![item.order, next, doubled],
    )?;
    let payload = json!({
        "task": item.task, "run": item.run, "title": item.title, "kind": items::kind_word(&item.kind),
        "reminded": item.reminded + 1,
    });
    tell_item(tx, EventType::ItemReminded, item.id, &payload, now)?;
    let telling = Telling { number: item.reminded + 1, ..Telling::of(item.id, Occasion::Reminded) };
    let mut bundles = Bundles::new();
    for routing in &routings {
        outbox::tell(tx, &telling, routing, &mut bundles, now)?;
    }
    Ok(())
}

/// Nobody answered in time: it comes to the next inbox too, and from there on to the one after it.
fn escalate(tx: &mut Tx<'_>, row: &ItemRow, now: Timestamp) -> Result<(), StoreError> {
    let ItemRow { item, escalate_to, .. } = row;
    let Some(to) = escalate_to.as_ref().filter(|to| !item.inboxes().any(|inbox| inbox == *to)) else {
        tx.change("UPDATE items SET escalate_at = NULL WHERE ord = ?1", [item.order])?;
        return Ok(());
    };
    let routing = outbox::routing(tx, to, now);
    let told_at = outbox::told_at(routing.as_ref(), None, now);
    come_to(tx, item, to, routing.as_ref().and_then(|routing| routing.escalation.as_ref()), told_at)?;
    let payload = json!({ "task": item.task, "run": item.run, "title": item.title, "inbox": to });
    tell_item(tx, EventType::ItemEscalated, item.id, &payload, now)?;
    let Some(routing) = routing else { return Ok(()) };
    outbox::tell(tx, &Telling::of(item.id, Occasion::Escalated), &routing, &mut Bundles::new(), now)
}

/// Puts an item into another inbox too, from where it is escalated next.
fn come_to(
    tx: &Tx<'_>,
    item: &Item,
    to: &InboxName,
    next: Option<&(Span, InboxName)>,
    told_at: Timestamp,
) -> Result<(), StoreError> {
    let at = next.map(|(after, _)| told_at.saturating_add(after.signed()).unwrap_or(Timestamp::MAX));
    tx.change(
        "UPDATE items SET also = ?2, escalate_at = ?3, escalate_to = ?4 WHERE ord = ?1",
        params![item.order, json(&with(item, to)), maybe_micros(at), next.map(|(_, inbox)| inbox.as_str())],
    )?;
    Ok(())
}
