use ow_protocol::{WebhookSecretView, WebhookView};

use super::instant;
use crate::control::ListenerAbout;
use crate::webhook::{Counts, Webhook, WebhookSettings};

pub(crate) fn webhook_view(hook: &Webhook, tasks: Vec<String>, listener: Option<&ListenerAbout>) -> WebhookView {
    let WebhookSettings { name, scheme, keys: _, secrets, body_limit, per_minute } = &hook.settings;
    let Counts { accepted, known, refused, limited, last_refusal } = hook.counts();
    let (at, why) = last_refusal.map(|(at, why)| (instant(at), why)).unzip();
    WebhookView {
        name: name.to_string(),
        profile: scheme.profile.to_string(),
        url: listener.map(|listener| format!("{}/hooks/{name}", listener.url)),
        secrets: secrets.iter().map(|(name, known)| WebhookSecretView { name: name.clone(), known: *known }).collect(),
        tasks,
        body_limit: *body_limit as u64,
        per_minute: *per_minute,
        accepted,
        known,
        refused,
        limited,
        last_refused_at: at,
        last_refused_why: why,
    }
}
