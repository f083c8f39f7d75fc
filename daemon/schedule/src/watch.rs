//! When a watched file has changed for good, and what that change is called.

mod glob;
mod key;
mod settle;

pub use glob::{Glob, GlobError};
pub use key::{Fingerprint, event_key};
pub use settle::{Hint, Settled, Settler};
