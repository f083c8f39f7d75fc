//! The listener for senders outside: signed deliveries at `POST /hooks/NAME`, and nothing else.
//!
//! It is no part of the control API: it has a socket of its own, no route of that API, and knows nothing of the daemon but
//! [`Deliveries`]. Nobody is told more than a status.

mod bucket;
mod door;
mod hooks;

pub(crate) use door::router;
pub use door::{Deliveries, NewDelivery, SlackPost, Taken};
pub use hooks::{Counts, Webhook, WebhookSettings, Webhooks};
