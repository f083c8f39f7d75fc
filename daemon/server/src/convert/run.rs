use jiff::Timestamp;
use ow_model::{
    Cause, EndedRun, EventPayload, Fact, Failure, ModelFailure, NewEvent, Outcome, RecordedFact, Run, RunState, Wake,
};
use ow_protocol::{CauseView, RunView};
use serde_json::{Value, json};

use super::instant;

pub(crate) fn run_view(run: &Run) -> RunView {
    let Run {
        id,
        order: _,
        task: _,
        task_name,
        revision,
        cause,
        scheduled_for,
        created_at,
        started_at,
        ended_at,
        state,
        depth: _,
        attempt,
        retry_of,
        ran_for_ms,
    } = run;
    let State { message, failure, items } = State::of(state);
    RunView {
        id: id.to_string(),
        task: task_name.to_string(),
        revision: *revision,
        cause: cause_view(cause),
        state: state.word().into(),
        message,
        failure: failure.map(Into::into),
        items,
        scheduled_for: instant(*scheduled_for),
        created_at: instant(*created_at),
        started_at: started_at.map(instant),
        ended_at: ended_at.map(instant),
        attempt: *attempt,
        retry_of: retry_of.as_ref().map(ToString::to_string),
        ran_for_ms: *ran_for_ms,
    }
}

/// What a run's state says beyond its word.
#[derive(Default)]
struct State {
    message: Option<String>,
    failure: Option<&'static str>,
    items: Vec<String>,
}

impl State {
    fn of(state: &RunState) -> Self {
        let said = |message: String| Self { message: Some(message), ..Self::default() };
        match state {
            RunState::Queued { not_before: Some(at), answered: _ } => said(format!("waits until {at}")),
            RunState::Queued { not_before: None, answered: true } => said("answered; goes on next".into()),
            RunState::Queued { not_before: None, answered: false } | RunState::Running => Self::default(),
            RunState::Parked { items, holds } => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                let held = if *holds { "" } else { "; holds back no slots" };
                let count = items.len();
                let answers = if count == 1 { "an answer".into() } else { format!("{count} answers") };
                Self { message: Some(format!("waits for {answers}{held}")), failure: None, items }
            }
            RunState::Interrupted => said("was stopped in the middle; goes on at the next start".into()),
            RunState::Idle => said("sleeps until something happens".into()),
            RunState::Ended(EndedRun { outcome }) => match outcome {
                Outcome::Succeeded => Self::default(),
                Outcome::Failed { failure, message } => {
                    Self { message: Some(message.clone()), failure: Some(failure_word(*failure)), items: vec![] }
                }
                Outcome::Refused { message } => said(message.clone()),
                Outcome::Expired { item } => said(format!("nobody answered item {item} in time")),
                Outcome::Cancelled { why } | Outcome::Missed { why } => said(why.clone()),
            },
        }
    }
}

/// What a session that rests sleeps for, as its journal says it last.
pub(crate) fn sleeps_until(state: &RunState, facts: &[RecordedFact]) -> Option<String> {
    let rests = matches!(state, RunState::Idle | RunState::Queued { not_before: Some(_), .. });
    match &facts.last()?.fact {
        Fact::Slept { until, on, note: _ } if rests => Some(slept_words(*until, on)),
        _ => None,
    }
}

pub(crate) fn slept_words(until: Option<Timestamp>, on: &[Wake]) -> String {
    let until = until.map(|until| until.to_string());
    let all: Vec<String> = on.iter().map(ToString::to_string).chain(until).collect();
    format!("sleeps until {}", all.join(" or "))
}

pub(crate) const fn failure_word(failure: Failure) -> &'static str {
    match failure {
        Failure::Step => "step",
        Failure::Timeout => "timeout",
        Failure::Unknown => "unknown",
        Failure::Template => "template",
        Failure::Unreachable => "unreachable",
        Failure::Internal => "internal",
        Failure::Iterations => "iterations",
        Failure::Loop => "loop",
        Failure::NoAnswer => "no-answer",
        Failure::Budget => "budget",
        Failure::Model(why) => match why {
            ModelFailure::Auth => "model-auth",
            ModelFailure::Quota => "model-quota",
            ModelFailure::Overflow => "model-overflow",
            ModelFailure::Refusal => "model-refusal",
            ModelFailure::BadRequest => "model-bad-request",
            ModelFailure::RateLimit => "model-rate-limit",
            ModelFailure::Unavailable => "model-unavailable",
            ModelFailure::Unreachable => "model-unreachable",
            ModelFailure::Garbage => "model-garbage",
            ModelFailure::TooLarge => "model-too-large",
        },
    }
}

fn cause_view(cause: &Cause) -> CauseView {
    let (kind, text, count) = match cause {
        Cause::Schedule => ("schedule", "its schedule".into(), None),
        Cause::CatchUp { from, until: _, count: 1 } => ("catch-up", format!("1 slot missed, that of {from}"), Some(1)),
        Cause::CatchUp { from, until, count } => {
            ("catch-up", format!("{count} slots missed from {from} to {until}"), Some(*count))
        }
        Cause::Event { count: 1 } => ("event", "1 event".into(), Some(1)),
        Cause::Event { count } => ("event", format!("{count} events"), Some(u64::from(*count))),
        Cause::Manual { by } => ("manual", format!("by hand, {by}"), None),
        Cause::Retry { of, by: None } => ("retry", format!("retry of {of}"), None),
        Cause::Retry { of, by: Some(by) } => ("retry", format!("retry of {of} by hand, {by}"), None),
    };
    CauseView { kind: kind.into(), text, count }
}

/// An event that a run was given.
pub(crate) fn event_value(event: NewEvent) -> Value {
    let NewEvent { task: _, key, payload: EventPayload { kind, data }, depth: _ } = event;
    json!({ "key": key.0, "kind": kind, "data": data })
}
