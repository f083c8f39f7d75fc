//! The typed client of owd's control API over its Unix socket: one method an operation.
//!
//! A [`Client`] keeps one connection and opens it on first use; an [`EventStream`] has its own and takes up
//! where it stopped when owd comes back. Nothing is spawned: connection and request are polled together, so a
//! current-thread runtime is enough and dropping a client ends all that it does. It knows no command, prints
//! nothing and decides nothing about what an error means to a person.

mod client;
mod connection;
mod error;
mod feed;
mod operations;
mod session;
mod sse;
mod stream;

pub use client::Client;
pub use error::ClientError;
pub use operations::{ForecastQuery, WhyQuery};
pub use session::{SessionEvent, SessionStream};
pub use stream::{EventStream, Watched};
