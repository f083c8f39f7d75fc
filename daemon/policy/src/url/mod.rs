//! The guard in front of every address that a task or a model may choose.
//!
//! A URL is judged three times: by its text, by all addresses that its name resolves to, and again at each
//! redirect. The caller connects only to an address that was checked. A refusal says no more about the
//! target than the caller wrote, so it cannot be used to look around.

mod address;
mod explain;
mod guard;
mod named;

pub use address::is_public;
pub use explain::{ExplainedUrl, Redirect, explain};
pub use guard::{Blocked, Guard, Hop, REDIRECT_LIMIT, is_named, on_record, origin};
pub use named::{ascii_name, named_hosts};
