use jiff::Timestamp;
use ow_model::Span;
use thiserror::Error;

use crate::CronError;

/// Why a task's schedule cannot be used.
#[derive(Debug, Error)]
pub enum ScheduleError {
    #[error("cron expression `{expr}` cannot be used")]
    Cron {
        expr: String,
        #[source]
        source: CronError,
    },
    #[error("unknown time zone `{zone}`; use a name of the tz database, such as `Europe/Paris` or `UTC`")]
    Zone { zone: String },
    #[error("the system's time zone has no name; set `timezone`, for instance `timezone = \"Europe/Paris\"`")]
    SystemZone,
    #[error("`at` = {at} is in the past: it is {now} now; choose a later time")]
    PastAt { at: Timestamp, now: Timestamp },
    #[error("`every` = {period} cannot be used; choose a period from {least} to {most}")]
    Period { period: Span, least: Span, most: Span },
    #[error("{found} triggers of kind `{kind}` are too many for one task; at most {limit} are allowed")]
    TooMany { kind: &'static str, found: usize, limit: usize },
}
