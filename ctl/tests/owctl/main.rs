//! owctl as a person and a script see it: the real program, with a fake owd where one is needed.
#![expect(clippy::unwrap_used, reason = "a test may")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes snapshots so")]

#[path = "../../client/tests/fake/mod.rs"]
mod fake;

mod answers;
mod errors;
mod explain;
mod help;
mod live;
mod local;
mod program;
mod tasks;
