//! The Slack app: its client from tokens that are secrets, and who is who there.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use jiff::Timestamp;
use ow_automation::Posted;
use ow_clock::Clock;
use ow_config::{Config, SlackConfig};
use ow_inbox::Channels;
use ow_model::{EventKey, Item, Person, slack_source};
use ow_reply::Phrases;
use ow_secret::{SecretName, SecretValue, Secrets};
use ow_server::{SlackAbout, WantedSession, Warning};
use ow_slack::{
    Answered, App, Client, Directory, Door, Hop, Intake, SlackChannel, Standing, Surface, Trouble, Written,
};
use ow_store::{NewSession, Store, StoreError};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::args::{Places, host};
use crate::people;
use crate::settings::Standing as Configured;

/// The connection to Slack and what hangs on it, as the configuration has it now.
pub(crate) struct SlackRoom {
    with: With,
    tasks: TaskTracker,
    running: Mutex<Option<Running>>,
    door: RwLock<Option<Arc<Door>>>,
    /// What keeps Slack, or a part of it, from being used.
    faults: RwLock<Vec<String>>,
}

/// What a connection works with, whichever it is.
pub(crate) struct With {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) channels: Arc<Channels>,
    pub(crate) configured: Arc<RwLock<Arc<Configured>>>,
    pub(crate) automation: ow_automation::Handle,
    /// Where the tools find the app.
    pub(crate) app: App,
    /// Whether owd listens for what is posted.
    pub(crate) listens: bool,
    pub(crate) stop: CancellationToken,
}

/// What makes it another app.
struct Tokens {
    bot: SecretValue,
    app: Option<SecretValue>,
    api_url: Option<String>,
}

/// A connection, which ends with its tokens.
struct Running {
    tokens: Tokens,
    stop: CancellationToken,
    ended: TaskTracker,
    standing: watch::Receiver<Standing>,
    intake: Arc<OnceLock<Arc<Intake>>>,
}

impl SlackRoom {
    pub(crate) fn new(with: With) -> Self {
        Self {
            with,
            tasks: TaskTracker::new(),
            running: Mutex::default(),
            door: RwLock::default(),
            faults: RwLock::default(),
        }
    }

    /// Has Slack used as the configuration says from now on. A connection whose tokens are the same stays.
    pub(crate) fn apply(&self, config: &Config, secrets: &Secrets) {
        let mut faults = vec![];
        // Tasks run without it, and their questions wait in the Inbox.
        let tokens = config.slack.as_ref().and_then(|slack| usable(Tokens::of(slack, secrets), &mut faults));
        let intake = self.renew(tokens, &mut faults);
        let door = intake.and_then(|intake| usable(self.door(config, secrets, intake), &mut faults).flatten());
        *self.door.write().unwrap_or_else(PoisonError::into_inner) = door.map(Arc::new);
        for fault in &faults {
            error!(fault, "Slack cannot be used as it is configured");
        }
        *self.faults.write().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// Ends what ran by other tokens, and then begins by these.
    fn renew(&self, tokens: Option<Tokens>, faults: &mut Vec<String>) -> Option<Arc<OnceLock<Arc<Intake>>>> {
        let With { store, clock, channels, configured, automation, app, listens: _, stop } = &self.with;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let same = running.as_ref().zip(tokens.as_ref()).filter(|(running, tokens)| running.tokens.is(tokens));
        if let Some((running, _)) = same {
            return Some(Arc::clone(&running.intake));
        }
        let before = running.take().map(|before| {
            before.stop.cancel();
            before.ended
        });
        let made = tokens.and_then(|tokens| usable(tokens.client().map(|client| (tokens, client)), faults));
        app.set(made.as_ref().map(|(_, client)| client.clone()));
        let Some((tokens, client)) = made else {
            match faults.first() {
                // What is to go there waits until that is mended.
                Some(why) => channels.unusable("slack", why.clone()),
                None => channels.remove("slack"),
            }
            return None;
        };
        channels.set("slack", Arc::new(SlackChannel { client: client.clone(), store: Arc::clone(store) }));
        let (stop, ended) = (stop.child_token(), TaskTracker::new());
        let (told, standing) = watch::channel(Standing::default());
        let intake: Arc<OnceLock<Arc<Intake>>> = Arc::default();
        let surface = Surface {
            store: Arc::clone(store),
            clock: clock.clone(),
            client,
            directory: Arc::new(People { configured: Arc::clone(configured), automation: automation.clone() }),
            standing: told,
            intake: Arc::clone(&intake),
        };
        let work = ended.track_future(surface.run(stop.clone()));
        ended.close();
        self.tasks.spawn(async move {
            // Two would work off the same events.
            if let Some(before) = before {
                before.wait().await;
            }
            work.await;
        });
        *running = Some(Running { tokens, stop, ended, standing, intake: Arc::clone(&intake) });
        Some(intake)
    }

    /// For what Slack posts over HTTP; none without the secret that it is signed with.
    fn door(
        &self,
        config: &Config,
        secrets: &Secrets,
        intake: Arc<OnceLock<Arc<Intake>>>,
    ) -> anyhow::Result<Option<Door>> {
        let Some(name) = config.slack.as_ref().and_then(|slack| slack.signing_secret.as_ref()) else {
            return Ok(None);
        };
        if config.listener.address.is_none() {
            return Err(anyhow!(
                "slack.signing-secret is set and [listener] has no address: Slack has nowhere to post"
            ));
        }
        if !self.with.listens {
            return Err(anyhow!("[listener] address is new since owd started: Slack can post once owd is restarted"));
        }
        Ok(Some(Door::new(token("signing-secret", name, secrets)?, intake)))
    }

    /// Takes what Slack posts; none: it posts nothing here.
    pub(crate) async fn take(&self, posted: &ow_slack::Posted<'_>) -> Option<Answered> {
        let door = self.door.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(door.take(posted, self.with.clock.now()).await)
    }

    /// Whether Slack posts here.
    pub(crate) fn hears(&self) -> bool {
        self.door.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// How it stands; none where Slack is not configured.
    pub(crate) fn about(&self) -> Option<SlackAbout> {
        let is_configured = {
            let configured = self.with.configured.read().expect("no holder panics");
            configured.config.slack.is_some()
        };
        if !is_configured {
            return None;
        }
        let posts = self.hears();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = running.as_ref() else {
            return Some(SlackAbout { state: "unusable", team: None, since: None, trouble: self.fault() });
        };
        let Standing { team, since, trouble } = running.standing.borrow().clone();
        let state = match (&team, since, running.tokens.app.is_some()) {
            (_, Some(_), _) => "connected",
            (None, None, _) | (_, None, true) => "connecting",
            (Some(_), None, false) if posts => "posting",
            (Some(_), None, false) => "sending",
        };
        let trouble = trouble.map(|Trouble { at, why }| (Some(at), why)).or_else(|| self.fault());
        Some(SlackAbout { state, team, since, trouble })
    }

    fn fault(&self) -> Option<(Option<Timestamp>, String)> {
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        faults.first().map(|fault| (None, fault.clone()))
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let lost = self.about().filter(|about| about.state == "connecting").and_then(|about| about.trouble);
        let lost = lost.and_then(|(at, why)| at.map(|_| format!("no connection; it is tried again: {why}")));
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner).clone();
        let warning = |message: String| Warning {
            kind: "slack".into(),
            about: "slack".into(),
            message,
            hint: Some("`owctl doctor` looks at each hop between owd and Slack".into()),
        };
        faults.into_iter().chain(lost).map(warning).collect()
    }

    /// Returns once the connection has ended, as it does after `stop`.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn usable<T>(made: anyhow::Result<T>, faults: &mut Vec<String>) -> Option<T> {
    made.map_err(|error| faults.push(format!("{error:#}"))).ok()
}

impl Tokens {
    fn is(&self, other: &Self) -> bool {
        let Self { bot, app, api_url } = other;
        let app = app.as_ref().map(SecretValue::expose);
        self.bot.expose() == bot.expose()
            && self.app.as_ref().map(SecretValue::expose) == app
            && self.api_url == *api_url
    }

    fn of(slack: &SlackConfig, secrets: &Secrets) -> anyhow::Result<Self> {
        let SlackConfig { bot_token, app_token, signing_secret: _, reactions: _, api_url } = slack;
        Ok(Self {
            bot: token("bot-token", bot_token, secrets)?,
            app: app_token.as_ref().map(|name| token("app-token", name, secrets)).transpose()?,
            api_url: api_url.clone(),
        })
    }

    fn client(&self) -> anyhow::Result<Client> {
        let url = self.api_url.as_deref().map(str::parse).transpose().context("slack.api-url is no address")?;
        Client::new(url.as_ref(), self.bot.clone(), self.app.clone()).context("no HTTP client for Slack")
    }
}

/// Looks at each hop between owd and Slack, for `owctl doctor`; none where Slack is not configured.
pub(crate) fn check(places: &Places) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let config = Config::load_if_present(&paths.config_file, &host())?;
    let hops = match &config.slack {
        None => vec![],
        Some(slack) => {
            let secrets = crate::settings::load_secrets(&config, &paths)?;
            match Tokens::of(slack, &secrets).and_then(|tokens| tokens.client()) {
                Err(error) => {
                    vec![Hop { ok: false, message: format!("{error:#}"), remedy: Some("store the token".into()) }]
                }
                Ok(client) => {
                    let told: Vec<String> =
                        config.inboxes.values().flat_map(|inbox| inbox.slack.iter().cloned()).collect();
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .context("cannot start a runtime")?;
                    let posts = slack.signing_secret.is_some() && config.listener.address.is_some();
                    runtime.block_on(ow_slack::examine(&client, &told, posts))
                }
            }
        }
    };
    println!("{}", serde_json::json!({ "configured": config.slack.is_some(), "hops": hops }));
    Ok(ExitCode::SUCCESS)
}

/// The secrets that are its tokens.
pub(crate) fn token_names(config: &Config) -> Vec<String> {
    config
        .slack
        .iter()
        .flat_map(|slack| {
            std::iter::once(slack.bot_token.clone()).chain(slack.app_token.clone()).chain(slack.signing_secret.clone())
        })
        .collect()
}

fn token(key: &str, name: &str, secrets: &Secrets) -> anyhow::Result<SecretValue> {
    let found = name.parse::<SecretName>().ok().and_then(|name| secrets.value(&name).cloned());
    found.ok_or_else(|| {
        anyhow!("slack.{key} names the secret `{name}`, and there is none; store it with: owctl secret set {name}")
    })
}

/// Who is who, as the configuration says it now.
struct People {
    configured: Arc<RwLock<Arc<Configured>>>,
    automation: ow_automation::Handle,
}

impl People {
    fn with<T>(&self, read: impl FnOnce(&Config) -> T) -> T {
        let configured = Arc::clone(&self.configured.read().expect("no holder panics"));
        read(&configured.config)
    }
}

#[async_trait]
impl Directory for People {
    fn person(&self, user: &str) -> Option<Person> {
        self.with(|config| {
            let found = config.people.iter().find(|(_, person)| person.slack.iter().any(|known| known == user));
            found.map(|(name, _)| Person(name.clone()))
        })
    }

    fn may_answer(&self, person: &Person, item: &Item) -> bool {
        self.with(|config| people::may_answer(config, person, item))
    }

    fn phrases(&self) -> Arc<Phrases> {
        Arc::clone(&self.configured.read().expect("no holder panics").answers.phrases)
    }

    fn session_for(&self, person: &Person) -> Result<NewSession, String> {
        let configured = Arc::clone(&self.configured.read().expect("no holder panics"));
        let may = configured.config.people.get(&person.0).is_some_and(|person| person.start_work);
        if !may {
            return Err("You may not start work here. Whoever runs owd says who may, by `start-work`.".into());
        }
        let spec = crate::session::spec(&WantedSession::default(), &configured.defaults)
            .map_err(|faults| format!("No session can be opened: {}", faults.join("; ")))?;
        Ok(NewSession { spec, title: None, by: person.0.clone() })
    }

    async fn offer(&self, message: &Written, data: Value) -> Result<(), StoreError> {
        let posted = Posted {
            channel: message.channel.clone(),
            user: message.user.clone(),
            key: EventKey(format!("{}/{}", slack_source(&message.channel), message.ts)),
            data,
        };
        self.automation.offer_post(&posted).await.map(drop)
    }

    fn wake(&self) {
        self.automation.wake_for_work();
    }

    fn takes_reactions(&self) -> bool {
        self.with(|config| config.slack.as_ref().is_some_and(|slack| slack.reactions))
    }
}
