use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What wakes a session that sleeps, beside its time and its people. Written as `job 7` or `event run.ended`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
pub enum Wake {
    /// A background job of the session ends.
    Job(String),
    /// An event of this type comes.
    Event(String),
}

#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{text}` wakes nobody: write `job <id>` or `event <type>`")]
pub struct WakeError {
    text: String,
}

impl fmt::Display for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(id) => write!(f, "job {id}"),
            Self::Event(kind) => write!(f, "event {kind}"),
        }
    }
}

impl FromStr for Wake {
    type Err = WakeError;

    fn from_str(text: &str) -> Result<Self, WakeError> {
        match text.split_once(' ') {
            Some(("job", id)) => Ok(Self::Job(id.to_owned())),
            Some(("event", kind)) => Ok(Self::Event(kind.to_owned())),
            _ => Err(WakeError { text: text.to_owned() }),
        }
    }
}

impl From<Wake> for String {
    fn from(wake: Wake) -> Self {
        wake.to_string()
    }
}

impl TryFrom<String> for Wake {
    type Error = WakeError;

    fn try_from(text: String) -> Result<Self, WakeError> {
        text.parse()
    }
}
