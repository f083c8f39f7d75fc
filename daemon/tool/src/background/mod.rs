//! Commands that go on while their session does something else.
//!
//! Each has a helper of its own, which owd holds: when owd ends, or the job's session does, the helper ends it
//! with all that it started. What a job prints is kept until it is read, its newest part when there is much.

mod tools;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ow_model::{CallError, CallErrorKind, CallResult, RunId};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

pub use tools::register;

/// Jobs that run at once, of one session and of all.
const RUNNING: usize = 8;
const RUNNING_IN_ALL: usize = 32;
/// Ended jobs of a session that can still be read.
const ENDED: usize = 32;
/// Bytes of output that wait to be read.
const UNREAD: usize = 256 * 1024;
/// Ends that nobody who listens has heard of yet.
const TOLD: usize = 256;

/// All background jobs of this owd.
#[derive(Clone)]
pub struct Background {
    jobs: Arc<Mutex<BTreeMap<JobKey, Job>>>,
    ends: broadcast::Sender<JobEnded>,
}

/// A background job came to its end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobEnded {
    pub run: RunId,
    /// Its id, as the session knows it.
    pub job: String,
    /// How: `exit status 0`, `ended by signal 9`, `killed`, …
    pub how: String,
}

/// Where a job stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum JobStanding {
    /// The session has none of this id, or it was one of an earlier life of owd, or of long ago.
    Unknown,
    Running,
    /// How it ended.
    Ended(String),
}

type JobKey = (RunId, String);

struct Job {
    command: String,
    /// What it prints is outside content.
    outside: bool,
    unread: VecDeque<u8>,
    dropped: u64,
    /// How it ended; none: it runs.
    end: Option<CallResult>,
    stop: CancellationToken,
    /// Changes with each piece of output and with the end.
    news: watch::Sender<u64>,
}

/// What a reader gets of a job.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    output: Value,
    outside: bool,
    has_news: bool,
}

impl Default for Background {
    fn default() -> Self {
        Self { jobs: Arc::default(), ends: broadcast::channel(TOLD).0 }
    }
}

impl Background {
    /// Hears of every job that ends from now on. A listener that is far behind may miss some, and then looks at
    /// [`standing`](Self::standing).
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<JobEnded> {
        self.ends.subscribe()
    }

    /// Whether the session has such a job and it runs.
    #[must_use]
    pub fn is_running(&self, run: RunId, job: &str) -> bool {
        self.standing(run, job) == JobStanding::Running
    }

    /// Where the session's job of this id stands.
    #[must_use]
    pub fn standing(&self, run: RunId, job: &str) -> JobStanding {
        match self.lock().get(&(run, job.to_owned())) {
            None => JobStanding::Unknown,
            Some(Job { end: None, .. }) => JobStanding::Running,
            Some(Job { end: Some(end), .. }) => JobStanding::Ended(how(end)),
        }
    }

    /// Ends the session's jobs and forgets what they printed: it is over.
    pub fn end_session(&self, run: RunId) {
        self.lock().retain(|(of, _), job| {
            if *of == run {
                job.stop.cancel();
            }
            *of != run
        });
    }

    /// Enters a job that is about to start.
    pub(crate) fn begin(
        &self,
        run: RunId,
        id: &str,
        command: String,
        outside: bool,
        stop: CancellationToken,
    ) -> Result<(), CallError> {
        let mut jobs = self.lock();
        let is_running = |job: &Job| job.end.is_none();
        let in_all = jobs.values().filter(|job| is_running(job)).count();
        let own = jobs.iter().filter(|((of, _), job)| *of == run && is_running(job)).count();
        if own >= RUNNING || in_all >= RUNNING_IN_ALL {
            let (count, whose) = if own >= RUNNING { (own, "of this session") } else { (in_all, "in all") };
            return Err(CallError {
                kind: CallErrorKind::Limit,
                message: format!("{count} background jobs {whose} run already; end one with job_kill, or wait for one"),
            });
        }
        let ended: Vec<JobKey> =
            jobs.iter().filter(|((of, _), job)| *of == run && !is_running(job)).map(|(key, _)| key.clone()).collect();
        if ended.len() >= ENDED
            && let Some(oldest) = ended.iter().min_by_key(|(_, id)| (id.len(), id.clone()))
        {
            jobs.remove(oldest);
        }
        let job =
            Job { command, outside, unread: VecDeque::new(), dropped: 0, end: None, stop, news: watch::Sender::new(0) };
        jobs.insert((run, id.to_owned()), job);
        Ok(())
    }

    /// Takes in what a job printed.
    pub(crate) fn printed(&self, run: RunId, id: &str, piece: &[u8]) {
        if let Some(job) = self.lock().get_mut(&(run, id.to_owned())) {
            job.unread.extend(piece);
            let surplus = job.unread.len().saturating_sub(UNREAD);
            job.unread.drain(..surplus);
            job.dropped += surplus as u64;
            job.news.send_modify(|count| *count += 1);
        }
    }

    /// Notes that a job ended, and tells those who listen.
    pub(crate) fn ended(&self, run: RunId, id: &str, result: CallResult) {
        let how = how(&result);
        if let Some(job) = self.lock().get_mut(&(run, id.to_owned())) {
            job.end = Some(result);
            job.news.send_modify(|count| *count += 1);
        }
        // Without a listener nobody waits for it.
        let _unheard = self.ends.send(JobEnded { run, job: id.to_owned(), how });
    }

    /// What is new of a job since it was read last.
    fn read(&self, run: RunId, id: &str) -> Result<Reading, CallError> {
        let mut jobs = self.lock();
        let job = jobs.get_mut(&(run, id.to_owned())).ok_or_else(|| unknown(id))?;
        // A character whose end is still to come waits for it.
        let bytes: Vec<u8> = job.unread.drain(..).collect();
        let whole = match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() && job.end.is_none() => error.valid_up_to(),
            _ => bytes.len(),
        };
        job.unread.extend(&bytes[whole..]);
        let dropped = std::mem::take(&mut job.dropped);
        let text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
        let has_news = !text.is_empty() || job.end.is_some();
        let mut output = json!({ "job": id, "command": job.command, "output": text });
        if dropped > 0 {
            output["dropped"] = format!("{dropped} bytes before this were not read in time").into();
        }
        match &job.end {
            None => output["state"] = "running".into(),
            Some(end) => {
                output["state"] = "ended".into();
                output["how"] = how(end).into();
            }
        }
        Ok(Reading { output, outside: job.outside, has_news })
    }

    /// What changes when a job prints something or ends.
    fn news(&self, run: RunId, id: &str) -> Result<watch::Receiver<u64>, CallError> {
        let jobs = self.lock();
        jobs.get(&(run, id.to_owned())).map(|job| job.news.subscribe()).ok_or_else(|| unknown(id))
    }

    fn kill(&self, run: RunId, id: &str) -> Result<(), CallError> {
        let jobs = self.lock();
        jobs.get(&(run, id.to_owned())).map(|job| job.stop.cancel()).ok_or_else(|| unknown(id))
    }

    /// Each holder leaves the table whole.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobKey, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown(id: &str) -> CallError {
    CallError {
        kind: CallErrorKind::BadArguments,
        message: format!(
            "this session has no background job `{id}`; jobs end with owd, and how far one came then is not known"
        ),
    }
}

fn how(result: &CallResult) -> String {
    match &result.error {
        None => "exit status 0".into(),
        Some(error) if error.kind == CallErrorKind::Stopped => "killed".into(),
        Some(error) => error.message.clone(),
    }
}
