//! Why something ran, or did not, in a sentence. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ow_model::{Cause, Disposition, Run, RunState, SlotKey, SlotRecord};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// What became of the slot within these instants, both included.
    At { from: Timestamp, until: Timestamp },
    /// What became of the task within these instants, such as a day.
    Within { from: Timestamp, until: Timestamp },
    /// What happened last.
    Lately,
}

/// A record with what is known about it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) record: SlotRecord,
    /// The run that it names.
    pub(crate) run: Option<Run>,
    /// The run that was open at the slot's instant.
    pub(crate) obstacle: Option<Run>,
}

/// All that the sentence is made of.
#[derive(Debug)]
pub(crate) struct Why<'a> {
    pub(crate) question: Question,
    /// Oldest first.
    pub(crate) records: &'a [Told],
    /// The last record before the time that was asked about.
    pub(crate) before: Option<&'a Told>,
    /// A slot that the present definition has then.
    pub(crate) due: Option<Timestamp>,
    pub(crate) now: Timestamp,
    pub(crate) created_at: Timestamp,
    pub(crate) accounted_until: Timestamp,
    /// Why nothing of the task starts.
    pub(crate) paused: Option<String>,
    /// Whether that is the kill switch.
    pub(crate) halted: bool,
    /// What came due behind a pause: it gets its record when that ends.
    pub(crate) behind_pause: Option<SlotKey>,
    pub(crate) next_due: Option<Timestamp>,
    pub(crate) zone: &'a TimeZone,
    pub(crate) zone_name: &'a str,
}

impl Why<'_> {
    pub(crate) fn answer(&self) -> String {
        let first = match (self.question, &self.behind_pause, self.records.last()) {
            (Question::Lately, Some(key), _) => format!("{} {} skipped", self.slot(key), were(key)),
            (_, _, Some(told)) => self.became(told),
            (Question::At { from, .. }, _, None) => self.nothing_at(from),
            (Question::Within { from, until }, _, None) => self.nothing_within(from, until),
            (Question::Lately, None, None) => {
                format!("nothing was due since the task was made at {}", self.time(self.created_at))
            }
        };
        let mut letters = first.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        format!(
            "{}{}. {}. Times are of {}.",
            capital.into_iter().collect::<String>(),
            letters.as_str(),
            self.outlook(),
            self.zone_name
        )
    }

    fn nothing_at(&self, at: Timestamp) -> String {
        let time = self.time(at);
        match self.due {
            Some(due) if due > self.now => format!("{} is still to come; a slot is due then", self.time(due)),
            _ if at > self.now => format!("{time} is still to come; no slot is due then"),
            _ if at < self.created_at => {
                format!("there was no such task at {time}: it was made at {}", self.time(self.created_at))
            }
            Some(due) if due > self.accounted_until && self.paused.is_some() => {
                format!("the slot of {} was skipped", self.time(due))
            }
            Some(due) if due > self.accounted_until => {
                format!("the slot of {} is due and about to be taken", self.time(due))
            }
            _ => match self.before {
                Some(told) => format!("nothing was due at {time}; before that, {}", self.became(told)),
                None => format!("nothing was due at {time}"),
            },
        }
    }

    fn nothing_within(&self, from: Timestamp, until: Timestamp) -> String {
        let span = format!("from {} to {}", self.time(from), self.time(until));
        match self.due {
            Some(due) if due > self.accounted_until && due <= self.now && self.paused.is_some() => {
                format!("the slot of {} was skipped", self.time(due))
            }
            Some(due) if due > self.now => format!("the slot of {} is still to come", self.time(due)),
            Some(due) if due > self.accounted_until => {
                format!("the slot of {} is due and about to be taken", self.time(due))
            }
            _ if until < self.created_at => {
                format!("there was no such task {span}: it was made at {}", self.time(self.created_at))
            }
            _ if from > self.now => format!("no slot is due {span}"),
            _ => format!("nothing was due {span}"),
        }
    }

    fn became(&self, Told { record, run, obstacle }: &Told) -> String {
        let SlotRecord { task: _, key, disposition, recorded_at: _ } = record;
        let slot = self.slot(key);
        let were = were(key);
        match disposition {
            Disposition::Fired { run: id } => match run {
                Some(run) => format!("{slot} {}", self.ran(run)),
                None => format!("{slot} started run {id}, whose record is gone"),
            },
            Disposition::Skipped { why } => {
                format!("{slot} {were} skipped: {}", self.skipped(why, key, obstacle.as_ref()))
            }
            Disposition::Missed { why, folded_into: None } => format!("{slot} {were} missed: {}", missed(why)),
            Disposition::Missed { why, folded_into: Some(id) } => match run {
                Some(run) => self.caught_up(run, key, why),
                None => format!("{slot} {were} missed because {}; run {id} made up for it", missed(why)),
            },
            Disposition::Superseded { by, why } => {
                let by = by.map(|by| format!(" to run {by}")).unwrap_or_default();
                let why = if why == "overlap: cancel-previous" { "a newer slot was due" } else { why };
                format!("{slot} gave way{by}: {why}")
            }
            Disposition::Voided { why } => format!("{slot} {were} voided: {why}"),
        }
    }

    /// A run may stand for more slots than its record's: those on both sides of a slot that had fired before.
    fn caught_up(&self, run: &Run, key: &SlotKey, why: &str) -> String {
        let slots = match &run.cause {
            Cause::CatchUp { from, until: _, count: 1 } => format!("the missed slot of {}", self.time(*from)),
            Cause::CatchUp { from, until, count } => {
                format!("{count} missed slots, from {} to {},", self.time(*from), self.time(*until))
            }
            Cause::Schedule | Cause::Event { .. } | Cause::Manual { .. } | Cause::Retry { .. } => self.slot(key),
        };
        format!("{} as a catch-up run for {slots} because {}{}", self.began(run), missed(why), self.state(run))
    }

    fn slot(&self, key: &SlotKey) -> String {
        match key {
            SlotKey::Instant(at) => format!("the slot of {}", self.time(*at)),
            SlotKey::Range { from, until: _, count: 1 } => format!("the slot of {}", self.time(*from)),
            SlotKey::Range { from, until, count } => {
                format!("{count} slots from {} to {}", self.time(*from), self.time(*until))
            }
            SlotKey::Event(key) => format!("event `{key}`"),
            SlotKey::Manual(_) => "the run by hand".into(),
        }
    }

    fn ran(&self, run: &Run) -> String {
        let (began, state) = (self.began(run), self.state(run));
        match &run.cause {
            Cause::Schedule | Cause::CatchUp { .. } | Cause::Event { count: 0 | 1 } => format!("{began}{state}"),
            Cause::Event { count } => format!("{began} with {count} events{state}"),
            Cause::Manual { by } => format!("{began}, started by {by}{state}"),
            Cause::Retry { of, by: None } => format!("{began} as a retry of {of}{state}"),
            Cause::Retry { of, by: Some(by) } => format!("{began} as a retry of {of}, by hand, {by}{state}"),
        }
    }

    fn began(&self, run: &Run) -> String {
        match run.started_at {
            Some(at) => format!("ran at {}", self.time(at)),
            None => format!("made run {}, which has not begun", run.id),
        }
    }

    fn state(&self, run: &Run) -> String {
        match &run.state {
            RunState::Queued { .. } if run.started_at.is_none() => String::new(),
            RunState::Queued { .. } => "; it is about to go on".into(),
            RunState::Running => "; it is running".into(),
            RunState::Parked { .. } => "; it waits for an answer".into(),
            RunState::Interrupted if self.halted => "; it was interrupted and goes on once work is resumed".into(),
            RunState::Interrupted => "; it was interrupted and goes on at the next start".into(),
            RunState::Idle => "; it sleeps until something happens".into(),
            RunState::Ended(ended) => match ended.outcome.word() {
                "succeeded" => " and succeeded".into(),
                word => format!(" and ended as {word}"),
            },
        }
    }

    fn skipped(&self, why: &str, key: &SlotKey, obstacle: Option<&Run>) -> String {
        let began_by = |run: &Run| match key {
            SlotKey::Instant(at) => run.started_at.is_some_and(|began| began <= *at),
            SlotKey::Range { .. } | SlotKey::Event(_) | SlotKey::Manual(_) => true,
        };
        match (why, obstacle) {
            ("overlap", Some(run)) if !began_by(run) => {
                format!("the run of {} had not begun yet", self.time(run.scheduled_for))
            }
            ("overlap", Some(run)) => {
                let time = self.time(run.scheduled_for);
                let parked =
                    if matches!(run.state, RunState::Parked { .. }) { "waiting for an answer" } else { "running" };
                format!("the run of {time} was still {parked}")
            }
            ("overlap", None) => "an earlier run was still going".into(),
            ("paused", _) => "the task was paused".into(),
            ("paused: all", _) => "everything was paused".into(),
            ("queue full", _) => "another slot was waiting already".into(),
            ("loop", _) => "its causes form a loop".into(),
            ("too many waiting", _) => "too many events were waiting already".into(),
            (other, _) => match other.strip_prefix("held by ") {
                Some(item) => format!("an earlier run was waiting for an answer to item {item}"),
                None => other.into(),
            },
        }
    }

    fn outlook(&self) -> String {
        match (&self.paused, self.next_due) {
            (Some(why), _) => format!("Nothing starts now: {why}"),
            (None, Some(at)) if at <= self.now => format!("The slot of {} is due", self.time(at)),
            (None, Some(at)) => format!("Next at {}", self.time(at)),
            (None, None) => "No further slot is planned; it runs on events or by hand".into(),
        }
    }

    /// As a clock on the wall shows it, with seconds only where there are some.
    fn time(&self, at: Timestamp) -> String {
        let local = at.to_zoned(self.zone.clone());
        let format = if local.second() == 0 { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d %H:%M:%S" };
        local.strftime(format).to_string()
    }
}

const fn were(key: &SlotKey) -> &'static str {
    if count(key) == 1 { "was" } else { "were" }
}

const fn count(key: &SlotKey) -> u64 {
    match key {
        SlotKey::Range { from: _, until: _, count } => *count,
        SlotKey::Instant(_) | SlotKey::Event(_) | SlotKey::Manual(_) => 1,
    }
}

/// The planner's word for why a slot was missed, for a person.
fn missed(why: &str) -> String {
    match why {
        "down" => "owd was down".into(),
        "start deadline" => "it was later than the task's start deadline".into(),
        other => match other.strip_prefix("down: ") {
            Some(more) => format!("owd was down and there were {more}"),
            None => other.into(),
        },
    }
}

#[cfg(test)]
mod tests;
