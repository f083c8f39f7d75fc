use std::path::PathBuf;

use ow_model::{BlobHash, BoundFile, Risk};

/// What the tool found out about a call before it is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub risk: Risk,
    pub action: Action,
}

/// What a call would do, in terms that policy can judge.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing to judge but the risk.
    Plain,
    Command {
        form: CommandForm,
        /// Absolute, links followed.
        cwd: PathBuf,
        /// The variables that the call itself sets, secrets among them.
        env_names: Vec<String>,
        /// The program as found on the search path; none where no file was found.
        program: Option<BoundFile>,
        /// What else its text would start, from [`command::started`](crate::command::started): the programs of a
        /// line's parts, and those behind `env`, `timeout`, `sh -c` and the like.
        parts: Vec<BoundFile>,
        /// Every argument that is a regular file.
        files: Vec<BoundFile>,
        /// What the arguments name in the file system, from [`command::operands`](crate::command::operands).
        operands: Vec<ResolvedPath>,
    },
    /// All paths of the call.
    Paths {
        op: PathOp,
        paths: Vec<ResolvedPath>,
        /// The content on which a shown difference stands; in it none: the file does not exist.
        base: Option<(PathBuf, Option<BlobHash>)>,
    },
    Url {
        /// Upper case.
        method: String,
        url: ::url::Url,
        has_body: bool,
        /// The call sets headers of its own.
        own_headers: bool,
    },
    /// Files that the call takes along to somebody else, as a mail its attachments.
    Enclosed {
        paths: Vec<ResolvedPath>,
        /// The same, as they are now: no other content goes.
        files: Vec<BoundFile>,
    },
}

/// How a command was given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CommandForm {
    /// Runs as it stands, with no shell.
    Argv(Vec<String>),
    /// Shell text.
    Line(String),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathOp {
    Read,
    Write,
    /// Reads a tree. Links that lead out and secrets in it are left out by the tool.
    Search,
}

/// A path as asked for and as the file system has it. Made by [`path::resolve`](crate::path::resolve).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResolvedPath {
    pub asked: PathBuf,
    /// Absolute, by its text alone: no link followed.
    pub lexical: PathBuf,
    /// Absolute, without `.` and `..`, all links followed; the last components may not exist.
    pub resolved: PathBuf,
}
