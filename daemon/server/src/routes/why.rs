use axum::Json as Answer;
use axum::extract::State;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, civil};
use ow_model::{Disposition, Run, RunId, SlotKey, SlotRecord, TaskState};
use ow_protocol::WhyView;
use ow_schedule::Schedule;
use ow_store::{PageRequest, RunFilter, TaskRow};
use serde::Deserialize;

use super::tasks::find;
use crate::api::Api;
use crate::convert::{pause_words, slot_view};
use crate::extract::{Named, Query, bounded, instant};
use crate::guard::Caller;
use crate::limits::WHY_LIMIT;
use crate::problem::Problem;
use crate::why::{Question, Told, Why};

/// Records that are shown when the request names no number.
const SHOWN: usize = 20;
/// Records that are read at a time while looking for the latest ones.
const READ: usize = 5000;
/// Runs that are looked through for the one that stood in the way.
const RUNS: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WhyQuery {
    at: Option<String>,
    from: Option<String>,
    until: Option<String>,
    limit: Option<usize>,
}

pub(super) async fn why(
    State(api): State<Api>,
    _caller: Caller,
    Named(name): Named,
    Query(WhyQuery { at, from, until, limit }): Query<WhyQuery>,
) -> Result<Answer<WhyView>, Problem> {
    let limit = bounded(limit, SHOWN, WHY_LIMIT)?;
    let task = find(&api, &name).await?;
    let now = api.control.now();
    let zone = TimeZone::get(&task.spec.timezone.0).unwrap_or(TimeZone::UTC);
    let (question, records) = match (at, from, until) {
        (Some(at), None, None) if let Some((from, until)) = whole_day(&at, &zone) => {
            (Question::Within { from, until }, api.store.slots(task.id, from, until, limit).await?)
        }
        (Some(at), None, None) => {
            let at = moment(&at, &zone, now)?;
            (Question::At { from: at.0, until: at.1 }, api.store.slots(task.id, at.0, at.1, limit).await?)
        }
        (None, None, None) => (Question::Lately, latest(&api, &task, now, limit).await?),
        (None, from, until) => {
            let from = from.map(|text| instant("from", &text)).transpose()?.unwrap_or(task.created_at);
            let until = until.map(|text| instant("until", &text)).transpose()?.unwrap_or(now);
            if from > until {
                return Err(Problem::bad_request("`from` is later than `until`"));
            }
            (Question::Within { from, until }, api.store.slots(task.id, from, until, limit).await?)
        }
        (Some(_), _, _) => return Err(Problem::bad_request("`at` does not go together with `from` and `until`")),
    };
    let records = tell(&api, &task, records).await?;
    let before = match question {
        Question::At { from, .. } if records.is_empty() && from <= now => {
            let earlier = latest(&api, &task, from, 1).await?;
            tell(&api, &task, earlier).await?.pop()
        }
        Question::At { .. } | Question::Within { .. } | Question::Lately => None,
    };
    let due = due_within(&task, question);
    let paused_all = api.store.stats().await?.paused_all;
    let halted = paused_all.is_some();
    let paused = match (paused_all, &task.state) {
        (Some(by), _) => Some(format!("everything is paused by {by}; `owctl resume --all` lets work go on")),
        (None, TaskState::Paused { reason, since: _ }) => Some(pause_words(reason)),
        (None, TaskState::Active | TaskState::Deleted { .. }) => None,
    };
    let behind_pause = paused.as_ref().and_then(|_| behind_pause(&task, now));
    let answer = Why {
        question,
        records: &records,
        before: before.as_ref(),
        due,
        now,
        created_at: task.created_at,
        accounted_until: task.accounted_until,
        paused,
        halted,
        behind_pause,
        next_due: task.next_due,
        zone: &zone,
        zone_name: &task.spec.timezone.0,
    }
    .answer();
    let records = records
        .iter()
        .map(|Told { record, run, .. }| slot_view(record, run.as_ref().map(|run| run.state.word().into())))
        .collect();
    Ok(Answer(WhyView { task: name.to_string(), answer, records, next_due: task.next_due.map(|at| at.to_string()) }))
}

/// From the beginning to the end of a day on the task's clocks; none where a time is given.
fn whole_day(text: &str, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
    let day = text.parse::<civil::Date>().ok().filter(|day| day.to_string() == text)?;
    let begins = |day: civil::Date| day.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    Some((begins(day)?, begins(day.tomorrow().ok()?)?))
}

/// The instants that a person means: one, or the whole minute if no seconds are given. A time without a zone is
/// read in the task's, one without a day as today's.
fn moment(text: &str, zone: &TimeZone, now: Timestamp) -> Result<(Timestamp, Timestamp), Problem> {
    let at = if let Ok(at) = text.parse::<Timestamp>() {
        at
    } else {
        let local = text.parse::<civil::DateTime>().or_else(|_| {
            let time = text.parse::<civil::Time>()?;
            Ok::<_, jiff::Error>(now.to_zoned(zone.clone()).date().to_datetime(time))
        });
        let local = local.map_err(|_| {
            Problem::bad_request(format!("`at={text}` is not a time"))
                .with_hint("write it as in `2026-03-29T09:00`, `09:00` or `2026-03-29T09:00:00+02:00`")
        })?;
        let shown = zone.to_timestamp(local).map_err(|error| Problem::bad_request(format!("`at={text}`: {error}")))?;
        // A slot whose time a clock leaves out comes at the first instant after the gap.
        match zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Gap { .. } => zone.preceding(shown).next().map_or(shown, |change| change.timestamp()),
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => shown,
        }
    };
    let whole_minute = at.as_nanosecond().rem_euclid(60_000_000_000) == 0;
    let until = if whole_minute { at.checked_add(SignedDuration::from_millis(59_999)).unwrap_or(at) } else { at };
    Ok((at, until))
}

/// The latest records up to `until`, oldest first. The store gives the oldest of a span, so the span grows from
/// the end until it holds enough.
async fn latest(api: &Api, task: &TaskRow, until: Timestamp, limit: usize) -> Result<Vec<SlotRecord>, Problem> {
    let mut span = SignedDuration::from_mins(1);
    loop {
        let from = until.checked_sub(span).unwrap_or(Timestamp::MIN);
        let mut records = api.store.slots(task.id, from, until, READ).await?;
        let reaches_back = from <= task.created_at;
        if records.len() >= limit || reaches_back {
            records.drain(..records.len().saturating_sub(limit));
            return Ok(records);
        }
        span = span.saturating_mul(16);
    }
}

/// Adds to each record the run that it names and the one that stood in its way.
async fn tell(api: &Api, task: &TaskRow, records: Vec<SlotRecord>) -> Result<Vec<Told>, Problem> {
    let overlapped = records.iter().any(|record| matches!(&record.disposition, Disposition::Skipped { .. }));
    let runs = if overlapped {
        let filter = RunFilter { task: Some(task.spec.name.clone()), ..RunFilter::default() };
        api.store.runs(&filter, &PageRequest { after: None, limit: RUNS }).await?.rows
    } else {
        vec![]
    };
    let mut told = Vec::with_capacity(records.len());
    for record in records {
        let run = match named_run(&record.disposition) {
            None => None,
            Some(id) => api.store.run(id).await?,
        };
        let obstacle = match (&record.key, &record.disposition) {
            (SlotKey::Instant(at), Disposition::Skipped { .. }) => open_at(&runs, *at),
            _ => None,
        };
        told.push(Told { record, run, obstacle });
    }
    Ok(told)
}

const fn named_run(disposition: &Disposition) -> Option<RunId> {
    match disposition {
        Disposition::Fired { run } => Some(*run),
        Disposition::Missed { why: _, folded_into: run } | Disposition::Superseded { by: run, why: _ } => *run,
        Disposition::Skipped { .. } | Disposition::Voided { .. } => None,
    }
}

fn open_at(runs: &[Run], at: Timestamp) -> Option<Run> {
    runs.iter().find(|run| run.created_at <= at && run.ended_at.is_none_or(|ended| ended > at)).cloned()
}

/// The first slot that the present definition has in the span that is asked about.
fn due_within(task: &TaskRow, question: Question) -> Option<Timestamp> {
    let (from, until) = match question {
        Question::At { from, until } => (from, until),
        // What is past and has no record was not due by the definition that held then.
        Question::Within { from, until } => (from.max(task.accounted_until), until),
        Question::Lately => return None,
    };
    let schedule = Schedule::compile(&task.spec, task.created_at).ok()?;
    let just_before = from.checked_sub(SignedDuration::from_nanos(1)).ok()?;
    schedule.next_after(just_before).filter(|at| *at <= until)
}

/// The slots that have come due and have no record yet.
fn behind_pause(task: &TaskRow, now: Timestamp) -> Option<SlotKey> {
    let schedule = Schedule::compile(&task.spec, task.created_at).ok()?;
    let horizon = now.checked_sub(schedule.jitter()).ok()?;
    let from = schedule.next_after(task.accounted_until).filter(|from| *from <= horizon)?;
    let count = schedule.count(task.accounted_until, horizon);
    let until = schedule.newest(task.accounted_until, horizon, 1).pop()?;
    Some(if count == 1 { SlotKey::Instant(from) } else { SlotKey::Range { from, until, count } })
}
