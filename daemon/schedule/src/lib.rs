//! When tasks run: cron, zones, slots, catch-up, overlap and forecast; and when a watched file has settled.
//!
//! Pure: the present is an argument and so are the ids of new runs. It reads no clock and does no I/O; the zone
//! database and the name of the system's own zone are the exception. It does not know how a plan is written down, and
//! a plan that was not written costs nothing: the next one is made from the same record.
//!
//! An *instant* is what a schedule names; a slot is *due* at its instant plus the task's jitter. Records and marks
//! speak of instants.

mod cron;
mod cron_error;
mod cron_parse;
mod segment;
mod zone;

mod count;
mod error;
mod every;
mod forecast;
mod schedule;

mod account;
mod circle;
mod decide;
mod line;
mod plan;
mod retry;
mod stretch;

pub mod watch;

pub use account::{Rewind, close, rewind};
pub use circle::{AfterEdge, circle};
pub use cron::Cron;
pub use cron_error::{CronError, CronField};
pub use decide::{DEPTH_LIMIT, plan};
pub use error::ScheduleError;
pub use forecast::{Forecast, forecast};
pub use line::{Busy, by_hand, may_begin};
pub use plan::{ActiveRun, ActiveState, Gate, Plan, PlanInput, PlannedRun};
pub use retry::{counts_toward_pause, failures_in_row, next_attempt};
pub use schedule::{Schedule, check_edited_triggers, check_triggers};
pub use zone::{system_zone, zone, zone_rules};
