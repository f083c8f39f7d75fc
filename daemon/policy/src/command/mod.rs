//! What a command may do, told from its parsed text alone.

use std::path::{Path, PathBuf};

use crate::path::{Links, NoLinks};
use crate::{CommandForm, Explained, ResolvedPath};

/// What `owctl explain command` asks with.
#[derive(Clone, Debug, Default)]
pub struct Question {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    pub safe: bool,
    /// Where the command would run; also the only root. Absolute.
    pub cwd: PathBuf,
    pub home: PathBuf,
    pub trusted: Vec<PathBuf>,
    pub protected: Vec<PathBuf>,
}

/// What owd would say to a command line, by its text and the paths that it names.
#[must_use]
pub fn explain(line: &str, question: &Question) -> Explained {
    explain_with(line, question, &NoLinks)
}

/// As [`explain`], following the links that `links` knows.
#[must_use]
pub fn explain_with(_line: &str, _question: &Question, _links: &dyn Links) -> Explained {
    Explained { verdict: "ask".into(), rule: "ask: exec".into(), why: "no rule covers it".into() }
}

/// The argv of a line that is one literal simple command: no operator, expansion, redirection or
/// assignment. It runs as this argv, without a shell.
#[must_use]
pub fn argv_of_simple(_line: &str) -> Option<Vec<String>> {
    None
}

/// A compound of literal commands, written back from its syntax tree with every word quoted.
#[must_use]
pub fn written_back(_line: &str) -> Option<String> {
    None
}

/// What the arguments of a command name in the file system, for [`Action::Command`](crate::Action).
#[must_use]
pub fn operands(_form: &CommandForm, _cwd: &Path, _home: &Path, _links: &dyn Links) -> Vec<ResolvedPath> {
    vec![]
}

pub(crate) struct Rights;

impl Rights {
    pub(crate) const fn of(_situation: &crate::Situation<'_>) -> Self {
        Self
    }
}

pub(crate) enum Found {
    Safe { rule: String },
    Allowed { rule: String },
    Dynamic { why: String },
    Nothing { why: String },
}

pub(crate) fn forbidden(_: &CommandForm, _: &Path, _: &[ResolvedPath], _: &Rights) -> Option<(String, String)> {
    None
}

pub(crate) fn layers(_: &CommandForm, _: &Path, _: &[String], _: &[ResolvedPath], _: &Rights) -> Found {
    Found::Dynamic { why: "commands are not read yet".into() }
}

pub(crate) fn hole_in_argv(_: &[String], _: usize) -> Option<String> {
    Some("is part of a command".into())
}

pub(crate) fn is_plain_variable(_: &str) -> bool {
    false
}

pub(crate) fn reads_code_from_stdin(_: &crate::Facts) -> bool {
    true
}
