//! Stories of the running system: real binaries, real signals, a scratch home each. See `tests/`.
//!
//! Here is what several of them share: a call that counts how often it ran, and a plain HTTP request.

mod counting;
mod http;

pub use counting::{ASKING, asking, executions};
pub use http::{Door, Reply, tcp_door};
