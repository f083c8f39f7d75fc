//! The control API as its clients see it: real sockets, the real store, a daemon that is faked.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod client;
mod daemon;

mod door;
mod errors;
mod events;
mod inbox;
mod life;
mod operations;
mod peers;
mod rules;
mod runs;
mod sessions;
mod stream;
mod tasks;
