//! The Slack app: its client from tokens that are secrets, and who is who there.

use std::process::ExitCode;
use std::sync::{Arc, RwLock};

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use ow_automation::Posted;
use ow_clock::Clock;
use ow_config::{Config, SlackConfig};
use ow_inbox::Channels;
use ow_model::{EventKey, Item, Person, slack_source};
use ow_reply::Phrases;
use ow_secret::{SecretName, SecretValue, Secrets};
use ow_server::WantedSession;
use ow_slack::{Client, Directory, Door, Hop, SlackChannel, Standing, Surface, Written};
use ow_store::{NewSession, Store, StoreError};
use serde_json::Value;
use tokio::sync::watch;

use crate::args::{Places, host};
use crate::life::Standing as Configured;
use crate::people;

/// The app's client; none: owd has nothing to do with Slack.
///
/// # Errors
///
/// Names the token that there is not.
pub(crate) fn configured(config: &Config, secrets: &Secrets) -> anyhow::Result<Option<Client>> {
    config.slack.as_ref().map(|slack| client(slack, secrets)).transpose()
}

/// What comes from Slack, and from now on what its bindings are told.
pub(crate) fn surface(
    client: Client,
    configured: &Arc<RwLock<Arc<Configured>>>,
    automation: &ow_automation::Handle,
    channels: &Channels,
    store: &Arc<dyn Store>,
    clock: &Clock,
) -> Surface {
    channels.set("slack", Arc::new(SlackChannel { client: client.clone(), store: Arc::clone(store) }));
    let (standing, _) = watch::channel(Standing::default());
    let directory = Arc::new(People { configured: Arc::clone(configured), automation: automation.clone() });
    let intake = Arc::default();
    Surface { store: Arc::clone(store), clock: clock.clone(), client, directory, standing, intake }
}

/// The door for what Slack posts over HTTP; none without the secret that it is signed with.
pub(crate) fn door(config: &Config, secrets: &Secrets, surface: &Surface) -> anyhow::Result<Option<Door>> {
    let Some(name) = config.slack.as_ref().and_then(|slack| slack.signing_secret.as_ref()) else { return Ok(None) };
    if config.listener.address.is_none() {
        return Err(anyhow!("slack.signing-secret is set and [listener] has no address: Slack has nowhere to post"));
    }
    Ok(Some(Door::new(token("signing-secret", name, secrets)?, Arc::clone(&surface.intake))))
}

/// Looks at each hop between owd and Slack, for `owctl doctor`; none where Slack is not configured.
pub(crate) fn check(places: &Places) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let config = Config::load_if_present(&paths.config_file, &host())?;
    let hops = match &config.slack {
        None => vec![],
        Some(slack) => {
            let secrets = crate::life::load_secrets(&config, &paths)?;
            match client(slack, &secrets) {
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
        .flat_map(|slack| std::iter::once(slack.bot_token.clone()).chain(slack.app_token.clone()))
        .collect()
}

fn client(slack: &SlackConfig, secrets: &Secrets) -> anyhow::Result<Client> {
    let SlackConfig { bot_token, app_token, signing_secret: _, reactions: _, api_url } = slack;
    let bot = token("bot-token", bot_token, secrets)?;
    let app = app_token.as_ref().map(|name| token("app-token", name, secrets)).transpose()?;
    let url = api_url.as_deref().map(str::parse).transpose().context("slack.api-url is no address")?;
    Client::new(url.as_ref(), bot, app).context("no HTTP client for Slack")
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
