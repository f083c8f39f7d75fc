//! Where items are told of, and by which channels: made from the configuration at the start and at each reload.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use ow_config::{Config, Escalation, NamedInboxConfig, QuietHours};
use ow_inbox::{Channels, Desktop, Hours, InboxRoutes, Ntfy, Webhook, WebhookKeys};
use ow_model::{InboxBinding, InboxName, ZoneName};
use ow_secret::Secrets;
use ow_store::{RouteItems, Store};

/// Has what is written from now on told by this configuration.
pub(crate) fn apply(store: &dyn Store, channels: &Channels, config: &Config, secrets: &Arc<Secrets>) {
    store.route_items(routes(config));
    channels.set("desktop", Arc::new(Desktop));
    channels.set("ntfy", Arc::new(Ntfy::default()));
    channels.set("webhook", Arc::new(Webhook::new(Arc::new(ow_server::shown_item), webhook_keys(config, secrets))));
}

/// By which keys calls of webhooks are signed.
fn webhook_keys(config: &Config, secrets: &Arc<Secrets>) -> Arc<WebhookKeys> {
    let signed = config.inboxes.values().filter_map(|inbox| inbox.webhook.clone().zip(inbox.webhook_secret.clone()));
    let (names, secrets): (BTreeMap<String, String>, _) = (signed.collect(), Arc::clone(secrets));
    Arc::new(move |url| {
        let Some(name) = names.get(url) else { return Ok(None) };
        let value = name.parse().ok().and_then(|name| secrets.value(&name));
        match value {
            Some(value) => Ok(Some(value.expose().to_owned())),
            None => Err(format!("there is no secret `{name}` to sign with; set it: owctl secret set {name}")),
        }
    })
}

/// None where nothing is bound: then nothing is written, and nobody wakes.
fn routes(config: &Config) -> Option<Arc<RouteItems>> {
    let inboxes: BTreeMap<InboxName, InboxRoutes> =
        config.inboxes.iter().map(|(name, inbox)| (name.clone(), routes_of(inbox, &config.timezone))).collect();
    let is_bound = inboxes.values().any(|routes| !routes.told.is_empty() || routes.escalation.is_some());
    is_bound.then(|| Arc::new(move |inbox: &InboxName, now| ow_inbox::route(&inboxes, inbox, now)) as Arc<RouteItems>)
}

/// All that this inbox is bound to.
pub(crate) fn bindings(config: &Config, inbox: &InboxName) -> Vec<InboxBinding> {
    config.inboxes.get(inbox).map_or(vec![], |inbox| routes_of(inbox, &config.timezone).told)
}

fn routes_of(inbox: &NamedInboxConfig, default_zone: &ZoneName) -> InboxRoutes {
    let NamedInboxConfig { mail, slack, desktop, ntfy, webhook, webhook_secret: _, timezone, quiet, digest, escalate } =
        inbox;
    let mut told: Vec<InboxBinding> = vec![];
    told.extend(mail.iter().map(|address| InboxBinding::new("mail", address)));
    told.extend(slack.iter().map(|id| InboxBinding::new("slack", id)));
    told.extend(desktop.then(InboxBinding::desktop));
    told.extend(ntfy.iter().map(|topic| InboxBinding::new("ntfy", topic)));
    told.extend(webhook.iter().map(|url| InboxBinding::new("webhook", url)));
    let zone = timezone.as_ref().unwrap_or(default_zone);
    let quiet = quiet.map(|QuietHours { from, until }| Hours {
        from,
        until,
        // The configuration holds none that is not known.
        zone: TimeZone::get(&zone.0).unwrap_or(TimeZone::UTC),
    });
    let escalation = escalate.as_ref().map(|Escalation { after, to }| (*after, to.clone()));
    InboxRoutes { told, quiet, digest: *digest, escalation }
}
