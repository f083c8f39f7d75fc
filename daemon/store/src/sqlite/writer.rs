use std::collections::HashMap;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, warn};

use ow_model::SessionId;

use super::damage;
use super::fault::{Located, Lost};
use super::hands::HandOut;
use super::log::Log;
use super::memory::Memory;
use super::view::View;
use crate::StoreError;

/// Facts that may wait for the writer; who comes later waits for room.
const QUEUE: usize = 1024;
/// Facts that one COMMIT makes durable at most.
const GROUP: usize = 256;
/// Changed rows, and pages of long texts, after which the log is moved into the main file.
const CHECKPOINT_AFTER: u64 = 2000;
const PAGE: u64 = 4096;

/// The one thread that writes.
///
/// It takes what waits, performs each fact in a savepoint of one transaction, commits, and only then
/// answers. A lone fact commits at once; under load, the facts that arrive during one flush share the next.
///
/// Every COMMIT flushes, also of a fact that could wait for the next one's: a flush that fails may lose what stood in
/// the log before it, and pages that are in use already must not be among that.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: Option<mpsc::Sender<Box<dyn Fact>>>,
    thread: Option<JoinHandle<()>>,
    file: PathBuf,
}

/// The transaction of one fact.
pub(crate) struct Tx<'a> {
    view: View<'a>,
    pub(crate) memory: &'a mut Memory,
    pub(crate) group: &'a mut Group,
}

/// What a group will do once it is durable.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) stream_head: Option<u64>,
    /// Content-addressed files whose rows are gone.
    pub(crate) unlink: Vec<PathBuf>,
    pub(crate) rule_added: bool,
    /// Inputs that were put into queues. One too many costs a look.
    pub(crate) said: u64,
    /// Something was put into the outbox. Once too often costs a look.
    pub(crate) outbox: bool,
    /// A run became ready. Once too often costs a look.
    pub(crate) ready: bool,
    /// Bytes of long texts, for the checkpoint.
    pub(crate) bytes: u64,
    /// Sessions whose watchers will look again. One too many costs a look, so an undone fact takes none back.
    touched: Vec<SessionId>,
}

impl Group {
    /// The session's journal, inputs or state change with this group.
    pub(crate) fn touch(&mut self, session: SessionId) {
        if self.touched.last() != Some(&session) {
            self.touched.push(session);
        }
    }
}

/// Something to be made durable, with whom to answer.
pub(crate) trait Fact: Send {
    /// Writes; an error undoes this fact alone.
    fn perform(&mut self, tx: &mut Tx<'_>) -> Result<(), Option<Lost>>;
    /// Answers after COMMIT, or with why there was none.
    fn answer(self: Box<Self>, lost: Option<&Lost>);
}

struct Asked<W, T, E> {
    work: Option<W>,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
    file: PathBuf,
}

impl<W, T, E> Fact for Asked<W, T, E>
where
    W: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send,
    T: Send,
    E: Located,
{
    fn perform(&mut self, tx: &mut Tx<'_>) -> Result<(), Option<Lost>> {
        let work = self.work.take().expect("a fact is performed once");
        let result = catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or_else(|_| {
            error!("a fact panicked; it was undone");
            Err(StoreError::Failed { what: "a fault in the store; it was undone".into() }.into())
        });
        let told = result.as_ref().map(|_| ()).map_err(|error| error.store_error().and_then(Lost::of));
        self.result = Some(result);
        told
    }

    fn answer(self: Box<Self>, lost: Option<&Lost>) {
        let Self { result, reply, file, .. } = *self;
        let answer = match (result, lost) {
            (Some(Err(error)), _) => Err(error.locate(&file)),
            (_, Some(lost)) => Err(lost.error(&file).into()),
            (Some(result), None) => result,
            (None, None) => Err(StoreError::Failed { what: "the fact was not performed".into() }.into()),
        };
        // Who no longer waits has not been told yes; the fact stands all the same.
        drop(reply.send(answer));
    }
}

impl Writer {
    pub(crate) fn spawn(
        db: Connection,
        file: PathBuf,
        memory: Memory,
        stream_head: watch::Sender<u64>,
    ) -> std::io::Result<Self> {
        let (queue, facts) = mpsc::channel(QUEUE);
        let log = Log::of(&file);
        let mut desk = Desk { db, log, facts, memory, stream_head, pending: 0, changes: 0, has_written: false };
        let thread = thread::Builder::new().name("store-writer".into()).spawn(move || {
            desk.work();
            desk.close();
        })?;
        Ok(Self { queue: Some(queue), thread: Some(thread), file })
    }

    /// # Cancel safety
    ///
    /// Dropped midway, the fact may or may not have been written.
    pub(crate) async fn write<T, E, W>(&self, work: W) -> Result<T, E>
    where
        W: FnOnce(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Located,
    {
        let gone = || StoreError::Failed { what: "the store is closed".into() };
        let (reply, answer) = oneshot::channel();
        let fact = Box::new(Asked { work: Some(work), result: None, reply, file: self.file.clone() });
        let queue = self.queue.as_ref().expect("the queue is there until the store is dropped");
        queue.send(fact).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    /// A handle for facts that nobody waits for; it does not keep the writer alive.
    pub(crate) fn notes(&self) -> mpsc::WeakSender<Box<dyn Fact>> {
        self.queue.as_ref().expect("the queue is there until the store is dropped").downgrade()
    }
}

impl Drop for Writer {
    /// Waits until what was queued is written and the file is closed.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the store's writer has panicked");
        }
    }
}

/// The writer's side of the queue.
struct Desk {
    db: Connection,
    log: Log,
    facts: mpsc::Receiver<Box<dyn Fact>>,
    memory: Memory,
    stream_head: watch::Sender<u64>,
    /// What was written since the last checkpoint.
    pending: u64,
    changes: u64,
    /// A fact was committed. Until then the store is as it was found, and a start that is refused leaves it so.
    has_written: bool,
}

impl Desk {
    fn work(&mut self) {
        while let Some(first) = self.facts.blocking_recv() {
            let mut facts = vec![first];
            while facts.len() < GROUP
                && let Ok(next) = self.facts.try_recv()
            {
                facts.push(next);
            }
            self.commit(facts);
            self.checkpoint();
            self.log.keep_ahead();
        }
    }

    /// Closes the file; SQLite moves the log into it, and it then is the whole store. One to which nothing was written stays
    /// as it was found.
    fn close(self) {
        let Self { db, log, has_written, .. } = self;
        if !has_written {
            drop(db);
            return;
        }
        if let Err(error) = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false) {
            warn!(%error, "the store's log stays beside it");
        }
        log.hold();
        if let Err((_, error)) = db.close() {
            warn!(%error, "the store was not closed well");
        }
        log.put_back();
    }

    fn commit(&mut self, mut facts: Vec<Box<dyn Fact>>) {
        let mut group = Group::default();
        let lost = self.perform(&mut facts, &mut group).err();
        if let Some(lost) = &lost {
            warn!(?lost, facts = facts.len(), "a group of facts was not committed");
            self.undo();
        } else {
            if let Some(head) = group.stream_head {
                self.stream_head.send_replace(head);
            }
            if group.rule_added {
                self.memory.shared.no_rules.note_added();
            }
            self.memory.shared.said.fetch_add(group.said, Ordering::SeqCst);
            if group.outbox {
                self.memory.shared.outbox.send_modify(|changes| *changes += 1);
            }
            self.memory.shared.watchers.tell(&group.touched);
            for path in group.unlink {
                // A file without a row is never read, and is used again when the same bytes come back.
                if let Err(error) = std::fs::remove_file(&path) {
                    warn!(path = %path.display(), %error, "a file that nothing refers to was not removed");
                }
            }
        }
        for fact in facts {
            fact.answer(lost.as_ref());
        }
        let changes = self.db.total_changes();
        self.pending += changes - self.changes + group.bytes / PAGE;
        self.changes = changes;
    }

    fn perform(&mut self, facts: &mut Vec<Box<dyn Fact>>, group: &mut Group) -> Result<(), Lost> {
        self.statement("BEGIN IMMEDIATE").map_err(failed)?;
        let mut stands = false;
        for fact in facts.iter_mut() {
            stands |= self.perform_one(&mut **fact, group, stands)?;
        }
        if stands
            && group.ready
            && let Some(hand_out) = HandOut::begin(&self.memory.shared)
        {
            facts.push(Box::new(hand_out));
            let fact = facts.last_mut().expect("pushed just above");
            self.perform_one(&mut **fact, group, stands)?;
        }
        if !stands {
            // Nothing of the group is to be kept: not a byte is written.
            return self.statement("ROLLBACK").map_err(failed);
        }
        self.statement("COMMIT").map_err(failed)?;
        self.has_written = true;
        Ok(())
    }

    /// Performs a fact in a savepoint of its own; whether something of it is to be kept. An error: nothing of its group is.
    fn perform_one(&mut self, fact: &mut dyn Fact, group: &mut Group, others_stand: bool) -> Result<bool, Lost> {
        self.statement("SAVEPOINT fact").map_err(failed)?;
        let (head, unlinks) = (group.stream_head, group.unlink.len());
        let mut tx = Tx { view: View::new(&self.db), memory: &mut self.memory, group: &mut *group };
        let performed = fact.perform(&mut tx);
        let broken = tx.view.take_broken();
        if self.db.is_autocommit() {
            // SQLite gave up the whole transaction (a full disk, a failed write): nothing of it stands.
            let cause = performed.err().flatten();
            return Err(cause.unwrap_or_else(|| Lost::Failed("the transaction was given up".into())));
        }
        let mut stands = performed.is_ok();
        if !stands {
            group.stream_head = head;
            group.unlink.truncate(unlinks);
            self.memory.forget();
            self.statement("ROLLBACK TO fact").map_err(failed)?;
        }
        if !broken.is_empty() && (stands || others_stand || self.has_written) {
            stands = true;
            self.memory.forget();
            let mut tx = Tx { view: View::new(&self.db), memory: &mut self.memory, group: &mut *group };
            damage::set_aside(&mut tx, &broken)
                .map_err(|error| Lost::of(&error).unwrap_or_else(|| Lost::Failed(error.to_string())))?;
        }
        self.statement("RELEASE fact").map_err(failed)?;
        Ok(stands)
    }

    fn statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.db.prepare_cached(sql)?.execute([]).map(|_| ())
    }

    /// Brings connection and memory back to what is on disk.
    fn undo(&mut self) {
        self.memory.forget();
        if !self.db.is_autocommit()
            && let Err(error) = self.db.execute_batch("ROLLBACK")
        {
            error!(%error, "a failed transaction could not be rolled back");
        }
    }

    /// Moves the log into the main file when it has grown, after everyone has been answered.
    fn checkpoint(&mut self) {
        if self.pending < CHECKPOINT_AFTER {
            return;
        }
        self.pending = 0;
        let done = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = done {
            // The log keeps everything; the next try comes after as much again.
            warn!(%error, "the store's log could not be moved into its file");
        }
    }
}

fn failed(error: rusqlite::Error) -> Lost {
    let error = StoreError::from(error);
    Lost::of(&error).unwrap_or_else(|| Lost::Failed(error.to_string()))
}

impl<'a> Deref for Tx<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

/// A fact that nobody waits for: rows that a reader found broken.
pub(crate) struct Found(pub(crate) Vec<super::view::Broken>);

impl Fact for Found {
    fn perform(&mut self, tx: &mut Tx<'_>) -> Result<(), Option<Lost>> {
        let mut seen = HashMap::new();
        for broken in self.0.drain(..) {
            seen.entry((broken.table, broken.key.clone())).or_insert(broken);
        }
        for broken in seen.into_values() {
            tx.note_broken(broken);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, _lost: Option<&Lost>) {}
}
