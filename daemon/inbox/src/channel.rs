use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use ow_model::{InboxBinding, Span};
use ow_store::Delivery;
use tokio::sync::watch;

/// A way to reach people: mail, Slack, the desktop.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Delivers a message; called again for the same one after a fault that passes, or when owd died before the answer was
    /// on record.
    ///
    /// # Cancel safety
    ///
    /// Dropped midway when it takes too long: the message counts as not delivered and is tried again.
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, Fault>;
}

/// A message that the other side has taken.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Delivered {
    /// What the channel calls it, for messages of the same thread and for answers to it.
    pub reference: Option<String>,
}

/// Why a message was not delivered. The text is kept and shown: no secret in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fault {
    /// It may go better later: after this time, if the other side named one.
    Later { after: Option<Span>, why: String },
    /// It may have arrived, and nothing was heard of that; it is tried again.
    Lost { why: String },
    /// Trying again would change nothing.
    Never { why: String },
}

impl Fault {
    pub fn later(why: impl Into<String>) -> Self {
        Self::Later { after: None, why: why.into() }
    }

    pub fn lost(why: impl Into<String>) -> Self {
        Self::Lost { why: why.into() }
    }

    pub fn never(why: impl Into<String>) -> Self {
        Self::Never { why: why.into() }
    }

    #[must_use]
    pub fn into_why(self) -> String {
        match self {
            Self::Later { why, .. } | Self::Lost { why } | Self::Never { why } => why,
        }
    }
}

/// The channels that there are, by the kind of their bindings. A reload of the configuration replaces them.
#[derive(Default)]
pub struct Channels {
    by_kind: RwLock<BTreeMap<&'static str, Configured>>,
    /// Counts what was set.
    changed: watch::Sender<u64>,
}

/// A channel, or why it cannot be used.
type Configured = Result<Arc<dyn Channel>, String>;

impl Channels {
    /// Bindings of this kind are delivered by this channel from now on.
    pub fn set(&self, kind: &'static str, channel: Arc<dyn Channel>) {
        self.put(kind, Some(Ok(channel)));
    }

    /// Bindings of this kind have a channel that cannot be used as it is configured: what is to go there waits until a
    /// person has mended it.
    pub fn unusable(&self, kind: &'static str, why: impl Into<String>) {
        self.put(kind, Some(Err(why.into())));
    }

    /// Nothing delivers bindings of this kind any more.
    pub fn remove(&self, kind: &'static str) {
        self.put(kind, None);
    }

    /// Changes whenever one is set, so that what waits for one need not wait for its time.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn put(&self, kind: &'static str, channel: Option<Configured>) {
        let mut by_kind = self.by_kind.write().unwrap_or_else(PoisonError::into_inner);
        match channel {
            Some(channel) => by_kind.insert(kind, channel),
            None => by_kind.remove(kind),
        };
        drop(by_kind);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn of(&self, binding: &InboxBinding) -> Result<Arc<dyn Channel>, Fault> {
        let by_kind = self.by_kind.read().unwrap_or_else(PoisonError::into_inner);
        match by_kind.get(binding.kind()) {
            Some(Ok(channel)) => Ok(Arc::clone(channel)),
            Some(Err(why)) => Err(Fault::later(why.clone())),
            None => Err(Fault::never(format!("nothing is configured that delivers to `{}`", binding.kind()))),
        }
    }
}
