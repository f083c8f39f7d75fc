use std::borrow::Cow;
use std::error::Error as StdError;
use std::path::Path;

use ow_client::ClientError;
use ow_protocol::{ErrorBody, ErrorCode};
use serde::Serialize;

use crate::place;

/// How owctl ends, as a number that scripts may rely on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// It was tried and failed, or a run that was waited for did not succeed.
    Failed = 1,
    /// The command line or a value in it is wrong; nothing was tried.
    Usage = 2,
    NotRunning = 3,
    /// No such thing, or a prefix that fits several.
    NotFound = 4,
    /// Decided before, expired, withdrawn, changed meanwhile.
    Conflict = 5,
    /// owd speaks another version of the protocol.
    Version = 6,
    /// This user or process may not do that.
    Refused = 7,
    /// To be tried again later; as mail servers understand it.
    Later = 75,
}

/// The documented exit codes, as `owctl help exit-codes` prints them.
pub(crate) const EXIT_CODES: &[(u8, &str)] = &[
    (0, "done"),
    (Exit::Failed as u8, "it failed; with `--wait` or `run watch`: the run did not succeed"),
    (Exit::Usage as u8, "the command line, a value or a definition is wrong; nothing was changed"),
    (Exit::NotRunning as u8, "owd is not running"),
    (Exit::NotFound as u8, "no such task, run, item or rule; or a prefix that fits several"),
    (Exit::Conflict as u8, "already answered, expired, withdrawn, or changed meanwhile"),
    (Exit::Version as u8, "owd of another version is running: restart it"),
    (Exit::Refused as u8, "this user or process may not do that"),
    (Exit::Later as u8, "`inbox deliver`: not now, hand the mail over again"),
];

/// Why a command did not succeed, and what to do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Stable, `snake_case`.
    pub(crate) code: Cow<'static, str>,
    /// What failed, on which thing, with its causes. A lower-case fragment.
    pub(crate) message: String,
    pub(crate) hint: Option<Box<str>>,
    /// Problems of a definition, one each.
    pub(crate) details: Vec<String>,
    /// By which the log of owd has it.
    pub(crate) request_id: Option<Box<str>>,
}

/// The JSON of a failure.
#[derive(Serialize)]
pub(crate) struct FailureJson<'a> {
    error: FailureBody<'a>,
}

#[derive(Serialize)]
struct FailureBody<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    details: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { exit, code: code.into(), message, hint: None, details: vec![], request_id: None }
    }

    /// A value on the command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    pub(crate) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, code, message)
    }

    /// Something of the system failed: `doing` what, and why.
    pub(crate) fn io(doing: impl Into<String>, why: &std::io::Error) -> Self {
        Self::failed("io", format!("{}: {why}", doing.into()))
    }

    /// The answer that was given says it all; only the exit code is left.
    pub(crate) fn told(exit: Exit) -> Self {
        Self::new(exit, "told", "")
    }

    pub(crate) fn is_told(&self) -> bool {
        self.message.is_empty()
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into_boxed_str());
        self
    }

    #[must_use]
    pub(crate) fn details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }

    /// Owd knows no file names: where it was sent too much, says what was.
    #[must_use]
    pub(crate) fn too_large_is(mut self, file: &Path) -> Self {
        if *self.code == *word(ErrorCode::TooLarge) {
            self.message = format!("{} is too large: {}", file.display(), self.message);
        }
        self
    }

    pub(crate) fn json(&self) -> FailureJson<'_> {
        FailureJson {
            error: FailureBody {
                code: &self.code,
                message: &self.message,
                hint: self.hint.as_deref(),
                details: &self.details,
                request_id: self.request_id.as_deref(),
            },
        }
    }
}

/// An error with all that caused it, in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        put!(text, ": {cause}");
        next = cause.source();
    }
    text
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let message = chain(&error);
        match error {
            ClientError::Http(body) => refused(body),
            ClientError::NotRunning { .. } => {
                Self::new(Exit::NotRunning, "not_running", message).hint(place::how_to_start())
            }
            ClientError::NotPermitted { .. } => Self::new(Exit::Refused, "forbidden", message)
                .hint("the socket belongs to another account: use that account, or join its group `owd`"),
            ClientError::Version { .. } => {
                Self::new(Exit::Version, "version", message).hint(format!("restart owd: {}", place::how_to_restart()))
            }
            ClientError::Transport { .. } => Self::failed("transport", message)
                .hint("see whether it was done before you try again; `owctl doctor` and `owctl logs` may tell why"),
            ClientError::TimedOut { .. } => Self::failed("timed_out", message)
                .hint("see whether it was done before you try again; `owctl logs` may tell why"),
        }
    }
}

fn refused(body: ErrorBody) -> Failure {
    let ErrorBody { code, message, hint, details, request_id } = body;
    let exit = match code {
        ErrorCode::BadRequest | ErrorCode::Invalid | ErrorCode::TooLarge | ErrorCode::MethodNotAllowed => Exit::Usage,
        ErrorCode::Unauthorized | ErrorCode::ForeignOrigin | ErrorCode::Forbidden => Exit::Refused,
        ErrorCode::NotFound | ErrorCode::Ambiguous => Exit::NotFound,
        ErrorCode::AlreadyAnswered | ErrorCode::Expired | ErrorCode::Withdrawn | ErrorCode::Conflict => Exit::Conflict,
        ErrorCode::TooManyRequests | ErrorCode::Unavailable | ErrorCode::Internal => Exit::Failed,
    };
    let hint = hint.map_or_else(|| next_step(code).into(), String::into_boxed_str);
    let request_id = Some(request_id.into_boxed_str()).filter(|id| !id.is_empty());
    Failure { exit, code: word(code).into(), message, hint: Some(hint), details, request_id }
}

/// The code as it is written on the wire.
fn word(code: ErrorCode) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(word)) => word,
        _ => unreachable!("a code is a unit variant, which is written as a string"),
    }
}

/// What to do where owd itself does not say it.
const fn next_step(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::BadRequest | ErrorCode::MethodNotAllowed => {
            "owctl and owd may be of different versions: compare `owctl --version` and `owctl status`"
        }
        ErrorCode::Unauthorized | ErrorCode::ForeignOrigin | ErrorCode::Forbidden => {
            "run it from a terminal of your own; a process that owd started may not do this"
        }
        ErrorCode::NotFound => "list what there is: `owctl task list`, `owctl run list`, `owctl inbox list --all`",
        ErrorCode::Ambiguous => "write more letters of the id",
        ErrorCode::AlreadyAnswered | ErrorCode::Expired | ErrorCode::Withdrawn => {
            "see what became of it: `owctl inbox show ID`"
        }
        ErrorCode::Conflict => "look at it again, then repeat what still applies",
        ErrorCode::TooLarge => "send less at once",
        ErrorCode::Invalid => "correct what is named and try again",
        ErrorCode::TooManyRequests => "wait some seconds and try again",
        ErrorCode::Unavailable => "see `owctl status` and the free space of its data folder, then try again",
        ErrorCode::Internal => "see `owctl logs` for the request id",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_holds_its_causes() {
        let why = std::io::Error::other("the disk is full");
        let error = ClientError::Transport { doing: "asking owd", why: Box::new(why) };
        assert_eq!(Failure::from(error).message, "asking owd failed: the disk is full");
    }

    #[test]
    fn every_answer_of_owd_has_an_exit_code_and_a_next_step() {
        let body = |code| ErrorBody { code, message: "m".into(), hint: None, details: vec![], request_id: "r".into() };
        let failure = refused(body(ErrorCode::AlreadyAnswered));
        assert_eq!((failure.exit, &*failure.code), (Exit::Conflict, "already_answered"));
        assert_eq!(failure.hint.as_deref(), Some("see what became of it: `owctl inbox show ID`"));
        assert_eq!(refused(body(ErrorCode::Ambiguous)).exit, Exit::NotFound);
        assert_eq!(refused(body(ErrorCode::Invalid)).exit, Exit::Usage);
    }
}
