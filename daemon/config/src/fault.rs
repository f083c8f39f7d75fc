use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// One thing that is wrong with a file that a person wrote, and what to do about it.
///
/// Prints as one line: `reports.toml:9:8: trigger[1].cron = "0 25 * * *": <message>; <remedy>`.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileFault {
    /// None for a text that came without a file.
    pub file: Option<PathBuf>,
    /// From 1; 0 where the fault is the whole file's.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// As in TOML, with the number of a `[[table]]` from 1: `step[2].args.path`. Empty for the whole file.
    pub key: String,
    /// As written, shortened; `[redacted]` where it looks like a secret.
    pub value: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub remedy: String,
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), 0) => write!(f, "{}: ", file.display())?,
            (Some(file), line) => write!(f, "{}:{line}:{}: ", file.display(), self.column)?,
            (None, 0) => {}
            (None, line) => write!(f, "line {line}, column {}: ", self.column)?,
        }
        match (&*self.key, &self.value) {
            ("", _) => {}
            (key, Some(value)) => write!(f, "{key} = {value}: ")?,
            (key, None) => write!(f, "{key}: ")?,
        }
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

impl std::error::Error for FileFault {}
