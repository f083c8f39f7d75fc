//! The control API of owd: HTTP over a Unix socket and, when configured, over loopback TCP. And, apart from it, the listener
//! for webhooks.
//!
//! The only place where the model meets the protocol. It decides who may speak ([`Lineage`], [`Tcp`]), reads
//! requests, calls the store or the running daemon ([`Control`]), and writes answers. It knows no policy, no
//! schedule of its own and no state: a request is served from the store, and what a person may do is asked
//! of [`Control`]. Nothing polls: a watcher sleeps until the store's stream moves.

mod control;
mod key;
mod limits;
mod listen;
mod socket;

mod api;
mod guard;
mod problem;
mod process;
mod rate;

mod convert;
mod extract;
mod find;
mod routes;
mod why;

mod webhook;

#[cfg(test)]
mod openapi;

pub use control::{
    About, Control, HandedMail, ListenerAbout, SignedSample, SlackAbout, TakenMail, WantedSession, Warning,
};
pub use convert::shown_item;
pub use key::{Key, KeyError};
pub use limits::*;
pub use listen::{Listener, Options, Server, Tcp};
pub use process::{Lineage, is_stranger};
pub use socket::{BindError, SocketAccess, SocketFile, bind};
pub use webhook::{Counts, Deliveries, NewDelivery, SlackPost, Taken, Webhook, WebhookSettings, Webhooks};
