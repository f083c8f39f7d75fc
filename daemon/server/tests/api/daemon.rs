//! An owd whose store and server are real and whose engine is not.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use ow_engine::{AllowableStep, Command, Commands, Live, LiveReceiver, PlannedStep};
use ow_model::{
    AgentSpec, Binding, BlobHash, Call, CallHash, Category, Fact, Item, ItemId, ItemKind, Person, Position, RuleTarget,
    RunId, SessionId, Span, TaskName, TaskSource, TaskSpec,
};
use ow_server::{
    About, Control, HandedMail, Key, Lineage, Options, Server, SocketAccess, TakenMail, Tcp, WantedSession, Warning,
};
use ow_store::{NewItem, ParkRequest, SqliteStore, Store, StoreError, TakenRun, TaskRow};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::client::Client;

pub(crate) const KEY: &str = "a-key-of-the-tests-0123456789";
pub(crate) const ALLOWED_ORIGIN: &str = "https://desk.example";

pub(crate) struct Daemon {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) control: Arc<FakeControl>,
    pub(crate) socket: PathBuf,
    pub(crate) tcp: SocketAddr,
    pub(crate) stop: CancellationToken,
    server: JoinSet<std::io::Result<()>>,
    folder: TempDir,
}

impl Daemon {
    /// One that takes the tests themselves for strangers.
    pub(crate) fn start() -> Self {
        Self::start_with(Lineage::of(vec![]))
    }

    pub(crate) fn start_with(lineage: Lineage) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("data")).unwrap();
        let control = Arc::new(FakeControl::new(Arc::clone(&store)));
        let socket = folder.path().join("owd.sock");
        let server = Server::bind_unix(&socket, SocketAccess::Owner).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let options = Options {
            tcp: Some(Tcp {
                listener,
                key: Key::new(KEY).unwrap(),
                person: Person("anna".into()),
                allowed_origins: vec![ALLOWED_ORIGIN.into()],
            }),
            webhooks: None,
            lineage,
        };
        let mut running = JoinSet::new();
        running.spawn(server.serve(Arc::clone(&store) as _, Arc::clone(&control) as _, options, stop.clone()));
        Self { store, control, socket, tcp, stop, server: running, folder }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::unix(&self.socket).await
    }

    pub(crate) async fn web(&self) -> Client {
        Client::tcp(self.tcp, KEY).await
    }

    /// Stops it and waits until its server has ended.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        self.server.join_next().await.expect("it runs").expect("no panic").expect("a clean end");
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.control.now()
    }

    pub(crate) async fn save(&self, name: &str, change: impl FnOnce(&mut TaskSpec)) -> TaskName {
        let mut spec = spec(name);
        change(&mut spec);
        self.store.save_task(&spec, TaskSource::Store, "", None, self.now()).await.unwrap();
        spec.name
    }

    /// Runs the task by hand up to its being taken by a worker.
    pub(crate) async fn begin(&self, task: &TaskName) -> TakenRun {
        let id = self.store.run_now(task, "anna", None, self.now()).await.unwrap();
        let taken = self.store.take_runs(100, 100, true, self.now()).await.unwrap();
        taken.into_iter().find(|taken| taken.run.id == id).expect("it was queued just now")
    }

    /// Parks a taken run on items of these kinds.
    pub(crate) async fn park(&self, taken: &TakenRun, kinds: Vec<ItemKind>) -> Vec<ItemId> {
        let run = taken.run.id;
        let items = (0..)
            .zip(kinds)
            .map(|(index, kind)| {
                let item = NewItem {
                    task: Some(taken.run.task_name.clone()),
                    run: Some(run),
                    title: format!("item {index}"),
                    kind,
                    expires_in: Some(Span::from_secs(3600)),
                    remind_after: None,
                    inbox: ow_model::InboxName::default(),
                };
                (Position(index), item)
            })
            .collect();
        let facts = vec![Fact::Started { cause: taken.run.cause.clone(), context: json!({}) }];
        let next = u32::try_from(taken.journal.len()).unwrap();
        let request = ParkRequest { run, next, facts, items, ran_for_ms: 1 };
        self.store.park(&request, self.now()).await.unwrap()
    }

    /// An approval that waits, of a task of its own.
    pub(crate) async fn approval(&self, task: &str) -> ItemId {
        let task = self.save(task, |_| {}).await;
        let taken = self.begin(&task).await;
        self.park(&taken, vec![approval(0, Some(rule_offer()))]).await[0]
    }

    pub(crate) async fn notification(&self, text: &str) -> ItemId {
        let item = NewItem {
            task: None,
            run: None,
            title: text.into(),
            kind: ItemKind::Notification { text: text.into() },
            expires_in: None,
            remind_after: None,
            inbox: ow_model::InboxName::default(),
        };
        self.store.notify(&item, text, self.now()).await.unwrap()
    }
}

pub(crate) fn spec(name: &str) -> TaskSpec {
    serde_json::from_value(definition(name)).expect("a spec")
}

/// What the fake daemon takes for a definition: a spec in JSON.
pub(crate) fn definition(name: &str) -> Value {
    json!({
        "name": name, "title": null, "timezone": "Europe/Paris", "triggers": [{ "cron": "0 9 * * *" }], "steps": [],
        "mode": "ask", "roots": [], "catch-up": "once", "overlap": "skip", "while-parked": "hold",
        "events": { "batch": { "max": 1000 } }, "start-deadline": null, "jitter": "0s", "timeout": "1h",
        "call-timeout": "10m", "retry": { "attempts": 0, "backoff": "1m" }, "auto-pause-after": 0, "concurrency": null,
        "needs": [], "item-expiry": "14d", "item-reminder": "1d", "http-allow": [],
    })
}

pub(crate) fn call(position: u32) -> Call {
    Call { position: Position(position), tool: "shell".parse().unwrap(), args: json!({ "argv": ["echo", "hello"] }) }
}

pub(crate) fn approval(position: u32, rule_offer: Option<RuleTarget>) -> ItemKind {
    let call = call(position);
    ItemKind::Approval {
        hash: call.hash(),
        call,
        category: Category::Exec,
        reason: "mode ask".into(),
        binding: Binding::default(),
        rule_offer,
        session_offer: ow_model::SessionOffer::default(),
        diff: None,
    }
}

pub(crate) fn rule_offer() -> RuleTarget {
    RuleTarget::Call { hash: CallHash(BlobHash::of(b"call")) }
}

pub(crate) fn step(number: u32, text: &str, holes: &[&str]) -> AllowableStep {
    let text_hash = BlobHash::of(text.as_bytes());
    AllowableStep {
        step: number,
        tool: "shell".parse().unwrap(),
        text: text.into(),
        text_hash,
        holes: holes.iter().map(|hole| (*hole).into()).collect(),
        target: Ok(RuleTarget::Step {
            step: number,
            text: text_hash,
            program: Some(("/bin/echo".into(), BlobHash::of(b"echo"))),
            parts: vec![("/bin/cat".into(), BlobHash::of(b"cat"))],
            holes: holes.iter().map(|hole| (*hole).into()).collect(),
        }),
        allowed: false,
    }
}

/// What the server asked of the daemon, and what it is answered.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) now: Timestamp,
    pub(crate) wakes: u32,
    pub(crate) stopped: Vec<(RunId, String)>,
    /// For each definition that was checked, the task that it was checked against.
    pub(crate) checked_against: Vec<Option<String>>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) plan: Result<Vec<PlannedStep>, String>,
    pub(crate) allowable: Result<Vec<AllowableStep>, String>,
    pub(crate) never_permits: Option<String>,
    pub(crate) reload: Result<(), Vec<String>>,
    pub(crate) person: Option<Person>,
    pub(crate) may_answer: bool,
    pub(crate) stopping: bool,
}

pub(crate) struct FakeControl {
    script: Mutex<Script>,
    store: Arc<SqliteStore>,
    pub(crate) live: Arc<Live>,
    pub(crate) commands: Arc<Commands>,
}

impl FakeControl {
    fn new(store: Arc<SqliteStore>) -> Self {
        let script = Script {
            now: "2026-03-28T12:00:00Z".parse().unwrap(),
            wakes: 0,
            stopped: vec![],
            checked_against: vec![],
            warnings: vec![],
            plan: Ok(vec![]),
            allowable: Ok(vec![]),
            never_permits: None,
            reload: Ok(()),
            person: Some(Person("anna".into())),
            may_answer: true,
            stopping: false,
        };
        Self { script: Mutex::new(script), store, live: Live::new(), commands: Commands::new() }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    pub(crate) fn script(&self) -> Script {
        self.script.lock().unwrap().clone()
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.change(|script| script.now += SignedDuration::from_secs(seconds));
    }
}

#[async_trait]
impl Control for FakeControl {
    fn wake(&self) {
        self.change(|script| script.wakes += 1);
    }

    async fn pause_all(&self, by: &str) -> Result<(), StoreError> {
        self.store.pause_all(by, self.now()).await
    }

    async fn resume_all(&self) -> Result<(), StoreError> {
        self.store.resume_all(self.now()).await
    }

    async fn stop_run(&self, run: RunId, why: &str) {
        self.change(|script| script.stopped.push((run, why.into())));
    }

    fn session_spec(&self, wanted: &WantedSession) -> Result<TaskSpec, Vec<String>> {
        let WantedSession { model, mode, roots, instructions, inbox } = wanted.clone();
        if let Some(model) = &model {
            self.check_model(model).map_err(|why| vec![why])?;
        }
        let mut spec = spec("chat");
        (spec.triggers, spec.mode, spec.roots) = (vec![], mode, roots);
        if let Some(inbox) = inbox {
            spec.inbox = inbox.parse().map_err(|_| vec![format!("`{inbox}` is no inbox")])?;
        }
        spec.agent = Some(AgentSpec { model, instructions, ..AgentSpec::default() });
        Ok(spec)
    }

    fn check_model(&self, model: &str) -> Result<Vec<String>, String> {
        match model.split_once(':') {
            _ if model.contains(' ') => Err(format!("`{model}` is no model")),
            Some(("nosuch", _)) => Ok(vec!["`nosuch` is no known provider".into()]),
            _ => Ok(vec![]),
        }
    }

    async fn command(&self, session: SessionId, command: Command) -> bool {
        self.commands.send(session, command).await
    }

    fn watch_session(&self, session: SessionId) -> LiveReceiver {
        self.live.subscribe(session)
    }

    fn check_task(&self, name: &TaskName, text: &str, before: Option<&TaskSpec>) -> Result<TaskSpec, Vec<String>> {
        let spec: TaskSpec = serde_json::from_str(text).map_err(|error| vec![error.to_string()])?;
        self.change(|script| script.checked_against.push(before.map(|before| before.name.to_string())));
        if spec.name == *name { Ok(spec) } else { Err(vec![format!("`name`: `{}` is not `{name}`", spec.name)]) }
    }

    async fn plan(&self, _task: &TaskRow, _payload: Option<Value>) -> Result<Vec<PlannedStep>, String> {
        self.script().plan
    }

    async fn allowable(&self, _task: &TaskRow) -> Result<Vec<AllowableStep>, String> {
        self.script().allowable
    }

    fn never_permits(&self, _target: &RuleTarget) -> Option<String> {
        self.script().never_permits
    }

    async fn reload(&self) -> Result<(), Vec<String>> {
        self.script().reload
    }

    fn trust(&self) -> Arc<ow_engine::Trust> {
        Arc::new(ow_engine::Trust::open("/nonexistent".into()))
    }

    fn warnings(&self) -> Vec<Warning> {
        self.script().warnings
    }

    fn about(&self) -> About {
        let Script { now, stopping, .. } = self.script();
        About {
            version: "0.1.0".into(),
            pid: std::process::id(),
            started_at: now,
            config_dir: "/etc/owd".into(),
            data_dir: "/var/lib/owd".into(),
            socket: "/run/owd/owd.sock".into(),
            tcp: None,
            listener: None,
            log: "stderr".into(),
            zone: "Europe/Paris".into(),
            workers: 4,
            stopping,
            slack: None,
        }
    }

    fn now(&self) -> Timestamp {
        self.script().now
    }

    fn person_of_uid(&self, uid: u32) -> Option<Person> {
        self.script().person.filter(|_| uid == rustix::process::getuid().as_raw())
    }

    fn may_answer(&self, _person: &Person, _item: &Item) -> bool {
        self.script().may_answer
    }

    async fn take_mail(&self, mail: &HandedMail, by: &Person) -> Result<TakenMail, StoreError> {
        let why = format!("{} bytes from the hands of {}", mail.raw.len(), by.0);
        Ok(TakenMail { outcome: "not-understood", item: None, decision: "none", why, told: Some("say more".into()) })
    }
}
