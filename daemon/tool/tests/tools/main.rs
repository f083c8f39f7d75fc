//! The built-in tools, run in real helpers.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod background;
mod declarations;
mod files;
mod git;
mod hook;
mod http;
mod reading;
mod scope;
mod shell;
mod support;
mod tree;
