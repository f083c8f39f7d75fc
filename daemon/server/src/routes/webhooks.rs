use axum::Json as Answer;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_model::{EventKey, WebhookName};
use ow_protocol::{DeliveryFateView, Page, SampleRequest, SampleView, WebhookView};
use ow_store::EventFate;
use serde::Deserialize;

use crate::api::Api;
use crate::control::SignedSample;
use crate::convert::{disposition, webhook_view};
use crate::extract::{JsonOrDefault, Path, Query};
use crate::guard::Caller;
use crate::problem::Problem;

pub(super) async fn list(State(api): State<Api>, _caller: Caller) -> Result<Answer<Page<WebhookView>>, Problem> {
    let about = api.control.about().listener;
    let mut rows = vec![];
    for hook in api.control.webhooks().all() {
        let tasks = api.store.tasks_on(&hook.settings.name.source()).await?;
        let tasks = tasks.into_iter().map(|task| task.spec.name.to_string()).collect();
        rows.push(webhook_view(&hook, tasks, about.as_ref()));
    }
    Ok(Answer(Page { rows, next: None }))
}

pub(super) async fn sample(
    State(api): State<Api>,
    _caller: Caller,
    Path(name): Path<String>,
    JsonOrDefault(request): JsonOrDefault<SampleRequest>,
) -> Result<Answer<SampleView>, Problem> {
    let SampleRequest { body, event } = request;
    let name = find(&api, &name)?;
    let listener = api.control.about().listener.ok_or_else(|| {
        Problem::invalid("owd has no listener for webhooks")
            .with_hint("set `[listener] address` in owd.toml, then restart owd")
    })?;
    let body = body.map(|body| STANDARD.decode(body)).transpose();
    let body = body.map_err(|error| Problem::invalid(format!("`body` is not base64: {error}")))?;
    let SignedSample { headers, body, key } =
        api.control.sign_sample(&name, body, event.as_deref()).map_err(Problem::invalid)?;
    Ok(Answer(SampleView {
        address: listener.address.to_string(),
        path: format!("/hooks/{name}"),
        headers,
        body: STANDARD.encode(body),
        key: key.map(|key| key.to_string()),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeliveryQuery {
    key: String,
}

pub(super) async fn deliveries(
    State(api): State<Api>,
    _caller: Caller,
    Path(name): Path<String>,
    Query(DeliveryQuery { key }): Query<DeliveryQuery>,
) -> Result<Answer<Page<DeliveryFateView>>, Problem> {
    let (name, key) = (find(&api, &name)?, EventKey(key));
    let mut rows = vec![];
    for task in api.store.tasks_on(&name.source()).await? {
        let fate = api.store.event_fate(task.id, &key).await?;
        let (fate, why, run) = match &fate {
            None => ("unknown", None, None),
            Some(EventFate::Waiting) => ("waiting", None, None),
            Some(EventFate::Recorded(recorded)) => disposition(recorded),
        };
        rows.push(DeliveryFateView {
            task: task.spec.name.to_string(),
            fate: fate.into(),
            run: run.map(ToString::to_string),
            why: why.cloned(),
        });
    }
    Ok(Answer(Page { rows, next: None }))
}

fn find(api: &Api, name: &str) -> Result<WebhookName, Problem> {
    let parsed: Option<WebhookName> = name.parse().ok();
    parsed.filter(|name| api.control.webhooks().find(name).is_some()).ok_or_else(|| {
        Problem::not_found(format!("there is no webhook `{name}`")).with_hint("`owctl webhook list` lists them")
    })
}
