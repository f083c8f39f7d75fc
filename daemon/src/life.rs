//! One life of owd: the parts are built, run, and drained.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, RwLock};

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use jiff::Timestamp;
use listenfd::ListenFd;
use ow_automation::{Automation, Performer, Written};
use ow_clock::Clock;
use ow_config::{Config, Host, LogTarget, Paths, TaskDefaults};
use ow_engine::{Engine, Stop, Trust};
use ow_inbox::{Channels, Post};
use ow_model::{Person, TaskSpec};
use ow_server::{Lineage, Listener, Options, Server, SocketAccess, Tcp};
use ow_store::{SqliteStore, Store, TakenRun};
use ow_tool::{Helpers, Limits, Toolbox};
use sd_notify::NotifyState;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::args::{Places, host};
use crate::control::{Facts, OwdControl};
use crate::demo::Narrator;
use crate::detach::{DETACHED, READY_LINE};
use crate::log::Log;
use crate::mail::{MailDesk, MailRoom};
use crate::people::{Accounts, person_of};
use crate::settings::{Standing, hooks, load_secrets, policy_settings, retention, show_arguments};
use crate::signals::{SignalEvent, Signals};
use crate::slack::SlackRoom;
use crate::tools::{Behind, Checker};

/// Workers kept for runs that go on after an answer.
const ANSWERED_WORKERS: usize = 2;

/// Runs owd in the foreground until it is told to stop.
pub(crate) fn run(places: &Places) -> anyhow::Result<ExitCode> {
    start(places, None)
}

/// The same, with somebody who tells on standard output what happens.
pub(crate) fn run_narrated(places: &Places, narrator: Narrator) -> anyhow::Result<ExitCode> {
    start(places, Some(narrator))
}

fn start(places: &Places, narrator: Option<Narrator>) -> anyhow::Result<ExitCode> {
    let mut paths = places.paths()?;
    let host = host();
    let mut config = Config::load_if_present(&paths.config_file, &host)?;
    let detached = std::env::var_os(DETACHED).is_some();
    if detached {
        rustix::process::setsid().context("cannot make a session of its own")?;
        config.log.target = LogTarget::File;
    }
    let log = Log::start(&config.log, &paths.log_file)?;
    keep_environment_private();
    // The store is opened before threads and sockets: a second owd must change nothing.
    let store = SqliteStore::open(&paths.data_dir)?;
    // Policy compares real paths: from here on none of owd's own has a link in it.
    for own in [&mut paths.data_dir, &mut paths.config_dir] {
        if let Ok(real) = own.canonicalize() {
            *own = real;
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("owd")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let life = Life { paths, host, config, log, store, system: places.is_system(), detached, narrator };
    let code = runtime.block_on(life.live());
    // What still hangs in a file system must not hold up the end.
    runtime.shutdown_background();
    code
}

struct Life {
    paths: Paths,
    host: Host,
    config: Config,
    log: Log,
    store: Arc<SqliteStore>,
    system: bool,
    detached: bool,
    narrator: Option<Narrator>,
}

impl Life {
    async fn live(mut self) -> anyhow::Result<ExitCode> {
        let mut signals = Signals::listen()?;
        let clock = Clock::system();
        let started_at = clock.now();
        let store: Arc<dyn Store> = self.store.clone();
        let server = self.server()?;
        let tcp = self.tcp()?;
        let listener = crate::webhooks::bind(&self.config)?;

        let mut toolbox = Toolbox::builtin();
        ow_inbox::register(&mut toolbox, Arc::clone(&store));
        let this = std::env::current_exe().context("cannot tell where owd is")?;
        let helpers = Helpers::new(this, vec!["helper".into()]);
        let behind = Behind { jobs: helpers.background().clone(), ..Behind::default() };
        let task_tools = crate::tools::register(&mut toolbox, &self.config, &behind);
        let Behind { slack: slack_app, outgoing, .. } = behind;
        let secrets = load_secrets(&self.config, &self.paths)?;
        let channels = Arc::new(Channels::default());
        let toolbox = Arc::new(toolbox);
        show_arguments(&self.store, &self.config, &secrets);
        crate::channels::apply(&*self.store, &channels, &self.config, &secrets);
        let hooks_outside = crate::webhooks::shared(&self.config, &secrets);
        let agents = crate::models::agents(&self.config, &self.paths, &secrets, &clock)?;
        let tcp_address = tcp.as_ref().map(|tcp| tcp.listener.local_addr()).transpose().context("no TCP address")?;
        let listener_address = listener.as_ref().map(std::net::TcpListener::local_addr).transpose();
        let listener_address = listener_address.context("no address of the listener")?;
        let own_addresses: Vec<SocketAddr> = tcp_address.into_iter().chain(listener_address).collect();
        let engine = Engine::new(ow_engine::Parts {
            store: Arc::clone(&store),
            clock: clock.clone(),
            toolbox: Arc::clone(&toolbox),
            helpers: Arc::new(helpers),
            settings: policy_settings(&self.config, &self.paths, &self.host, &own_addresses),
            secrets: Arc::clone(&secrets),
            hooks: hooks(&self.config, &self.paths),
            trust: Arc::new(Trust::open(self.paths.data_dir.clone())),
            home: self.host.home.clone(),
            runs_dir: self.paths.data_dir.join("runs"),
            grace: self.config.scheduler.grace,
            limits: Limits::default(),
            agents: Some(agents),
        });
        let defaults = self.config.task_defaults(&self.host);
        let standing = Arc::new(RwLock::new(Arc::new(Standing::new(self.config.clone(), defaults))));
        let checker = Arc::new(Checker { toolbox: Arc::clone(&toolbox) });
        // The tools hold the store, which must end with the last of them.
        let tools = Arc::downgrade(&toolbox);
        self.store.check_edits(Arc::new(move |tool, args| {
            let tools = tools.upgrade();
            tools.as_deref().and_then(|tools| tools.tool(tool)).map_or(Ok(()), |tool| tool.check(args))
        }));
        let check = {
            let (standing, checker) = (Arc::clone(&standing), Arc::clone(&checker));
            Arc::new(move |written: &Written<'_>, now: Timestamp| {
                let defaults = standing.read().expect("no holder panics").defaults.clone();
                check_task(written, &defaults, &checker, now)
            })
        };
        let automation = Automation::start(ow_automation::Parts {
            store: Arc::clone(&store),
            clock: clock.clone(),
            performer: Arc::new(Performs(Arc::clone(&engine))),
            settings: ow_automation::Settings {
                workers: self.config.scheduler.workers as usize,
                answered_workers: ANSWERED_WORKERS,
                chat_workers: self.config.scheduler.chat_workers as usize,
                grace: self.config.scheduler.grace,
                tasks_dir: self.paths.tasks_dir.clone(),
                retention: retention(&self.config),
            },
            check: check.clone(),
        })
        .await?;
        let _open = task_tools.open(&automation, Arc::clone(&store), check.clone());
        let stop = CancellationToken::new();
        let mut services = JoinSet::new();
        let slack = Arc::new(SlackRoom::new(crate::slack::With {
            store: Arc::clone(&store),
            clock: clock.clone(),
            channels: Arc::clone(&channels),
            configured: Arc::clone(&standing),
            automation: automation.handle(),
            app: slack_app,
            listens: listener.is_some(),
            stop: stop.clone(),
        }));
        slack.apply(&self.config, &secrets);
        let desk = Arc::new(MailDesk {
            store: Arc::clone(&self.store),
            clock: clock.clone(),
            engine: Arc::clone(&engine),
            automation: automation.handle(),
            standing: Arc::clone(&standing),
            said: Mutex::default(),
            faults: RwLock::default(),
        });
        let access = if self.system { SocketAccess::Group } else { SocketAccess::Owner };
        let mail = Arc::new(MailRoom::new(desk, Arc::clone(&channels), outgoing, access, stop.clone()));
        mail.apply(&self.config, &engine.secrets());
        // Not before all channels are there: what is due is delivered at once.
        services.spawn(Post::new(Arc::clone(&store), clock.clone(), Arc::clone(&channels)).run(stop.clone()));
        let control = Arc::new(OwdControl::new(Facts {
            store: Arc::clone(&self.store),
            clock: clock.clone(),
            engine: Arc::clone(&engine),
            automation: automation.handle(),
            channels,
            check,
            standing,
            paths: self.paths.clone(),
            host: self.host.clone(),
            tcp: tcp_address,
            listener: listener_address,
            webhooks: Arc::clone(&hooks_outside),
            log: self.log,
            mail: Arc::clone(&mail),
            slack: Arc::clone(&slack),
            at_start: self.config,
            started_at,
            stop: stop.clone(),
        }));
        let desk =
            crate::webhooks::Desk { automation: automation.handle(), clock: clock.clone(), slack: Arc::clone(&slack) };
        let webhooks = listener.map(|listener| Listener { listener, hooks: hooks_outside, deliveries: Arc::new(desk) });
        let options = Options { tcp, webhooks, lineage: Lineage::own() };
        let serving = server.serve(Arc::clone(&store), control.clone(), options, stop.clone());
        let mut serving = std::pin::pin!(serving);

        let narrator = self.narrator.take();
        let narration = async {
            match narrator {
                Some(narrator) => narrator.narrate(Arc::clone(&store), Arc::clone(&engine)).await,
                None => std::future::pending().await,
            }
        };
        let mut narration = std::pin::pin!(narration);
        let mut narrating = true;
        // Only once owd is ready: it takes as long as there are tasks.
        let mut looking = std::pin::pin!(self.store.look_over(started_at));
        let mut is_looked_over = false;
        let rouse = automation.handle();
        let mut waking = std::pin::pin!(Arc::clone(&engine).wake_sleepers(move || rouse.wake()));
        announce_ready(self.detached);
        info!(pid = std::process::id(), data = %self.paths.data_dir.display(), "owd is ready");
        loop {
            let event = tokio::select! {
                biased;
                event = signals.next() => event,
                served = serving.as_mut() => {
                    served.context("the control API ended")?;
                    return Err(anyhow!("the control API ended"));
                }
                never = waking.as_mut() => match never {},
                looked = looking.as_mut(), if !is_looked_over => {
                    is_looked_over = true;
                    if let Err(error) = looked {
                        error!(%error, "the tables of tasks could not be looked over");
                    }
                    continue;
                }
                () = narration.as_mut(), if narrating => {
                    narrating = false;
                    continue;
                }
            };
            match event {
                SignalEvent::Reload => {
                    announce(&[NotifyState::Reloading]);
                    for fault in control.reload_all().await.err().unwrap_or_default() {
                        error!(fault, "not reloaded");
                    }
                    announce(&[NotifyState::Ready]);
                }
                SignalEvent::Stop => break,
            }
        }
        announce(&[NotifyState::Stopping]);
        info!("owd stops: nothing new starts");
        // A second signal stops at once: what was running is found by the next start.
        let drained = async {
            stop.cancel();
            let served = serving.await;
            mail.drain().await;
            slack.drain().await;
            automation.drain().await;
            services.join_all().await;
            served
        };
        tokio::select! {
            served = drained => served.context("the control API ended badly")?,
            () = signals.stop() => {
                info!("owd stops at once");
                return Ok(ExitCode::from(STOPPED_AT_ONCE));
            }
        }
        info!("owd has stopped");
        Ok(ExitCode::SUCCESS)
    }

    /// Binds the control socket, or takes over the one that systemd made.
    fn server(&self) -> anyhow::Result<Server> {
        if let Some(listener) = ListenFd::from_env().take_unix_listener(0).context("the passed socket is of no use")? {
            return Ok(Server::from_listener(listener));
        }
        let access = if self.system { SocketAccess::Group } else { SocketAccess::Owner };
        if let Some(folder) = self.paths.socket.parent() {
            private_folder(folder)?;
        }
        Ok(Server::bind_unix(&self.paths.socket, access)?)
    }

    fn tcp(&self) -> anyhow::Result<Option<Tcp>> {
        let Some(address) = self.config.server.tcp else { return Ok(None) };
        let file = self.config.server.key_file.clone().unwrap_or_else(|| self.paths.key_file.clone());
        let listener = std::net::TcpListener::bind(address)
            .with_context(|| format!("cannot listen on {address} ([server] tcp)"))?;
        let key = crate::key::load_or_create(&file)?;
        let uid = rustix::process::getuid().as_raw();
        let accounts = Accounts::of_machine();
        let person = person_of(&self.config, &accounts, uid, uid).unwrap_or_else(|| Person("owner".into()));
        Ok(Some(Tcp { listener, key, person, allowed_origins: self.config.server.allowed_origins.clone() }))
    }
}

/// The exit code after a second signal: what was running was not waited for.
const STOPPED_AT_ONCE: u8 = 130;

/// Calls run under the same account: they must not read owd's memory or environment.
fn keep_environment_private() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "owd's memory is readable for its own account");
    }
}

/// Makes a folder that only its owner may enter; one that is there already keeps its mode.
fn private_folder(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))
}

fn check_task(
    written: &Written<'_>,
    defaults: &TaskDefaults,
    checker: &Checker,
    now: Timestamp,
) -> Result<TaskSpec, Vec<String>> {
    let Written { name, text, file, before } = *written;
    let read = match before {
        Some(before) => ow_config::parse_edited_task(before, text, file, defaults, checker, now),
        None => ow_config::parse_task(name, text, file, defaults, checker, now),
    };
    read.map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

struct Performs(Arc<Engine>);

#[async_trait]
impl Performer for Performs {
    async fn perform(&self, taken: TakenRun, stop: &Stop) {
        self.0.perform(taken, stop).await;
    }
}

fn announce_ready(detached: bool) {
    announce(&[NotifyState::Ready]);
    if detached {
        println!("{READY_LINE}");
    }
}

/// Tells the service manager, if there is one.
fn announce(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        error!(%error, "the service manager could not be told");
    }
}
