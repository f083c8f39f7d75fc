use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// Why a text is not a name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum NameError {
    #[error("a {kind} must not be empty")]
    Empty { kind: &'static str },
    #[error("{kind} `{text}` is {length} bytes long; at most {limit} are allowed")]
    Long { kind: &'static str, text: String, length: usize, limit: usize },
    #[error(
        "{kind} `{text}` holds {found:?}; use lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit"
    )]
    Letter { kind: &'static str, text: String, found: char },
}

const NAME_LIMIT: usize = 64;

fn check(kind: &'static str, text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { kind });
    }
    if text.len() > NAME_LIMIT {
        return Err(NameError::Long { kind, text: text.into(), length: text.len(), limit: NAME_LIMIT });
    }
    for (index, letter) in text.chars().enumerate() {
        let plain = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        if !(plain || (index > 0 && matches!(letter, '-' | '_' | '.'))) {
            return Err(NameError::Letter { kind, text: text.into(), found: letter });
        }
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                check($kind, text)?;
                Ok(Self(text.into()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

name! {
    /// Names a task: the stem of its file, or what `owctl task add` was given. At most 64 bytes.
    TaskName, "task name"
}
name! {
    /// Names a tool, as a step's `tool` key does.
    ToolName, "tool name"
}

name! {
    /// Names an inbox: where its items are told of, and who may answer them. At most 64 bytes.
    InboxName, "inbox name"
}

impl Default for InboxName {
    /// The inbox of what names none.
    fn default() -> Self {
        Self("default".into())
    }
}

name! {
    /// Names a webhook: the last part of its path, `/hooks/NAME`.
    WebhookName, "webhook name"
}

impl WebhookName {
    /// The source of its deliveries, as the store names it.
    #[must_use]
    pub fn source(&self) -> String {
        format!("webhook:{self}")
    }
}

/// The source of the messages of a Slack channel, as the store names it.
#[must_use]
pub fn slack_source(channel: &str) -> String {
    format!("slack:{channel}")
}

/// An IANA time zone's name, as `Europe/Paris`. Whether the database has it is checked where it is loaded.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct ZoneName(pub String);

impl fmt::Display for ZoneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
