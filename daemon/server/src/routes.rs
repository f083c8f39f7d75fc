//! One file a subject; each function is one operation of [`ow_protocol::OPERATIONS`].

mod allow;
mod audit;
mod events;
mod forecast;
mod inboxes;
mod items;
mod mail;
mod rules;
mod runs;
mod secrets;
mod sent;
mod session_stream;
mod sessions;
mod status;
mod stream;
mod tasks;
mod trust;
mod webhooks;
mod why;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{delete, get, post};
use ow_protocol as wire;

use crate::api::Api;

pub(crate) fn router() -> Router<Api> {
    Router::new()
        .route(wire::STATUS, get(status::status))
        .route(wire::PAUSE, post(status::pause_all))
        .route(wire::RESUME, post(status::resume_all))
        .route(wire::RELOAD, post(status::reload))
        .route(wire::BACKUP, post(status::backup))
        .route(wire::TASKS, get(tasks::list))
        .route(wire::TASK, get(tasks::show).put(tasks::save).delete(tasks::delete))
        .route(wire::TASK_RUN, post(tasks::run))
        .route(wire::TASK_PLAN, post(tasks::plan))
        .route(wire::TASK_PAUSE, post(tasks::pause))
        .route(wire::TASK_RESUME, post(tasks::resume))
        .route(wire::TASK_ALLOW, get(allow::preview).post(allow::allow))
        .route(wire::TASK_WHY, get(why::why))
        .route(wire::FORECAST, get(forecast::forecast))
        .route(wire::EVENTS, post(events::accept))
        .route(wire::RUNS, get(runs::list))
        .route(wire::RUN, get(runs::show))
        .route(wire::RUN_CANCEL, post(runs::cancel))
        .route(wire::RUN_RETRY, post(runs::retry))
        .route(wire::RUN_OUTPUT, get(runs::output))
        .route(wire::RUN_SENT, get(sent::of_run))
        .route(wire::RUN_SENT_BODY, get(sent::body_of_run))
        .route(wire::ITEMS, get(items::list))
        .route(wire::ITEM, get(items::show))
        .route(wire::ITEM_ANSWER, post(items::answer))
        .route(wire::ITEM_DELIVERIES, get(inboxes::deliveries))
        .route(wire::ITEM_DELEGATE, post(inboxes::delegate))
        .route(wire::INBOX_TEST, post(inboxes::try_bindings))
        .route(wire::MAIL, post(mail::deliver))
        .route(wire::WEBHOOKS, get(webhooks::list))
        .route(wire::WEBHOOK_SAMPLE, post(webhooks::sample))
        .route(wire::WEBHOOK_DELIVERIES, get(webhooks::deliveries))
        .route(wire::RULES, get(rules::list).post(rules::add))
        .route(wire::RULE, delete(rules::remove))
        .route(wire::SESSIONS, get(sessions::list).post(sessions::create))
        .route(wire::SESSION, get(sessions::show).delete(sessions::remove))
        .route(wire::SESSION_MESSAGES, post(sessions::say))
        .route(wire::SESSION_INTERRUPT, post(sessions::interrupt))
        .route(wire::SESSION_SETTINGS, post(sessions::set))
        .route(wire::SESSION_COMPACT, post(sessions::compact))
        .route(wire::SESSION_STREAM, get(session_stream::stream))
        .route(wire::SESSION_EXPORT, get(sessions::export))
        .route(wire::SESSION_SENT, get(sent::of_session))
        .route(wire::SESSION_SENT_BODY, get(sent::body_of_session))
        .route(wire::AUDIT, get(audit::list))
        .route(wire::AUDIT_CHECK, get(audit::check))
        .route(wire::SECRETS, get(secrets::list))
        .route(wire::TRUST, get(trust::list).post(trust::give).delete(trust::take))
        .route(wire::STREAM, get(stream::stream))
        .route(wire::OPENAPI, get(openapi))
}

/// The document as it stands in the repository; a test keeps it true.
async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], include_str!("../openapi.json"))
}
