use std::fmt;

use thiserror::Error;

/// Why a text is not a cron expression that can fire.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum CronError {
    #[error("the cron expression is empty; write five fields, as in `0 9 * * mon-fri`")]
    Empty,
    #[error("the cron expression is {length} bytes long; at most {limit} are allowed")]
    Long { length: usize, limit: usize },
    #[error(
        "expected 5 fields (minute hour day-of-month month day-of-week) or 6 with the second first, found {found} in \
         `{expr}`"
    )]
    FieldCount { expr: String, found: usize },
    #[error("`{name}` is not a schedule name; known are {}", crate::cron_parse::NICKNAME_LIST)]
    Nickname { name: String },
    #[error("`@reboot` is not a time; give the task a trigger `startup = true` instead")]
    Reboot,
    #[error("{field} field: `{value}` {why}")]
    Field { field: CronField, value: String, why: String },
    #[error("`{expr}` never comes: no month that it names has that day-of-month")]
    Never { expr: String },
}

/// One of the six fields.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CronField {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day-of-month",
            Self::Month => "month",
            Self::DayOfWeek => "day-of-week",
        })
    }
}
