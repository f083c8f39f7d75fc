//! The listener for webhooks, as configured.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use jiff::Timestamp;
use ow_automation::{Delivered, Delivery, Handle};
use ow_clock::Clock;
use ow_config::{Config, WebhookConfig};
use ow_model::{EventKey, RunId, WebhookName};
use ow_secret::{SecretName, SecretValue, Secrets};
use ow_server::{Deliveries, ListenerAbout, NewDelivery, SignedSample, SlackPost, Taken, WebhookSettings};
use ow_slack::{Answered, Posted};
use ow_store::StoreError;
use ow_webhook::{Headers, Keys, sample, sign, verify};

use crate::slack::SlackRoom;

const MIB: usize = 1024 * 1024;

/// Listens where the configuration says; none: it says nothing.
pub(crate) fn bind(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = config.listener.address else { return Ok(None) };
    let listener =
        TcpListener::bind(address).with_context(|| format!("cannot listen on {address} ([listener] address)"))?;
    Ok(Some(listener))
}

pub(crate) fn about(config: &Config, address: SocketAddr) -> ListenerAbout {
    let url = config.listener.url.clone().unwrap_or_else(|| format!("http://{address}"));
    ListenerAbout { address, url }
}

/// The hooks with the values of their secrets.
pub(crate) fn settings(config: &Config, secrets: &Secrets) -> Vec<WebhookSettings> {
    let hooks = config.webhook.iter().map(|(name, hook)| {
        let values = values(hook, secrets);
        WebhookSettings {
            name: name.clone(),
            scheme: hook.scheme(),
            keys: Keys::new(values.iter().flatten().map(|value| value.expose())),
            secrets: hook.secret.iter().cloned().zip(values.iter().map(Option::is_some)).collect(),
            body_limit: hook.body_limit as usize * MIB,
            per_minute: hook.per_minute,
        }
    });
    hooks.collect()
}

/// The value of each secret, where there is one that is not empty.
fn values<'s>(hook: &WebhookConfig, secrets: &'s Secrets) -> Vec<Option<&'s SecretValue>> {
    let value = |name: &String| {
        let value = secrets.value(&name.parse::<SecretName>().ok()?)?;
        Some(value).filter(|value| !value.expose().trim().is_empty())
    };
    hook.secret.iter().map(value).collect()
}

/// What is to be signed; what is left out is small.
pub(crate) struct Wanted<'a> {
    pub(crate) hook: &'a WebhookName,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) event: Option<&'a str>,
}

/// A delivery as a sender of this hook would sign it now.
pub(crate) fn signed(
    config: &Config,
    secrets: &Secrets,
    wanted: Wanted<'_>,
    now: Timestamp,
) -> Result<SignedSample, String> {
    let Wanted { hook: name, body, event } = wanted;
    let hook = config.webhook.get(name).ok_or_else(|| format!("there is no webhook `{name}`"))?;
    let secret = values(hook, secrets).into_iter().flatten().next();
    let secret = secret.ok_or_else(|| {
        format!(
            "none of the secrets of webhook `{name}` has a value; `owctl secret set {}`",
            hook.secret.join("` or `")
        )
    })?;
    let (scheme, id) = (hook.scheme(), format!("test-{}", RunId::random()));
    let made = sample(hook.profile, body, &id, now);
    let mut headers = sign(&scheme, secret.expose(), &made.body, &id, Some(event.unwrap_or(made.event)), now);
    headers.push(("Content-Type".into(), "application/json".into()));
    let (keys, request) = (Keys::new([secret.expose()]), Headers::new(headers.clone()));
    let delivery = verify(&scheme, &keys, &request, &made.body, now)
        .map_err(|refusal| format!("webhook `{name}` would not take it: {refusal}"))?;
    let key = delivery.key.map(|key| EventKey(format!("{}:{key}", name.source())));
    Ok(SignedSample { headers, body: made.body, key })
}

/// Hands deliveries to the tasks that name their hook.
pub(crate) struct Desk {
    pub(crate) automation: Handle,
    pub(crate) clock: Clock,
    pub(crate) slack: Arc<SlackRoom>,
}

#[async_trait]
impl Deliveries for Desk {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn accept(&self, delivery: NewDelivery) -> Result<Taken, StoreError> {
        let NewDelivery { hook, key, signed, data } = delivery;
        let Delivered { new, known, unwanted } = self.automation.deliver(&Delivery { hook, key, signed, data }).await?;
        Ok(match (new + unwanted, known) {
            (0, 0) => Taken::Nowhere,
            (0, _) => Taken::Known,
            _ => Taken::New,
        })
    }

    fn hears_slack(&self) -> bool {
        self.slack.hears()
    }

    async fn take_from_slack(&self, posted: SlackPost<'_>) -> Option<(u16, String)> {
        let SlackPost { timestamp, signature, body } = posted;
        let Answered { status, text } = self.slack.take(&Posted { timestamp, signature, body }).await?;
        Some((status, text))
    }
}

/// As `settings`, behind what is shared with the listener.
pub(crate) fn shared(config: &Config, secrets: &Secrets) -> Arc<ow_server::Webhooks> {
    let hooks = Arc::new(ow_server::Webhooks::default());
    hooks.replace(settings(config, secrets));
    hooks
}
