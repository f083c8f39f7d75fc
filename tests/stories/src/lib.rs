//! Stories of the running system: real binaries, real signals, a scratch home each. See `tests/`.
//!
//! Here is what several of them share: a call that counts how often it ran, a plain HTTP request, agents whose model is a
//! stub, and mail that is signed.

mod agents;
mod counting;
mod http;
pub mod mail;
pub mod mail_world;
pub mod slack;

pub use agents::{model_config, results, with_model};
pub use counting::{ASKING, add_asking, asking, executions};
pub use http::{Door, Reply, tcp_door};
