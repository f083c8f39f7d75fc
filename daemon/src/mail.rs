//! Mail to and from owd: the mailbox that is read, the socket that takes mail, and what becomes of a mail.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;
use jiff::tz::TimeZone;
use ow_automation::{Arrival, Delivered, Sender, Wanted};
use ow_clock::Clock;
use ow_config::{Config, MailInConfig, MailOutConfig, MailSecurity, MailServer, MailWay};
use ow_engine::Engine;
use ow_inbox::Channels;
use ow_mail::{
    Account, Arrived, Desk, Extent, Host, LmtpSocket, MailChannel, MailEvent, MailboxReader, Outcome, Outgoing, Probe,
    Said, Saying, Security, Taken, Takes, Way, probe_mailbox, probe_out,
};
use ow_model::{EventKey, InboxName, Item, ItemKind, Person};
use ow_reply::{Cause, Received};
use ow_secret::{SecretName, Secrets};
use ow_server::{SocketAccess, Warning};
use ow_store::{NewItem, SqliteStore, Store, StoreError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::args::Places;
use crate::handover::admits;
use crate::people;
use crate::settings::Standing;

/// Takes mail, from wherever it comes.
pub(crate) struct MailDesk {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) clock: Clock,
    pub(crate) engine: Arc<Engine>,
    pub(crate) automation: ow_automation::Handle,
    pub(crate) standing: Arc<RwLock<Arc<Standing>>>,
    /// To whom it was said of late that nothing was decided.
    pub(crate) said: Mutex<Said>,
    /// What keeps a mailbox or the socket from being read.
    pub(crate) faults: RwLock<BTreeMap<String, String>>,
}

impl MailDesk {
    pub(crate) fn config(&self) -> Arc<Standing> {
        Arc::clone(&self.standing.read().expect("no holder panics"))
    }

    /// Handles a mail. Who hands it over may decide no more by it than they may themselves; none: a mail server does.
    /// What lies in a folder beside the mailbox is for tasks, and an answer only where it names an item.
    pub(crate) async fn take_from(
        &self,
        raw: &[u8],
        extent: Extent,
        by: Option<&Person>,
        folder: Option<&str>,
    ) -> Result<Taken, StoreError> {
        let standing = self.config();
        let config = &standing.config;
        let may_answer = |person: &Person, item: &Item| {
            by.is_none_or(|by| people::may_answer(config, by, item)) && people::may_answer(config, person, item)
        };
        let desk = Desk {
            settings: &standing.answers,
            store: &*self.store,
            tells: config.mail.out.is_some(),
            may_answer: &may_answer,
        };
        let mut taken = match self.run_on(raw, extent, &desk, folder).await? {
            Some(taken) => taken,
            None if folder.is_some() && Received::read(raw).is_none_or(|mail| mail.item().is_none()) => {
                event(Outcome::NoAnswer, "no task runs on it".into())
            }
            None => desk.take(raw, extent, self.clock.now()).await?,
        };
        let Taken { outcome, item, decision, why, told: _, sender: _, bounced: _ } = &taken;
        info!(outcome = outcome.word(), item = item.map(tracing::field::display), decision, why, "mail taken");
        if *decision == "approve" {
            self.engine.expect_call();
        }
        self.automation.wake_for_work();
        if config.mail.out.is_some() {
            self.acknowledge(raw, &mut taken).await?;
        }
        self.note_bounce(&taken).await?;
        Ok(taken)
    }

    /// Hands a mail that names no item to the tasks that run on it; none: there are none, and it is read as an answer.
    async fn run_on(
        &self,
        raw: &[u8],
        extent: Extent,
        desk: &Desk<'_>,
        folder: Option<&str>,
    ) -> Result<Option<Taken>, StoreError> {
        let Some(mail) = Received::read(raw) else { return Ok(None) };
        let is_an_answer = mail.item().is_some() || mail.names_several() || mail.is_in_thread_of_a_notice();
        let id = mail.header("message-id").map(str::trim).unwrap_or_default();
        // What owd wrote itself, and what a program answered, starts nothing: it would go round.
        if is_an_answer || mail.reacts() || id.starts_with("<ow.") || id.starts_with("<owd.") {
            return Ok(None);
        }
        let Some(sender) = mail.sender() else { return Ok(None) };
        let mut arrival = Arrival {
            key: EventKey(format!(
                "mail:{}:{}",
                id.chars().take(200).collect::<String>(),
                ow_mail::written(raw, &mail)
            )),
            from: sender.address.clone(),
            subject: mail.subject().to_owned(),
            list: ow_mail::list(&mail),
            folder: folder.map(str::to_owned),
            data: Value::Null,
        };
        let sender = match self.automation.wants_mail(&arrival).await? {
            Wanted::No => return Ok(None),
            Wanted::Yes => Sender::Claimed,
            Wanted::IfProven => match desk.prove_sender(&Arrived { raw, extent, mail: &mail }).await {
                Ok(()) => Sender::Proven,
                Err((Cause::Later, why)) => return Ok(Some(event(Outcome::Later, why))),
                Err(_) => Sender::Claimed,
            },
        };
        let event_of = ow_mail::as_event(raw, extent, &mail, sender == Sender::Proven, folder);
        let Some(MailEvent { data, contents }) = event_of else { return Ok(None) };
        // Before the event that names them.
        for content in contents {
            self.store.put_blob(&content).await?;
        }
        arrival.data = data;
        let Delivered { new, known, unwanted: _ } = self.automation.take_mail(&arrival, sender).await?;
        if new + known == 0 {
            return Ok(None);
        }
        Ok(Some(event(Outcome::Event, format!("{new} tasks run on it, and {known} had it already"))))
    }

    /// Has the sender told what became of their mail; of one mail once, however often it comes. That it is done was told
    /// with the answer.
    async fn acknowledge(&self, raw: &[u8], taken: &mut Taken) -> Result<(), StoreError> {
        let Some(reply) = ow_mail::acknowledged(raw, taken) else { return Ok(()) };
        let address = reply.binding.address().to_owned();
        // Two programs that answer each other must come to an end, and a person needs it said once.
        let limited = Saying::of(taken);
        let now = self.clock.now();
        let said = || self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if limited.is_some_and(|saying| !said().may_say(&address, saying, now)) {
            const OFTEN: &str = "its sender was told so often that they are told no more for a while";
            info!(item = taken.item.map(tracing::field::display), "{OFTEN}");
            taken.told = None;
            taken.why = format!("{}; {OFTEN}", taken.why);
            return Ok(());
        }
        let is_new = self.store.enqueue_reply(&reply, now).await?;
        if let Some(saying) = limited.filter(|_| is_new) {
            said().note(address, saying, now);
        }
        Ok(())
    }

    /// Tells that a notice of an item did not arrive.
    async fn note_bounce(&self, taken: &Taken) -> Result<(), StoreError> {
        let (Some(why), Some(id)) = (&taken.bounced, taken.item) else { return Ok(()) };
        let Some(item) = self.store.item(id).await? else { return Ok(()) };
        warn!(item = %id, why, "a notice did not arrive");
        // What tells of a bounce may bounce too; that is told in the log alone.
        if matches!(item.kind, ItemKind::Notification { .. }) {
            return Ok(());
        }
        let text = format!("A mail that told of “{}” ({}) did not arrive: {why}", item.title, id.token());
        self.tell("A notice did not arrive".into(), text, &format!("bounce:{id}")).await
    }

    /// In the local Inbox.
    async fn tell(&self, title: String, text: String, key: &str) -> Result<(), StoreError> {
        let item = NewItem {
            inbox: InboxName::default(),
            task: None,
            run: None,
            title,
            kind: ItemKind::Notification { text },
            expires_in: None,
            remind_after: None,
        };
        self.store.notify(&item, key, self.clock.now()).await.map(|_| ())
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        let warning = |(about, message): (&String, &String)| Warning {
            kind: "mail".into(),
            about: about.clone(),
            message: message.clone(),
            hint: Some("`owctl doctor` tries each step and says which one fails".into()),
        };
        faults.iter().map(warning).collect()
    }

    fn stands(&self, about: &str, fault: Option<&str>) {
        let mut faults = self.faults.write().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(why) => faults.insert(about.to_owned(), why.to_owned()),
            None => faults.remove(about),
        };
    }
}

#[async_trait]
impl Takes for MailDesk {
    async fn take(&self, raw: &[u8], extent: Extent, folder: Option<&str>) -> Result<Taken, StoreError> {
        self.take_from(raw, extent, None, folder).await
    }

    async fn give_up(&self, mailbox: &str, uid: u32) -> Result<(), StoreError> {
        error!(mailbox, uid, "a mail is given up");
        let text = format!(
            "The mail number {uid} of {mailbox} could not be handled, however often it was tried. If it was your answer to an \
             item, answer that with `owctl inbox`."
        );
        self.tell("A mail could not be handled".into(), text, &format!("mail:{mailbox}:{uid}")).await
    }

    fn stands(&self, mailbox: &str, fault: Option<&str>) {
        self.stands(mailbox, fault);
    }
}

/// What became of a mail that is no answer.
fn event(outcome: Outcome, why: String) -> Taken {
    Taken { outcome, item: None, decision: "none", why, told: None, sender: None, bounced: None }
}

/// The mailbox and the socket, as the configuration has them.
pub(crate) struct MailRoom {
    pub(crate) desk: Arc<MailDesk>,
    channels: Arc<Channels>,
    outgoing: Outgoing,
    access: SocketAccess,
    stop: CancellationToken,
    tasks: TaskTracker,
    reads: Mutex<BTreeMap<String, Part<Account>>>,
    takes: Mutex<Part<PathBuf>>,
}

/// Something that runs as long as its setting stays the same.
struct Part<T> {
    running: Option<(T, CancellationToken)>,
    /// What ran last, which may not be at its end yet.
    last: Option<TaskTracker>,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self { running: None, last: None }
    }
}

impl MailRoom {
    pub(crate) fn new(
        desk: Arc<MailDesk>,
        channels: Arc<Channels>,
        outgoing: Outgoing,
        access: SocketAccess,
        stop: CancellationToken,
    ) -> Self {
        Self {
            desk,
            channels,
            outgoing,
            access,
            stop,
            tasks: TaskTracker::new(),
            reads: Mutex::default(),
            takes: Mutex::default(),
        }
    }

    /// Has mail read and sent as the configuration says from now on.
    pub(crate) fn apply(&self, config: &Config, secrets: &Secrets) {
        let out = config.mail.out.as_ref().map(|out| channel(out, config, secrets, self.desk.clock.clone()));
        let why = out.as_ref().and_then(|out| out.as_ref().err()).map(|fault| fault.message.clone());
        let out = self.usable("[mail.out]", out);
        self.outgoing.set(out.clone());
        match (out, why) {
            (Some(channel), _) => self.channels.set("mail", Arc::new(channel)),
            (None, Some(why)) => self.channels.unusable("mail", format!("[mail.out]: {why}")),
            (None, None) => self.channels.remove("mail"),
        }
        let account =
            self.usable("[mail.in]", config.mail.incoming.as_ref().map(|incoming| account(incoming, secrets)));
        let folders = config.mail.incoming.as_ref().map_or(vec![], |incoming| incoming.folders.clone());
        self.read(account, folders);
        let mut takes = self.takes.lock().unwrap_or_else(PoisonError::into_inner);
        self.renew(&mut takes, config.mail.lmtp.clone(), |path, stop| {
            let (desk, access) = (Arc::clone(&self.desk), self.access);
            Box::pin(async move {
                let about = path.display().to_string();
                let bound = ow_server::bind(&path, access).map_err(anyhow::Error::from);
                match bound.and_then(|(listener, file)| Ok((LmtpSocket::new(listener)?, file))) {
                    Ok((socket, file)) => {
                        desk.stands(&about, None);
                        socket.serve(admits(desk), stop).await;
                        if let Err(error) = file.remove() {
                            warn!(path = about, %error, "the socket for mail is left behind");
                        }
                    }
                    Err(error) => {
                        let error = format!("{error:#}");
                        warn!(path = about, error, "no socket for mail");
                        desk.stands(&about, Some(&format!("cannot listen for mail ([mail] lmtp): {error}")));
                        stop.cancelled().await;
                        desk.stands(&about, None);
                    }
                }
            })
        });
    }

    /// Has the account's mailbox read, and these folders beside it; each has a connection and a mark of its own.
    fn read(&self, account: Option<Account>, folders: Vec<String>) {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted: BTreeMap<String, (Account, Option<String>)> = BTreeMap::new();
        if let Some(account) = account {
            for folder in folders {
                let account = Account { mailbox: folder.clone(), ..account.clone() };
                wanted.insert(account.name(), (account, Some(folder)));
            }
            wanted.insert(account.name(), (account, None));
        }
        for name in wanted.keys() {
            reads.entry(name.clone()).or_default();
        }
        for (name, part) in reads.iter_mut() {
            let (account, folder) = wanted.remove(name).unzip();
            let folder = folder.flatten();
            self.renew(part, account, |account, stop| {
                let reader = MailboxReader {
                    account,
                    folder,
                    store: Arc::clone(&self.desk.store) as Arc<dyn Store>,
                    clock: self.desk.clock.clone(),
                    takes: Arc::clone(&self.desk) as Arc<dyn Takes>,
                };
                Box::pin(async move { reader.run(stop).await })
            });
            if part.running.is_none() {
                self.desk.stands(name, None);
            }
        }
    }

    /// What is wrong with a setting is told.
    fn usable<T>(&self, about: &str, setting: Option<Result<T, Probe>>) -> Option<T> {
        let (usable, fault) = match setting {
            None => (None, None),
            Some(Ok(usable)) => (Some(usable), None),
            Some(Err(fault)) => (None, Some(fault.message)),
        };
        if let Some(fault) = &fault {
            warn!(about, fault, "mail cannot be used");
        }
        self.desk.stands(about, fault.as_deref());
        usable
    }

    /// Ends what ran by another setting, and then begins by the new one.
    fn renew<T: Clone + PartialEq>(
        &self,
        part: &mut Part<T>,
        setting: Option<T>,
        begin: impl FnOnce(T, CancellationToken) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>,
    ) {
        if part.running.as_ref().map(|(setting, _)| setting) == setting.as_ref() {
            return;
        }
        if let Some((_, stop)) = part.running.take() {
            stop.cancel();
        }
        let Some(setting) = setting else { return };
        let (stop, ended) = (self.stop.child_token(), TaskTracker::new());
        let work = begin(setting.clone(), stop.clone());
        let work = ended.track_future(work);
        ended.close();
        let before = part.last.replace(ended);
        self.tasks.spawn(async move {
            // However long ago that was ended: its socket must be gone before the next one is made.
            if let Some(before) = before {
                before.wait().await;
            }
            work.await;
        });
        part.running = Some((setting, stop));
    }

    /// Waits until what is in hand is handled; the stop was asked for before.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn host(server: &MailServer) -> Host {
    let MailServer { host, port, security, ca } = server;
    let security = match security {
        MailSecurity::Tls => Security::Tls,
        MailSecurity::StartTls => Security::StartTls,
        MailSecurity::None => Security::None,
    };
    Host { name: host.clone(), port: *port, security, ca: ca.clone() }
}

/// Tries the way of a mail and prints what was found, as JSON; sends none.
pub(crate) fn check(places: &Places) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let config = Config::load_if_present(&paths.config_file, &crate::args::host())?;
    let secrets = crate::settings::load_secrets(&config, &paths)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut found: Vec<Probe> = vec![];
    let settings = people::mail_settings(&config);
    if let Some(incoming) = &config.mail.incoming {
        match account(incoming, &secrets) {
            Ok(account) => {
                found.extend(runtime.block_on(probe_mailbox(&account, Some(&settings))));
                for folder in &incoming.folders {
                    let account = Account { mailbox: folder.clone(), ..account.clone() };
                    found.extend(runtime.block_on(probe_mailbox(&account, None)));
                }
            }
            Err(fault) => found.push(fault),
        }
    }
    if let Some(out) = &config.mail.out {
        match channel(out, &config, &secrets, Clock::system()) {
            Ok(channel) => found.push(runtime.block_on(probe_out(&channel))),
            Err(fault) => found.push(fault),
        }
    }
    let found: Vec<_> =
        found.iter().map(|Probe { message, remedy }| json!({ "message": message, "remedy": remedy })).collect();
    println!("{}", json!(found));
    Ok(ExitCode::SUCCESS)
}

fn account(incoming: &MailInConfig, secrets: &Secrets) -> Result<Account, Probe> {
    let MailInConfig { server, user, password, mailbox, folders: _ } = incoming;
    let password = self::password(password, secrets)?;
    Ok(Account { host: host(server), user: user.clone(), password, mailbox: mailbox.clone() })
}

fn channel(out: &MailOutConfig, config: &Config, secrets: &Secrets, clock: Clock) -> Result<MailChannel, Probe> {
    let MailOutConfig { from, way } = out;
    let way = match way {
        MailWay::Program { sendmail } => Way::Program(sendmail.clone()),
        MailWay::Server { server, login: None } => Way::Server { host: host(server), login: None },
        MailWay::Server { server, login: Some(login) } => {
            let password = password(&login.password, secrets)?;
            Way::Server { host: host(server), login: Some((login.user.clone(), password)) }
        }
    };
    let from = from.parse().map_err(|error| Probe {
        message: format!("`{from}` is no address to write from: {error}"),
        remedy: Some("write `from` in [mail.out] as `owd <owd@example.org>`".into()),
    })?;
    // The configuration holds no zone that is not known.
    let zone = TimeZone::get(&config.timezone.0).unwrap_or(TimeZone::UTC);
    Ok(MailChannel::new(from, way, zone, clock))
}

fn password(name: &str, secrets: &Secrets) -> Result<String, Probe> {
    let known = name.parse::<SecretName>().ok().and_then(|name| secrets.value(&name));
    known.map(|value| value.expose().to_owned()).ok_or_else(|| Probe {
        message: format!("there is no secret `{name}`"),
        remedy: Some(format!("keep it: owctl secret set {name}")),
    })
}
