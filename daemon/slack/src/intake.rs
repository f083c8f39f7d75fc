use std::sync::Arc;

use jiff::Timestamp;
use ow_store::{Accepted, Store, StoreError};
use serde_json::Value;
use tokio::sync::Notify;
use tracing::debug;

use crate::event::{Parsed, parse};

/// Whose the rows in the store are.
pub(crate) const SOURCE: &str = "slack";

/// Where everything that comes from Slack goes in, by whichever door: stored first, worked off later.
pub struct Intake {
    store: Arc<dyn Store>,
    /// The bot's user id.
    bot: String,
    stored: Notify,
}

impl Intake {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, bot: String) -> Self {
        Self { store, bot, stored: Notify::new() }
    }

    /// Stores what a payload tells, once. When this has returned it may be acknowledged.
    pub async fn take(&self, payload: &Value, now: Timestamp) -> Result<(), StoreError> {
        let (key, event) = match parse(payload, &self.bot) {
            Parsed::Event { key, event } => (key, event),
            Parsed::Nothing(why) => {
                debug!(why, "nothing for owd");
                return Ok(());
            }
        };
        let payload = serde_json::to_value(&event).unwrap_or_default();
        match self.store.take_in(SOURCE, &key, &payload, now).await? {
            Accepted::New => self.stored.notify_one(),
            Accepted::Duplicate => debug!("known already"),
        }
        Ok(())
    }

    /// Waits until something new is stored, or was since the last wait.
    pub(crate) async fn stored(&self) {
        self.stored.notified().await;
    }
}
