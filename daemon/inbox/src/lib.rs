//! The Inbox's own tool: `notify` tells the task's people something.
//!
//! Items themselves are facts of the store: parked by the engine, resolved by a surface. This crate knows no
//! engine and no surface; what it adds is a message that is one item however often its call is repeated.

mod notify;

pub use notify::register;
