use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use ow_model::{InboxBinding, InboxName, Item, ItemId, ItemKind, ItemState, Occasion};
use rusqlite::params;

use super::items::{self, ITEMS, item_row};
use super::view::{Broken, Record, Source, View, json, micros};
use super::writer::Tx;
use crate::{
    Attempted, Content, Conversation, Delivery, DeliveryId, DeliveryRow, NewReply, Notice, Reply, Route, RouteItems,
    Routing, StoreError, TakenDeliveries, Thread, ToldIn,
};

const OUTBOX: Source = Source { table: "outbox", key: 0 };
/// Whoever sits at a chat is not written to about what they answer there at once.
const CHAT_GRACE: SignedDuration = SignedDuration::from_secs(60);
/// Time for the acknowledgement of an answer, which says the same as the notice of the end.
const SETTLED_GRACE: SignedDuration = SignedDuration::from_secs(3);
/// Items that are told in one message; every surface has room for that many.
const MOST: i64 = 10;
const REPLY: &str = "reply";

/// The bundles that were begun in this transaction: what is asked together is one message.
pub(crate) type Bundles = HashMap<InboxBinding, (i64, String)>;

/// What is to be told of an item.
pub(crate) struct Telling<'a> {
    pub(crate) item: ItemId,
    pub(crate) occasion: Occasion,
    /// Tells occasions of one kind apart.
    pub(crate) number: u32,
    pub(crate) not_before: Option<Timestamp>,
    /// A binding that is known to fail.
    pub(crate) except: Option<&'a InboxBinding>,
}

impl Telling<'_> {
    pub(crate) const fn of(item: ItemId, occasion: Occasion) -> Self {
        Self { item, occasion, number: 0, not_before: None, except: None }
    }
}

/// Where this inbox is told of; none: nothing is bound, and nothing is to be written.
pub(crate) fn routing(tx: &Tx<'_>, inbox: &InboxName, now: Timestamp) -> Option<Routing> {
    let router: Option<Arc<RouteItems>> = tx.memory.shared.router();
    router.map(|route| route(inbox, now))
}

/// When the last one is told by these routes: from then on a person's time to answer is counted.
pub(crate) fn told_at(routing: Option<&Routing>, not_before: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let routes = routing.iter().flat_map(|routing| &routing.told);
    let last = routes.map(|route| route.due_at.max(not_before.unwrap_or(now))).max();
    last.map_or(now, |last| last.max(now))
}

/// When what a chat asks may be told elsewhere.
pub(crate) fn chat_grace(now: Timestamp) -> Timestamp {
    now.saturating_add(CHAT_GRACE).unwrap_or(Timestamp::MAX)
}

/// Writes what is told of an item by these routes.
pub(crate) fn tell(
    tx: &mut Tx<'_>,
    telling: &Telling<'_>,
    routing: &Routing,
    bundles: &mut Bundles,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Telling { item, occasion, number, not_before, except } = telling;
    // Who was shown a part of it beside others would answer what they have not seen.
    let stands_alone = item_row(tx, *item)?.is_some_and(|row| row.item.stands_alone());
    for route in routing.told.iter().filter(|route| Some(&route.binding) != *except) {
        let mut due_at = route.due_at.max(not_before.unwrap_or(Timestamp::MIN));
        let begun = match bundles.get(&route.binding) {
            Some((bundle, _)) if is_full(tx, *bundle)? => None,
            begun => begun.cloned(),
        };
        let known = match begun {
            _ if stands_alone => None,
            None if route.digest => open_digest(tx, &route.binding, now)?.map(|(bundle, message_id, due)| {
                due_at = due;
                (bundle, message_id)
            }),
            begun => begun,
        };
        let row = NewRow {
            key: format!("{item}:{}:{number}:{}", occasion.word(), route.binding),
            item: Some(*item),
            what: occasion.word(),
            binding: &route.binding,
            body: None,
            digest: route.digest && !stands_alone,
            due_at,
        };
        if let Some(bundle) = write(tx, &row, known.as_ref(), now)?
            && !stands_alone
        {
            bundles.insert(route.binding.clone(), bundle);
        }
    }
    Ok(())
}

/// A digest of the binding that is not due yet, and of which no attempt was made.
fn open_digest(
    view: &View<'_>,
    binding: &InboxBinding,
    now: Timestamp,
) -> Result<Option<(i64, String, Timestamp)>, StoreError> {
    view.row(
        OUTBOX,
        "SELECT id, bundle, message_id, due_at FROM outbox
         WHERE state = 'waiting' AND binding = ?1 AND due_at > ?2 AND digest = 1 AND attempts = 0
             AND (SELECT count(*) FROM outbox AS beside WHERE beside.bundle = outbox.bundle) < ?3
         ORDER BY due_at LIMIT 1",
        params![binding.as_str(), micros(now), MOST],
        |record| Ok((record.int(1)?, record.text(2)?, record.time(3)?)),
    )
}

/// Whether no more items are to be told in this message.
fn is_full(view: &View<'_>, bundle: i64) -> Result<bool, StoreError> {
    let told: Option<i64> = view.value("SELECT count(*) FROM outbox WHERE bundle = ?1", [bundle])?;
    Ok(told.is_some_and(|told| told >= MOST))
}

struct NewRow<'a> {
    key: String,
    item: Option<ItemId>,
    what: &'a str,
    binding: &'a InboxBinding,
    body: Option<String>,
    digest: bool,
    due_at: Timestamp,
}

/// Writes a row, of this bundle or of one of its own; none: there is one with this key already.
fn write(
    tx: &mut Tx<'_>,
    row: &NewRow<'_>,
    bundle: Option<&(i64, String)>,
    now: Timestamp,
) -> Result<Option<(i64, String)>, StoreError> {
    let NewRow { key, item, what, binding, body, digest, due_at } = row;
    let (begun, message_id) = match bundle {
        Some((begun, message_id)) => (Some(*begun), message_id.clone()),
        // Random, so that nobody can name a message that they have not seen.
        None => {
            (None, format!("ow.{}.{}", item.map_or_else(|| REPLY.into(), |item| item.to_string()), ItemId::random()))
        }
    };
    // A row's number is the highest and one more.
    let added = tx.change(
        "INSERT INTO outbox (key, bundle, item, what, binding, message_id, body, digest, created_at, due_at)
         VALUES (?1, coalesce(?2, (SELECT coalesce(max(id), 0) + 1 FROM outbox)), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (key) DO NOTHING",
        params![
            key,
            begun,
            item.map(|item| item.to_string()),
            what,
            binding.as_str(),
            message_id,
            body,
            digest,
            micros(now),
            micros(*due_at)
        ],
    )?;
    if added == 0 {
        return Ok(None);
    }
    tx.group.outbox = true;
    Ok(Some((begun.unwrap_or_else(|| tx.db.last_insert_rowid()), message_id)))
}

/// What was not told yet of an item that is settled needs no telling; who was told is told of the end.
pub(crate) fn settle(tx: &mut Tx<'_>, item: &Item, now: Timestamp) -> Result<(), StoreError> {
    let routings: Vec<Routing> = item.inboxes().filter_map(|inbox| routing(tx, inbox, now)).collect();
    if routings.is_empty() {
        return Ok(());
    }
    let id = item.id.to_string();
    tx.change(
        "UPDATE outbox SET state = 'dropped', done_at = ?2 WHERE item = ?1 AND state = 'waiting' AND what <> 'reply'",
        params![id, micros(now)],
    )?;
    if matches!(item.kind, ItemKind::Notification { .. }) {
        return Ok(());
    }
    let routes = told_of(tx, item.id, routings)?;
    let telling = Telling {
        not_before: Some(now.saturating_add(SETTLED_GRACE).unwrap_or(Timestamp::MAX)),
        ..Telling::of(item.id, Occasion::Settled)
    };
    tell(tx, &telling, &Routing { told: routes, escalation: None }, &mut Bundles::new(), now)
}

/// Those of the routes by which an item was told of.
fn told_of(view: &View<'_>, item: ItemId, routings: Vec<Routing>) -> Result<Vec<Route>, StoreError> {
    let told: Vec<String> = view.column(
        "SELECT DISTINCT binding FROM outbox WHERE item = ?1 AND what NOT IN ('reply', 'settled')
             AND (state IN ('taken', 'sent') OR perhaps = 1)",
        [item.to_string()],
    )?;
    let mut routes: Vec<_> = routings.into_iter().flat_map(|routing| routing.told).collect();
    let mut seen = BTreeSet::new();
    routes.retain(|route| {
        told.iter().any(|binding| binding == route.binding.as_str()) && seen.insert(route.binding.clone())
    });
    Ok(routes)
}

/// Who was told of an item that goes on to another inbox is told that it is there now; `to` are the routes of that one.
pub(crate) fn tell_handed_on(
    tx: &mut Tx<'_>,
    item: &Item,
    to: Option<&Routing>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let routings: Vec<Routing> = item.inboxes().filter_map(|inbox| routing(tx, inbox, now)).collect();
    if routings.is_empty() {
        return Ok(());
    }
    let mut routes = told_of(tx, item.id, routings)?;
    let is_there = |route: &Route| to.is_some_and(|to| to.told.iter().any(|other| other.binding == route.binding));
    routes.retain(|route| !is_there(route));
    let number = u32::try_from(item.also.len()).unwrap_or(u32::MAX);
    let telling = Telling { number, ..Telling::of(item.id, Occasion::HandedOn) };
    tell(tx, &telling, &Routing { told: routes, escalation: None }, &mut Bundles::new(), now)
}

pub(crate) fn enqueue_reply(tx: &mut Tx<'_>, new: &NewReply, now: Timestamp) -> Result<bool, StoreError> {
    let NewReply { key, binding, item, reply } = new;
    let row = NewRow {
        key: format!("{REPLY}:{key}"),
        item: *item,
        what: REPLY,
        binding,
        body: Some(json(reply)),
        digest: false,
        due_at: now,
    };
    let is_new = write(tx, &row, None, now)?.is_some();
    if let Some(item) = item.filter(|_| is_new) {
        tx.change(
            "UPDATE outbox SET state = 'dropped', done_at = ?3
             WHERE item = ?1 AND binding = ?2 AND state = 'waiting' AND what = 'settled'",
            params![item.to_string(), binding.as_str(), micros(now)],
        )?;
    }
    Ok(is_new)
}

pub(crate) fn take(
    tx: &mut Tx<'_>,
    closed: &BTreeSet<InboxBinding>,
    limit: usize,
    now: Timestamp,
) -> Result<TakenDeliveries, StoreError> {
    let mut taken = TakenDeliveries::default();
    for (binding, due_at) in lanes(tx)? {
        if closed.contains(&binding) {
            continue;
        }
        let mut next = Some(due_at);
        if due_at <= now && taken.deliveries.len() < limit {
            match take_of(tx, &binding, now)? {
                Some(delivery) => {
                    taken.deliveries.push(delivery);
                    continue;
                }
                // All that was due needed no telling any more.
                None => next = first_due(tx, &binding)?,
            }
        }
        taken.next = [taken.next, next].into_iter().flatten().min();
    }
    Ok(taken)
}

/// The bindings that something waits for, each with when the first of it is due. Costs as much as there are bindings.
fn lanes(view: &View<'_>) -> Result<Vec<(InboxBinding, Timestamp)>, StoreError> {
    view.rows(
        OUTBOX,
        "WITH RECURSIVE lane (binding) AS (
             SELECT min(binding) FROM outbox WHERE state = 'waiting'
             UNION ALL
             SELECT (SELECT min(binding) FROM outbox WHERE state = 'waiting' AND binding > lane.binding)
             FROM lane WHERE lane.binding IS NOT NULL)
         SELECT 0, binding, (SELECT min(due_at) FROM outbox WHERE state = 'waiting' AND binding = lane.binding)
         FROM lane WHERE binding IS NOT NULL",
        [],
        |record| Ok((InboxBinding::from_text(record.text(1)?), record.time(2)?)),
    )
}

fn first_due(view: &View<'_>, binding: &InboxBinding) -> Result<Option<Timestamp>, StoreError> {
    let due: Option<Option<i64>> =
        view.value("SELECT min(due_at) FROM outbox WHERE state = 'waiting' AND binding = ?1", [binding.as_str()])?;
    Ok(due.flatten().and_then(|due| Timestamp::from_microsecond(due).ok()))
}

/// A row that is to be attempted.
struct Due {
    id: i64,
    item: Option<ItemId>,
    what: String,
    message_id: String,
    body: Option<String>,
    created_at: Timestamp,
    attempts: u32,
}

/// Takes the first message that is due at a binding; what has become stale is dropped on the way.
fn take_of(tx: &mut Tx<'_>, binding: &InboxBinding, now: Timestamp) -> Result<Option<Delivery>, StoreError> {
    loop {
        let first: Option<i64> = tx.value(
            "SELECT bundle FROM outbox WHERE state = 'waiting' AND binding = ?1 AND due_at <= ?2
             ORDER BY due_at, bundle LIMIT 1",
            params![binding.as_str(), micros(now)],
        )?;
        let Some(bundle) = first else { return Ok(None) };
        let rows = tx.rows(
            OUTBOX,
            "SELECT id, item, what, message_id, body, created_at, attempts FROM outbox
             WHERE bundle = ?1 AND state = 'waiting' ORDER BY id",
            [bundle],
            |record| {
                Ok(Due {
                    id: record.int(0)?,
                    item: record.maybe_parsed(1)?,
                    what: record.text(2)?,
                    message_id: record.text(3)?,
                    body: record.maybe_text(4)?,
                    created_at: record.time(5)?,
                    attempts: record.number(6)?,
                })
            },
        )?;
        let (mut notices, mut reply, mut head) = (vec![], None, None);
        for row in rows {
            if row.what == REPLY {
                reply = row.body.as_deref().and_then(|body| serde_json::from_str::<Reply>(body).ok());
                if reply.is_none() {
                    drop_row(tx, row.id, now)?;
                    continue;
                }
            } else if let Some(notice) = notice(tx, &row, binding, bundle, now)? {
                // Of an item that a digest has twice, the later occasion says more.
                notices.retain(|known: &Notice| known.item.id != notice.item.id);
                notices.push(notice);
            } else {
                drop_row(tx, row.id, now)?;
                continue;
            }
            tx.change("UPDATE outbox SET state = 'taken', attempts = attempts + 1 WHERE id = ?1", [row.id])?;
            head.get_or_insert(row);
        }
        // Rows that cannot be read are set aside; they must not be met again here.
        let Some(head) = head else {
            tx.change("UPDATE outbox SET state = 'dropped' WHERE bundle = ?1 AND state = 'waiting'", [bundle])?;
            continue;
        };
        let message_id = match &reply {
            None if head.attempts == 0 => name(tx, bundle, &head.message_id, &notices)?,
            _ => head.message_id,
        };
        return Ok(Some(Delivery {
            id: DeliveryId(bundle),
            binding: binding.clone(),
            message_id,
            created_at: head.created_at,
            attempt: head.attempts + 1,
            content: reply.map_or_else(|| Content::Notices(notices), Content::Reply),
        }));
    }
}

/// What a message of notices is called from its first attempt on: by its item only where it tells of one alone, whatever
/// else was to be in it.
fn name(tx: &Tx<'_>, bundle: i64, begun: &str, notices: &[Notice]) -> Result<String, StoreError> {
    let random = begun.rsplit('.').next().unwrap_or_default();
    let name = match notices {
        [one] => format!("ow.{}.{random}", one.item.id),
        _ => format!("owd.several.{random}"),
    };
    if name != begun {
        tx.change("UPDATE outbox SET message_id = ?2 WHERE bundle = ?1", params![bundle, name])?;
    }
    Ok(name)
}

fn drop_row(view: &View<'_>, id: i64, now: Timestamp) -> Result<(), StoreError> {
    view.change("UPDATE outbox SET state = 'dropped', done_at = ?2 WHERE id = ?1", params![id, micros(now)])?;
    Ok(())
}

/// What is told of the item by this row; none where it has become stale.
fn notice(
    view: &View<'_>,
    row: &Due,
    binding: &InboxBinding,
    bundle: i64,
    now: Timestamp,
) -> Result<Option<Notice>, StoreError> {
    let Some(occasion) = Occasion::ALL.into_iter().find(|occasion| occasion.word() == row.what) else {
        return Ok(None);
    };
    let Some(id) = row.item else { return Ok(None) };
    // What waited for so long that more is to be told by now says no more than that.
    let later = view.row(
        OUTBOX,
        "SELECT id FROM outbox WHERE item = ?1 AND binding = ?2 AND id > ?3 AND bundle <> ?4 AND what <> 'reply'
             AND (state IN ('taken', 'sent') OR (state = 'waiting' AND due_at <= ?5)) LIMIT 1",
        params![id.to_string(), binding.as_str(), row.id, bundle, micros(now)],
        |record| record.int(0),
    )?;
    if later.is_some() {
        return Ok(None);
    }
    let Some(found) = item_row(view, id)? else { return Ok(None) };
    let thread = view.row(
        OUTBOX,
        "SELECT id, message_id, reference FROM outbox
         WHERE item = ?1 AND binding = ?2 AND bundle <> ?3 AND what <> 'reply' AND (state = 'sent' OR perhaps = 1)
         ORDER BY id LIMIT 1",
        params![id.to_string(), binding.as_str(), bundle],
        |record| Ok(Thread { message_id: record.text(1)?, reference: record.maybe_text(2)? }),
    )?;
    let is_pending = found.item.state == ItemState::Pending;
    // Of its end only those are told who were told of it.
    let is_news = if occasion == Occasion::Settled { !is_pending && thread.is_some() } else { is_pending };
    Ok(is_news.then_some(Notice { item: found.item, occasion, thread }))
}

pub(crate) fn record(
    tx: &mut Tx<'_>,
    delivery: &Delivery,
    attempted: &Attempted,
    now: Timestamp,
) -> Result<Option<Delivery>, StoreError> {
    let (bundle, at) = (delivery.id.0, micros(now));
    let changed = match attempted {
        Attempted::Sent { reference } => tx.change(
            "UPDATE outbox SET state = 'sent', reference = ?2, error = NULL, done_at = ?3
             WHERE bundle = ?1 AND state = 'taken'",
            params![bundle, reference, at],
        )?,
        Attempted::Later { at: due_at, why, perhaps } => tx.change(
            "UPDATE outbox SET state = 'waiting', due_at = ?2, error = ?3, perhaps = max(perhaps, ?4)
             WHERE bundle = ?1 AND state = 'taken'",
            params![bundle, micros(*due_at), why, perhaps],
        )?,
        Attempted::Failed { why, .. } => tx.change(
            "UPDATE outbox SET state = 'failed', error = ?2, done_at = ?3
             WHERE bundle = ?1 AND state = 'taken'",
            params![bundle, why, at],
        )?,
    };
    if changed == 0 {
        return Ok(None);
    }
    match attempted {
        Attempted::Later { .. } => return Ok(None),
        Attempted::Sent { .. } => {}
        Attempted::Failed { notice, .. } => {
            let key = format!("delivery:{}", delivery.binding);
            items::fold_except(tx, notice, &key, Some(&delivery.binding), now)?;
        }
    }
    take_of(tx, &delivery.binding, now)
}

pub(crate) fn hurry(tx: &Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    tx.change("UPDATE outbox SET due_at = ?1 WHERE state = 'waiting' AND attempts > 0 AND due_at > ?1", [micros(now)])?;
    Ok(())
}

/// What was under way when owd died is due again: nobody knows whether it arrived.
pub(crate) fn begin_life(tx: &Tx<'_>) -> Result<(), StoreError> {
    tx.change("UPDATE outbox SET state = 'waiting', perhaps = 1 WHERE state = 'taken'", [])?;
    Ok(())
}

/// Replies of a backup's time have long been given, or are of no use any more.
pub(crate) fn settle_restored(tx: &Tx<'_>, now: Timestamp) -> Result<(), StoreError> {
    tx.change(
        "UPDATE outbox SET state = 'dropped', done_at = ?1 WHERE state IN ('waiting', 'taken') AND what = 'reply'",
        [micros(now)],
    )?;
    Ok(())
}

pub(crate) fn deliveries(view: &View<'_>, item: ItemId) -> Result<Vec<DeliveryRow>, StoreError> {
    view.rows(
        OUTBOX,
        "SELECT id, what, binding, state, created_at, due_at, attempts, done_at, error FROM outbox
         WHERE item = ?1 ORDER BY id",
        [item.to_string()],
        delivery_row,
    )
}

fn delivery_row(record: &Record<'_>) -> Result<DeliveryRow, Broken> {
    Ok(DeliveryRow {
        what: record.text(1)?,
        binding: InboxBinding::from_text(record.text(2)?),
        state: record.text(3)?,
        created_at: record.time(4)?,
        due_at: record.time(5)?,
        attempts: record.number(6)?,
        done_at: record.maybe_time(7)?,
        error: record.maybe_text(8)?,
    })
}

/// The items that a message spoke of, by its message id or by what the channel called it.
pub(crate) fn items_told_as(view: &View<'_>, name: &str) -> Result<Vec<ItemId>, StoreError> {
    let found: Vec<ItemId> = view.rows(
        OUTBOX,
        "SELECT id, item FROM outbox WHERE (message_id = ?1 OR reference = ?1) AND item IS NOT NULL ORDER BY id",
        [name],
        |record| record.parsed(1),
    )?;
    let mut seen = BTreeSet::new();
    Ok(found.into_iter().filter(|item| seen.insert(item.to_string())).collect())
}

/// Items of a conversation that are told apart.
const APART: u32 = 20;

/// The items that a conversation was told of.
pub(crate) fn told_in(view: &View<'_>, conversation: &Conversation) -> Result<ToldIn, StoreError> {
    let Conversation { messages, threads, bindings } = conversation;
    let bindings = serde_json::to_string(&bindings.iter().map(InboxBinding::as_str).collect::<Vec<_>>());
    let bindings = bindings.unwrap_or_default();
    let until = |prefix: &str| format!("{prefix}{}", char::MAX);
    // What is on its way may be there already; what nobody has tried to deliver is not.
    let waiting = view.rows(
        ITEMS,
        "SELECT DISTINCT items.ord, items.id FROM items WHERE items.state = 'pending' AND (
             EXISTS (SELECT 1 FROM outbox WHERE outbox.item = items.id AND (
                 outbox.reference BETWEEN ?1 AND ?5
                 OR outbox.binding IN (SELECT value FROM json_each(?3))
                     AND (outbox.state = 'taken' OR outbox.perhaps = 1 OR outbox.state = 'waiting' AND outbox.attempts > 0)))
             OR EXISTS (SELECT 1 FROM threads WHERE threads.name BETWEEN ?2 AND ?6 AND threads.session = items.run))
         ORDER BY items.ord LIMIT ?4",
        params![messages, threads, bindings, APART, until(messages), until(threads)],
        |record| record.parsed(1),
    )?;
    let last = view.row(
        OUTBOX,
        "SELECT id, item FROM outbox WHERE reference BETWEEN ?1 AND ?2 AND item IS NOT NULL ORDER BY id DESC LIMIT 1",
        [messages, &until(messages)],
        |record| record.parsed(1),
    )?;
    Ok(ToldIn { waiting, last })
}

/// Removes what is done with, and whose item needs no answer any more.
pub(crate) fn remove_done(view: &View<'_>, before: Timestamp, step: usize) -> Result<usize, StoreError> {
    view.change(
        "DELETE FROM outbox WHERE id IN (
             SELECT id FROM outbox WHERE done_at < ?1 AND done_at IS NOT NULL AND (item IS NULL
                 OR NOT EXISTS (SELECT 1 FROM items WHERE items.id = outbox.item AND items.state = 'pending'))
             ORDER BY done_at LIMIT ?2)",
        params![micros(before), step.cast_signed()],
    )
}
