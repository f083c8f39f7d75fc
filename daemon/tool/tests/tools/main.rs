//! The built-in tools, run in real helpers.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod declarations;
mod files;
mod http;
mod scope;
mod shell;
mod support;
mod tree;
