use std::path::PathBuf;

use jiff::Timestamp;
use ow_model::{AnswerBy, ItemId, RunId, SessionId, TaskName};
use thiserror::Error;

/// Why the store could not do what it was asked; nothing was written.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("data directory {} is in use by owd with pid {pid}", dir.display())]
    InUse { dir: PathBuf, pid: u32 },
    #[error("cannot use data directory {}", dir.display())]
    Directory {
        dir: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("store {} has format {found}, made by a newer owd; this one reads up to {known}: install that owd again, or restore a backup with `owd restore`", file.display())]
    Newer { file: PathBuf, found: u32, known: u32 },
    #[error("store {} is damaged: {why}; it is left as it is: restore a backup with `owd restore`", file.display())]
    Damaged { file: PathBuf, why: String },
    #[error("the disk that holds {} is full", file.display())]
    Full { file: PathBuf },
    #[error("the disk that holds {} is failing or full: {what}", file.display())]
    Disk { file: PathBuf, what: String },
    #[error("the store failed: {what}")]
    Failed { what: String },
    #[error("session {session} is at {found}, not at {expected}: another worker has it")]
    Fenced { session: SessionId, expected: u32, found: u32 },
    #[error("there is no {kind} `{id}`")]
    Unknown { kind: &'static str, id: String },
    #[error("`{cursor}` is not a cursor of this list")]
    Cursor { cursor: String },
    #[error("backup folder {} exists already", into.display())]
    BackupExists { into: PathBuf },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Why a task could not be changed or run.
#[derive(Debug, Error)]
pub enum TaskError {
    #[error("there is no task `{name}`")]
    Unknown { name: TaskName },
    #[error("there is a task `{name}` already")]
    Exists { name: TaskName },
    #[error("there is no run `{id}`")]
    UnknownRun { id: RunId },
    #[error("task `{name}` comes from its file in tasks.d; change or remove the file instead")]
    FromFile { name: TaskName },
    #[error("task `{name}` is at revision {found}, not {expected}: it was changed meanwhile")]
    Revision { name: TaskName, expected: u32, found: u32 },
    #[error("task `{name}`: `after` would run in a circle: {circle}")]
    Circle { name: TaskName, circle: String },
    #[error("task `{name}`: {why}")]
    Refused { name: TaskName, why: String },
    #[error("run {id} has ended as {state}")]
    Ended { id: RunId, state: String },
    #[error("run {id} is still {state}")]
    Open { id: RunId, state: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a session could not be told something.
#[derive(Debug, Error)]
pub enum SessionError {
    #[error("there is no session `{id}`")]
    Unknown { id: SessionId },
    #[error("session {id} has ended as {state}")]
    Ended { id: SessionId, state: String },
    #[error("run {id} is made of steps; only an agent can be talked to")]
    NoAgent { id: SessionId },
    #[error("session {id} is a task's run, no chat")]
    NoChat { id: SessionId },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an answer did not count.
#[derive(Debug, Error)]
pub enum ResolveError {
    #[error("there is no item `{id}`")]
    Unknown { id: ItemId },
    #[error("item {id} was already {decision} by {} at {at}", by.person.0)]
    Already { id: ItemId, decision: &'static str, by: AnswerBy, at: Timestamp },
    #[error("item {id} expired at {at}")]
    Expired { id: ItemId, at: Timestamp },
    #[error("item {id} was withdrawn at {at}: {why}")]
    Withdrawn { id: ItemId, at: Timestamp, why: String },
    #[error("item {id} is {article} {kind}; `{answer}` does not answer it", article = article(kind))]
    Misfit { id: ItemId, kind: &'static str, answer: &'static str },
    #[error("the changed arguments do not fit: {why}")]
    BadEdit { id: ItemId, why: String },
    #[error("item {id} cannot be remembered: {why}")]
    NoRule { id: ItemId, why: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
