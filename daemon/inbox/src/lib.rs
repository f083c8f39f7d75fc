//! The Inbox: where its items are told of, and its own tool `notify`, which tells the task's people something.
//!
//! Items themselves are facts of the store: parked by the engine, resolved by a surface. What is to be told of them, by
//! which binding and when, is decided here ([`route`]) and written by the store in the same transaction; [`Post`] then
//! delivers it at least once, by the [`Channels`] that there are: those that take no answers are here (desktop, ntfy,
//! webhook), mail and Slack are surfaces of their own. What people hear who answered, on whichever surface, is in [`told`].
//! This crate knows no engine and no surface.

mod channel;
mod desktop;
mod hours;
mod notify;
mod post;
mod retry;
mod route;
pub mod told;
mod trial;
mod web;
pub mod wording;
mod words;

pub use channel::{Channel, Channels, Delivered, Fault};
pub use desktop::{Desktop, NOTIFIER};
pub use hours::Hours;
pub use notify::{declare, register};
pub use post::Post;
pub use route::{InboxRoutes, route};
pub use trial::try_bindings;
pub use web::{Ntfy, ShowItem, Webhook, WebhookKeys};
