use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use ow_model::{Span, TaskName, TaskSpec, Trigger};

use crate::count;
use crate::every::{self, Every, TICK};
use crate::{Cron, ScheduleError, zone};

/// More are no schedule but a program; each set of them is a bit in a mask.
const CRON_LIMIT: usize = 64;
/// Counting instants that coincide takes time exponential in their number.
const EVERY_LIMIT: usize = 8;
const AT_LIMIT: usize = 1000;

/// The schedule triggers of one task revision, compiled: one ordered stream of instants.
///
/// Instants are whole milliseconds, so that any store can keep them exactly. One that several triggers name is one. The stream has no beginning; a planner looks only later than
/// its high-water mark. Jitter is not in the instants: [`Schedule::due`] adds it.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: TimeZone,
    crons: Vec<Cron>,
    every: Vec<Every>,
    /// Sorted, each once.
    at: Vec<Timestamp>,
    jitter: SignedDuration,
}

impl Schedule {
    /// Compiles the schedule triggers of a task; watch, after and startup triggers have no instants.
    ///
    /// `created_at` anchors an `every` without an anchor.
    pub fn compile(spec: &TaskSpec, created_at: Timestamp) -> Result<Self, ScheduleError> {
        let mut schedule = Self {
            zone: zone(&spec.timezone)?,
            crons: Vec::new(),
            every: Vec::new(),
            at: Vec::new(),
            jitter: jitter(&spec.name, spec.jitter),
        };
        for trigger in &spec.triggers {
            match trigger {
                Trigger::Cron(expr) => {
                    let cron = Cron::parse(expr).map_err(|source| ScheduleError::Cron {
                        expr: expr.chars().take(100).flat_map(char::escape_debug).collect(),
                        source,
                    })?;
                    if !schedule.crons.contains(&cron) {
                        schedule.crons.push(cron);
                    }
                }
                Trigger::Every { period, anchor } => {
                    let anchor = every::whole_millisecond(anchor.unwrap_or(created_at));
                    let every = Every::new(*period, anchor)?;
                    if !schedule.every.contains(&every) {
                        schedule.every.push(every);
                    }
                }
                Trigger::At(at) => schedule.at.push(every::whole_millisecond(*at)),
                Trigger::Watch { .. }
                | Trigger::After { .. }
                | Trigger::Startup
                | Trigger::Webhook { .. }
                | Trigger::Slack { .. }
                | Trigger::Mail(_) => {}
            }
        }
        schedule.at.sort_unstable();
        schedule.at.dedup();
        at_most("cron", schedule.crons.len(), CRON_LIMIT)?;
        at_most("every", schedule.every.len(), EVERY_LIMIT)?;
        at_most("at", schedule.at.len(), AT_LIMIT)?;
        Ok(schedule)
    }

    /// Says that there are no instants at all: the task has no schedule trigger.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.crons.is_empty() && self.every.is_empty() && self.at.is_empty()
    }

    /// Returns the first instant later than `after`.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let crons = self.crons.iter().filter_map(|cron| cron.next_after(after, &self.zone));
        let every = self.every.iter().filter_map(|every| every.next_after(after));
        let at = self.at.get(self.at.partition_point(|at| *at <= after)).copied();
        crons.chain(every).chain(at).min()
    }

    /// Returns the instants of `(after, until]` in order, computed as they are asked for.
    pub fn occurrences(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let mut last = after;
        std::iter::from_fn(move || {
            last = self.next_after(last)?;
            Some(last)
        })
        .take_while(move |at| *at <= until)
    }

    /// Returns how many instants `(after, until]` has, without going through them.
    #[must_use]
    pub fn count(&self, after: Timestamp, until: Timestamp) -> u64 {
        /// Short ranges are quicker to walk than to compute.
        const WALK: usize = 32;

        let walked = self.occurrences(after, until).take(WALK).count();
        if walked < WALK {
            return walked as u64;
        }
        let alone = self.at.iter().filter(|at| after < **at && **at <= until).filter(|at| {
            let just_before = at.checked_sub(TICK).unwrap_or(**at);
            !self.every.iter().any(|every| every.contains(**at))
                && !self.crons.iter().any(|cron| cron.next_after(just_before, &self.zone) == Some(**at))
        });
        every::count_any(&self.every, after, until)
            + count::crons_without(&self.crons, &self.every, &self.zone, after, until)
            + alone.count() as u64
    }

    /// Returns the last instant earlier than `before`.
    #[must_use]
    pub fn last_before(&self, before: Timestamp) -> Option<Timestamp> {
        self.newest(Timestamp::MIN, before.checked_sub(TICK).ok()?, 1).pop()
    }

    /// Returns the newest `limit` instants of `(after, until]`, oldest first.
    #[must_use]
    pub fn newest(&self, after: Timestamp, until: Timestamp, limit: usize) -> Vec<Timestamp> {
        let mut window = SignedDuration::from_secs(1);
        loop {
            let start = until.checked_sub(window).unwrap_or(Timestamp::MIN).max(after);
            if start == after || self.count(start, until) >= limit as u64 {
                let mut found: Vec<_> = self.occurrences(start, until).collect();
                found.drain(..found.len().saturating_sub(limit));
                return found;
            }
            window = window.saturating_mul(2);
        }
    }

    /// Returns the span by which this task is later than its instants: below the task's jitter, always the same.
    #[must_use]
    pub fn jitter(&self) -> SignedDuration {
        self.jitter
    }

    /// Returns when a slot is due: its instant and the task's jitter.
    #[must_use]
    pub fn due(&self, instant: Timestamp) -> Timestamp {
        instant.checked_add(self.jitter).unwrap_or(Timestamp::MAX)
    }
}

/// Refuses `at` triggers that are not later than `now`, for a task that is being created.
///
/// # Errors
///
/// All errors of [`Schedule::compile`] too: what passes can be compiled.
pub fn check_triggers(spec: &TaskSpec, now: Timestamp) -> Result<(), ScheduleError> {
    check_edited_triggers(spec, None, now)
}

/// Does what [`check_triggers`] does for a task that is being edited: an `at` that `before` has too may have passed.
pub fn check_edited_triggers(spec: &TaskSpec, before: Option<&TaskSpec>, now: Timestamp) -> Result<(), ScheduleError> {
    Schedule::compile(spec, now)?;
    for trigger in &spec.triggers {
        match trigger {
            Trigger::At(at) if *at <= now && !before.is_some_and(|before| before.triggers.contains(trigger)) => {
                return Err(ScheduleError::PastAt { at: *at, now });
            }
            _ => {}
        }
    }
    Ok(())
}

/// A hash of the name spreads tasks of one instant; a restart or an edit of anything else keeps it.
fn jitter(name: &TaskName, below: Span) -> SignedDuration {
    let hash = blake3::hash(name.as_str().as_bytes());
    let first = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
    Span::from_millis(u64::from_le_bytes(*first).checked_rem(below.millis()).unwrap_or(0)).signed()
}

fn at_most(kind: &'static str, found: usize, limit: usize) -> Result<(), ScheduleError> {
    if found > limit { Err(ScheduleError::TooMany { kind, found, limit }) } else { Ok(()) }
}
