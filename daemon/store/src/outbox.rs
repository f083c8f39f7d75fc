//! What is told where: the rows of the outbox.

use jiff::Timestamp;
use ow_model::{InboxBinding, InboxName, Item, ItemId, Occasion, Span};
use serde::{Deserialize, Serialize};

use crate::NewItem;

/// Says where an inbox's items are told of, and when what is written now is due.
pub type RouteItems = dyn Fn(&InboxName, Timestamp) -> Routing + Send + Sync;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Routing {
    pub told: Vec<Route>,
    /// What is unanswered for so long comes to that inbox too.
    pub escalation: Option<(Span, InboxName)>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Route {
    pub binding: InboxBinding,
    pub due_at: Timestamp,
    /// Until it is due, others may join it.
    pub digest: bool,
}

/// A message on its way to one binding.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub binding: InboxBinding,
    /// Fixed before the first attempt, and the same in each. A mail's Message-ID begins with it; that of one item alone
    /// holds the item's id.
    pub message_id: String,
    pub created_at: Timestamp,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    pub content: Content,
}

/// The store's number for a delivery.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct DeliveryId(pub i64);

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// At least one; several are answered one by one.
    Notices(Vec<Notice>),
    Reply(Reply),
}

/// One item, as it stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub item: Item,
    pub occasion: Occasion,
    /// The first message about it to this binding.
    pub thread: Option<Thread>,
}

/// A message that was delivered before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Thread {
    pub message_id: String,
    /// What the channel called it.
    pub reference: Option<String>,
}

/// A message to one correspondent: an acknowledgement, mostly.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reply {
    pub subject: String,
    pub text: String,
    /// What it answers, by its name there.
    pub in_reply_to: Option<String>,
    /// What went before that, oldest first.
    pub references: Vec<String>,
}

/// A reply to be delivered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewReply {
    /// The same twice is one.
    pub key: String,
    pub binding: InboxBinding,
    /// The item that it speaks of: a notice of its end that still waits for the same binding is left out.
    pub item: Option<ItemId>,
    pub reply: Reply,
}

/// Deliveries to attend to now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TakenDeliveries {
    /// At most one a binding.
    pub deliveries: Vec<Delivery>,
    /// When the next is due at a binding that is not closed.
    pub next: Option<Timestamp>,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempted {
    Sent {
        /// What the channel calls it.
        reference: Option<String>,
    },
    /// It is tried again then; `perhaps`: it may have arrived all the same.
    Later { at: Timestamp, why: String, perhaps: bool },
    /// It is given up; `notice` tells of it, by any binding but this one.
    Failed { why: String, notice: Box<NewItem> },
}

/// A delivery of an item, for a person.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeliveryRow {
    /// A word of [`Occasion::word`], or `reply`.
    pub what: String,
    pub binding: InboxBinding,
    /// `waiting`, `taken`, `sent`, `failed`, `dropped`.
    pub state: String,
    pub created_at: Timestamp,
    pub due_at: Timestamp,
    pub attempts: u32,
    pub done_at: Option<Timestamp>,
    pub error: Option<String>,
}

/// A conversation in a channel of people's: of a person and the app alone, mostly.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Conversation {
    /// What the names of all messages there begin with, and those of no others.
    pub messages: String,
    /// Likewise for the threads of sessions.
    pub threads: String,
    /// What is delivered there.
    pub bindings: Vec<InboxBinding>,
}

/// What a conversation was told of.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ToldIn {
    /// What waits for an answer: told there, or perhaps, or asked by a session that speaks there; oldest first, and no
    /// more than a person could tell apart.
    pub waiting: Vec<ItemId>,
    /// What was told of last, whatever became of it.
    pub last: Option<ItemId>,
}
