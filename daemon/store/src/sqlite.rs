mod answers;
mod audit;
mod backup;
mod blobs;
mod care;
mod circle;
mod claim;
mod connection;
mod damage;
mod directory;
mod ending;
mod events;
mod fault;
mod hands;
mod intake;
mod items;
mod journal;
mod life;
mod log;
mod mailboxes;
mod memory;
mod outbox;
mod reader;
mod refusals;
mod rules;
mod runs;
mod sessions;
mod slots;
mod stream;
mod tasks;
mod threads;
mod view;
mod wakes;
mod watchers;
mod watches;
mod writer;
mod zones;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use jiff::Timestamp;
use ow_model::{
    Answer, AnswerBy, AuditEntry, BlobHash, EventKey, Fact, InboxBinding, InboxName, Input, Item, ItemId, NewEvent,
    PauseReason, RecordedFact, Rule, RuleId, Run, RunId, SessionId, SlotRecord, TaskId, TaskName, TaskSource, TaskSpec,
};
use tokio::sync::watch;

use self::answers::Given;
use self::connection::{MIGRATIONS, open_store};
use self::directory::DataDirectory;
pub use self::directory::holder;
use self::fault::Located;
use self::memory::{EditChecker, Memory, Router, Shared, ShownArguments};
use self::reader::Readers;
use self::runs::{ByHand, Taken, Wanted};
use self::tasks::Definition;
use self::view::View;
use self::writer::{Tx, Writer};
use crate::{
    Accepted, Attempted, AuditCheck, AuditFilter, BackupReport, Claim, Claimed, Conversation, Damage, Delivery,
    DeliveryRow, EndRequest, EventFate, FreeHands, HandedOut, ItemFilter, MailboxMark, NewItem, NewReply, NewSession,
    Offer, Offered, Page, PageRequest, ParkRequest, ResolveError, Resolved, RestRequest, Retention, RouteItems,
    RunFilter, Said, Saved, SeenFile, SessionError, SessionFilter, SessionRow, Start, Store, StoreError, StoreStats,
    StreamEvent, TakenDeliveries, TakenIn, TakenRun, TaskError, TaskFilter, TaskRow, Tended, ThreadRow, ThreadSaid,
    ToldIn, WakeTimes,
};

#[cfg(test)]
mod tests;

pub use self::backup::restore;
pub use self::memory::{CheckEdit, ShowArguments};

/// The embedded store: one SQLite file and a folder of content-addressed files, in a directory that one process owns.
///
/// Dropping it waits until what was accepted is written, then lets go of the directory.
#[derive(Debug)]
pub struct SqliteStore {
    // In the order in which they must end: readers, then the writer, then the lock.
    readers: Readers,
    writer: Writer,
    shared: Arc<Shared>,
    stream_head: watch::Receiver<u64>,
    directory: DataDirectory,
}

impl SqliteStore {
    /// Opens the store of a data directory; makes both if they are missing.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if another process has it, [`StoreError::Newer`] for a later owd's store and
    /// [`StoreError::Damaged`] for one that cannot be read: both are left as they are.
    pub fn open(dir: &Path) -> Result<Arc<Self>, StoreError> {
        Self::open_with(dir, MIGRATIONS)
    }

    /// What a person changes of a call's arguments is judged by this from now on; at first any object will do.
    pub fn check_edits(&self, check: Arc<CheckEdit>) {
        *self.shared.edits.write().expect("no holder panics") = EditChecker(Some(check));
    }

    /// Whether the audit keeps calls' arguments from now on, and how they are made fit for it; at first it keeps none.
    pub fn show_arguments(&self, show: Option<Arc<ShowArguments>>) {
        *self.shared.arguments.write().expect("no holder panics") = ShownArguments(show);
    }

    /// Looks for damage that no reading notices: whether the tables of tasks and their indexes say the same. What is wrong
    /// is reported, and the indexes are made anew. It takes as long as there are tasks, beside all else.
    pub async fn look_over(&self, now: Timestamp) -> Result<(), StoreError> {
        // By a reader: nobody who writes waits for it.
        if self.readers.read(|view| Ok::<_, StoreError>(damage::seems_sound(view))).await? {
            return Ok(());
        }
        self.write(now, damage::look_over).await
    }

    fn open_with(dir: &Path, migrations: &[&str]) -> Result<Arc<Self>, StoreError> {
        let directory = DataDirectory::lock(dir)?;
        let file = directory.store();
        let db = open_store(&directory, migrations)?;
        let head = stream::head(&View::new(&db)).map_err(|error| error.locate(&file))?;
        let (sender, stream_head) = watch::channel(head);
        let shared = Arc::new(Shared::default());
        let memory = Memory::new(shared.clone(), directory.blobs());
        let writer = Writer::spawn(db, file.clone(), memory, sender)
            .map_err(|source| StoreError::Directory { dir: dir.into(), source })?;
        let readers = Readers::new(file, writer.notes());
        Ok(Arc::new(Self { readers, writer, shared, stream_head, directory }))
    }

    /// The file that holds everything but the content-addressed files.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.directory.store()
    }

    /// Removes content files that never got their row, a folder at a time.
    async fn sweep(&self, now: Timestamp) -> Result<(), StoreError> {
        let before = now.saturating_sub(care::LOOSE_GRACE).unwrap_or(Timestamp::MIN);
        for shelf in 0..blobs::SHELVES {
            let folder = self.directory.blobs();
            let files = self.readers.run(move || Ok(blobs::old_files(&folder, shelf, before))).await?;
            if !files.is_empty() {
                self.writer.write(move |tx| blobs::remove_strays(tx, files)).await?;
            }
        }
        Ok(())
    }

    /// Performs a fact that happens at `now`.
    async fn write<T, E, W>(&self, now: Timestamp, work: W) -> Result<T, E>
    where
        W: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Located,
    {
        self.writer
            .write(move |tx| {
                tx.memory.latest = tx.memory.latest.max(now);
                work(tx)
            })
            .await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn begin_life(&self, life: &str, now: Timestamp) -> Result<Start, StoreError> {
        let life = life.to_owned();
        self.write(now, move |tx| life::begin_life(tx, &life, now)).await
    }

    async fn fire_startup(&self, life: &str, now: Timestamp) -> Result<(), StoreError> {
        let life = life.to_owned();
        self.write(now, move |tx| life::fire_startup(tx, &life, now)).await
    }

    async fn clock_changed(&self, now: Timestamp) -> Result<(), StoreError> {
        self.writer.write(move |tx| claim::clock_changed(tx, now)).await
    }

    async fn compare_zones(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.write(now, move |tx| zones::compare(tx, now)).await
    }

    async fn save_task(
        &self,
        spec: &TaskSpec,
        source: TaskSource,
        text: &str,
        expect_revision: Option<u32>,
        now: Timestamp,
    ) -> Result<Saved, TaskError> {
        let definition = Definition { spec: spec.clone(), source, text: text.to_owned(), expect_revision };
        self.write(now, move |tx| tasks::save_task(tx, &definition, now)).await
    }

    async fn delete_task(&self, name: &TaskName, now: Timestamp) -> Result<Vec<RunId>, TaskError> {
        let name = name.clone();
        self.write(now, move |tx| tasks::delete_task(tx, &name, now)).await
    }

    async fn pause_task(&self, name: &TaskName, reason: PauseReason, now: Timestamp) -> Result<(), TaskError> {
        let name = name.clone();
        self.write(now, move |tx| tasks::pause_task(tx, &name, &reason, now)).await
    }

    async fn resume_task(&self, name: &TaskName, now: Timestamp) -> Result<(), TaskError> {
        let name = name.clone();
        self.write(now, move |tx| tasks::resume_task(tx, &name, now)).await
    }

    async fn pause_all(&self, by: &str, now: Timestamp) -> Result<(), StoreError> {
        let by = by.to_owned();
        self.write(now, move |tx| life::pause_all(tx, &by, now)).await
    }

    async fn resume_all(&self, now: Timestamp) -> Result<(), StoreError> {
        self.write(now, move |tx| life::resume_all(tx, now)).await
    }

    async fn task(&self, name: &TaskName) -> Result<Option<TaskRow>, StoreError> {
        let name = name.clone();
        self.readers.read(move |view| tasks::task(view, &name)).await
    }

    async fn revision(&self, task: TaskId, revision: u32) -> Result<Option<TaskSpec>, StoreError> {
        self.readers.read(move |view| tasks::revision(view, task, revision)).await
    }

    async fn tasks(&self, filter: &TaskFilter, page: &PageRequest) -> Result<Page<TaskRow>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.readers.read(move |view| tasks::tasks(view, &filter, &page)).await
    }

    async fn file_tasks(&self) -> Result<Vec<TaskName>, StoreError> {
        // Asked at the start, when no reader is open yet: the writer has read the heads of the tables already.
        self.writer.write(|tx| watches::file_tasks(tx)).await
    }

    async fn mailbox(&self, name: &str) -> Result<Option<MailboxMark>, StoreError> {
        let name = name.to_owned();
        self.readers.read(move |view| mailboxes::mark(view, &name)).await
    }

    async fn note_mailbox(&self, name: &str, mark: &MailboxMark) -> Result<(), StoreError> {
        let (name, mark) = (name.to_owned(), mark.clone());
        self.writer.write(move |tx| mailboxes::note(tx, &name, &mark)).await
    }

    async fn watch_seen(&self, task: TaskId, watch: &str) -> Result<Option<Vec<SeenFile>>, StoreError> {
        let watch = watch.to_owned();
        self.readers.read(move |view| watches::seen(view, task, &watch)).await
    }

    async fn note_watch_seen(
        &self,
        task: TaskId,
        watch: &str,
        seen: &[SeenFile],
        gone: &[Vec<u8>],
    ) -> Result<(), StoreError> {
        let (watch, seen, gone) = (watch.to_owned(), seen.to_vec(), gone.to_vec());
        self.writer.write(move |tx| watches::note(tx, task, &watch, &seen, &gone)).await
    }

    async fn take_in(
        &self,
        source: &str,
        key: &str,
        payload: &serde_json::Value,
        now: Timestamp,
    ) -> Result<Accepted, StoreError> {
        let (source, key, payload) = (source.to_owned(), key.to_owned(), payload.clone());
        self.write(now, move |tx| intake::take_in(tx, &source, &key, &payload, now)).await
    }

    async fn taken_in(&self, source: &str, limit: usize) -> Result<Vec<TakenIn>, StoreError> {
        let source = source.to_owned();
        self.readers.read(move |view| intake::waiting(view, &source, limit)).await
    }

    async fn worked_off(&self, id: i64) -> Result<(), StoreError> {
        self.writer.write(move |tx| intake::done(tx, id)).await
    }

    async fn say_in_thread(
        &self,
        name: &str,
        new: &NewSession,
        input: &Input,
        key: &str,
        now: Timestamp,
    ) -> Result<ThreadSaid, StoreError> {
        let (name, new, input, key) = (name.to_owned(), new.clone(), input.clone(), key.to_owned());
        self.write(now, move |tx| threads::say(tx, &name, &new, &input, &key, now)).await
    }

    async fn thread(&self, name: &str) -> Result<Option<ThreadRow>, StoreError> {
        let name = name.to_owned();
        self.readers.read(move |view| threads::thread(view, &name)).await
    }

    async fn open_threads(&self, kind: &str) -> Result<Vec<ThreadRow>, StoreError> {
        let kind = kind.to_owned();
        self.readers.read(move |view| threads::open(view, &kind)).await
    }

    async fn note_thread(&self, thread: &ThreadRow, open: bool) -> Result<(), StoreError> {
        let ThreadRow { name, session, told } = thread.clone();
        self.writer.write(move |tx| threads::note(tx, &name, session, told, open)).await
    }

    async fn told_as(&self, item: ItemId) -> Result<Vec<String>, StoreError> {
        self.readers.read(move |view| threads::told_as(view, item)).await
    }

    async fn claim_due(&self, claim: &Claim) -> Result<Claimed, StoreError> {
        let claim = *claim;
        self.write(claim.now, move |tx| claim::claim_due(tx, &claim)).await
    }

    async fn accept_events(&self, events: &[NewEvent], now: Timestamp) -> Result<Vec<Accepted>, TaskError> {
        let events = events.to_vec();
        self.write(now, move |tx| events::accept_events(tx, &events, now)).await
    }

    async fn offer_events(&self, offers: &[Offer], now: Timestamp) -> Result<Vec<Offered>, StoreError> {
        let offers = offers.to_vec();
        self.write(now, move |tx| events::offer(tx, &offers, now)).await
    }

    async fn tasks_on(&self, source: &str) -> Result<Vec<TaskRow>, StoreError> {
        let source = source.to_owned();
        self.readers.read(move |view| tasks::tasks_on(view, &source)).await
    }

    async fn event_fate(&self, task: TaskId, key: &EventKey) -> Result<Option<EventFate>, StoreError> {
        let key = key.clone();
        self.readers.read(move |view| events::fate(view, task, &key)).await
    }

    async fn run_now(
        &self,
        name: &TaskName,
        by: &str,
        payload: Option<serde_json::Value>,
        now: Timestamp,
    ) -> Result<RunId, TaskError> {
        let (name, asked) = (name.clone(), ByHand { by: by.to_owned(), payload });
        self.write(now, move |tx| runs::run_now(tx, &name, &asked, now)).await
    }

    async fn retry_run(&self, run: RunId, by: &str, now: Timestamp) -> Result<RunId, TaskError> {
        let by = by.to_owned();
        self.write(now, move |tx| runs::retry_run(tx, run, &by, now)).await
    }

    async fn take_runs(
        &self,
        answered: usize,
        fresh: usize,
        network: bool,
        now: Timestamp,
    ) -> Result<Vec<TakenRun>, StoreError> {
        let wanted = Wanted { answered, fresh, all: answered.saturating_add(fresh), network };
        let Taken { mut answered, fresh } = self.write(now, move |tx| runs::take_runs(tx, wanted, now)).await?;
        answered.extend(fresh);
        Ok(answered)
    }

    fn leave_hands(&self, free: FreeHands) {
        self.shared.hands.leave(free);
    }

    async fn take_back_hands(&self) -> HandedOut {
        self.shared.hands.take_back().await
    }

    async fn handed_out(&self) -> HandedOut {
        self.shared.hands.given().await
    }

    async fn take_chats(&self, limit: usize, now: Timestamp) -> Result<Vec<TakenRun>, StoreError> {
        self.write(now, move |tx| runs::take_chats(tx, limit, now)).await
    }

    async fn append(
        &self,
        session: SessionId,
        next: u32,
        facts: &[Fact],
        used: Option<RuleId>,
        now: Timestamp,
    ) -> Result<u32, StoreError> {
        let facts = facts.to_vec();
        self.write(now, move |tx| journal::append(tx, session, next, &facts, used, now)).await
    }

    async fn park(&self, request: &ParkRequest, now: Timestamp) -> Result<Vec<ItemId>, StoreError> {
        let request = request.clone();
        self.write(now, move |tx| items::park(tx, &request, now)).await
    }

    async fn end_run(&self, request: &EndRequest, now: Timestamp) -> Result<(), StoreError> {
        let request = request.clone();
        self.write(now, move |tx| ending::end_run(tx, &request, now)).await
    }

    async fn interrupt_run(
        &self,
        run: RunId,
        next: u32,
        facts: &[Fact],
        ran_for_ms: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let facts = facts.to_vec();
        self.write(now, move |tx| ending::interrupt_run(tx, run, next, &facts, ran_for_ms, now)).await
    }

    async fn cancel_run(&self, run: RunId, why: &str, now: Timestamp) -> Result<bool, TaskError> {
        let why = why.to_owned();
        self.write(now, move |tx| ending::cancel_run(tx, run, &why, now)).await
    }

    async fn run(&self, run: RunId) -> Result<Option<Run>, StoreError> {
        self.readers.read(move |view| Ok(runs::run_row(view, run)?.map(|row| row.run))).await
    }

    async fn runs(&self, filter: &RunFilter, page: &PageRequest) -> Result<Page<Run>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.readers.read(move |view| runs::runs(view, &filter, &page)).await
    }

    async fn runs_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let prefix = prefix.to_owned();
        self.readers.read(move |view| runs::by_prefix(view, "runs", &prefix, limit)).await
    }

    async fn journal(&self, session: SessionId) -> Result<Vec<RecordedFact>, StoreError> {
        self.journal_from(session, 0).await
    }

    async fn journal_from(&self, session: SessionId, from: u32) -> Result<Vec<RecordedFact>, StoreError> {
        self.readers.read(move |view| journal::journal(view, session, from)).await
    }

    async fn create_session(&self, new: &NewSession, now: Timestamp) -> Result<SessionId, StoreError> {
        let new = new.clone();
        self.write(now, move |tx| sessions::create(tx, &new, now)).await
    }

    async fn say(
        &self,
        session: SessionId,
        input: &Input,
        key: Option<&str>,
        now: Timestamp,
    ) -> Result<Said, SessionError> {
        let (input, key) = (input.clone(), key.map(str::to_owned));
        self.write(now, move |tx| sessions::say(tx, session, &input, key.as_deref(), now)).await
    }

    async fn inputs(&self, session: SessionId) -> Result<Vec<(u64, Input)>, StoreError> {
        self.readers.read(move |view| sessions::inputs(view, session)).await
    }

    fn inputs_said(&self) -> u64 {
        self.shared.said.load(Ordering::SeqCst)
    }

    async fn idle_run(&self, request: &RestRequest, now: Timestamp) -> Result<(), StoreError> {
        self.sleep_run(request, None, now).await
    }

    async fn sleep_run(
        &self,
        request: &RestRequest,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let request = request.clone();
        self.write(now, move |tx| sessions::rest(tx, &request, until, now)).await
    }

    async fn note_in_session(
        &self,
        session: SessionId,
        facts: &[Fact],
        withdraw: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, SessionError> {
        let (facts, withdraw) = (facts.to_vec(), withdraw.map(str::to_owned));
        self.write(now, move |tx| sessions::note(tx, session, &facts, withdraw.as_deref(), now)).await
    }

    async fn rouse(&self, session: SessionId, now: Timestamp) -> Result<(), SessionError> {
        self.write(now, move |tx| sessions::rouse(tx, session, now)).await
    }

    async fn jobs_awaited(&self) -> Result<Vec<(SessionId, String)>, StoreError> {
        self.readers.read(wakes::jobs_awaited).await
    }

    async fn session(&self, session: SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.readers.read(move |view| sessions::session(view, session)).await
    }

    async fn sessions(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<SessionRow>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.readers.read(move |view| sessions::sessions(view, &filter, &page)).await
    }

    async fn sessions_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<SessionId>, StoreError> {
        let prefix = prefix.to_owned();
        self.readers.read(move |view| runs::by_prefix(view, "chats", &prefix, limit)).await
    }

    async fn rename_session(&self, session: SessionId, title: &str, now: Timestamp) -> Result<(), SessionError> {
        let title = title.to_owned();
        self.write(now, move |tx| sessions::rename(tx, session, &title, now)).await
    }

    async fn remove_session(&self, session: SessionId, why: &str, now: Timestamp) -> Result<bool, SessionError> {
        let why = why.to_owned();
        self.write(now, move |tx| sessions::remove(tx, session, &why, now)).await
    }

    fn session_changes(&self, session: SessionId) -> watch::Receiver<u64> {
        self.shared.watchers.watch(session)
    }

    async fn run_events(&self, run: RunId) -> Result<Vec<NewEvent>, StoreError> {
        self.readers.read(move |view| events::run_events(view, run)).await
    }

    async fn slots(
        &self,
        task: TaskId,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<SlotRecord>, StoreError> {
        self.readers.read(move |view| slots::slots(view, task, from, until, limit)).await
    }

    async fn resolve(
        &self,
        item: ItemId,
        answer: &Answer,
        by: &AnswerBy,
        now: Timestamp,
    ) -> Result<Resolved, ResolveError> {
        let given = Given { answer: answer.clone(), by: by.clone() };
        self.write(now, move |tx| answers::resolve(tx, item, &given, now)).await?
    }

    async fn resolve_and_tell(
        &self,
        item: ItemId,
        answer: &Answer,
        by: &AnswerBy,
        reply: &NewReply,
        now: Timestamp,
    ) -> Result<Resolved, ResolveError> {
        let given = Given { answer: answer.clone(), by: by.clone() };
        let reply = reply.clone();
        self.write(now, move |tx| {
            let resolved = answers::resolve(tx, item, &given, now)?;
            if resolved.is_ok() {
                outbox::enqueue_reply(tx, &reply, now)?;
            }
            Ok::<_, ResolveError>(resolved)
        })
        .await?
    }

    async fn notify(&self, item: &NewItem, key: &str, now: Timestamp) -> Result<ItemId, StoreError> {
        let (item, key) = (item.clone(), key.to_owned());
        self.write(now, move |tx| items::notify(tx, &item, &key, now)).await
    }

    async fn delegate(
        &self,
        item: ItemId,
        to: &InboxName,
        by: &AnswerBy,
        now: Timestamp,
    ) -> Result<Item, ResolveError> {
        let (to, by) = (to.clone(), by.clone());
        self.write(now, move |tx| answers::delegate(tx, item, &to, &by, now)).await
    }

    async fn tend_items(&self, now: Timestamp) -> Result<Tended, StoreError> {
        self.write(now, move |tx| answers::tend_items(tx, now)).await
    }

    async fn withdraw_item(&self, item: ItemId, why: &str, now: Timestamp) -> Result<(), StoreError> {
        let why = why.to_owned();
        self.write(now, move |tx| items::withdraw_item(tx, item, &why, now)).await
    }

    async fn item(&self, item: ItemId) -> Result<Option<Item>, StoreError> {
        self.readers.read(move |view| Ok(items::item_row(view, item)?.map(|row| row.item))).await
    }

    async fn items(&self, filter: &ItemFilter, page: &PageRequest) -> Result<Page<Item>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.readers.read(move |view| items::items(view, &filter, &page)).await
    }

    async fn items_by_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<ItemId>, StoreError> {
        let prefix = prefix.to_owned();
        self.readers.read(move |view| runs::by_prefix(view, "items", &prefix, limit)).await
    }

    fn route_items(&self, route: Option<Arc<RouteItems>>) {
        *self.shared.router.write().expect("no holder panics") = Router(route);
    }

    async fn take_deliveries(
        &self,
        closed: &BTreeSet<InboxBinding>,
        limit: usize,
        now: Timestamp,
    ) -> Result<TakenDeliveries, StoreError> {
        let closed = closed.clone();
        self.write(now, move |tx| outbox::take(tx, &closed, limit, now)).await
    }

    async fn record_delivery(
        &self,
        delivery: &Delivery,
        attempted: &Attempted,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        let (delivery, attempted) = (delivery.clone(), attempted.clone());
        self.write(now, move |tx| outbox::record(tx, &delivery, &attempted, now)).await
    }

    async fn hurry_deliveries(&self, now: Timestamp) -> Result<(), StoreError> {
        self.write(now, move |tx| outbox::hurry(tx, now)).await
    }

    async fn enqueue_reply(&self, reply: &NewReply, now: Timestamp) -> Result<bool, StoreError> {
        let reply = reply.clone();
        self.write(now, move |tx| outbox::enqueue_reply(tx, &reply, now)).await
    }

    async fn deliveries(&self, item: ItemId) -> Result<Vec<DeliveryRow>, StoreError> {
        self.readers.read(move |view| outbox::deliveries(view, item)).await
    }

    async fn items_told_as(&self, name: &str) -> Result<Vec<ItemId>, StoreError> {
        let name = name.to_owned();
        self.readers.read(move |view| outbox::items_told_as(view, &name)).await
    }

    async fn told_in(&self, conversation: &Conversation) -> Result<ToldIn, StoreError> {
        let conversation = conversation.clone();
        self.readers.read(move |view| outbox::told_in(view, &conversation)).await
    }

    fn outbox_changes(&self) -> watch::Receiver<u64> {
        self.shared.outbox.subscribe()
    }

    async fn add_rule(&self, rule: &Rule) -> Result<(), StoreError> {
        let rule = rule.clone();
        self.write(rule.created_at, move |tx| {
            rules::add_rule(tx, &rule)?;
            rules::note_added(tx, &rule, rule.created_at)
        })
        .await
    }

    async fn remove_rule(&self, rule: RuleId) -> Result<bool, StoreError> {
        self.writer.write(move |tx| rules::remove_rule(tx, rule)).await
    }

    async fn rules(&self, task: Option<&TaskName>, now: Timestamp) -> Result<Vec<Rule>, StoreError> {
        let no_rules = &self.shared.no_rules;
        if no_rules.hold() {
            return Ok(vec![]);
        }
        let (task, version) = (task.cloned(), no_rules.version());
        let read = move |view: &View<'_>| Ok((rules::rules(view, task.as_ref(), now)?, rules::are_none(view)?));
        let (found, none): (_, bool) = self.readers.read::<_, StoreError, _>(read).await?;
        if none {
            no_rules.note_none(version);
        }
        Ok(found)
    }

    async fn audit(&self, filter: &AuditFilter, page: &PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        let (filter, page) = (filter.clone(), page.clone());
        self.readers.read(move |view| audit::entries(view, &filter, &page)).await
    }

    async fn check_audit(&self) -> Result<AuditCheck, StoreError> {
        self.readers.read(audit::check).await
    }

    async fn stream(&self, after: u64, limit: usize) -> Result<Option<Vec<StreamEvent>>, StoreError> {
        self.readers.read(move |view| stream::stream(view, after, limit)).await
    }

    fn stream_head(&self) -> watch::Receiver<u64> {
        self.stream_head.clone()
    }

    async fn wake_times(&self) -> Result<WakeTimes, StoreError> {
        let network = self.shared.network.load(Ordering::Relaxed);
        self.readers.read(move |view| care::wake_times(view, network)).await
    }

    async fn retain(&self, retention: &Retention, now: Timestamp) -> Result<bool, StoreError> {
        let retention = *retention;
        let more = self.write(now, move |tx| care::retain(tx, &retention, now)).await?;
        if !more {
            self.sweep(now).await?;
        }
        Ok(more)
    }

    async fn backup(&self, into: &Path) -> Result<BackupReport, StoreError> {
        let (file, blobs) = (self.directory.store(), self.directory.blobs());
        let (shared, into) = (self.shared.clone(), into.to_owned());
        self.readers.run(move || backup::backup(&file, &blobs, shared, &into)).await
    }

    async fn put_blob(&self, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        let hash = BlobHash::of(bytes);
        let bytes: Arc<[u8]> = bytes.into();
        loop {
            let (folder, content) = (self.directory.blobs(), bytes.clone());
            self.readers.run(move || blobs::write_file(&folder, hash, &content)).await?;
            let length = bytes.len() as u64;
            if self.writer.write(move |tx| blobs::add(tx, hash, length)).await? {
                return Ok(hash);
            }
        }
    }

    async fn blob(&self, hash: BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        let folder = self.directory.blobs();
        self.readers.run(move || blobs::read_file(&folder, hash)).await
    }

    async fn stats(&self) -> Result<StoreStats, StoreError> {
        let file = self.directory.store();
        self.readers.read(move |view| care::stats(view, &file)).await
    }

    async fn damage(&self) -> Result<Vec<Damage>, StoreError> {
        self.readers.read(damage::damage).await
    }
}
