use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, RwLock};

use jiff::Timestamp;
use ow_model::{CallHash, TaskId, TaskSpec, ToolName};
use ow_schedule::Schedule;
use tokio::sync::watch;

use super::hands::Hands;
use super::rules::NoRules;
use super::watchers::Watchers;
use crate::RouteItems;

/// Revisions kept parsed and compiled.
const COMPILED: usize = 128;

/// What the writer remembers between facts. All of it can be read or computed again.
pub(crate) struct Memory {
    compiled: HashMap<(TaskId, u32), (u64, Arc<Compiled>)>,
    uses: u64,
    /// Since when owd has been awake, as last said by `begin_life` or `claim_due`.
    pub(crate) awake_since: Option<Timestamp>,
    /// The present, as last said by a fact.
    pub(crate) latest: Timestamp,
    pub(crate) shared: Arc<Shared>,
    pub(crate) blobs: PathBuf,
    pub(crate) audit: AuditMemory,
}

/// Spares the audit two looks into the store for each entry.
#[derive(Default)]
pub(crate) struct AuditMemory {
    /// Position and hash of the newest entry.
    pub(crate) head: Option<(u64, String)>,
    /// Tool and hash of calls, by run and position.
    pub(crate) calls: HashMap<(i64, u32), NamedCall>,
}

/// A call's tool and hash, as far as they are known.
pub(crate) type NamedCall = (Option<String>, Option<CallHash>);

/// What writer and readers both look at.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Whether runs that need the network may start, as last said by `take_runs`.
    pub(crate) network: AtomicBool,
    /// Backups in progress: meanwhile no content-addressed file is removed.
    pub(crate) backups: AtomicUsize,
    pub(crate) watchers: Watchers,
    pub(crate) no_rules: NoRules,
    /// Grows with what is said to sessions.
    pub(crate) said: AtomicU64,
    pub(crate) hands: Hands,
    pub(crate) arguments: RwLock<ShownArguments>,
    pub(crate) router: RwLock<Router>,
    pub(crate) edits: RwLock<EditChecker>,
    /// Grows with what is put into the outbox.
    pub(crate) outbox: watch::Sender<u64>,
}

/// Where items are told of; none: nowhere.
#[derive(Clone, Default)]
pub(crate) struct Router(pub(crate) Option<Arc<RouteItems>>);

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Router").field(&self.0.is_some()).finish()
    }
}

/// Says why changed arguments do not fit their tool.
pub type CheckEdit = dyn Fn(&ToolName, &serde_json::Value) -> Result<(), String> + Send + Sync;

/// What is said of arguments that a person changed; none: nothing.
#[derive(Clone, Default)]
pub(crate) struct EditChecker(pub(crate) Option<Arc<CheckEdit>>);

impl std::fmt::Debug for EditChecker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EditChecker").field(&self.0.is_some()).finish()
    }
}

/// What the audit shows of a call's arguments; none: nothing.
#[derive(Clone, Default)]
pub(crate) struct ShownArguments(pub(crate) Option<Arc<ShowArguments>>);

/// Makes arguments fit to be kept for good.
pub type ShowArguments = dyn Fn(&serde_json::Value) -> serde_json::Value + Send + Sync;

impl std::fmt::Debug for ShownArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ShownArguments").field(&self.0.is_some()).finish()
    }
}

impl Shared {
    pub(crate) fn router(&self) -> Option<Arc<RouteItems>> {
        self.router.read().expect("no holder panics").0.clone()
    }

    /// Why changed arguments do not fit, if they do not.
    pub(crate) fn misfit(&self, tool: &ToolName, args: &serde_json::Value) -> Option<String> {
        let check = self.edits.read().expect("no holder panics").0.clone();
        check.and_then(|check| check(tool, args).err())
    }

    pub(crate) fn arguments(&self) -> Option<Arc<ShowArguments>> {
        self.arguments.read().expect("no holder panics").0.clone()
    }
}

/// One revision of a task, ready for the planner.
pub(crate) struct Compiled {
    pub(crate) spec: Arc<TaskSpec>,
    pub(crate) schedule: Schedule,
}

impl Memory {
    pub(crate) fn new(shared: Arc<Shared>, blobs: PathBuf) -> Self {
        Self {
            compiled: HashMap::new(),
            uses: 0,
            awake_since: None,
            latest: Timestamp::UNIX_EPOCH,
            shared,
            blobs,
            audit: AuditMemory::default(),
        }
    }

    pub(crate) fn compiled(&mut self, task: TaskId, revision: u32) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let (used, compiled) = self.compiled.get_mut(&(task, revision))?;
        *used = self.uses;
        Some(compiled.clone())
    }

    pub(crate) fn remember(&mut self, task: TaskId, revision: u32, compiled: Arc<Compiled>) {
        if self.compiled.len() >= COMPILED
            && let Some(oldest) = self.compiled.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key)
        {
            self.compiled.remove(&oldest);
        }
        self.uses += 1;
        self.compiled.insert((task, revision), (self.uses, compiled));
    }

    /// Forgets what a rolled back fact may have put here.
    pub(crate) fn forget(&mut self) {
        self.compiled.clear();
        self.audit = AuditMemory::default();
    }
}
