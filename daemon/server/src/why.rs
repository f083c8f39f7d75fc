//! Why something ran, or did not, in a sentence. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ow_model::{Cause, Disposition, Run, RunState, SlotKey, SlotRecord};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// What became of the slot within these instants, both included.
    At { from: Timestamp, until: Timestamp },
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
    /// Why the task is paused.
    pub(crate) paused: Option<String>,
    pub(crate) next_due: Option<Timestamp>,
    pub(crate) zone: &'a TimeZone,
    pub(crate) zone_name: &'a str,
}

impl Why<'_> {
    pub(crate) fn answer(&self) -> String {
        let first = match (self.question, self.records.last()) {
            (_, Some(told)) => self.became(told),
            (Question::At { from, .. }, None) => self.nothing_at(from),
            (Question::Lately, None) => "it has not run: nothing was due since then".into(),
        };
        format!("{first}. {}. Times are of {}.", self.outlook(), self.zone_name)
    }

    fn nothing_at(&self, at: Timestamp) -> String {
        let time = self.time(at);
        match self.due {
            Some(due) if due > self.now => format!("{} is still to come; a slot is due then", self.time(due)),
            _ if at > self.now => format!("{time} is still to come; no slot is due then"),
            _ if at < self.created_at => {
                format!("there was no such task at {time}: it was made at {}", self.time(self.created_at))
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

    fn became(&self, Told { record, run, obstacle }: &Told) -> String {
        let SlotRecord { task: _, key, disposition, recorded_at: _ } = record;
        let slot = self.slot(key);
        match disposition {
            Disposition::Fired { run: id } => match run {
                Some(run) => format!("{slot} {}", self.ran(run)),
                None => format!("{slot} started run {id}, whose record is gone"),
            },
            Disposition::Skipped { why } => format!("{slot} was skipped: {}", self.skipped(why, obstacle.as_ref())),
            Disposition::Missed { why, folded_into: Some(id) } => {
                let count = count(key);
                let missed = if count == 1 { "1 missed slot".into() } else { format!("{count} missed slots") };
                match run {
                    Some(run) => {
                        format!("{slot} {} as a catch-up run for {missed} because {why}{}", self.began(run), state(run))
                    }
                    None => format!("{slot} was made up for by run {id} because {why}"),
                }
            }
            Disposition::Missed { why, folded_into: None } => format!("{slot} was missed: {why}"),
            Disposition::Superseded { by: Some(by), why } => format!("{slot} gave way to run {by}: {why}"),
            Disposition::Superseded { by: None, why } => format!("{slot} gave way: {why}"),
            Disposition::Voided { why } => format!("{slot} was voided: {why}"),
        }
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
        let began = self.began(run);
        let state = state(run);
        match &run.cause {
            Cause::Schedule | Cause::Event { count: _ } => format!("{began}{state}"),
            Cause::CatchUp { from, until, count } => format!(
                "{began} as a catch-up run for {count} missed slots, from {} to {}{state}",
                self.time(*from),
                self.time(*until)
            ),
            Cause::Manual { by } => format!("{began}, started by {by}{state}"),
            Cause::Retry { of } => format!("{began} as a retry of {of}{state}"),
        }
    }

    fn began(&self, run: &Run) -> String {
        match run.started_at {
            Some(at) => format!("ran at {}", self.time(at)),
            None => format!("made run {}, which has not begun", run.id),
        }
    }

    fn skipped(&self, why: &str, obstacle: Option<&Run>) -> String {
        match (why, obstacle) {
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

const fn count(key: &SlotKey) -> u64 {
    match key {
        SlotKey::Range { from: _, until: _, count } => *count,
        SlotKey::Instant(_) | SlotKey::Event(_) | SlotKey::Manual(_) => 1,
    }
}

fn state(run: &Run) -> String {
    match &run.state {
        RunState::Queued { .. } if run.started_at.is_none() => String::new(),
        RunState::Queued { .. } => "; it is about to go on".into(),
        RunState::Running => "; it is running".into(),
        RunState::Parked { .. } => "; it waits for an answer".into(),
        RunState::Interrupted => "; it was interrupted and goes on at the next start".into(),
        RunState::Ended(ended) => match ended.outcome.word() {
            "succeeded" => " and succeeded".into(),
            word => format!(" and ended as {word}"),
        },
    }
}
