use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use ow_model::{
    CatchUp, EventDelivery, ItemId, Mode, Overlap, Retry, RunId, Span, TaskSpec, Trigger, WhileParked, ZoneName,
};
use ow_schedule::{ActiveRun, ActiveState, Gate, Plan, PlanInput, Schedule, plan};
use serde_json::Value;

pub(crate) fn cases(name: &str) -> Value {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../tests/cases", name].iter().collect();
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("cases are JSON")
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {value}"))
}

/// An instant, also without seconds, as the cases write it.
pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().or_else(|_| text.replace('Z', ":00Z").parse()).unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

pub(crate) fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

pub(crate) fn cron(expr: &str) -> Trigger {
    Trigger::Cron(expr.into())
}

pub(crate) fn every(period: Span) -> Trigger {
    Trigger::Every { period, anchor: None }
}

pub(crate) fn task(zone: &str, triggers: Vec<Trigger>) -> TaskSpec {
    TaskSpec {
        name: "job".parse().expect("a name"),
        title: None,
        timezone: ZoneName(zone.into()),
        triggers,
        steps: vec![],
        agent: None,
        mode: Mode::Ask,
        roots: vec![],
        catch_up: CatchUp::Once,
        overlap: Overlap::Skip,
        while_parked: WhileParked::Hold,
        events: EventDelivery::default(),
        start_deadline: None,
        jitter: Span::default(),
        timeout: Span::from_secs(3600),
        call_timeout: Span::from_secs(600),
        retry: Retry { attempts: 0, backoff: Span::from_secs(60) },
        auto_pause_after: 0,
        concurrency: None,
        needs: vec![],
        item_expiry: Span::from_secs(14 * 86_400),
        item_reminder: Span::from_secs(86_400),
        http_allow: vec![],
        inbox: ow_model::InboxName::default(),
    }
}

pub(crate) fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 10])
}

pub(crate) fn item(number: u8) -> ItemId {
    ItemId::from_bytes([number; 10])
}

pub(crate) fn queued(number: u8) -> ActiveRun {
    ActiveRun { run: run(number), state: ActiveState::Queued }
}

pub(crate) fn running(number: u8) -> ActiveRun {
    ActiveRun { run: run(number), state: ActiveState::Running }
}

/// Parked on its own question, the item of the same number.
pub(crate) fn parked(number: u8) -> ActiveRun {
    ActiveRun { run: run(number), state: ActiveState::Parked { item: item(number), holds: true } }
}

pub(crate) fn parked_on_unknown(number: u8) -> ActiveRun {
    ActiveRun { run: run(number), state: ActiveState::Parked { item: item(number), holds: false } }
}

/// One moment of a task: awake since long ago, everything before `accounted_until` recorded.
pub(crate) struct Moment {
    pub(crate) spec: TaskSpec,
    pub(crate) schedule: Schedule,
    pub(crate) now: Timestamp,
    pub(crate) awake_since: Timestamp,
    pub(crate) accounted_until: Timestamp,
    pub(crate) fired_ahead: Vec<Timestamp>,
    pub(crate) gate: Gate,
    pub(crate) active: Vec<ActiveRun>,
    pub(crate) waiting: Vec<ow_model::WaitingEvent>,
}

impl Moment {
    pub(crate) fn new(spec: TaskSpec, accounted_until: &str, now: &str) -> Self {
        let accounted_until = at(accounted_until);
        Self {
            schedule: Schedule::compile(&spec, accounted_until).expect("a schedule"),
            spec,
            now: at(now),
            awake_since: accounted_until,
            accounted_until,
            fired_ahead: vec![],
            gate: Gate::Open,
            active: vec![],
            waiting: vec![],
        }
    }

    /// owd was down or asleep until now.
    pub(crate) fn asleep(mut self) -> Self {
        self.awake_since = self.now;
        self
    }

    pub(crate) fn beside(mut self, active: Vec<ActiveRun>) -> Self {
        self.active = active;
        self
    }

    /// Plans; new runs get the ids 101, 102 and so on.
    pub(crate) fn plan(&self) -> Plan {
        let mut last = 100;
        plan(
            &PlanInput {
                spec: &self.spec,
                schedule: &self.schedule,
                now: self.now,
                awake_since: self.awake_since,
                accounted_until: self.accounted_until,
                fired_ahead: &self.fired_ahead,
                gate: self.gate.clone(),
                active: &self.active,
                waiting: &self.waiting,
            },
            &mut || {
                last += 1;
                run(last)
            },
        )
    }
}

/// A plan in short lines: runs, records, cancelled runs, held back, refused events, when to look next.
pub(crate) fn lines(plan: &Plan) -> Vec<String> {
    let named = |text: String| {
        (0..=u8::MAX).fold(text, |text, number| text.replace(&run(number).to_string(), &format!("#{number}")))
    };
    let mut lines = Vec::new();
    for planned in &plan.runs {
        let events = if planned.events.is_empty() {
            String::new()
        } else {
            format!(" events {:?}", planned.events.iter().map(|event| event.0).collect::<Vec<_>>())
        };
        let cause = match &planned.cause {
            ow_model::Cause::Schedule => "schedule".to_owned(),
            ow_model::Cause::CatchUp { from, until, count } => format!("catch-up {from}..{until} ({count})"),
            ow_model::Cause::Event { count } => format!("event ({count})"),
            other => format!("{other:?}"),
        };
        lines.push(format!("run {} {cause} for {}{events}", planned.id, planned.scheduled_for));
    }
    for (key, disposition) in &plan.records {
        let what = match disposition {
            ow_model::Disposition::Fired { run } => format!("fired {run}"),
            ow_model::Disposition::Skipped { why } => format!("skipped: {why}"),
            ow_model::Disposition::Missed { why, folded_into: None } => format!("missed: {why}"),
            ow_model::Disposition::Missed { why, folded_into: Some(run) } => format!("missed: {why} -> {run}"),
            ow_model::Disposition::Superseded { by, why } => {
                format!("superseded: {why} by {}", by.map_or("none".into(), |by| by.to_string()))
            }
            ow_model::Disposition::Voided { why } => format!("voided: {why}"),
        };
        lines.push(format!("{key} {what}"));
    }
    lines.extend(plan.cancel.iter().map(|(run, why)| format!("cancel {run}: {why}")));
    lines.extend(plan.held_back.iter().map(|(item, count)| format!("{item} holds back {count}")));
    lines.extend(plan.refused.iter().map(|(event, why)| format!("refuse event {}: {why}", event.0)));
    lines.push(plan.wake_at.map_or("wake: never".into(), |at| format!("wake: {at}")));
    lines.into_iter().map(named).collect()
}
