use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ow_clock::Clock;
use ow_engine::Stop;
use ow_model::{Span, TaskName, TaskSpec};
use ow_store::{Retention, Store, TakenRun};

/// What automation is built from.
#[derive(Clone)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub performer: Arc<dyn Performer>,
    pub settings: Settings,
    pub check: Check,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Runs at the same time; at least 1.
    pub workers: usize,
    /// Beside these, runs that go on after an answer; at least 1.
    pub answered_workers: usize,
    /// Chats at the same time, on places of their own; at least 1.
    pub chat_workers: usize,
    /// How long runs may go on when owd drains.
    pub grace: Span,
    /// The folder of task files; it need not exist.
    pub tasks_dir: PathBuf,
    pub retention: Retention,
}

/// Reads a definition and checks it, the tools that it names included.
///
/// The error is all that is wrong, a line each, with file, line and remedy.
pub type Check = Arc<dyn Fn(&Written<'_>, Timestamp) -> Result<TaskSpec, Vec<String>> + Send + Sync>;

/// A definition as it was written.
#[derive(Clone, Copy, Debug)]
pub struct Written<'w> {
    pub name: &'w TaskName,
    pub text: &'w str,
    /// Where it stands, to be named in faults.
    pub file: Option<&'w Path>,
    /// The task as it is now, if there is one: an `at` that it has already may have passed.
    pub before: Option<&'w TaskSpec>,
}

/// Works on a run that the store has handed out.
#[async_trait]
pub trait Performer: Send + Sync + 'static {
    /// Returns when the run has ended, parked or been interrupted, and that is durable.
    async fn perform(&self, taken: TakenRun, stop: &Stop);
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("settings", &self.settings).finish_non_exhaustive()
    }
}
