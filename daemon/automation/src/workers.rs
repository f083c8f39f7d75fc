use std::collections::HashMap;
use std::sync::Arc;

use ow_engine::Stop;
use ow_model::{Fact, Failure, Outcome, RunId, RunState, TurnOutcome};
use ow_store::{EndRequest, RestRequest, StoreError, TakenRun};
use tokio::task::{Id, JoinError, JoinSet};
use tracing::error;

use crate::handle::Shared;
use crate::parts::Performer;

/// The bounded places at which runs are worked on. Some are kept for runs that go on after an answer.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    performer: Arc<dyn Performer>,
    jobs: JoinSet<RunId>,
    /// Where each job sits, and for which run: a job that panics can still be told by its id.
    seats: HashMap<Id, (RunId, Seat)>,
    busy: Busy,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Seat {
    Any,
    /// Only for runs that go on after an answer.
    Kept,
    Chat,
}

#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    any: usize,
    kept: usize,
    chats: usize,
}

/// How many runs can be taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Free {
    /// Any run.
    pub(crate) any: usize,
    /// Beside those, answered ones.
    pub(crate) kept: usize,
    /// Chats.
    pub(crate) chats: usize,
}

/// A job that has returned: its run, or that it panicked.
pub(crate) struct Returned(Result<(Id, RunId), JoinError>);

impl Free {
    /// Whether a task's run can be taken.
    pub(crate) const fn any_at_all(self) -> bool {
        self.any + self.kept > 0
    }
}

impl Workers {
    pub(crate) fn new(shared: Arc<Shared>, performer: Arc<dyn Performer>) -> Self {
        Self { shared, performer, jobs: JoinSet::new(), seats: HashMap::new(), busy: Busy::default() }
    }

    pub(crate) fn free(&self) -> Free {
        let settings = &self.shared.settings;
        Free {
            any: settings.workers.max(1).saturating_sub(self.busy.any),
            kept: settings.answered_workers.max(1).saturating_sub(self.busy.kept),
            chats: settings.chat_workers.max(1).saturating_sub(self.busy.chats),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Starts a run that goes on after an answer: on a kept place if one is free.
    pub(crate) fn start_answered(&mut self, taken: TakenRun) {
        let seat = if self.free().kept > 0 { Seat::Kept } else { Seat::Any };
        self.start(taken, seat);
    }

    pub(crate) fn start_fresh(&mut self, taken: TakenRun) {
        self.start(taken, Seat::Any);
    }

    pub(crate) fn start_chat(&mut self, taken: TakenRun) {
        self.start(taken, Seat::Chat);
    }

    fn start(&mut self, taken: TakenRun, seat: Seat) {
        let run = taken.run.id;
        let stop: Stop = self.shared.running.enter(run);
        let performer = Arc::clone(&self.performer);
        let job = self.jobs.spawn(async move {
            performer.perform(taken, &stop).await;
            run
        });
        match seat {
            Seat::Any => self.busy.any += 1,
            Seat::Kept => self.busy.kept += 1,
            Seat::Chat => self.busy.chats += 1,
        }
        self.seats.insert(job.id(), (run, seat));
    }

    /// Waits for the next job to return; pending for ever when there is none.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when this is dropped; what it returned must go to [`Workers::settle`].
    pub(crate) async fn next_returned(&mut self) -> Returned {
        match self.jobs.join_next_with_id().await {
            Some(returned) => Returned(returned),
            None => std::future::pending().await,
        }
    }

    /// Frees the place of a job that returned. One that panicked has left its run running in the store: that ends
    /// as failed, and of a chat the turn does.
    pub(crate) async fn settle(&mut self, returned: Returned) -> Result<(), StoreError> {
        let id = match &returned.0 {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let (run, seat) = self.seats.remove(&id).expect("entered when the job was started");
        match seat {
            Seat::Any => self.busy.any -= 1,
            Seat::Kept => self.busy.kept -= 1,
            Seat::Chat => self.busy.chats -= 1,
        }
        self.shared.running.leave(run);
        if let Err(panic) = returned.0 {
            error!(%run, %panic, "a run's worker panicked; the run ends as failed");
            self.fail(run, seat).await?;
        }
        Ok(())
    }

    async fn fail(&self, run: RunId, seat: Seat) -> Result<(), StoreError> {
        let store = &self.shared.store;
        if !store.run(run).await?.is_some_and(|run| matches!(run.state, RunState::Running)) {
            return Ok(());
        }
        let next = u32::try_from(store.journal(run).await?.len()).unwrap_or(u32::MAX);
        let message = String::from("a fault in owd stopped this run; its log says where");
        let now = self.shared.clock.now();
        if seat == Seat::Chat {
            // What was said enters the history here: left waiting, it would bring the same fault again at once.
            let said = store.inputs(run).await?.into_iter();
            let said = said.map(|(number, input)| Fact::Input { number: Some(number), input });
            let outcome = TurnOutcome::Failed { failure: Failure::Internal, message };
            let stopped = Fact::TurnInterrupted { by: "a fault in owd".into(), partial: None };
            let facts = said.chain([stopped, Fact::TurnEnded { outcome }]).collect();
            return store.idle_run(&RestRequest { session: run, next, facts, ran_for_ms: 0 }, now).await;
        }
        let outcome = Outcome::Failed { failure: Failure::Internal, message };
        let request = EndRequest { run, next, facts: vec![], outcome, ran_for_ms: 0, retry_at: None };
        store.end_run(&request, now).await
    }

    /// The runs that are still worked on, for the log.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunId> {
        self.seats.values().map(|(run, _)| *run)
    }
}
