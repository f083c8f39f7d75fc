use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tracing::{info, warn};

/// Something that a person should know and that stands until it is put right.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    pub kind: WarningKind,
    /// The file, folder or task that it is about.
    pub about: String,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WarningKind {
    /// A task file that cannot be used; what was loaded from it before goes on.
    TaskFile,
    /// A watched folder that is polled, or is not there.
    Watch,
    /// The store refuses what the timer asks of it.
    Store,
}

impl WarningKind {
    /// One word: `task_file`, `watch`, `store`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::TaskFile => "task_file",
            Self::Watch => "watch",
            Self::Store => "store",
        }
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// The warnings that stand, one for a kind and subject. Each is logged once, when it first stands and when it goes.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    standing: Mutex<BTreeMap<(WarningKind, String), Warning>>,
}

impl Warnings {
    pub(crate) fn all(&self) -> Vec<Warning> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn stand(&self, warning: Warning) {
        let key = (warning.kind, warning.about.clone());
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.get(&key) != Some(&warning) {
            let Warning { kind, about, message, hint } = &warning;
            warn!(%kind, about, message, hint, "warning stands");
            standing.insert(key, warning);
        }
    }

    pub(crate) fn settle(&self, kind: WarningKind, about: &str) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.remove(&(kind, about.to_owned())).is_some() {
            info!(%kind, about, "warning is settled");
        }
    }

    /// Makes these the warnings of `kind`: others of it are settled.
    pub(crate) fn replace(&self, kind: WarningKind, warnings: Vec<Warning>) {
        let gone: Vec<String> = {
            let standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
            let of_kind = standing.keys().filter(|(known, _)| *known == kind);
            of_kind
                .filter(|(_, about)| warnings.iter().all(|new| new.about != *about))
                .map(|key| key.1.clone())
                .collect()
        };
        for about in gone {
            self.settle(kind, &about);
        }
        for warning in warnings {
            self.stand(warning);
        }
    }
}
