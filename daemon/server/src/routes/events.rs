use axum::Json as Answer;
use axum::extract::State;
use ow_model::{EventKey, EventPayload, NewEvent};
use ow_protocol::{AcceptedEvents, ErrorCode, NewEventView, NewEvents};
use ow_store::Accepted;

use crate::api::Api;
use crate::extract::Json;
use crate::guard::Caller;
use crate::limits::{EVENT_KEY_LIMIT, EVENTS_LIMIT};
use crate::problem::Problem;

pub(super) async fn accept(
    State(api): State<Api>,
    _caller: Caller,
    Json(NewEvents { events }): Json<NewEvents>,
) -> Result<Answer<AcceptedEvents>, Problem> {
    if events.len() > EVENTS_LIMIT {
        return Err(Problem::new(
            ErrorCode::TooLarge,
            format!("{} events at once; at most {EVENTS_LIMIT} are taken", events.len()),
        ));
    }
    let events: Vec<_> = events.into_iter().map(new_event).collect::<Result<_, _>>()?;
    let answers = api.store.accept_events(&events, api.control.now()).await?;
    let accepted = answers.iter().filter(|answer| **answer == Accepted::New).count() as u64;
    if accepted > 0 {
        api.control.wake_for_work();
    }
    Ok(Answer(AcceptedEvents { accepted, duplicates: answers.len() as u64 - accepted }))
}

fn new_event(NewEventView { task, key, data }: NewEventView) -> Result<NewEvent, Problem> {
    if key.is_empty() || key.len() > EVENT_KEY_LIMIT {
        return Err(Problem::invalid(format!(
            "an event's key is {} bytes long: use 1 to {EVENT_KEY_LIMIT}",
            key.len()
        )));
    }
    if let Some(own) = EventKey::OWN.iter().find(|own| key.starts_with(**own)) {
        return Err(Problem::invalid(format!("the key `{key}` begins with `{own}`, which marks owd's own events")));
    }
    let payload = EventPayload { kind: "event".into(), data };
    Ok(NewEvent { task: task.parse()?, key: EventKey(key), payload, depth: 0 })
}
