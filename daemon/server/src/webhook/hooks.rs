use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use ow_model::WebhookName;
use ow_webhook::{Keys, Scheme};
use tokio::time::Instant;

use super::bucket::Bucket;

/// A refusal is logged, and those of the next moments are only counted: what anybody can cause must not fill a disk.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

/// A hook as it is configured.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    pub name: WebhookName,
    pub scheme: Scheme,
    pub keys: Keys,
    /// The names of its secrets, each with whether there is a value.
    pub secrets: Vec<(String, bool)>,
    /// In bytes.
    pub body_limit: usize,
    pub per_minute: u32,
}

/// The hooks that there are. A reload replaces their settings and keeps what was counted.
#[derive(Debug, Default)]
pub struct Webhooks(RwLock<BTreeMap<WebhookName, Arc<Webhook>>>);

/// A hook with what has come to it in this life of owd.
#[derive(Debug)]
pub struct Webhook {
    pub settings: WebhookSettings,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    bucket: Bucket,
    counts: Counts,
    logged_at: Option<Instant>,
}

/// What has come to a hook since owd started.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    pub accepted: u64,
    /// Deliveries that were known already.
    pub known: u64,
    /// Requests that proved nothing, or were too large or no JSON.
    pub refused: u64,
    /// Deliveries that came too fast.
    pub limited: u64,
    /// When the last request was refused, and why.
    pub last_refusal: Option<(Timestamp, String)>,
}

impl Webhooks {
    /// Puts these hooks in the place of those that were.
    pub fn replace(&self, hooks: Vec<WebhookSettings>) {
        let mut known = self.0.write().expect("no holder panics");
        let made = hooks.into_iter().map(|settings| {
            let state = known.get(&settings.name).map(|before| Arc::clone(&before.state));
            let state = state.unwrap_or_else(|| Arc::new(Mutex::new(State::new(settings.per_minute))));
            state.lock().expect("no holder panics").bucket.resize(settings.per_minute);
            (settings.name.clone(), Arc::new(Webhook { settings, state }))
        });
        *known = made.collect();
    }

    pub(crate) fn find(&self, name: &WebhookName) -> Option<Arc<Webhook>> {
        self.0.read().expect("no holder panics").get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Webhook>> {
        self.0.read().expect("no holder panics").values().cloned().collect()
    }
}

impl State {
    fn new(per_minute: u32) -> Self {
        Self { bucket: Bucket::full(per_minute, Instant::now()), counts: Counts::default(), logged_at: None }
    }
}

impl Webhook {
    pub(crate) fn counts(&self) -> Counts {
        self.state.lock().expect("no holder panics").counts.clone()
    }

    /// Lets a delivery in, or says after how long.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state.lock().expect("no holder panics");
        let admitted = state.bucket.take(now);
        state.counts.limited += u64::from(admitted.is_err());
        admitted
    }

    pub(crate) fn note_taken(&self, is_new: bool) {
        let mut state = self.state.lock().expect("no holder panics");
        if is_new {
            state.counts.accepted += 1;
        } else {
            state.counts.known += 1;
        }
    }

    pub(crate) fn note_refused(&self, why: &str, now: Timestamp) {
        let mut state = self.state.lock().expect("no holder panics");
        state.counts.refused += 1;
        state.counts.last_refusal = Some((now, why.to_owned()));
        let instant = Instant::now();
        if state.logged_at.is_none_or(|at| instant.duration_since(at) >= LOGGED_EVERY) {
            state.logged_at = Some(instant);
            let refused = state.counts.refused;
            drop(state);
            tracing::warn!(hook = %self.settings.name, why, refused, "delivery refused");
        }
    }
}
