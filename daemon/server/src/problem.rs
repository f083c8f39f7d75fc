use std::error::Error;
use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ow_model::NameError;
use ow_protocol::{ErrorBody, ErrorCode, ErrorReply};
use ow_store::{ResolveError, SessionError, StoreError, TaskError};

/// Why a request was not served: what its sender is told, and what only the log is.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: ErrorCode,
    message: String,
    hint: Option<String>,
    details: Vec<String>,
    retry_after: Option<u64>,
    /// Never leaves this machine: paths, rows, the causes of a failure.
    cause: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, details: vec![], retry_after: None, cause: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Invalid, message)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    pub(crate) fn internal(error: &dyn Error) -> Self {
        Self::new(ErrorCode::Internal, "owd failed")
            .with_hint("owd's log says more under this request id: `owctl logs`")
            .with_cause(error)
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }

    pub(crate) fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    fn with_cause(mut self, error: &dyn Error) -> Self {
        let mut cause = error.to_string();
        let mut next = error.source();
        while let Some(source) = next {
            write!(cause, ": {source}").expect("a String takes all");
            next = source.source();
        }
        self.cause = Some(cause);
        self
    }

    /// Writes the problem over the empty answer that carried it, and into the log what its sender must not see.
    pub(crate) fn render(self, response: &mut Response, request_id: &str) {
        let Self { code, message, hint, details, retry_after, cause } = self;
        if let Some(cause) = cause {
            if code == ErrorCode::Internal {
                tracing::error!(request_id, cause, "request failed");
            } else {
                tracing::warn!(request_id, cause, "request refused");
            }
        }
        let error = ErrorBody { code, message, hint, details, request_id: request_id.into() };
        let body = serde_json::to_vec(&ErrorReply { error }).expect("texts become JSON");
        let headers = response.headers_mut();
        // What the empty answer said of its length.
        headers.remove(CONTENT_LENGTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        *response.body_mut() = Body::from(body);
    }
}

impl IntoResponse for Problem {
    /// An empty answer that carries the problem; the outermost layer, which knows the request's id, writes it out.
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).expect("codes have valid statuses");
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unknown { .. } => Self::not_found(error.to_string()),
            StoreError::Cursor { .. } => {
                Self::bad_request(error.to_string()).with_hint("use the `next` of the page before, or none")
            }
            StoreError::BackupExists { .. } => {
                Self::new(ErrorCode::Conflict, error.to_string()).with_hint("name a folder that does not exist yet")
            }
            StoreError::Fenced { .. } => {
                Self::new(ErrorCode::Conflict, "the run moved on meanwhile").with_hint("try again").with_cause(&error)
            }
            StoreError::Full { .. } => Self::new(ErrorCode::Unavailable, "the disk is full; nothing was changed")
                .with_hint("make room on the disk that holds owd's data, then try again")
                .with_cause(&error),
            StoreError::Disk { .. } => {
                Self::new(ErrorCode::Unavailable, "the disk is failing or full (I/O error); nothing was changed")
                    .with_hint("make room on the disk that holds owd's data, or see what is wrong with it (`owctl doctor`), then try again")
                    .with_cause(&error)
            }
            StoreError::Write { .. } => {
                Self::new(ErrorCode::Unavailable, "owd cannot write its data; nothing was changed")
                    .with_hint("`owctl doctor` checks the data directory")
                    .with_cause(&error)
            }
            StoreError::InUse { .. }
            | StoreError::Directory { .. }
            | StoreError::Newer { .. }
            | StoreError::Damaged { .. }
            | StoreError::Failed { .. } => Self::internal(&error),
        }
    }
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Store(error) => error.into(),
            TaskError::Unknown { .. } => {
                Self::not_found(error.to_string()).with_hint("`owctl task list` lists the tasks")
            }
            TaskError::UnknownRun { .. } => {
                Self::not_found(error.to_string()).with_hint("`owctl run list` lists the runs")
            }
            TaskError::Exists { .. } => Self::new(ErrorCode::Conflict, error.to_string())
                .with_hint("choose another name, or change that one with `owctl task edit`"),
            TaskError::FromFile { .. } | TaskError::Refused { .. } => {
                let text = error.to_string();
                // What to do stands behind the reason.
                match text.rsplit_once("; ") {
                    Some((why, remedy)) => Self::new(ErrorCode::Conflict, why).with_hint(remedy),
                    None => Self::new(ErrorCode::Conflict, text),
                }
            }
            TaskError::Revision { .. } => Self::new(ErrorCode::Conflict, error.to_string())
                .with_hint("look at the task as it is now, then change it again"),
            TaskError::Circle { .. } => {
                Self::invalid(error.to_string()).with_hint("remove one of the `after` triggers of this circle")
            }
            TaskError::Ended { id, .. } => Self::new(ErrorCode::Conflict, error.to_string())
                .with_hint(format!("nothing is left to stop; `owctl run retry {id}` runs its task again")),
            TaskError::Open { id, .. } => Self::new(ErrorCode::Conflict, error.to_string()).with_hint(format!(
                "wait for its end with `owctl run watch {id}`, or end it with `owctl run cancel {id}`"
            )),
        }
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::Unknown { .. } => {
                Self::not_found(error.to_string()).with_hint("`owctl session list` lists the chats")
            }
            SessionError::Ended { .. } => {
                Self::new(ErrorCode::Conflict, error.to_string()).with_hint("begin a new chat: `owctl chat`")
            }
            SessionError::NoAgent { .. } | SessionError::NoChat { .. } => {
                Self::new(ErrorCode::Conflict, error.to_string()).with_hint("`owctl run show` shows a task's run")
            }
        }
    }
}

impl From<ResolveError> for Problem {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Store(error) => error.into(),
            ResolveError::Unknown { .. } => {
                Self::not_found(error.to_string()).with_hint("`owctl inbox list` lists the open items")
            }
            ResolveError::Already { .. } => Self::new(ErrorCode::AlreadyAnswered, error.to_string())
                .with_hint("the first answer counts; nothing was changed"),
            ResolveError::Expired { .. } => Self::new(ErrorCode::Expired, error.to_string())
                .with_hint("an expired request counts as denied; run the task again to be asked again"),
            ResolveError::Withdrawn { .. } => Self::new(ErrorCode::Withdrawn, error.to_string()),
            ResolveError::Misfit { id, kind, .. } => Self::invalid(error.to_string()).with_hint(match kind {
                "approval" => format!("`owctl inbox approve {id}` lets the call run, `owctl inbox deny {id}` does not"),
                "question" => format!("`owctl inbox answer {id} TEXT` answers it, `owctl inbox deny {id}` declines"),
                _ => format!("`owctl inbox approve {id}` agrees to it, or says that you have read it"),
            }),
            ResolveError::BadEdit { .. } => {
                Self::invalid(error.to_string()).with_hint("correct the arguments; the request waits as it was")
            }
            ResolveError::NoRule { .. } => {
                Self::invalid(error.to_string()).with_hint("approve it for this one time instead")
            }
        }
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Self::bad_request(format!("the path cannot be read: {}", rejection.body_text()))
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        // axum's own words hold the reason after a colon: `Failed to deserialize query string: unknown field …`.
        let text = rejection.body_text();
        let reason = text.split_once(": ").map_or(text.as_str(), |(_, reason)| reason);
        Self::bad_request(format!("the query cannot be read: {reason}"))
    }
}
