use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use ow_model::{
    Answer, Cause, Disposition, EventDelivery, Fact, Outcome, Overlap, PauseReason, RunId, RunState, SlotKey,
    TaskSource, WhileParked,
};
use proptest::prelude::*;

use super::support::Directory;
use crate::conformance::support::{
    anna, approval, call, claim, cron, ending, event, later, name, noon, page, spec, take,
};
use crate::{ItemFilter, ParkRequest, RunFilter, Store, StoreError, TakenRun};

const TASK: &str = "job";

/// What may happen to a store.
#[derive(Clone, Debug)]
enum Step {
    Sleep(i64),
    ClockBack(i64),
    Claim,
    Take,
    /// Of the runs taken in this life, the one with this number.
    Park(usize),
    End(usize, bool),
    Interrupt(usize),
    Answer(usize),
    Tend,
    Event(u8),
    RunNow,
    Cancel(usize),
    Pause,
    Resume,
    PauseAll,
    ResumeAll,
    Edit(u8),
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_i64..400).prop_map(Step::Sleep),
        1 => (1_i64..400).prop_map(Step::ClockBack),
        6 => Just(Step::Claim),
        6 => Just(Step::Take),
        3 => any::<usize>().prop_map(Step::Park),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(run, well)| Step::End(run, well)),
        1 => any::<usize>().prop_map(Step::Interrupt),
        3 => any::<usize>().prop_map(Step::Answer),
        1 => Just(Step::Tend),
        3 => (0_u8..12).prop_map(Step::Event),
        1 => Just(Step::RunNow),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        1 => Just(Step::PauseAll),
        2 => Just(Step::ResumeAll),
        1 => (0_u8..6).prop_map(Step::Edit),
        2 => Just(Step::Crash),
    ]
}

fn definition(number: u8) -> ow_model::TaskSpec {
    let mut job = spec(TASK, vec![cron("* * * * *")]);
    job.overlap =
        [Overlap::Skip, Overlap::Queue, Overlap::CancelPrevious, Overlap::Allow { max: 2 }][usize::from(number) % 4];
    job.while_parked = [WhileParked::Hold, WhileParked::Release, WhileParked::Supersede][usize::from(number) % 3];
    if number % 2 == 1 {
        job.events = EventDelivery::Each { max: 3 };
    }
    job.title = Some(number.to_string());
    job
}

/// A worker's side: what it took and how far the journal is, as it believes.
struct Worker {
    run: RunId,
    next: u32,
}

struct Owd {
    place: Directory,
    store: Option<Arc<dyn Store>>,
    now: Timestamp,
    awake_since: Timestamp,
    lives: u32,
    workers: Vec<Worker>,
    accepted: BTreeSet<String>,
}

impl Owd {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().expect("open between steps")
    }

    async fn perform(&mut self, step: &Step) {
        let (store, now) = (self.store(), self.now);
        match step {
            Step::Sleep(seconds) => self.now = later(now, *seconds),
            Step::ClockBack(seconds) => {
                self.now = later(now, -seconds);
                self.awake_since = self.awake_since.min(self.now);
                store.clock_changed(self.now).await.expect("told");
            }
            Step::Claim => {
                for (run, why) in claim(&store, now, self.awake_since).await.stop {
                    self.finish(run, &Outcome::Cancelled { why }).await;
                }
            }
            Step::Take => {
                let taken = take(&store, now).await;
                self.workers.extend(taken.iter().map(|TakenRun { run, journal, .. }| Worker {
                    run: run.id,
                    next: u32::try_from(journal.len()).expect("short"),
                }));
            }
            Step::Park(number) => {
                if let Some(Worker { run, next }) = self.worker(*number) {
                    let call = call(next, "x");
                    let items = vec![(call.position, approval(TASK, run, &call))];
                    let facts = vec![Fact::StepSkipped { step: 0 }];
                    let request = ParkRequest { run, next, facts, items, ran_for_ms: 1 };
                    store.park(&request, now).await.expect("it is the worker's");
                }
            }
            Step::End(number, well) => {
                if let Some(worker) = self.worker(*number) {
                    let outcome = if *well { Outcome::Succeeded } else { crate::conformance::support::failed("x") };
                    let end = ending(worker.run, worker.next, outcome);
                    store.end_run(&end, now).await.expect("it is the worker's");
                    let again = store.append(worker.run, worker.next, &[], None, now).await;
                    assert!(matches!(again, Err(StoreError::Fenced { .. })), "it has ended: {again:?}");
                }
            }
            Step::Interrupt(number) => {
                if let Some(worker) = self.worker(*number) {
                    store.interrupt_run(worker.run, worker.next, &[], 1, now).await.expect("it is the worker's");
                }
            }
            Step::Answer(number) => {
                let filter = ItemFilter { pending_only: true, ..ItemFilter::default() };
                let items = store.items(&filter, &page(100)).await.expect("read").rows;
                if let Some(item) = items.get(number % items.len().max(1)) {
                    // One past its time is refused.
                    drop(store.resolve(item.id, &Answer::Once, &anna(), now).await);
                    let again = store.resolve(item.id, &Answer::Once, &anna(), now).await;
                    assert!(again.is_err(), "resolved once");
                }
            }
            Step::Tend => drop(store.tend_items(now).await.expect("tended")),
            Step::Event(key) => {
                store.accept_events(&[event(TASK, &key.to_string())], now).await.expect("accepted");
                self.accepted.insert(key.to_string());
            }
            Step::RunNow => drop(store.run_now(&name(TASK), "anna", None, now).await),
            Step::Cancel(number) => {
                let open = RunFilter { open_only: true, ..RunFilter::default() };
                let runs = store.runs(&open, &page(100)).await.expect("read").rows;
                if let Some(run) = runs.get(number % runs.len().max(1))
                    && store.cancel_run(run.id, "by anna", now).await.expect("it is open")
                {
                    self.finish(run.id, &Outcome::Cancelled { why: "by anna".into() }).await;
                }
            }
            Step::Pause => store.pause_task(&name(TASK), PauseReason::Person, now).await.expect("paused"),
            Step::Resume => store.resume_task(&name(TASK), now).await.expect("resumed"),
            Step::PauseAll => store.pause_all("anna", now).await.expect("paused"),
            Step::ResumeAll => store.resume_all(now).await.expect("resumed"),
            Step::Edit(number) => {
                let saved = store.save_task(&definition(*number), TaskSource::Store, "", None, now).await;
                saved.expect("it is fine");
            }
            Step::Crash => {
                drop(store);
                self.store = None;
                self.workers.clear();
                self.open().await;
            }
        }
    }

    async fn open(&mut self) {
        let store: Arc<dyn Store> = self.place.store();
        self.lives += 1;
        self.awake_since = self.now;
        store.begin_life(&self.lives.to_string(), self.now).await.expect("begun");
        self.store = Some(store);
    }

    fn worker(&mut self, number: usize) -> Option<Worker> {
        if self.workers.is_empty() {
            return None;
        }
        let number = number % self.workers.len();
        Some(self.workers.swap_remove(number))
    }

    async fn finish(&mut self, run: RunId, outcome: &Outcome) {
        if let Some(number) = self.workers.iter().position(|worker| worker.run == run) {
            let worker = self.workers.swap_remove(number);
            let end = ending(run, worker.next, outcome.clone());
            self.store().end_run(&end, self.now).await.expect("it is the worker's");
        }
    }

    /// P1, P2 and the store's own invariants, from what it says of itself.
    async fn check(&self) {
        let store = self.store();
        let row = store.task(&name(TASK)).await.expect("read").expect("there");
        let runs = store.runs(&RunFilter::default(), &page(10_000)).await.expect("read").rows;
        let by_id: BTreeMap<RunId, &ow_model::Run> = runs.iter().map(|run| (run.id, run)).collect();
        let slots = store.slots(row.id, Timestamp::MIN, Timestamp::MAX, 100_000).await.expect("read");
        let mut instants = BTreeSet::new();
        let mut events = BTreeSet::new();
        let mut standing = BTreeSet::new();
        for slot in &slots {
            match &slot.disposition {
                Disposition::Voided { .. } => continue,
                Disposition::Fired { run } | Disposition::Missed { folded_into: Some(run), .. } => {
                    assert!(by_id.contains_key(run), "{slot:?} has no run");
                    standing.insert(*run);
                }
                Disposition::Skipped { .. } | Disposition::Missed { .. } | Disposition::Superseded { .. } => {}
            }
            match &slot.key {
                SlotKey::Instant(at) => assert!(instants.insert(*at), "{at} has two records"),
                SlotKey::Range { from, until, count } => {
                    let mut at = *from;
                    for _ in 0..*count {
                        assert!(instants.insert(at), "{at} has two records");
                        at = later(at, 60);
                    }
                    assert_eq!(later(at, -60), *until);
                }
                SlotKey::Event(key) => assert!(events.insert(key.0.clone()), "{key} has two records"),
                SlotKey::Manual(_) => {}
            }
        }
        // Each minute up to the mark has its record.
        let mut at = later(noon(), 60);
        while at <= row.accounted_until {
            assert!(instants.contains(&at), "{at} has no record, the mark is {}", row.accounted_until);
            at = later(at, 60);
        }
        assert_eq!(events.len() + row.waiting as usize, self.accepted.len(), "an event fired, waits, or was refused");
        for run in &runs {
            assert!(standing.contains(&run.id) || run.retry_of.is_some(), "{run:?} has no slot");
            let journal = store.journal(run.id).await.expect("read");
            for (expected, fact) in (0..).zip(&journal) {
                assert_eq!(fact.seq, expected, "a gap");
            }
            let ended = journal.iter().filter(|fact| matches!(fact.fact, Fact::Ended { .. })).count();
            assert_eq!(ended, usize::from(!run.state.is_open()), "{run:?}");
            let parked = journal.iter().filter(|fact| matches!(fact.fact, Fact::Parked { .. })).count();
            let answered = journal.iter().filter(|fact| matches!(fact.fact, Fact::Answered { .. })).count();
            let open = match &run.state {
                RunState::Parked { items, .. } => {
                    assert!(!items.is_empty(), "{run:?} waits for nothing");
                    items.len()
                }
                _ => 0,
            };
            assert_eq!(parked, answered + open, "{run:?}");
        }
        // No slot fires twice, whatever the clock did.
        let mut fired = BTreeSet::new();
        for run in &runs {
            match run.cause {
                Cause::Schedule => assert!(fired.insert(run.scheduled_for), "{run:?} fires again"),
                Cause::CatchUp { from, until, count }
                    if until.duration_since(from).as_secs() == 60 * (i64::try_from(count).expect("few") - 1) =>
                {
                    let minutes = (0..).map(|minute| later(from, 60 * minute)).take_while(|at| *at <= until);
                    for at in minutes {
                        assert!(fired.insert(at), "{run:?} fires {at} again");
                    }
                }
                // A range around slots that had fired before does not say which.
                Cause::CatchUp { .. } | Cause::Event { .. } | Cause::Manual { .. } | Cause::Retry { .. } => {}
            }
        }
        let running = runs.iter().filter(|run| run.state == RunState::Running).count();
        assert_eq!(running, self.workers.len(), "who runs has a worker");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_each_slot_event_and_question_is_accounted_for_once(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut owd = Owd {
                place: Directory::new(),
                store: None,
                now: noon(),
                awake_since: noon(),
                lives: 0,
                workers: vec![],
                accepted: BTreeSet::new(),
            };
            owd.open().await;
            let saved = owd.store().save_task(&definition(0), TaskSource::Store, "", None, noon()).await;
            saved.expect("it is fine");
            for step in &steps {
                owd.perform(step).await;
            }
            owd.check().await;
            owd.perform(&Step::Crash).await;
            owd.check().await;
        });
    }
}
