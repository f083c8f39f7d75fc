//! What the server may ask of the running owd.

use std::net::SocketAddr;
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use jiff::Timestamp;
use ow_automation::Written;
use ow_clock::Clock;
use ow_config::{Config, Host, Paths};
use ow_engine::{AllowableStep, Command, Engine, LiveReceiver, PlannedStep};
use ow_inbox::Channels;
use ow_mail::{Extent, Taken};
use ow_model::{InboxBinding, InboxName, Item, Person, RuleTarget, RunId, SessionId, TaskName, TaskSpec, WebhookName};
use ow_server::{About, Control, HandedMail, SignedSample, TakenMail, WantedSession, Warning, Webhooks};
use ow_store::{SqliteStore, StoreError, TaskRow};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::log::Log;
use crate::mail::MailRoom;
use crate::settings::{Standing, hooks, load_secrets, policy_settings, show_arguments};
use crate::slack::SlackRoom;
use crate::{people, restart, session};

/// What [`OwdControl`] is made of.
pub(crate) struct Facts {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Clock,
    pub(crate) engine: Arc<Engine>,
    pub(crate) automation: ow_automation::Handle,
    pub(crate) channels: Arc<Channels>,
    pub(crate) check: ow_automation::Check,
    pub(crate) standing: Arc<RwLock<Arc<Standing>>>,
    pub(crate) paths: Paths,
    pub(crate) host: Host,
    pub(crate) tcp: Option<SocketAddr>,
    /// Where senders outside deliver.
    pub(crate) listener: Option<SocketAddr>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) log: Log,
    pub(crate) mail: Arc<MailRoom>,
    pub(crate) slack: Arc<SlackRoom>,
    /// What owd was started with: some settings are read only then.
    pub(crate) at_start: Config,
    pub(crate) started_at: Timestamp,
    pub(crate) stop: CancellationToken,
}

pub(crate) struct OwdControl {
    facts: Facts,
    own_uid: u32,
    accounts: people::Accounts,
    /// What the last reload found wrong; the configuration before it stands.
    faults: RwLock<Vec<String>>,
}

impl Facts {
    /// Where nothing that owd runs may knock.
    fn own_addresses(&self) -> Vec<SocketAddr> {
        self.tcp.into_iter().chain(self.listener).collect()
    }
}

impl OwdControl {
    pub(crate) fn new(facts: Facts) -> Self {
        let (own_uid, accounts) = (rustix::process::getuid().as_raw(), people::Accounts::of_machine());
        Self { facts, own_uid, accounts, faults: RwLock::new(vec![]) }
    }

    fn config(&self) -> Arc<Standing> {
        Arc::clone(&self.facts.standing.read().expect("no holder panics"))
    }

    /// Reads configuration, secrets and task files again, and reopens the log. A broken configuration changes nothing.
    pub(crate) async fn reload_all(&self) -> Result<(), Vec<String>> {
        let facts = &self.facts;
        let read = Config::load_if_present(&facts.paths.config_file, &facts.host)
            .map_err(|error| error.faults.iter().map(ToString::to_string).collect::<Vec<_>>())
            .and_then(|config| {
                let made = load_secrets(&config, &facts.paths).and_then(|secrets| {
                    let agents = crate::models::agents(&config, &facts.paths, &secrets, &facts.clock)?;
                    Ok((secrets, agents))
                });
                made.map(|(secrets, agents)| (config, secrets, agents)).map_err(|error| vec![format!("{error:#}")])
            });
        let mut faults = match read {
            Ok((config, secrets, agents)) => {
                let settings = policy_settings(&config, &facts.paths, &facts.host, &facts.own_addresses());
                let reopened = facts.log.reload(&config.log);
                let defaults = config.task_defaults(&facts.host);
                facts.engine.reload_hooks(hooks(&config, &facts.paths));
                show_arguments(&facts.store, &config, &secrets);
                crate::channels::apply(&*facts.store, &facts.channels, &config, &secrets);
                facts.webhooks.replace(crate::webhooks::settings(&config, &secrets));
                *facts.standing.write().expect("no holder panics") = Arc::new(Standing::new(config, defaults));
                let standing = self.config();
                facts.mail.apply(&standing.config, &secrets);
                facts.slack.apply(&standing.config, &secrets);
                facts.engine.reload(settings, secrets, Some(agents));
                reopened.err().map(|error| format!("{error:#}")).into_iter().collect()
            }
            Err(faults) => faults,
        };
        self.faults.write().expect("no holder panics").clone_from(&faults);
        faults.extend(facts.automation.reload_tasks().await);
        info!("configuration and task files are read again");
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

#[async_trait]
impl Control for OwdControl {
    fn wake(&self) {
        self.facts.automation.wake();
    }

    fn wake_for_work(&self) {
        self.facts.automation.wake_for_work();
    }

    fn expect_call(&self) {
        self.facts.engine.expect_call();
    }

    async fn pause_all(&self, by: &str) -> Result<(), StoreError> {
        self.facts.automation.pause_all(by).await
    }

    async fn resume_all(&self) -> Result<(), StoreError> {
        self.facts.automation.resume_all().await
    }

    async fn stop_run(&self, run: RunId, why: &str) {
        self.facts.automation.stop_run(run, why).await;
    }

    fn session_spec(&self, wanted: &WantedSession) -> Result<TaskSpec, Vec<String>> {
        session::spec(wanted, &self.config().defaults)
    }

    fn check_model(&self, model: &str) -> Result<Vec<String>, String> {
        session::check_model(model)?;
        Ok(self.facts.engine.model_warnings(model))
    }

    async fn command(&self, session: SessionId, command: Command) -> bool {
        self.facts.engine.command(session, command).await
    }

    fn watch_session(&self, session: SessionId) -> LiveReceiver {
        self.facts.engine.live().subscribe(session)
    }

    fn check_task(&self, name: &TaskName, text: &str, before: Option<&TaskSpec>) -> Result<TaskSpec, Vec<String>> {
        (self.facts.check)(&Written { name, text, file: None, before }, self.facts.clock.now())
    }

    async fn plan(&self, task: &TaskRow, payload: Option<Value>) -> Result<Vec<PlannedStep>, String> {
        let planned = self.facts.engine.plan(task.id, &task.spec, task.revision, payload).await;
        planned.map_err(|error| error.to_string())
    }

    async fn allowable(&self, task: &TaskRow) -> Result<Vec<AllowableStep>, String> {
        self.facts.engine.allowable(&task.spec).await.map_err(|error| error.to_string())
    }

    fn never_permits(&self, target: &RuleTarget) -> Option<String> {
        self.facts.engine.never_permits(target)
    }

    async fn reload(&self) -> Result<(), Vec<String>> {
        self.reload_all().await
    }

    fn secrets(&self) -> Vec<(String, String)> {
        let secrets = self.facts.engine.secrets();
        secrets.origins().map(|(name, origin)| (name.to_string(), origin.to_string())).collect()
    }

    fn trust(&self) -> Arc<ow_engine::Trust> {
        self.facts.engine.trust()
    }

    fn warnings(&self) -> Vec<Warning> {
        let config_file = self.facts.paths.config_file.to_string_lossy().into_owned();
        let faults = self.faults.read().expect("no holder panics").clone();
        let of_config = faults.into_iter().map(|fault| Warning {
            kind: "config".into(),
            about: config_file.clone(),
            message: fault,
            hint: Some("mend it, then run `owctl reload`; until then the configuration before it stands".into()),
        });
        let of_automation = self.facts.automation.warnings().into_iter().map(|warning| Warning {
            kind: warning.kind.word().into(),
            about: warning.about,
            message: warning.message,
            hint: warning.hint,
        });
        let waiting =
            restart::waiting(&self.facts.at_start, &self.config().config).into_iter().map(|setting| Warning {
                kind: "restart".into(),
                about: config_file.clone(),
                message: format!("{setting} has changed since owd started, and is read only then"),
                hint: Some("restart owd to have it used".into()),
            });
        let surfaces = self.facts.mail.desk.warnings().into_iter().chain(self.facts.slack.warnings());
        of_config.chain(waiting).chain(of_automation).chain(surfaces).collect()
    }

    fn about(&self) -> About {
        let facts = &self.facts;
        let standing = self.config();
        About {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started_at: facts.started_at,
            config_dir: facts.paths.config_dir.clone(),
            data_dir: facts.paths.data_dir.clone(),
            socket: facts.paths.socket.clone(),
            tcp: facts.tcp.map(|address| address.to_string()),
            listener: facts.listener.map(|address| crate::webhooks::about(&standing.config, address)),
            log: facts.log.place.clone(),
            zone: standing.config.timezone.0.clone(),
            // A new number waits for the next start.
            workers: facts.at_start.scheduler.workers,
            stopping: facts.stop.is_cancelled(),
            slack: facts.slack.about(),
        }
    }

    fn now(&self) -> Timestamp {
        self.facts.clock.now()
    }

    fn person_of_uid(&self, uid: u32) -> Option<Person> {
        people::person_of(&self.config().config, &self.accounts, self.own_uid, uid)
    }

    fn may_answer(&self, person: &Person, item: &Item) -> bool {
        people::may_answer(&self.config().config, person, item)
    }

    fn webhooks(&self) -> Arc<Webhooks> {
        Arc::clone(&self.facts.webhooks)
    }

    fn sign_sample(
        &self,
        hook: &WebhookName,
        body: Option<Vec<u8>>,
        event: Option<&str>,
    ) -> Result<SignedSample, String> {
        let wanted = crate::webhooks::Wanted { hook, body, event };
        crate::webhooks::signed(&self.config().config, &self.facts.engine.secrets(), wanted, self.now())
    }

    fn inboxes(&self) -> Vec<InboxName> {
        self.config().config.inbox_names().into_iter().collect()
    }

    async fn try_bindings(&self, inbox: &InboxName) -> Vec<(InboxBinding, Option<String>)> {
        let bindings = crate::channels::bindings(&self.config().config, inbox);
        ow_inbox::try_bindings(&self.facts.channels, bindings, self.now()).await
    }

    async fn take_mail(&self, mail: &HandedMail, by: &Person) -> Result<TakenMail, StoreError> {
        let HandedMail { raw, head_only } = mail;
        let extent = if *head_only { Extent::Head } else { Extent::Whole };
        let Taken { outcome, item, decision, why, told, sender: _, bounced: _ } =
            self.facts.mail.desk.take_from(raw, extent, Some(by), None).await?;
        Ok(TakenMail { outcome: outcome.word(), item, decision, why, told })
    }
}
