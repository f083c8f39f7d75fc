use std::sync::{Arc, PoisonError, RwLock};

use crate::Client;

/// The app that is used now, for who outlives a configuration: a reload puts another in its place.
#[derive(Clone, Debug, Default)]
pub struct App(Arc<RwLock<Option<Client>>>);

impl App {
    /// None: there is none any more.
    pub fn set(&self, client: Option<Client>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = client;
    }

    pub(crate) fn client(&self) -> Option<Client> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
