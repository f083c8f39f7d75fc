//! Tools: what a call can do, how it is judged beforehand, and the helper process in which it runs.
//!
//! A [`Tool`] checks arguments and finds out what policy must know ([`ow_policy::Facts`]) without any
//! effect; only an [`ow_policy::Authorized`] call is ever run. Running happens in a process of its own
//! ([`Helpers`], [`helper_main`]), which takes everything it started down with it: when the call ends,
//! when it is stopped, and when `owd` dies. This crate decides nothing about consent, journals nothing
//! and knows no task.
//!
//! ```
//! use ow_tool::Toolbox;
//!
//! let toolbox = Toolbox::builtin();
//! let shell = toolbox.tool(&"shell".parse().expect("a name")).expect("it is built in");
//! let error = shell.check(&serde_json::json!({ "argv": "df -h" })).unwrap_err();
//! assert!(error.contains("`argv`"));
//! ```

mod tool;
mod toolbox;
mod written;

mod args;
mod capture;
mod limits;
mod world;

mod background;
mod enclosed;
mod files;
mod git;
mod http;
mod outside;
mod shell;

pub mod interactive;

mod helper;

pub use background::{Background, JobEnded, JobStanding, register as register_jobs};
pub use enclosed::{enclosed, read_enclosed};
pub use helper::{
    Audience, HELPER_MARK, Helper, HelperEnd, Helpers, HookEnd, HookExit, HookJob, Job, Leftover, boot_id,
    end_leftover, helper_main, is_below, start_ticks,
};
pub use http::Net;
pub use limits::Limits;
pub use outside::keep_outside;
pub use tool::{Place, Tool, ToolSource, ToolSpec};
pub use toolbox::{CallOf, DaemonTool, Declaration, Runner, Toolbox};
pub use world::{leads_to, program_in_path};
pub use written::as_if_filled;
