//! Wakes sessions that sleep until a background job ends.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ow_model::{Input, SessionId, Source};
use ow_store::SessionError;
use ow_tool::{JobEnded, JobStanding};
use tokio::sync::broadcast::error::RecvError;
use tracing::{info, warn};

use crate::Engine;

const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

impl Engine {
    /// Wakes the sessions whose jobs end, for as long as owd lives; `rouse` is called when one may go on. First those
    /// whose jobs ended with an earlier life.
    ///
    /// # Cancel safety
    ///
    /// A session that is not woken when this is dropped is woken by the next life.
    pub async fn wake_sleepers(self: Arc<Self>, rouse: impl Fn() + Send) -> Infallible {
        let mut ends = self.helpers.background().subscribe();
        self.tell_of_ended_jobs().await;
        loop {
            rouse();
            match ends.recv().await {
                Ok(JobEnded { run, job, how }) => {
                    if self.jobs_awaited().await.contains(&(run, job.clone())) {
                        self.tell_of_job(run, &job, Some(&how)).await;
                    }
                }
                Err(RecvError::Lagged(_)) => self.tell_of_ended_jobs().await,
                // The sender is this engine's own.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    async fn tell_of_ended_jobs(&self) {
        for (session, job) in self.jobs_awaited().await {
            match self.helpers.background().standing(session, &job) {
                JobStanding::Running => {}
                JobStanding::Ended(how) => self.tell_of_job(session, &job, Some(&how)).await,
                JobStanding::Unknown => self.tell_of_job(session, &job, None).await,
            }
        }
    }

    async fn jobs_awaited(&self) -> Vec<(SessionId, String)> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.store.jobs_awaited().await {
                Ok(awaited) => return awaited,
                Err(error) => warn!(error = &error as &dyn std::error::Error, "cannot tell who waits for jobs"),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Tells a session, once, that a job of it has ended; without `how`, that it ended with an earlier life of owd.
    pub(crate) async fn tell_of_job(&self, session: SessionId, job: &str, how: Option<&str>) {
        let source = Source::Wake { note: String::new() };
        let input = Input { text: job_words(job, how), attachments: vec![], source };
        let mut wait = FIRST_WAIT;
        loop {
            match self.store.say(session, &input, Some(&format!("job {job}")), self.clock.now()).await {
                Ok(_) => return info!(%session, job, "a background job ended; its session wakes"),
                Err(SessionError::Store(error)) => {
                    warn!(error = &error as &dyn std::error::Error, "the store cannot write; trying again");
                }
                // It is over, and waits for nothing.
                Err(_) => return,
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

/// What a session is told of a job that has ended.
pub(crate) fn job_words(job: &str, how: Option<&str>) -> String {
    match how {
        Some(how) => format!("Background job {job} has ended: {how}. What it printed is read with job_output."),
        None => format!(
            "owd was started anew meanwhile, and background job {job} ended with it. How far it came is not known, and \
             what it printed is gone."
        ),
    }
}
