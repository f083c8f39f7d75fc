use jiff::Timestamp;
use ow_model::{
    Answer, Answered, BlobHash, EventType, Fact, InboxBinding, InboxName, Item, ItemId, ItemKind, ItemState, Occasion,
    Position, Resolution, RunState, Span,
};
use rusqlite::{params, params_from_iter, types::Value};
use serde_json::json;

use super::journal;
use super::outbox::{self, Bundles, Telling};
use super::runs::{RunRow, cursor, queue_again, run_at, run_row, tell_run};
use super::sessions;
use super::stream::tell;
use super::tasks::signed_limit;
use super::view::{Broken, Record, Source, View, json, maybe_micros, micros, signed};
use super::writer::Tx;
use crate::{ItemFilter, NewItem, Page, PageRequest, ParkRequest, StoreError};

pub(crate) const ITEMS: Source = Source { table: "items", key: 1 };

/// An item as stored, with what only the store needs.
#[derive(Clone, Debug)]
pub(crate) struct ItemRow {
    pub(crate) item: Item,
    /// The run's number, if a call of it waits.
    pub(crate) asked_by: Option<i64>,
    pub(crate) remind_after: Option<i64>,
    /// Where it comes to when its time of escalation has come.
    pub(crate) escalate_to: Option<InboxName>,
}

const ROW: &str = "SELECT ord, id, task_name, run_id, title, kind, created_at, expires_at, remind_at, reminded,
    state_json, holds_back, run, asks, remind_after, inbox, also, escalate_to FROM items";

fn row_of(record: &Record<'_>) -> Result<ItemRow, Broken> {
    let item = Item {
        id: record.parsed(1)?,
        order: record.int(0)?,
        task: record.maybe_parsed(2)?,
        run: record.maybe_parsed(3)?,
        title: record.text(4)?,
        kind: record.json(5)?,
        created_at: record.time(6)?,
        expires_at: record.maybe_time(7)?,
        remind_at: record.maybe_time(8)?,
        reminded: record.number(9)?,
        state: record.json(10)?,
        holds_back: record.number(11)?,
        inbox: record.parsed(15)?,
        also: record.json(16)?,
    };
    let asks = record.flag(13)?;
    Ok(ItemRow {
        item,
        asked_by: record.maybe_int(12)?.filter(|_| asks),
        remind_after: record.maybe_int(14)?,
        escalate_to: record.maybe_parsed(17)?,
    })
}

pub(crate) fn item_row(view: &View<'_>, item: ItemId) -> Result<Option<ItemRow>, StoreError> {
    view.row(ITEMS, &format!("{ROW} WHERE id = ?1 AND state <> 'damaged'"), [item.to_string()], row_of)
}

/// Pending items whose instant in `column` has come, at most `limit`.
pub(crate) fn due(view: &View<'_>, column: &str, now: Timestamp, limit: usize) -> Result<Vec<ItemRow>, StoreError> {
    let sql = format!("{ROW} WHERE state = 'pending' AND {column} <= ?1 ORDER BY {column}, ord LIMIT ?2");
    view.rows(ITEMS, &sql, params![micros(now), limit.cast_signed()], row_of)
}

pub(crate) fn items(view: &View<'_>, filter: &ItemFilter, page: &PageRequest) -> Result<Page<Item>, StoreError> {
    let ItemFilter { pending_only, task, run } = filter;
    let state = if *pending_only { "state = 'pending'" } else { "state <> 'damaged'" };
    let mut sql = format!("{ROW} WHERE {state}");
    let mut values: Vec<Value> = vec![];
    if let Some(name) = task {
        sql.push_str(" AND task_name = ?");
        values.push(name.as_str().to_owned().into());
    }
    if let Some(run) = run {
        sql.push_str(" AND run = (SELECT ord FROM runs WHERE id = ?)");
        values.push(run.to_string().into());
    }
    if let Some(after) = cursor(page)? {
        sql.push_str(" AND ord < ?");
        values.push(after.into());
    }
    sql.push_str(" ORDER BY ord DESC LIMIT ?");
    values.push(signed_limit(page.limit).into());
    let (mut seen, mut last) = (0_usize, None);
    let rows = view.rows(ITEMS, &sql, params_from_iter(values), |record| {
        seen += 1;
        if seen <= page.limit {
            last = record.int(0).ok();
        }
        row_of(record).map(|row| (seen <= page.limit).then_some(row.item))
    })?;
    let next = if seen > page.limit { last.map(|order| order.to_string()) } else { None };
    Ok(Page { rows: rows.into_iter().flatten().collect(), next })
}

pub(crate) fn park(tx: &mut Tx<'_>, request: &ParkRequest, now: Timestamp) -> Result<Vec<ItemId>, StoreError> {
    let row = journal::fenced(tx, request.run, request.next)?;
    if request.items.is_empty() {
        return Err(StoreError::Failed { what: format!("run {} would wait for nothing", request.run) });
    }
    let mut facts = request.facts.clone();
    let mut ids = vec![];
    let mut bundles = Bundles::new();
    for (position, new) in &request.items {
        let (order, id) = match pending_like(tx, &row, new)? {
            Some(found) => found,
            None => insert(tx, new, Some((&row, Asks::Call)), &Keys::default(), &mut bundles, now)?,
        };
        tx.change("INSERT OR IGNORE INTO item_calls (item, position) VALUES (?1, ?2)", params![order, position.0])?;
        facts.push(Fact::Parked { position: *position, item: id });
        ids.push(id);
    }
    journal::write(tx, &row, &facts, now)?;
    // Asked again after a restart or a partial answer, a question is the same kind of question.
    let holds = request.items.iter().any(|(_, item)| item.kind.holds_slot());
    tx.change(
        "UPDATE runs SET state = 'parked', holds = ?2, answered = 0, ran_for_ms = ?3 WHERE ord = ?1",
        params![row.run.order, holds, signed(request.ran_for_ms)],
    )?;
    if row.chat {
        sessions::note_active(tx, row.run.order, now)?;
    }
    tell_run(tx, EventType::RunParked, row.run.id, &json!({ "task": row.run.task_name, "items": ids }), now)?;
    Ok(ids)
}

/// A pending item of the same run that asks the same.
fn pending_like(view: &View<'_>, row: &RunRow, new: &NewItem) -> Result<Option<(i64, ItemId)>, StoreError> {
    view.row(
        ITEMS,
        "SELECT ord, id FROM items WHERE run = ?1 AND asks = 1 AND state = 'pending' AND digest = ?2",
        params![row.run.order, digest(&new.kind)],
        |record| Ok((record.int(0)?, record.parsed(1)?)),
    )
}

/// Whether a call of the run waits for the item, or the item only tells of the run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asks {
    Call,
    Nothing,
}

/// The names under which a notification is found again, and the binding that it is not told by.
#[derive(Default)]
struct Keys<'a> {
    notice: Option<&'a str>,
    fold: Option<&'a str>,
    except: Option<&'a InboxBinding>,
}

fn insert(
    tx: &mut Tx<'_>,
    new: &NewItem,
    run: Option<(&RunRow, Asks)>,
    keys: &Keys<'_>,
    bundles: &mut Bundles,
    now: Timestamp,
) -> Result<(i64, ItemId), StoreError> {
    let id = ItemId::random();
    let routing = outbox::routing(tx, &new.inbox, now);
    let is_asked = !matches!(new.kind, ItemKind::Notification { .. });
    let escalation = routing.as_ref().and_then(|routing| routing.escalation.as_ref()).filter(|_| is_asked);
    let asks = run.is_some_and(|(_, asks)| asks == Asks::Call);
    let in_chat = run.is_some_and(|(row, _)| row.chat);
    let not_before = in_chat.then(|| outbox::chat_grace(now));
    let told_at = outbox::told_at(routing.as_ref(), not_before, now);
    let after = |span: Span| told_at.saturating_add(span.signed()).unwrap_or(Timestamp::MAX);
    let order = tx.insert(
        "INSERT INTO items (id, task_name, run, run_id, asks, title, kind, digest, created_at, expires_at, remind_at,
             remind_after, state, state_json, notice_key, fold_key, inbox, escalate_at, escalate_to)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'pending', ?13, ?14, ?15, ?16, ?17, ?18)",
        params![
            id.to_string(),
            new.task.as_ref().map(ow_model::TaskName::as_str),
            run.map(|(row, _)| row.run.order),
            new.run.map(|run| run.to_string()),
            asks,
            new.title,
            json(&new.kind),
            digest(&new.kind),
            micros(now),
            maybe_micros(new.expires_in.map(|span| now.saturating_add(span.signed()).unwrap_or(Timestamp::MAX))),
            maybe_micros(new.remind_after.map(after)),
            new.remind_after.map(|span| signed(span.millis())),
            json(&ItemState::Pending),
            keys.notice,
            keys.fold,
            new.inbox.as_str(),
            maybe_micros(escalation.map(|(span, _)| after(*span))),
            escalation.map(|(_, to)| to.as_str()),
        ],
    )?;
    let payload = json!({ "task": new.task, "run": new.run, "title": new.title, "kind": kind_word(&new.kind) });
    tell_item(tx, EventType::ItemCreated, id, &payload, now)?;
    if let Some(routing) = routing {
        let telling = Telling { not_before, except: keys.except, ..Telling::of(id, Occasion::Asked) };
        outbox::tell(tx, &telling, &routing, bundles, now)?;
    }
    Ok((order, id))
}

pub(crate) fn notify(tx: &mut Tx<'_>, new: &NewItem, key: &str, now: Timestamp) -> Result<ItemId, StoreError> {
    let known = tx.row(ITEMS, "SELECT ord, id FROM items WHERE notice_key = ?1", [key], |record| record.parsed(1))?;
    if let Some(id) = known {
        return Ok(id);
    }
    let row = new.run.map(|run| run_row(tx, run)).transpose()?.flatten();
    let run = row.as_ref().map(|row| (row, Asks::Nothing));
    let keys = Keys { notice: Some(key), ..Keys::default() };
    insert(tx, new, run, &keys, &mut Bundles::new(), now).map(|(_, id)| id)
}

/// Stores a notification, or counts it in a pending one that says the same.
pub(crate) fn fold(tx: &mut Tx<'_>, new: &NewItem, key: &str, now: Timestamp) -> Result<(), StoreError> {
    fold_except(tx, new, key, None, now)
}

/// The same, told by every binding but this one.
pub(crate) fn fold_except(
    tx: &mut Tx<'_>,
    new: &NewItem,
    key: &str,
    except: Option<&InboxBinding>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let row = new.run.map(|run| run_row(tx, run)).transpose()?.flatten();
    let known: Option<(i64, ItemId, u32)> =
        tx.row(ITEMS, "SELECT ord, id, count FROM items WHERE fold_key = ?1 AND state = 'pending'", [key], |record| {
            Ok((record.int(0)?, record.parsed(1)?, record.number(2)?))
        })?;
    let Some((order, id, count)) = known else {
        let run = row.as_ref().map(|row| (row, Asks::Nothing));
        let keys = Keys { notice: None, fold: Some(key), except };
        insert(tx, new, run, &keys, &mut Bundles::new(), now)?;
        return Ok(());
    };
    let times = count + 1;
    let kind = match &new.kind {
        ItemKind::Notification { text } => {
            // What a run had made stands below what befell it.
            let (head, rest) = text.split_at(text.find('\n').unwrap_or(text.len()));
            ItemKind::Notification { text: format!("{head} ({times} times, the last at {now}){rest}") }
        }
        asking @ (ItemKind::Approval { .. }
        | ItemKind::Question { .. }
        | ItemKind::Plan { .. }
        | ItemKind::Directory { .. }
        | ItemKind::Budget { .. }) => asking.clone(),
    };
    tx.change(
        "UPDATE items SET count = ?2, kind = ?3, run = ?4, run_id = ?5 WHERE ord = ?1",
        params![order, times, json(&kind), row.as_ref().map(|row| row.run.order), new.run.map(|run| run.to_string())],
    )?;
    tell_item(tx, EventType::ItemCreated, id, &json!({ "task": new.task, "run": new.run, "count": times }), now)
}

/// What a settled item does to the run that asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Then {
    /// It goes on, once nothing that it asked is left open.
    GoOn,
    /// Its end is being written.
    End,
}

/// Settles a pending item: its state, the answer's facts, and the run that goes on are one.
pub(crate) fn settle(
    tx: &mut Tx<'_>,
    row: &ItemRow,
    state: &ItemState,
    then: Then,
    now: Timestamp,
) -> Result<(), StoreError> {
    let ItemRow { item, asked_by, remind_after: _, escalate_to: _ } = row;
    let (word, kind, answered) = match state {
        ItemState::Pending => return Ok(()),
        ItemState::Resolved(resolution) => {
            ("resolved", EventType::ItemResolved, Answered::Resolved(resolution.clone()))
        }
        ItemState::Expired { .. } => ("expired", EventType::ItemExpired, Answered::Expired),
        ItemState::Withdrawn { why, .. } => {
            ("withdrawn", EventType::ItemWithdrawn, Answered::Withdrawn { why: why.clone() })
        }
    };
    tx.change(
        "UPDATE items SET state = ?2, state_json = ?3, settled_at = ?4, remind_at = NULL, escalate_at = NULL
         WHERE ord = ?1",
        params![item.order, word, json(state), micros(now)],
    )?;
    let payload = json!({ "task": item.task, "run": item.run, "state": state.word() });
    tell_item(tx, kind, item.id, &payload, now)?;
    outbox::settle(tx, item, now)?;
    match asked_by {
        Some(run) => answer_calls(tx, item.order, item.id, *run, &answered, then, now),
        None => Ok(()),
    }
}

fn answer_calls(
    tx: &mut Tx<'_>,
    order: i64,
    item: ItemId,
    run: i64,
    answered: &Answered,
    then: Then,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(run) = run_at(tx, run)? else { return Ok(()) };
    let positions: Vec<u32> =
        tx.column("SELECT position FROM item_calls WHERE item = ?1 ORDER BY position", [order])?;
    let facts: Vec<Fact> = positions
        .into_iter()
        .map(|position| Fact::Answered { position: Position(position), item, answered: answered.clone() })
        .collect();
    journal::write(tx, &run, &facts, now)?;
    let parked = matches!(&run.run.state, RunState::Parked { items, .. } if items.is_empty());
    if parked && then == Then::GoOn {
        queue_again(tx, &run, true, now)?;
    }
    Ok(())
}

/// Withdraws what a run still asks, as it ends.
pub(crate) fn withdraw_of_run(tx: &mut Tx<'_>, run: &RunRow, why: &str, now: Timestamp) -> Result<(), StoreError> {
    let sql = format!("{ROW} WHERE run = ?1 AND asks = 1 AND state = 'pending' ORDER BY ord");
    for row in tx.rows(ITEMS, &sql, [run.run.order], row_of)? {
        settle(tx, &row, &ItemState::Withdrawn { at: now, why: why.into() }, Then::End, now)?;
    }
    Ok(())
}

/// Withdraws what a run asks and lets it go on, to ask anew.
pub(crate) fn ask_anew(tx: &mut Tx<'_>, run: &RunRow, why: &str, now: Timestamp) -> Result<(), StoreError> {
    let sql = format!("{ROW} WHERE run = ?1 AND asks = 1 AND state = 'pending' ORDER BY ord");
    for row in tx.rows(ITEMS, &sql, [run.run.order], row_of)? {
        settle(tx, &row, &ItemState::Withdrawn { at: now, why: why.into() }, Then::GoOn, now)?;
    }
    Ok(())
}

pub(crate) fn withdraw_item(tx: &mut Tx<'_>, item: ItemId, why: &str, now: Timestamp) -> Result<(), StoreError> {
    let row = item_row(tx, item)?.ok_or_else(|| StoreError::Unknown { kind: "item", id: item.to_string() })?;
    if row.item.state != ItemState::Pending {
        return Ok(());
    }
    settle(tx, &row, &ItemState::Withdrawn { at: now, why: why.into() }, Then::GoOn, now)
}

/// An item that cannot be read is withdrawn, so that its run asks anew instead of waiting for ever.
pub(crate) fn give_up(tx: &mut Tx<'_>, id: &str) -> Result<(), StoreError> {
    let now = tx.memory.latest;
    let source = Source { table: "items", key: 0 };
    let found: Option<(i64, Option<i64>, bool)> = tx.row(
        source,
        "SELECT id, ord, run, asks = 1 AND state = 'pending' FROM items WHERE id = ?1 AND state <> 'damaged'",
        [id],
        |record| Ok((record.int(1)?, record.maybe_int(2)?, record.flag(3)?)),
    )?;
    let Some((order, run, asked)) = found else { return Ok(()) };
    tx.change("UPDATE items SET state = 'damaged', remind_at = NULL, escalate_at = NULL WHERE ord = ?1", [order])?;
    if let (Some(run), true, Ok(item)) = (run, asked, id.parse()) {
        let answered = Answered::Withdrawn { why: "it could not be read any more".into() };
        answer_calls(tx, order, item, run, &answered, Then::GoOn, now)?;
    }
    Ok(())
}

/// Whether a person denied a call of this run: then its refusal is no news to them.
pub(crate) fn denied_by_person(view: &View<'_>, run: i64) -> Result<bool, StoreError> {
    let states = view.rows(
        ITEMS,
        "SELECT ord, id, state_json FROM items WHERE run = ?1 AND asks = 1 AND state = 'resolved'",
        [run],
        |record| record.json::<ItemState>(2),
    )?;
    let denied =
        |state: &ItemState| matches!(state, ItemState::Resolved(Resolution { answer: Answer::Deny { .. }, .. }));
    Ok(states.iter().any(denied))
}

pub(crate) fn tell_item(
    tx: &mut Tx<'_>,
    kind: EventType,
    item: ItemId,
    payload: &serde_json::Value,
    now: Timestamp,
) -> Result<(), StoreError> {
    tell(tx, kind, &format!("item:{item}"), payload, now)
}

pub(crate) fn kind_word(kind: &ItemKind) -> &'static str {
    match kind {
        ItemKind::Approval { .. } => "approval",
        ItemKind::Question { .. } => "question",
        ItemKind::Plan { .. } => "plan",
        ItemKind::Directory { .. } => "directory",
        ItemKind::Budget { .. } => "budget",
        ItemKind::Notification { .. } => "notification",
    }
}

/// Equal for questions that ask the same.
fn digest(kind: &ItemKind) -> String {
    match kind {
        // The same call asked about for another reason (its outcome is unknown) is another question.
        ItemKind::Approval { hash, category, .. } => format!("approval:{}:{hash}", json(category)),
        ItemKind::Question { .. }
        | ItemKind::Plan { .. }
        | ItemKind::Directory { .. }
        | ItemKind::Budget { .. }
        | ItemKind::Notification { .. } => {
            format!("{}:{}", kind_word(kind), BlobHash::of(json(kind).as_bytes()))
        }
    }
}
