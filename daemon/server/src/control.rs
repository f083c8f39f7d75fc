use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ow_engine::Trust;
use ow_engine::{AllowableStep, Command, LiveReceiver, PlannedStep};
use ow_model::{
    EventKey, InboxBinding, InboxName, Item, ItemId, Mode, Person, RuleTarget, RunId, SessionId, TaskName, TaskSpec,
    WebhookName,
};
use ow_store::{StoreError, TaskRow};
use serde_json::Value;

use crate::webhook::Webhooks;

/// What the server asks of the running daemon beyond the store.
#[async_trait]
pub trait Control: Send + Sync + 'static {
    /// Something may be due or queued now. A hint, and cheap.
    fn wake(&self);

    /// The same where no task has changed: an event, an answer or a message came.
    fn wake_for_work(&self) {
        self.wake();
    }

    /// A call is about to be let through: what can be made ready for it may be. A hint, and cheap.
    fn expect_call(&self) {}

    /// The kill switch: nothing starts, running calls are stopped, items stay.
    async fn pause_all(&self, by: &str) -> Result<(), StoreError>;
    async fn resume_all(&self) -> Result<(), StoreError>;

    /// A running run must be stopped and ended as cancelled.
    async fn stop_run(&self, run: RunId, why: &str);

    /// The definition of a chat's hidden task; all that is wrong with what is wanted, one text each.
    fn session_spec(&self, wanted: &WantedSession) -> Result<TaskSpec, Vec<String>>;

    /// What is to be known of a model before it is asked for; or why this is no model's name.
    fn check_model(&self, model: &str) -> Result<Vec<String>, String>;

    /// Hands a command to the worker that has the session, and waits until it is durable. False: none has it, or it was
    /// left before it was.
    async fn command(&self, session: SessionId, command: Command) -> bool;

    /// Watches what happens in a session from here on.
    fn watch_session(&self, session: SessionId) -> LiveReceiver;

    /// Parses and checks a definition; all that is wrong with it, one text each. `before`: the task as it is now, whose
    /// `at` may have passed.
    fn check_task(&self, name: &TaskName, text: &str, before: Option<&TaskSpec>) -> Result<TaskSpec, Vec<String>>;

    /// What a run of the task would do now. No effect.
    async fn plan(&self, task: &TaskRow, payload: Option<Value>) -> Result<Vec<PlannedStep>, String>;

    /// What rules for the task's steps would permit.
    async fn allowable(&self, task: &TaskRow) -> Result<Vec<AllowableStep>, String>;

    /// Why a rule would never permit anything; none where it may.
    fn never_permits(&self, target: &RuleTarget) -> Option<String>;

    /// Reads configuration and task files again; what is wrong with them, one text each.
    async fn reload(&self) -> Result<(), Vec<String>>;

    /// The names of all secrets and where each comes from.
    fn secrets(&self) -> Vec<(String, String)> {
        vec![]
    }

    /// What is trusted of workspaces.
    fn trust(&self) -> Arc<Trust>;

    /// What a person should know, apart from the store's damaged records.
    fn warnings(&self) -> Vec<Warning>;

    fn about(&self) -> About;

    fn now(&self) -> Timestamp;

    /// The person behind a user of this machine; none: not entitled to anything.
    fn person_of_uid(&self, uid: u32) -> Option<Person>;

    /// Whether this person may answer this item.
    fn may_answer(&self, person: &Person, item: &Item) -> bool;

    /// The hooks at which senders outside deliver.
    fn webhooks(&self) -> Arc<Webhooks> {
        Arc::default()
    }

    /// A delivery as a sender of this hook would sign it now: with this body and kind of event, otherwise small ones.
    fn sign_sample(
        &self,
        hook: &WebhookName,
        _body: Option<Vec<u8>>,
        _event: Option<&str>,
    ) -> Result<SignedSample, String> {
        Err(format!("webhook `{hook}` has no secret to sign with"))
    }

    /// The inboxes that there are.
    fn inboxes(&self) -> Vec<InboxName> {
        vec![InboxName::default()]
    }

    /// Sends a test notice to all that this inbox is bound to; what went wrong with each.
    async fn try_bindings(&self, _inbox: &InboxName) -> Vec<(InboxBinding, Option<String>)> {
        vec![]
    }

    /// Reads a mail as an answer, and resolves its item if it is one. `by` hands it over: what they may not answer
    /// themselves, a mail from their hands does not answer either.
    async fn take_mail(&self, mail: &HandedMail, by: &Person) -> Result<TakenMail, StoreError>;
}

/// A request that a hook takes, and what it is known by afterwards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SignedSample {
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// None: it cannot be told from others.
    pub key: Option<EventKey>,
}

/// A mail as it was handed over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HandedMail {
    pub raw: Vec<u8>,
    /// It is too large, and only its head is here.
    pub head_only: bool,
}

/// What became of a mail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TakenMail {
    /// As [`ow_protocol::DeliveredView`] has it.
    pub outcome: &'static str,
    pub item: Option<ItemId>,
    pub decision: &'static str,
    pub why: String,
    /// What its sender may be told.
    pub told: Option<String>,
}

/// What a person wants of a chat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedSession {
    pub model: Option<String>,
    pub mode: Mode,
    pub roots: Vec<PathBuf>,
    pub instructions: Option<String>,
    /// None: the default one.
    pub inbox: Option<String>,
}

/// Something that a person should know and can mend.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// `task_file`, `watch`, `config`.
    pub kind: String,
    /// The file, task or record it is about.
    pub about: String,
    pub message: String,
    pub hint: Option<String>,
}

/// The listener for webhooks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerAbout {
    /// Where it listens.
    pub address: SocketAddr,
    /// What senders reach it by, without a slash at the end.
    pub url: String,
}

/// Facts about this owd that do not come from the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct About {
    /// As `0.1.0`.
    pub version: String,
    pub pid: u32,
    pub started_at: Timestamp,
    pub config_dir: PathBuf,
    pub data_dir: PathBuf,
    pub socket: PathBuf,
    /// The address of the TCP listener, if there is one.
    pub tcp: Option<String>,
    pub listener: Option<ListenerAbout>,
    /// Where the log goes: a path, `stderr` or `journald`.
    pub log: String,
    /// The name of the zone in which a person is told times.
    pub zone: String,
    pub workers: u32,
    /// owd drains and is about to end.
    pub stopping: bool,
    /// None: owd has nothing to do with Slack.
    pub slack: Option<SlackAbout>,
}

/// How the connection to Slack stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SlackAbout {
    /// A word of [`SlackView`](ow_protocol::SlackView)'s `state`.
    pub state: &'static str,
    pub team: Option<String>,
    /// Since when a socket is open.
    pub since: Option<Timestamp>,
    /// What went wrong last, and when.
    pub trouble: Option<(Option<Timestamp>, String)>,
}
