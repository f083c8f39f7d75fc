use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of every answer that is not a success.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ErrorReply {
    pub error: ErrorBody,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ErrorBody {
    pub code: ErrorCode,
    /// What failed, on which thing.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Problems of a task's definition, one each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    #[serde(default)]
    pub request_id: String,
}

/// Stable codes; the HTTP status follows from the code.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 400: the request cannot be read.
    BadRequest,
    /// 401: no key, or a wrong one.
    Unauthorized,
    /// 403: an Origin or Host that is not owd's own.
    ForeignOrigin,
    /// 403: this peer may not do that; a process that owd started answers nothing.
    Forbidden,
    /// 404
    NotFound,
    /// 405
    MethodNotAllowed,
    /// 409: a prefix fits several ids.
    Ambiguous,
    /// 409: decided before, by someone.
    AlreadyAnswered,
    /// 409: expired before the answer.
    Expired,
    /// 409: the item was withdrawn.
    Withdrawn,
    /// 409: the thing was changed meanwhile, or is not in a state for this.
    Conflict,
    /// 413
    TooLarge,
    /// 422: the task's definition, the answer or the value is wrong.
    Invalid,
    /// 429
    TooManyRequests,
    /// 503: the store cannot write (disk full, stopping).
    Unavailable,
    /// 500
    Internal,
}

impl ErrorCode {
    /// The HTTP status that goes with the code.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::ForeignOrigin | Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Ambiguous | Self::AlreadyAnswered | Self::Expired | Self::Withdrawn | Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }
}
