use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use super::connection::open_reader;
use super::fault::Located;
use super::view::View;
use super::writer::{Fact, Found};
use crate::StoreError;

const LANES: usize = 2;
/// Readings that may wait in one lane.
const QUEUE: usize = 256;

type Job = Box<dyn FnOnce(Result<&View<'_>, StoreError>) + Send>;

/// Threads that read, each with its own connection, begun when first needed.
#[derive(Debug)]
pub(crate) struct Readers {
    file: PathBuf,
    notes: mpsc::WeakSender<Box<dyn Fact>>,
    lanes: [Lane; LANES],
}

#[derive(Debug, Default)]
struct Lane {
    waiting: AtomicUsize,
    /// Locked only to begin or end the thread and to take a handle of its queue.
    thread: Mutex<Option<(mpsc::Sender<Job>, JoinHandle<()>)>>,
}

impl Readers {
    pub(crate) fn new(file: PathBuf, notes: mpsc::WeakSender<Box<dyn Fact>>) -> Self {
        Self { file, notes, lanes: Default::default() }
    }

    pub(crate) async fn read<T, E, W>(&self, work: W) -> Result<T, E>
    where
        W: FnOnce(&View<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Located,
    {
        let gone = || StoreError::Failed { what: "the store is closed".into() };
        let lane = self.lanes.iter().min_by_key(|lane| lane.waiting.load(Ordering::Relaxed)).expect("there are lanes");
        let queue = self.queue(lane).map_err(|error| StoreError::Failed { what: error.to_string() })?;
        let (reply, answer) = oneshot::channel();
        let file = self.file.clone();
        let job: Job = Box::new(move |view| {
            let result = view.map_err(E::from).and_then(work).map_err(|error| error.locate(&file));
            drop(reply.send(result));
        });
        lane.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(&lane.waiting);
        queue.send(job).await.map_err(|_| gone())?;
        drop(queue);
        let answer = answer.await.map_err(|_| gone())?;
        drop(waiting);
        answer
    }

    /// Does work with files, away from the callers' threads.
    pub(crate) async fn run<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: FnOnce() -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        self.read(move |_| work()).await
    }

    fn queue(&self, lane: &Lane) -> std::io::Result<mpsc::Sender<Job>> {
        let mut thread = lane.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((queue, _)) = &*thread {
            return Ok(queue.clone());
        }
        let (queue, jobs) = mpsc::channel(QUEUE);
        let (file, notes) = (self.file.clone(), self.notes.clone());
        let handle = thread::Builder::new().name("store-reader".into()).spawn(move || serve(&file, jobs, &notes))?;
        *thread = Some((queue.clone(), handle));
        Ok(queue)
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        for lane in &self.lanes {
            let thread = lane.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((queue, handle)) = thread {
                drop(queue);
                if handle.join().is_err() {
                    warn!("a reader of the store has panicked");
                }
            }
        }
    }
}

/// Counts a reading as waiting until it is answered or given up.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(file: &std::path::Path, mut jobs: mpsc::Receiver<Job>, notes: &mpsc::WeakSender<Box<dyn Fact>>) {
    let mut opened: Option<Connection> = None;
    while let Some(job) = jobs.blocking_recv() {
        let db = match &opened {
            Some(db) => db,
            None => match open_reader(file) {
                Ok(db) => opened.insert(db),
                Err(error) => {
                    job(Err(error));
                    continue;
                }
            },
        };
        // One snapshot for all that a job reads.
        if let Err(error) = db.execute_batch("BEGIN") {
            job(Err(error.into()));
            continue;
        }
        let view = View::new(db);
        job(Ok(&view));
        let broken = view.take_broken();
        if db.execute_batch("COMMIT").is_err() {
            opened = None;
        }
        if !broken.is_empty()
            && let Some(queue) = notes.upgrade()
            && queue.try_send(Box::new(Found(broken))).is_err()
        {
            warn!("a broken record was not set aside yet; the next reading finds it again");
        }
    }
}
