use std::fmt::Write as _;

use hyper::Method;
use ow_protocol::{
    AcceptedEvents, AllowPreview, AllowRequest, AnswerRequest, AuditCheckView, AuditEntryView, BackupRequest,
    BackupView, DelegateRequest, DeliverRequest, DeliveredView, DeliveryFateView, DeliveryView, ForecastEntry,
    ItemView, NewEvents, NewRule, PROTOCOL_VERSION, Page, PageQuery, PauseRequest, PlanView, RuleView, RunDetail,
    RunNowRequest, RunView, SampleRequest, SampleView, SaveTask, SavedTask, SecretView, SentView, StatusView, TaskView,
    TriedBinding, WebhookView, WhyView,
};
use ow_protocol::{NewTrust, TrustView};
use serde::Deserialize;
use serde_json::Value;

use crate::client::{Ask, BACKUP_LIMIT};
use crate::{Client, ClientError};

pub(crate) type Answer<T> = Result<T, ClientError>;

/// What `why` is asked about: one instant, or a span. Instants are RFC 3339.
#[derive(Clone, Debug, Default)]
pub struct WhyQuery {
    pub at: Option<String>,
    pub from: Option<String>,
    pub until: Option<String>,
    pub limit: Option<usize>,
}

/// Which future slots are asked for. Instants are RFC 3339.
#[derive(Clone, Debug, Default)]
pub struct ForecastQuery {
    pub from: Option<String>,
    pub until: Option<String>,
    pub task: Option<String>,
    /// The cursor that the page before gave.
    pub after: Option<String>,
    pub limit: Option<usize>,
}

impl Client {
    /// # Errors
    ///
    /// [`ClientError::Version`] if the protocols differ, also where the rest of the answer cannot be read.
    pub async fn status(&mut self) -> Answer<StatusView> {
        #[derive(Deserialize)]
        struct Speaks {
            protocol: u32,
            version: String,
        }
        let bytes = self.bytes(Ask::get(ow_protocol::STATUS.into())).await?;
        let speaks: Speaks = serde_json::from_slice(&bytes).map_err(ClientError::unreadable)?;
        if speaks.protocol != PROTOCOL_VERSION {
            return Err(ClientError::Version { running: speaks.version, theirs: speaks.protocol });
        }
        serde_json::from_slice(&bytes).map_err(ClientError::unreadable)
    }

    pub async fn pause_all(&mut self) -> Answer<()> {
        self.act(Ask::with(Method::POST, ow_protocol::PAUSE.into(), &PauseRequest {})).await
    }

    pub async fn resume_all(&mut self) -> Answer<()> {
        self.act(Ask::bare(Method::POST, ow_protocol::RESUME.into())).await
    }

    pub async fn reload(&mut self) -> Answer<StatusView> {
        self.read(Ask::bare(Method::POST, ow_protocol::RELOAD.into())).await
    }

    pub async fn backup(&mut self, request: &BackupRequest) -> Answer<BackupView> {
        let mut ask = Ask::with(Method::POST, ow_protocol::BACKUP.into(), request);
        ask.limit = BACKUP_LIMIT;
        self.read(ask).await
    }

    pub async fn tasks(&mut self, query: &PageQuery) -> Answer<Page<TaskView>> {
        self.read(Ask::get(paged(ow_protocol::TASKS, query))).await
    }

    pub async fn task(&mut self, name: &str) -> Answer<TaskView> {
        self.read(Ask::get(path(ow_protocol::TASK, &[name]))).await
    }

    pub async fn save_task(&mut self, name: &str, request: &SaveTask) -> Answer<SavedTask> {
        self.read(Ask::with(Method::PUT, path(ow_protocol::TASK, &[name]), request)).await
    }

    pub async fn delete_task(&mut self, name: &str) -> Answer<()> {
        self.act(Ask::bare(Method::DELETE, path(ow_protocol::TASK, &[name]))).await
    }

    pub async fn run_task(&mut self, name: &str, request: &RunNowRequest) -> Answer<RunView> {
        self.read(Ask::with(Method::POST, path(ow_protocol::TASK_RUN, &[name]), request)).await
    }

    pub async fn plan_task(&mut self, name: &str, request: &RunNowRequest) -> Answer<PlanView> {
        self.read(Ask::with(Method::POST, path(ow_protocol::TASK_PLAN, &[name]), request)).await
    }

    pub async fn pause_task(&mut self, name: &str) -> Answer<()> {
        self.act(Ask::bare(Method::POST, path(ow_protocol::TASK_PAUSE, &[name]))).await
    }

    pub async fn resume_task(&mut self, name: &str) -> Answer<()> {
        self.act(Ask::bare(Method::POST, path(ow_protocol::TASK_RESUME, &[name]))).await
    }

    /// All steps if `step` is none.
    pub async fn preview_allow(&mut self, name: &str, step: Option<u32>) -> Answer<AllowPreview> {
        let mut target = Target::new(path(ow_protocol::TASK_ALLOW, &[name]));
        target.add("step", step);
        self.read(Ask::get(target.done())).await
    }

    pub async fn allow_task(&mut self, name: &str, request: &AllowRequest) -> Answer<Page<RuleView>> {
        self.read(Ask::with(Method::POST, path(ow_protocol::TASK_ALLOW, &[name]), request)).await
    }

    pub async fn why(&mut self, name: &str, query: &WhyQuery) -> Answer<WhyView> {
        let WhyQuery { at, from, until, limit } = query;
        let mut target = Target::new(path(ow_protocol::TASK_WHY, &[name]));
        target.add("at", at.as_ref());
        target.add("from", from.as_ref());
        target.add("until", until.as_ref());
        target.add("limit", *limit);
        self.read(Ask::get(target.done())).await
    }

    pub async fn forecast(&mut self, query: &ForecastQuery) -> Answer<Page<ForecastEntry>> {
        let ForecastQuery { from, until, task, after, limit } = query;
        let mut target = Target::new(ow_protocol::FORECAST.into());
        target.add("from", from.as_ref());
        target.add("until", until.as_ref());
        target.add("task", task.as_ref());
        target.add("after", after.as_ref());
        target.add("limit", *limit);
        self.read(Ask::get(target.done())).await
    }

    pub async fn accept_events(&mut self, events: &NewEvents) -> Answer<AcceptedEvents> {
        self.read(Ask::with(Method::POST, ow_protocol::EVENTS.into(), events)).await
    }

    pub async fn runs(&mut self, query: &PageQuery) -> Answer<Page<RunView>> {
        self.read(Ask::get(paged(ow_protocol::RUNS, query))).await
    }

    pub async fn run(&mut self, id: &str) -> Answer<RunDetail> {
        self.read(Ask::get(path(ow_protocol::RUN, &[id]))).await
    }

    pub async fn cancel_run(&mut self, id: &str) -> Answer<RunView> {
        self.read(Ask::bare(Method::POST, path(ow_protocol::RUN_CANCEL, &[id]))).await
    }

    pub async fn retry_run(&mut self, id: &str) -> Answer<RunView> {
        self.read(Ask::bare(Method::POST, path(ow_protocol::RUN_RETRY, &[id]))).await
    }

    /// The whole of an output that the run's view had to cut.
    pub async fn run_output(&mut self, id: &str, hash: &str) -> Answer<Vec<u8>> {
        self.bytes(Ask::get(path(ow_protocol::RUN_OUTPUT, &[id, hash]))).await
    }

    /// What went to models in a run.
    pub async fn sent(&mut self, id: &str) -> Answer<Page<SentView>> {
        self.read(Ask::get(path(ow_protocol::RUN_SENT, &[id]))).await
    }

    /// The body of one request to a model, byte for byte.
    pub async fn sent_body(&mut self, id: &str, number: u32) -> Answer<Vec<u8>> {
        self.bytes(Ask::get(path(ow_protocol::RUN_SENT_BODY, &[id, &number.to_string()]))).await
    }

    pub async fn items(&mut self, query: &PageQuery) -> Answer<Page<ItemView>> {
        self.read(Ask::get(paged(ow_protocol::ITEMS, query))).await
    }

    pub async fn item(&mut self, id: &str) -> Answer<ItemView> {
        self.read(Ask::get(path(ow_protocol::ITEM, &[id]))).await
    }

    pub async fn answer_item(&mut self, id: &str, answer: &AnswerRequest) -> Answer<ItemView> {
        self.read(Ask::with(Method::POST, path(ow_protocol::ITEM_ANSWER, &[id]), answer)).await
    }

    /// Where an item was told of, oldest first.
    pub async fn deliveries(&mut self, id: &str) -> Answer<Page<DeliveryView>> {
        self.read(Ask::get(path(ow_protocol::ITEM_DELIVERIES, &[id]))).await
    }

    pub async fn delegate_item(&mut self, id: &str, inbox: &str) -> Answer<ItemView> {
        let request = DelegateRequest { inbox: inbox.to_owned() };
        self.read(Ask::with(Method::POST, path(ow_protocol::ITEM_DELEGATE, &[id]), &request)).await
    }

    /// Sends a test notice to all that an inbox is bound to.
    pub async fn try_bindings(&mut self, inbox: &str) -> Answer<Page<TriedBinding>> {
        self.read(Ask::bare(Method::POST, path(ow_protocol::INBOX_TEST, &[inbox]))).await
    }

    /// Hands a mail over.
    pub async fn deliver_mail(&mut self, request: &DeliverRequest) -> Answer<DeliveredView> {
        self.read(Ask::with(Method::POST, ow_protocol::MAIL.into(), request)).await
    }

    pub async fn rules(&mut self, query: &PageQuery) -> Answer<Page<RuleView>> {
        self.read(Ask::get(paged(ow_protocol::RULES, query))).await
    }

    pub async fn add_rule(&mut self, rule: &NewRule) -> Answer<RuleView> {
        self.read(Ask::with(Method::POST, ow_protocol::RULES.into(), rule)).await
    }

    pub async fn remove_rule(&mut self, id: &str) -> Answer<()> {
        self.act(Ask::bare(Method::DELETE, path(ow_protocol::RULE, &[id]))).await
    }

    pub async fn audit(&mut self, query: &PageQuery) -> Answer<Page<AuditEntryView>> {
        self.read(Ask::get(paged(ow_protocol::AUDIT, query))).await
    }

    pub async fn check_audit(&mut self) -> Answer<AuditCheckView> {
        self.read(Ask::get(ow_protocol::AUDIT_CHECK.into())).await
    }

    pub async fn webhooks(&mut self) -> Answer<Page<WebhookView>> {
        self.read(Ask::get(ow_protocol::WEBHOOKS.into())).await
    }

    pub async fn sign_sample(&mut self, hook: &str, request: &SampleRequest) -> Answer<SampleView> {
        self.read(Ask::with(Method::POST, path(ow_protocol::WEBHOOK_SAMPLE, &[hook]), request)).await
    }

    /// What became of a delivery, by task.
    pub async fn delivery(&mut self, hook: &str, key: &str) -> Answer<Page<DeliveryFateView>> {
        let mut target = Target::new(path(ow_protocol::WEBHOOK_DELIVERIES, &[hook]));
        target.add("key", Some(key));
        self.read(Ask::get(target.done())).await
    }

    pub async fn secrets(&mut self) -> Answer<Page<SecretView>> {
        self.read(Ask::get(ow_protocol::SECRETS.into())).await
    }

    /// What the workspace in a folder brings; without one, of all that are trusted.
    pub async fn trust(&mut self, folder: Option<&str>) -> Answer<Page<TrustView>> {
        self.read(Ask::get(with_path(ow_protocol::TRUST, folder))).await
    }

    pub async fn give_trust(&mut self, trust: &NewTrust) -> Answer<TrustView> {
        self.read(Ask::with(Method::POST, ow_protocol::TRUST.into(), trust)).await
    }

    pub async fn take_trust(&mut self, folder: &str) -> Answer<()> {
        self.act(Ask::bare(Method::DELETE, with_path(ow_protocol::TRUST, Some(folder)))).await
    }

    /// The `OpenAPI` document.
    pub async fn openapi(&mut self) -> Answer<Value> {
        self.read(Ask::get(ow_protocol::OPENAPI.into())).await
    }
}

/// A path and the query after it.
pub(crate) struct Target(String, char);

impl Target {
    pub(crate) fn new(path: String) -> Self {
        Self(path, '?')
    }

    pub(crate) fn add(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.push(self.1);
            self.0.push_str(name);
            self.0.push('=');
            encode(&value.to_string(), &mut self.0);
            self.1 = '&';
        }
    }

    pub(crate) fn done(self) -> String {
        self.0
    }
}

fn with_path(route: &str, folder: Option<&str>) -> String {
    let mut target = Target::new(route.into());
    target.add("path", folder);
    target.done()
}

pub(crate) fn paged(path: &str, query: &PageQuery) -> String {
    let PageQuery { after, limit, task, state, run, name } = query;
    let mut target = Target::new(path.into());
    target.add("after", after.as_ref());
    target.add("limit", *limit);
    target.add("task", task.as_ref());
    target.add("state", state.as_ref());
    target.add("run", run.as_ref());
    target.add("name", name.as_ref());
    target.done()
}

/// Fills the `{…}` of a route, in order.
pub(crate) fn path(route: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let mut text = String::new();
    for (index, segment) in route.split('/').enumerate() {
        if index > 0 {
            text.push('/');
        }
        if segment.starts_with('{') {
            encode(values.next().expect("each hole of a route is given a value"), &mut text);
        } else {
            text.push_str(segment);
        }
    }
    text
}

/// Percent-encodes all but unreserved characters, so that a value is never read as structure.
fn encode(value: &str, into: &mut String) {
    // `.` and `..` alone would be taken for steps in the tree.
    let dots = value.bytes().all(|byte| byte == b'.');
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') || (byte == b'.' && !dots) {
            into.push(char::from(byte));
        } else {
            write!(into, "%{byte:02X}").expect("writing to a String does not fail");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_never_read_as_structure() {
        assert_eq!(path(ow_protocol::TASK_RUN, &["a/b?c"]), "/v1/tasks/a%2Fb%3Fc/run");
        assert_eq!(path(ow_protocol::TASK, &[".."]), "/v1/tasks/%2E%2E");
        assert_eq!(path(ow_protocol::RUN_OUTPUT, &["r", "h"]), "/v1/runs/r/output/h");
    }

    #[test]
    fn only_given_filters_are_asked_for() {
        assert_eq!(paged("/v1/tasks", &PageQuery::default()), "/v1/tasks");
        let query = PageQuery { limit: Some(5), name: Some("ä b".into()), ..PageQuery::default() };
        assert_eq!(paged("/v1/tasks", &query), "/v1/tasks?limit=5&name=%C3%A4%20b");
    }
}
