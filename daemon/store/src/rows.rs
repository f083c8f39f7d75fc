use std::path::PathBuf;

use jiff::Timestamp;
use ow_model::{
    Disposition, Fact, InboxName, Item, ItemId, ItemKind, Mode, NewEvent, Outcome, RecordedFact, Resolution, Run,
    RunId, SessionId, Span, TaskId, TaskName, TaskSource, TaskSpec, TaskState,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What `begin_life` found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Start {
    /// Runs that a stop or crash had left in the middle; they are queued again.
    pub interrupted: u64,
    /// When the last life is known to have ended: its last commit.
    pub last_seen: Option<Timestamp>,
    pub paused_all: bool,
    /// The store's epoch; grows with each restore.
    pub epoch: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    pub id: TaskId,
    pub spec: TaskSpec,
    /// The definition as written: TOML.
    pub text: String,
    pub revision: u32,
    pub source: TaskSource,
    pub state: TaskState,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The next scheduled slot, with jitter; none: no schedule trigger, or paused.
    pub next_due: Option<Timestamp>,
    pub accounted_until: Timestamp,
    pub failures_in_row: u32,
    pub waiting: u32,
}

/// What `save_task` did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Saved {
    pub task: TaskId,
    pub revision: u32,
    pub change: SaveChange,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SaveChange {
    Created,
    Revised,
    Unchanged,
}

/// A file as a watch saw it last.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SeenFile {
    /// The bytes of its path below the watched one; empty for a watched file itself.
    pub path: Vec<u8>,
    pub inode: u64,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
}

/// How far a mailbox was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MailboxMark {
    /// IMAP's UIDVALIDITY: the numbers of another one mean other mails.
    pub validity: u32,
    /// Up to this number, it too, each mail is handled or in `again`.
    pub seen: u32,
    /// What came before this instant is handled for good.
    pub at: Timestamp,
    pub again: Vec<MailAgain>,
}

/// A mail whose handling failed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailAgain {
    pub uid: u32,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next.
    pub at: Timestamp,
}

/// The question of `claim_due`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Claim {
    pub now: Timestamp,
    pub awake_since: Timestamp,
    /// Tasks looked at in one transaction.
    pub limit: usize,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Claimed {
    pub created: u64,
    /// Running runs that must be stopped, with the reason; the engine ends them.
    pub stop: Vec<(RunId, String)>,
    pub more: bool,
}

/// Whether an event was new.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Accepted {
    New,
    Duplicate,
}

/// What became of an offer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Offered {
    /// The task has it to do.
    New,
    /// The task had it before.
    Known,
    /// The task has a record of it, and no run.
    Unwanted,
    /// Likewise: it is another one again, under another key.
    Repeated,
}

/// An event that came for a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub event: NewEvent,
    /// Why the task does not want it; none: it does.
    pub unwanted: Option<String>,
    /// What another event of this task must not have in common with it: the second is skipped.
    pub twin: Option<String>,
}

/// What is known of an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EventFate {
    /// For a run to be made of it.
    Waiting,
    Recorded(Disposition),
}

/// A run handed to a worker, with all that the turn needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenRun {
    pub run: Run,
    pub spec: TaskSpec,
    pub journal: Vec<RecordedFact>,
}

/// Workers with nothing to do.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FreeHands {
    /// For any run but a chat.
    pub any: usize,
    /// Beside those, for runs that go on after an answer.
    pub kept: usize,
    pub chats: usize,
}

/// What was handed to workers that were left with the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandedOut {
    pub answered: Vec<TakenRun>,
    pub fresh: Vec<TakenRun>,
    pub chats: Vec<TakenRun>,
}

impl HandedOut {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.fresh.is_empty() && self.chats.is_empty()
    }
}

/// An item to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    pub task: Option<TaskName>,
    pub run: Option<RunId>,
    pub title: String,
    pub kind: ItemKind,
    pub expires_in: Option<Span>,
    pub remind_after: Option<Span>,
    pub inbox: InboxName,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ParkRequest {
    pub run: RunId,
    /// The sequence number that the first fact must get.
    pub next: u32,
    /// Facts to append before the `Parked` ones, which the store writes itself as it knows the ids.
    pub facts: Vec<Fact>,
    pub items: Vec<(ow_model::Position, NewItem)>,
    pub ran_for_ms: u64,
}

/// How a worker ends a run.
#[derive(Clone, Debug, PartialEq)]
pub struct EndRequest {
    pub run: RunId,
    /// The sequence number that the first fact must get.
    pub next: u32,
    /// Facts to append before the last one, which the store writes itself.
    pub facts: Vec<Fact>,
    pub outcome: Outcome,
    pub ran_for_ms: u64,
    /// When a further attempt may start; none: there is none.
    pub retry_at: Option<Timestamp>,
}

/// A resolved item.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub item: Item,
    pub resolution: Resolution,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tended {
    pub reminded: Vec<ItemId>,
    pub escalated: Vec<ItemId>,
    pub expired: Vec<ItemId>,
}

/// Where to begin and how much: `after` is the cursor that the last page gave.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageRequest {
    pub after: Option<String>,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// The cursor of the next page; none: this was the last.
    pub next: Option<String>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TaskFilter {
    pub name_contains: Option<String>,
    pub with_watch: bool,
    pub paused: Option<bool>,
    /// The hidden tasks of chats too.
    pub chats: bool,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunFilter {
    pub task: Option<TaskName>,
    /// A word of [`ow_model::RunState::word`].
    pub state: Option<String>,
    pub open_only: bool,
    /// Chats too. A filter by task finds one anyway.
    pub chats: bool,
}

/// A chat to be opened.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    /// The definition of its hidden task, of which only the name is not heeded: the store makes one.
    pub spec: TaskSpec,
    /// None: the beginning of what is said first.
    pub title: Option<String>,
    pub by: String,
}

/// What became of an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Said {
    /// Its place in the session's queue; grows from 1.
    pub number: u64,
    /// False: one with this key had come before.
    pub new: bool,
}

/// A chat.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub run: Run,
    pub spec: TaskSpec,
    pub title: Option<String>,
    /// As it stands now.
    pub mode: Mode,
    /// As it stands now; none: the configured default.
    pub model: Option<String>,
    /// The last input, question or end of a turn.
    pub active_at: Timestamp,
    /// Inputs that are not in the history yet.
    pub waiting: u32,
    /// Facts in its journal.
    pub length: u32,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionFilter {
    /// Those that were removed, too, as long as retention keeps them.
    pub removed: bool,
}

/// How a worker leaves a session that goes on later.
#[derive(Clone, Debug, PartialEq)]
pub struct RestRequest {
    pub session: SessionId,
    /// The sequence number that the first fact must get.
    pub next: u32,
    pub facts: Vec<Fact>,
    pub ran_for_ms: u64,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ItemFilter {
    pub pending_only: bool,
    pub task: Option<TaskName>,
    pub run: Option<RunId>,
}

/// The earliest instants at which something is due; none: nothing is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WakeTimes {
    pub tasks: Option<Timestamp>,
    /// A queued run that waits for its time.
    pub runs: Option<Timestamp>,
    /// A reminder, an escalation or an expiry.
    pub items: Option<Timestamp>,
    /// Queued runs that could start now, chats apart.
    pub ready: bool,
    /// Chats that could go on now.
    pub ready_chats: bool,
}

impl WakeTimes {
    #[must_use]
    pub fn earliest(&self) -> Option<Timestamp> {
        [self.tasks, self.runs, self.items].into_iter().flatten().min()
    }
}

/// How long what is kept. A task's high-water mark and a resolved item's id, decision, who and when stay for ever.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retention {
    pub runs: Span,
    pub items: Span,
    pub slots: Span,
    /// Deduplication keys of events: 90 days.
    pub event_keys: Span,
    /// Events for watchers, by number.
    pub stream: u64,
    /// Rows removed in one step.
    pub step: usize,
}

/// One event for watchers, in the envelope of the control API.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    pub position: u64,
    pub at: Timestamp,
    /// An [`EventType`](ow_model::EventType)'s word.
    pub kind: String,
    /// What it is about: `task:<name>`, `run:<id>`, `item:<id>`, `session:<id>`, `owd`.
    pub target: String,
    pub payload: Value,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StoreStats {
    pub tasks: u64,
    pub tasks_paused: u64,
    pub runs_open: u64,
    pub runs_parked: u64,
    pub runs_queued: u64,
    pub runs_running: u64,
    /// Stopped by owd's end or by the kill switch; they go on by themselves.
    pub runs_interrupted: u64,
    /// Chats that were not removed; they are in none of the counts above.
    pub sessions: u64,
    pub items_pending: u64,
    /// Notices that wait, or are under way.
    pub deliveries_waiting: u64,
    /// Notices that were given up.
    pub deliveries_failed: u64,
    pub events_waiting: u64,
    /// By the URL guard, since the store was made.
    pub addresses_refused: u64,
    pub paused_all: Option<String>,
    pub format: u32,
    pub epoch: u64,
    pub bytes: u64,
}

/// A record that could not be read and was set aside.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Damage {
    pub table: String,
    pub key: String,
    pub why: String,
    pub found_at: Timestamp,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BackupReport {
    pub into: PathBuf,
    pub bytes: u64,
    pub blobs: u64,
}

/// What `restore` did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RestoreReport {
    /// Where the store that was there before is kept; none: there was none.
    pub kept: Option<PathBuf>,
    pub blobs: u64,
    pub epoch: u64,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AuditFilter {
    pub task: Option<TaskName>,
    pub run: Option<RunId>,
}

/// What a walk along the audit's chain found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuditCheck {
    /// Those that are in order.
    pub entries: u64,
    /// The newest entry's hash; none where the chain is broken or empty.
    pub head: Option<String>,
    pub fault: Option<AuditFault>,
}

/// The first place at which the audit is not what was written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuditFault {
    pub seq: u64,
    pub why: String,
}

/// Something that a surface has sent, and that is not worked off.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenIn {
    pub id: i64,
    pub key: String,
    pub payload: serde_json::Value,
    pub received_at: Timestamp,
}

/// A conversation elsewhere that is a session here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ThreadRow {
    /// `slack:<channel>/<ts of its first message>`
    pub name: String,
    pub session: SessionId,
    /// The first fact of its journal that is not told there.
    pub told: u32,
}

/// What became of something said in a thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ThreadSaid {
    pub session: SessionId,
    /// A session was opened for it.
    pub begun: bool,
    /// False: it was said before.
    pub new: bool,
}
