//! The process in which calls run, seen from both of its ends.
//!
//! `owd` starts itself again as a helper and holds two pipes to it: [`Helpers`] keeps them, [`Helper`] runs
//! one call, or one hook. [`helper_main`] is the other end: it takes one job after the other, runs it and answers. It adopts
//! every orphan among what it started, so nothing below it gets away: it ends them all before it answers, and
//! when its pipe from `owd` closes.

mod client;
mod hook;
mod leftover;
mod pool;
mod process;
mod serve;
mod wire;

pub(crate) mod tree;
pub(crate) mod work;

pub use client::{Audience, Helper, HelperEnd, Job};
pub use hook::{HookEnd, HookExit, HookJob};
pub use leftover::{Leftover, end_leftover};
pub use pool::Helpers;
pub use process::{boot_id, is_below, start_ticks};
pub use serve::helper_main;

/// Stands in the environment of everything that a helper starts, as `<pid>:<start>` of that helper.
pub const HELPER_MARK: &str = "OWD_HELPER";
