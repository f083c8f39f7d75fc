use jiff::Timestamp;
use jiff::tz::TimeZone;
use ow_model::{Cause, EventPayload, Run, TaskSpec};
use serde_json::{Value, json};

/// What templates may read, apart from the results of earlier steps.
#[derive(Clone, Copy, Debug)]
pub struct RunContext<'a> {
    pub spec: &'a TaskSpec,
    pub run: &'a Run,
    /// The run's own folder, as text.
    pub folder: &'a RunFolder,
    /// The events that the run was given, oldest first.
    pub events: &'a [EventPayload],
    pub zone: &'a TimeZone,
    pub now: Timestamp,
}

/// A path as templates see it.
#[derive(Clone, Debug)]
pub struct RunFolder(pub String);

/// Builds `task`, `slot`, `run` and `event`: fixed in the run's first fact, the same after each resume.
///
/// `slot.date` is `2026-03-08`, `slot.time` `06:00:00`, `slot.instant` RFC 3339 with the zone's offset, all in
/// the task's zone; `slot.late_seconds` is how late the run began. `event` holds the newest event's fields and its
/// `kind`, and in `event.batch` every event that the run was given, oldest first; `event.count` says how many.
#[must_use]
pub fn context(of: &RunContext<'_>) -> Value {
    let slot = of.run.scheduled_for.to_zoned(of.zone.clone());
    let missed = match &of.run.cause {
        Cause::CatchUp { from, until, count } => {
            json!({ "count": count, "from": from.to_string(), "until": until.to_string() })
        }
        _ => json!({ "count": 0 }),
    };
    let events: Vec<Value> = of.events.iter().map(event).collect();
    json!({
        "task": {
            "name": of.spec.name.as_str(),
            "title": of.spec.title.as_deref().unwrap_or(of.spec.name.as_str()),
            "revision": of.run.revision,
        },
        "slot": {
            "instant": slot.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            "date": slot.strftime("%Y-%m-%d").to_string(),
            "time": slot.strftime("%H:%M:%S").to_string(),
            "year": slot.year(),
            "month": slot.strftime("%m").to_string(),
            "day": slot.strftime("%d").to_string(),
            "weekday": slot.strftime("%A").to_string(),
            "unix": slot.timestamp().as_second(),
            "late_seconds": (of.now.as_second() - of.run.scheduled_for.as_second()).max(0),
            "missed": missed,
        },
        "run": {
            "id": of.run.id.to_string(),
            "folder": of.folder.0,
            "attempt": of.run.attempt,
            "cause": cause_word(&of.run.cause),
        },
        "event": newest(&events),
    })
}

fn newest(events: &[Value]) -> Value {
    let mut newest = events.last().cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(fields) = &mut newest {
        fields.insert("batch".into(), Value::Array(events.to_vec()));
        fields.insert("count".into(), events.len().into());
    }
    newest
}

fn event(payload: &EventPayload) -> Value {
    // The kind is ours; what the sender wrote stands beside it and cannot hide it.
    let mut object = match &payload.data {
        Value::Object(fields) => fields.clone(),
        Value::Null => serde_json::Map::new(),
        other => serde_json::Map::from_iter([("data".to_owned(), other.clone())]),
    };
    object.insert("kind".into(), Value::String(payload.kind.clone()));
    Value::Object(object)
}

const fn cause_word(cause: &Cause) -> &'static str {
    match cause {
        Cause::Schedule => "schedule",
        Cause::CatchUp { .. } => "catch-up",
        Cause::Event { .. } => "event",
        Cause::Manual { .. } => "manual",
        Cause::Retry { .. } => "retry",
    }
}
