//! What owd knows for good: tasks, slots, runs, journals, items, rules, events.
//!
//! [`Store`] is a trait of coarse methods, each one transaction named for a fact: when a method has
//! returned, its fact survives `kill -9` and power loss. It decides nothing itself; where a decision
//! needs what it reads (a due slot), it calls the pure core in the same transaction. It reads no clock.
//!
//! [`SqliteStore`] is the embedded one. It commits in groups: while one flush is under way, the facts that arrive
//! wait for the next and share it. Of a failed flush nobody is told yes.
//!
//! ```
//! use ow_store::{SqliteStore, Store};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let store = SqliteStore::open(&folder.path().join("data"))?;
//! let start = store.begin_life("boot-1", "2026-03-03T12:00:00Z".parse()?).await?;
//! assert_eq!((start.interrupted, start.last_seen), (0, None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
mod outbox;
mod rows;
mod sqlite;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ow_model::{
    Answer, AnswerBy, AuditEntry, BlobHash, EventKey, Fact, InboxBinding, InboxName, Input, Item, ItemId, NewEvent,
    PauseReason, RecordedFact, Rule, RuleId, Run, RunId, SessionId, SlotRecord, TaskId, TaskName, TaskSource, TaskSpec,
};
use tokio::sync::watch;

pub use error::{ResolveError, SessionError, StoreError, TaskError};
pub use outbox::{
    Attempted, Content, Conversation, Delivery, DeliveryId, DeliveryRow, NewReply, Notice, Reply, Route, RouteItems,
    Routing, TakenDeliveries, Thread, ToldIn,
};
pub use rows::{
    Accepted, AuditCheck, AuditFault, AuditFilter, BackupReport, Claim, Claimed, Damage, EndRequest, EventFate,
    FreeHands, HandedOut, ItemFilter, MailAgain, MailboxMark, NewItem, NewSession, Offer, Offered, Page, PageRequest,
    ParkRequest, Resolved, RestRequest, RestoreReport, Retention, RunFilter, Said, SaveChange, Saved, SeenFile,
    SessionFilter, SessionRow, Start, StoreStats, StreamEvent, TakenIn, TakenRun, TaskFilter, TaskRow, Tended,
    ThreadRow, ThreadSaid, WakeTimes,
};
pub use sqlite::{CheckEdit, ShowArguments, SqliteStore, holder, restore};

/// The durable facts of one owd. Implementations pass one conformance suite.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    // --- start and clock ---

    /// Opens a life of owd: what was running becomes interrupted and is queued to go on.
    async fn begin_life(&self, life: &str, now: Timestamp) -> Result<Start, StoreError>;

    /// Each task with a startup trigger gets its event (key `startup:<life>`), once a life. Asked for once the tasks are
    /// what their files say.
    async fn fire_startup(&self, life: &str, now: Timestamp) -> Result<(), StoreError>;

    /// The wall clock was set back to `now`: records later than it that did not fire are voided with a note,
    /// marks return to `now`, what fired stays fired. Also asked for when the zone database changed.
    async fn clock_changed(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Has tasks looked at whose zone has other rules than at the last comparison: the tz database was updated.
    /// Returns how many zones have changed.
    async fn compare_zones(&self, now: Timestamp) -> Result<u64, StoreError>;

    // --- tasks ---

    /// Saves a task. An overdue one is first accounted for by its old definition. Saving an equal
    /// definition changes nothing. A file's task that was paused as `FileGone` becomes active again.
    /// `expect_revision`: the revision that the task must be at; 0: there must be none of this name.
    async fn save_task(
        &self,
        spec: &TaskSpec,
        source: TaskSource,
        text: &str,
        expect_revision: Option<u32>,
        now: Timestamp,
    ) -> Result<Saved, TaskError>;

    /// Deletes a task: open runs are cancelled, open items withdrawn, records stay.
    /// Returns the runs that were running, for the engine to stop.
    async fn delete_task(&self, name: &TaskName, now: Timestamp) -> Result<Vec<RunId>, TaskError>;

    async fn pause_task(&self, name: &TaskName, reason: PauseReason, now: Timestamp) -> Result<(), TaskError>;
    /// Slots of the pause are recorded as one skipped range.
    async fn resume_task(&self, name: &TaskName, now: Timestamp) -> Result<(), TaskError>;

    /// The kill switch: nothing starts until `resume_all`; items stay.
    async fn pause_all(&self, by: &str, now: Timestamp) -> Result<(), StoreError>;
    async fn resume_all(&self, now: Timestamp) -> Result<(), StoreError>;

    async fn task(&self, name: &TaskName) -> Result<Option<TaskRow>, StoreError>;
    /// The definition that a run keeps: that of `revision`.
    async fn revision(&self, task: TaskId, revision: u32) -> Result<Option<TaskSpec>, StoreError>;
    /// Live tasks in the order of their names.
    async fn tasks(&self, filter: &TaskFilter, page: &PageRequest) -> Result<Page<TaskRow>, StoreError>;

    /// The names of tasks that come from files, but for those whose file is known to be gone.
    async fn file_tasks(&self) -> Result<Vec<TaskName>, StoreError>;

    /// How far a mailbox was read; none: never.
    async fn mailbox(&self, name: &str) -> Result<Option<MailboxMark>, StoreError>;
    async fn note_mailbox(&self, name: &str, mark: &MailboxMark) -> Result<(), StoreError>;

    /// What a watch of a task has seen of its files, by path; none: it has never looked.
    async fn watch_seen(&self, task: TaskId, watch: &str) -> Result<Option<Vec<SeenFile>>, StoreError>;
    /// Notes what a watch has seen, and which paths are gone. From now on it has looked.
    async fn note_watch_seen(
        &self,
        task: TaskId,
        watch: &str,
        seen: &[SeenFile],
        gone: &[Vec<u8>],
    ) -> Result<(), StoreError>;

    // --- slots and runs ---

    /// Claims what is due: slots, waiting events, retries' times. One transaction: slot records, new runs,
    /// cancelled ones, the next instant. At most `claim.limit` tasks; `more` says that some are left.
    async fn claim_due(&self, claim: &Claim) -> Result<Claimed, StoreError>;

    /// Accepts events durably; the same key twice for a task is one event. In the order given.
    async fn accept_events(&self, events: &[NewEvent], now: Timestamp) -> Result<Vec<Accepted>, TaskError>;

    /// Offers each task what came for it: durable, once a key, in the order given. What a task does not want gets its
    /// record at once, and is a new event should the task want it when it comes again. A task that is gone is passed over.
    async fn offer_events(&self, offers: &[Offer], now: Timestamp) -> Result<Vec<Offered>, StoreError>;

    /// The tasks that run on events of a source, as `webhook:ci`, by name.
    async fn tasks_on(&self, source: &str) -> Result<Vec<TaskRow>, StoreError>;

    /// What became of an event: none is known, it waits, or it has its record.
    async fn event_fate(&self, task: TaskId, key: &EventKey) -> Result<Option<EventFate>, StoreError>;

    // --- what surfaces send ---

    /// Takes in what `source` has sent, before it is acknowledged there; the same `key` twice is one.
    async fn take_in(
        &self,
        source: &str,
        key: &str,
        payload: &serde_json::Value,
        now: Timestamp,
    ) -> Result<Accepted, StoreError>;
    /// What was taken in from `source` and is not worked off, in the order of its coming, at most `limit`.
    async fn taken_in(&self, source: &str, limit: usize) -> Result<Vec<TakenIn>, StoreError>;
    /// It is worked off: its key is kept as long as those of events, its payload is not.
    async fn worked_off(&self, id: i64) -> Result<(), StoreError>;

    /// Creates a run by hand; keeps the task's next slot, respects its overlap rule.
    async fn run_now(
        &self,
        name: &TaskName,
        by: &str,
        payload: Option<serde_json::Value>,
        now: Timestamp,
    ) -> Result<RunId, TaskError>;

    /// Creates a run like an ended one, at the task's present revision and with the same events.
    async fn retry_run(&self, run: RunId, by: &str, now: Timestamp) -> Result<RunId, TaskError>;

    /// Hands out queued runs that may start at `now` and marks them running: answered ones first, then by age;
    /// at most `answered` of the former and `fresh` of the latter. Respects concurrency groups and the kill switch.
    /// A run whose start deadline has passed ends as missed instead. `network`: runs that need it may start.
    async fn take_runs(
        &self,
        answered: usize,
        fresh: usize,
        network: bool,
        now: Timestamp,
    ) -> Result<Vec<TakenRun>, StoreError>;

    /// Leaves free workers with the store: a run that becomes ready is handed to them in the very transaction that makes it
    /// so, as by `take_runs` and `take_chats`, and comes by `handed_out`. Runs that need the network are not.
    fn leave_hands(&self, free: FreeHands);
    /// Takes them back; returns what they were given and has not come yet. What is dropped midway stays with the store.
    async fn take_back_hands(&self) -> HandedOut;
    /// Waits for what is given to hands that were left. Durable when it comes. One waits for it.
    async fn handed_out(&self) -> HandedOut;

    /// Hands out chats that have something to do and marks them running, at most `limit`: who has waited longest goes
    /// first. They never take the places of tasks' runs, nor these theirs. As durable as `take_runs`.
    async fn take_chats(&self, limit: usize, now: Timestamp) -> Result<Vec<TakenRun>, StoreError>;

    /// Appends facts to a session's journal. `next` is the sequence number that the first must get; a
    /// different one is refused as [`StoreError::Fenced`] and nothing is written. `used`: a rule to count as used.
    async fn append(
        &self,
        session: SessionId,
        next: u32,
        facts: &[Fact],
        used: Option<RuleId>,
        now: Timestamp,
    ) -> Result<u32, StoreError>;

    /// Parks a run on new items: items, facts and state in one transaction. An item equal to a pending one of
    /// the same run (same kind and hash) is that one. Fenced like `append`.
    async fn park(&self, request: &ParkRequest, now: Timestamp) -> Result<Vec<ItemId>, StoreError>;

    /// Ends a run: last facts, outcome, failure count and auto-pause, `after` events of other tasks, the retry
    /// run if `retry_at` is given, and a notification item when it did not succeed. Open items are withdrawn.
    /// Fenced like `append`.
    async fn end_run(&self, request: &EndRequest, now: Timestamp) -> Result<(), StoreError>;

    /// A running run stands still and is to go on: at once (`queued`), or after the next start or resume.
    async fn interrupt_run(
        &self,
        run: RunId,
        next: u32,
        facts: &[Fact],
        ran_for_ms: u64,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Cancels a run that is not running; for a running one returns true and the engine must stop it, then end it.
    async fn cancel_run(&self, run: RunId, why: &str, now: Timestamp) -> Result<bool, TaskError>;

    async fn run(&self, run: RunId) -> Result<Option<Run>, StoreError>;
    /// Newest first.
    async fn runs(&self, filter: &RunFilter, page: &PageRequest) -> Result<Page<Run>, StoreError>;
    /// The ids of all runs that begin with this text, at most `limit`.
    async fn runs_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<RunId>, StoreError>;
    async fn journal(&self, session: SessionId) -> Result<Vec<RecordedFact>, StoreError>;
    /// The facts from the one with this sequence number on.
    async fn journal_from(&self, session: SessionId, from: u32) -> Result<Vec<RecordedFact>, StoreError>;
    /// The payloads of a run's events, oldest first.
    async fn run_events(&self, run: RunId) -> Result<Vec<NewEvent>, StoreError>;

    /// The slot records of a task that touch `[from, until]`, oldest first, at most `limit`.
    async fn slots(
        &self,
        task: TaskId,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<SlotRecord>, StoreError>;

    // --- sessions ---

    /// Opens a chat: one idle run of a hidden task of its own, which no list shows unless asked.
    async fn create_session(&self, new: &NewSession, now: Timestamp) -> Result<SessionId, StoreError>;

    /// Queues an input for the session of an agent. One that stands still or sleeps goes on; else it waits until the worker
    /// looks, or behind an open question. The same `key` twice is one input.
    async fn say(
        &self,
        session: SessionId,
        input: &Input,
        key: Option<&str>,
        now: Timestamp,
    ) -> Result<Said, SessionError>;

    /// What was said and is not in the history yet, in the order of its numbers. An input leaves this list in the
    /// transaction that writes its [`Fact::Input`] with this number, by whichever method: each enters once.
    async fn inputs(&self, session: SessionId) -> Result<Vec<(u64, Input)>, StoreError>;

    /// Grows before anyone is told that an input was taken, to whichever session. Who reads this, then the inputs, need
    /// not read those again while this stays as it is.
    fn inputs_said(&self) -> u64;

    /// A turn is over: the session is idle, or queued at once when inputs wait. One that is to stop ends as cancelled
    /// instead. Fenced like `append`.
    async fn idle_run(&self, request: &RestRequest, now: Timestamp) -> Result<(), StoreError>;

    /// The session sleeps until this instant, or, without one, until something is said to it. Else as `idle_run`.
    async fn sleep_run(
        &self,
        request: &RestRequest,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Writes facts to an agent's session that no worker has; false: one has it, and nothing was written. With `withdraw`,
    /// what it asks is withdrawn for this reason, and it goes on.
    async fn note_in_session(
        &self,
        session: SessionId,
        facts: &[Fact],
        withdraw: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, SessionError>;

    /// The sessions that sleep until a background job ends, with the job's id. Those that wait for an event are woken in the
    /// transaction that tells of it.
    async fn jobs_awaited(&self) -> Result<Vec<(SessionId, String)>, StoreError>;

    /// Has a worker look at a session that stands still, although nothing was said.
    async fn rouse(&self, session: SessionId, now: Timestamp) -> Result<(), SessionError>;

    async fn session(&self, session: SessionId) -> Result<Option<SessionRow>, StoreError>;
    /// Chats, the last active first.
    async fn sessions(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<SessionRow>, StoreError>;
    /// The ids of all chats that begin with this text, at most `limit`.
    async fn sessions_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<SessionId>, StoreError>;
    async fn rename_session(&self, session: SessionId, title: &str, now: Timestamp) -> Result<(), SessionError>;

    /// Ends a chat as cancelled and forgets what waits in it; its journal goes as retention says, like any run's.
    /// True: it is running and the engine must stop it, then end it.
    async fn remove_session(&self, session: SessionId, why: &str, now: Timestamp) -> Result<bool, SessionError>;

    /// Changes whenever the session's journal, inputs or state do. A hint: the store tells.
    fn session_changes(&self, session: SessionId) -> watch::Receiver<u64>;

    // --- threads: conversations elsewhere that are sessions here ---

    /// Says something in the thread of this name, as [`Store::say`] does; the first time, or when its session is over, a
    /// session is opened for it in the same transaction.
    async fn say_in_thread(
        &self,
        name: &str,
        new: &NewSession,
        input: &Input,
        key: &str,
        now: Timestamp,
    ) -> Result<ThreadSaid, StoreError>;
    async fn thread(&self, name: &str) -> Result<Option<ThreadRow>, StoreError>;
    /// Threads whose names begin so, of which something may still be to tell.
    async fn open_threads(&self, kind: &str) -> Result<Vec<ThreadRow>, StoreError>;
    /// How far the thread is told. `open`: something may still be to tell; what is said meanwhile opens it again.
    async fn note_thread(&self, thread: &ThreadRow, open: bool) -> Result<(), StoreError>;

    // --- Inbox ---

    /// Resolves an item once. The answer's fact, the rule of `ForTask` and the queued run are the same transaction.
    async fn resolve(
        &self,
        item: ItemId,
        answer: &Answer,
        by: &AnswerBy,
        now: Timestamp,
    ) -> Result<Resolved, ResolveError>;

    /// Resolves an item as [`resolve`](Self::resolve) does, and writes what the sender of the answer is told in the same
    /// transaction: after a crash there is no answer whose sender was told nothing. An answer that does not count writes nothing.
    async fn resolve_and_tell(
        &self,
        item: ItemId,
        answer: &Answer,
        by: &AnswerBy,
        reply: &NewReply,
        now: Timestamp,
    ) -> Result<Resolved, ResolveError>;

    /// Stores a notification. The same `key` twice is one item.
    async fn notify(&self, item: &NewItem, key: &str, now: Timestamp) -> Result<ItemId, StoreError>;

    /// Puts an open item into another inbox too, whose people may then answer; it is told of there. Where it is already,
    /// nothing changes.
    async fn delegate(&self, item: ItemId, to: &InboxName, by: &AnswerBy, now: Timestamp)
    -> Result<Item, ResolveError>;

    /// Reminds, escalates and expires what is due: an expired item's run is queued with the answer `Expired`.
    async fn tend_items(&self, now: Timestamp) -> Result<Tended, StoreError>;

    async fn withdraw_item(&self, item: ItemId, why: &str, now: Timestamp) -> Result<(), StoreError>;

    async fn item(&self, item: ItemId) -> Result<Option<Item>, StoreError>;
    /// Newest first.
    async fn items(&self, filter: &ItemFilter, page: &PageRequest) -> Result<Page<Item>, StoreError>;
    async fn items_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<ItemId>, StoreError>;

    // --- outbox ---

    /// Where items are told of from now on; at first nowhere. A change of the configuration replaces it.
    fn route_items(&self, route: Option<Arc<RouteItems>>);

    // Deliveries are written by the methods above, in the transaction that makes, reminds of, hands on or settles an item.

    /// Hands out what is due, at most one delivery a binding and `limit` in all, and none for those in `closed`. One that
    /// nobody recorded is handed out again in the next life, under the same message id.
    async fn take_deliveries(
        &self,
        closed: &BTreeSet<InboxBinding>,
        limit: usize,
        now: Timestamp,
    ) -> Result<TakenDeliveries, StoreError>;

    /// Records what came of a delivery; unless it must wait, hands out the next one that is due at this binding.
    async fn record_delivery(
        &self,
        delivery: &Delivery,
        attempted: &Attempted,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError>;

    /// What was tried and must wait is due at once: something has changed that may let it arrive.
    async fn hurry_deliveries(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Puts a reply into the outbox; false: there was one with this key.
    async fn enqueue_reply(&self, reply: &NewReply, now: Timestamp) -> Result<bool, StoreError>;

    /// What was told of an item, and where; oldest first.
    async fn deliveries(&self, item: ItemId) -> Result<Vec<DeliveryRow>, StoreError>;

    /// The items that a delivered message spoke of, by its message id or by what its channel called it.
    async fn items_told_as(&self, name: &str) -> Result<Vec<ItemId>, StoreError>;

    /// The items that a conversation was told of.
    async fn told_in(&self, conversation: &Conversation) -> Result<ToldIn, StoreError>;

    /// What channels called the messages that told of an item.
    async fn told_as(&self, item: ItemId) -> Result<Vec<String>, StoreError>;

    /// Changes whenever something was put into the outbox. A hint: the store tells.
    fn outbox_changes(&self) -> watch::Receiver<u64>;

    // --- rules ---

    async fn add_rule(&self, rule: &Rule) -> Result<(), StoreError>;
    async fn remove_rule(&self, rule: RuleId) -> Result<bool, StoreError>;
    /// Unexpired rules for this task and those for everywhere; all rules if none.
    async fn rules(&self, task: Option<&TaskName>, now: Timestamp) -> Result<Vec<Rule>, StoreError>;

    // --- audit ---

    /// Who decided what about which call, and what came of it; newest first. Written by the methods above, with the
    /// facts themselves, and never removed.
    async fn audit(&self, filter: &AuditFilter, page: &PageRequest) -> Result<Page<AuditEntry>, StoreError>;
    /// Walks the whole chain of entries.
    async fn check_audit(&self) -> Result<AuditCheck, StoreError>;

    // --- events for watchers ---

    /// Events after `after`, oldest first, at most `limit`; `None` if that position has been pruned.
    async fn stream(&self, after: u64, limit: usize) -> Result<Option<Vec<StreamEvent>>, StoreError>;
    /// The newest event's position; changes wake whoever waits. A hint: the store tells.
    fn stream_head(&self) -> watch::Receiver<u64>;

    // --- care ---

    /// When to wake for what, at the earliest.
    async fn wake_times(&self) -> Result<WakeTimes, StoreError>;
    /// Removes at most one small step of what retention lets go; false when nothing is left to do.
    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<bool, StoreError>;
    /// A backup of the running store with its content-addressed files, into a folder that must not exist.
    async fn backup(&self, into: &std::path::Path) -> Result<BackupReport, StoreError>;
    /// Keeps bytes in a content-addressed file, durable before this returns.
    async fn put_blob(&self, bytes: &[u8]) -> Result<BlobHash, StoreError>;
    async fn blob(&self, hash: BlobHash) -> Result<Option<Vec<u8>>, StoreError>;
    async fn stats(&self) -> Result<StoreStats, StoreError>;
    /// Records that were set aside because they could not be read.
    async fn damage(&self) -> Result<Vec<Damage>, StoreError>;
}
