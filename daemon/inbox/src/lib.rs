//! The Inbox: where its items are told of, and its own tool `notify`, which tells the task's people something.
//!
//! Items themselves are facts of the store: parked by the engine, resolved by a surface. What is to be told of them, by
//! which binding and when, is decided here ([`route`]) and written by the store in the same transaction; [`Post`] then
//! delivers it at least once, by the [`Channels`] that others bring. This crate knows no engine and no surface.

mod channel;
mod hours;
mod notify;
mod post;
mod retry;
mod route;

pub use channel::{Channel, Channels, Delivered, Fault};
pub use hours::Hours;
pub use notify::register;
pub use post::Post;
pub use route::{InboxRoutes, route};
