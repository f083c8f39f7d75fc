use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use ow_model::{InboxBinding, Span};
use ow_store::Delivery;

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
    /// Trying again would change nothing.
    Never { why: String },
}

impl Fault {
    pub fn later(why: impl Into<String>) -> Self {
        Self::Later { after: None, why: why.into() }
    }

    pub fn never(why: impl Into<String>) -> Self {
        Self::Never { why: why.into() }
    }
}

/// The channels that there are, by the kind of their bindings. A reload of the configuration replaces them.
#[derive(Default)]
pub struct Channels(RwLock<BTreeMap<&'static str, Arc<dyn Channel>>>);

impl Channels {
    /// Bindings of this kind are delivered by this channel from now on.
    pub fn set(&self, kind: &'static str, channel: Arc<dyn Channel>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(kind, channel);
    }

    /// Nothing delivers bindings of this kind any more.
    pub fn remove(&self, kind: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(kind);
    }

    pub(crate) fn of(&self, binding: &InboxBinding) -> Option<Arc<dyn Channel>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(binding.kind()).cloned()
    }
}
