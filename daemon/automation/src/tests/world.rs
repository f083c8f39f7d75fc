use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use ow_clock::{Clock, ManualHand};
use ow_config::{TaskDefaults, ToolChecker};
use ow_engine::{Stop, StopReason};
use ow_model::{
    AgentSpec, Cause, Disposition, Fact, Input, ItemKind, Outcome, Person, Position, Run, RunId, RunState, SessionId,
    SlotRecord, Source, Span, TaskName, TaskSource, TaskSpec, ToolName, ZoneName,
};
use ow_store::{
    EndRequest, NewItem, NewSession, PageRequest, ParkRequest, RestRequest, Retention, RunFilter, SqliteStore, Store,
    TakenRun, TaskRow,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use crate::automation::Surroundings;
use crate::watch::{OpenWatcher, open_system_watcher};
use crate::{Automation, Handle, Parts, Performer, Settings, Written};

/// No condition takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Flavour {
    CurrentThread,
    MultiThread,
}

pub(crate) const FLAVOURS: [Flavour; 2] = [Flavour::CurrentThread, Flavour::MultiThread];

/// What lasts over the lives of owd.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) hand: ManualHand,
    pub(crate) clock: Clock,
    pub(crate) script: Arc<Script>,
    pub(crate) settings: Settings,
    flavour: Flavour,
    pub(crate) open_watcher: OpenWatcher,
    pub(crate) network: fn() -> bool,
}

/// One life of owd.
pub(crate) struct Life {
    runtime: Option<Runtime>,
    automation: Option<Automation>,
    pub(crate) store: Arc<SqliteStore>,
    clock: Clock,
    hand: ManualHand,
    script: Arc<Script>,
}

/// What the performer does with the runs of each task, and what it saw.
#[derive(Default)]
pub(crate) struct Script {
    acts: Mutex<HashMap<TaskName, Act>>,
    begun: Mutex<Vec<(TaskName, RunId)>>,
    /// One permit lets one held run end.
    gate: Option<Semaphore>,
    /// Who is at work, the most at the same time, and who of them waits to be let go.
    at_work: Mutex<AtWork>,
}

#[derive(Default)]
struct AtWork {
    now: usize,
    most: usize,
    held: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Act {
    Succeed,
    Fail,
    /// Goes on until released or stopped.
    Hold,
    /// Does not even stop when told.
    Hang,
    /// Asks a question, then succeeds.
    Ask,
    Panic,
    /// A chat that sleeps for so long.
    Sleep(SignedDuration),
}

pub(crate) fn at(text: &str) -> Timestamp {
    let whole = if text.matches(':').count() == 1 { text.replace('Z', ":00Z") } else { text.to_owned() };
    whole.parse().expect("an instant")
}

pub(crate) fn name(text: &str) -> TaskName {
    text.parse().expect("a name")
}

impl World {
    pub(crate) fn new(now: &str) -> Self {
        Self::of(Flavour::MultiThread, now)
    }

    pub(crate) fn of(flavour: Flavour, now: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (clock, hand) = Clock::manual(at(now));
        let day = |days: u64| Span::from_secs(days * 86_400);
        let settings = Settings {
            workers: 8,
            answered_workers: 1,
            chat_workers: 1,
            grace: Span::from_millis(50),
            tasks_dir: folder.path().join("tasks.d"),
            retention: Retention {
                runs: day(30),
                items: day(30),
                slots: day(400),
                event_keys: day(90),
                stream: 10_000,
                step: 100,
            },
        };
        let script = Arc::new(Script { gate: Some(Semaphore::new(0)), ..Script::default() });
        let open_watcher: OpenWatcher = Arc::new(open_system_watcher);
        Self { folder, hand, clock, script, settings, flavour, open_watcher, network: || true }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Begins a life.
    pub(crate) fn live(&self) -> Life {
        let mut builder = match self.flavour {
            Flavour::CurrentThread => Builder::new_current_thread(),
            Flavour::MultiThread => Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
        let store = SqliteStore::open(&self.path("data")).expect("a store");
        let parts = Parts {
            store: store.clone(),
            clock: self.clock.clone(),
            performer: Arc::new(Scripted {
                script: Arc::clone(&self.script),
                store: store.clone(),
                clock: self.clock.clone(),
            }),
            settings: self.settings.clone(),
            check: Arc::new(check),
        };
        let surroundings = Surroundings { open_watcher: Arc::clone(&self.open_watcher), network: self.network };
        let automation = runtime.block_on(Automation::start_in(parts, surroundings)).expect("a start");
        let (clock, hand, script) = (self.clock.clone(), self.hand.clone(), Arc::clone(&self.script));
        Life { runtime: Some(runtime), automation: Some(automation), store, clock, hand, script }
    }

    pub(crate) fn act(&self, task: &str, act: Act) {
        self.script.acts.lock().expect("no panic").insert(name(task), act);
    }

    /// Lets `count` held runs end.
    pub(crate) fn release(&self, count: usize) {
        self.script.gate.as_ref().expect("made with it").add_permits(count);
    }

    pub(crate) fn begun(&self, task: &str) -> usize {
        self.script.begun.lock().expect("no panic").iter().filter(|(begun, _)| begun.as_str() == task).count()
    }

    /// The most runs that were worked on at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.script.at_work.lock().expect("no panic").most
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

/// A definition with one step, which the scripted performer does not look at.
pub(crate) fn task(head: &str) -> String {
    format!("timezone = \"UTC\"\n{head}\n[[step]]\ntool = \"notify\"\nargs = {{ text = \"x\" }}\n")
}

struct AnyTool;

impl ToolChecker for AnyTool {
    fn known(&self) -> Vec<ToolName> {
        vec!["notify".parse().expect("a name")]
    }

    fn check(&self, _tool: &ToolName, _args: &Value) -> Result<(), String> {
        Ok(())
    }
}

pub(crate) fn check(written: &Written<'_>, now: Timestamp) -> Result<TaskSpec, Vec<String>> {
    let defaults = TaskDefaults {
        inboxes: [ow_model::InboxName::default()].into(),
        timezone: ZoneName("UTC".into()),
        home: "/home/ann".into(),
        timeout: Span::from_secs(3600),
        call_timeout: Span::from_secs(600),
        expiry: Span::from_secs(14 * 86_400),
        reminder: Span::from_secs(86_400),
        webhooks: vec!["ci".parse().expect("a name")],
        mail_folders: vec![],
    };
    let Written { name, text, file, before } = *written;
    let parsed = match before {
        Some(before) => ow_config::parse_edited_task(before, text, file, &defaults, &AnyTool, now),
        None => ow_config::parse_task(name, text, file, &defaults, &AnyTool, now),
    };
    parsed.map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

impl Life {
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("alive").block_on(future)
    }

    pub(crate) fn handle(&self) -> Handle {
        self.automation.as_ref().expect("alive").handle()
    }

    pub(crate) fn save(&self, task: &str, text: &str) {
        self.try_save(task, text).expect("a task");
    }

    pub(crate) fn try_save(&self, task: &str, text: &str) -> Result<(), String> {
        let now = self.clock.now();
        let written = Written { name: &name(task), text, file: None, before: None };
        let spec = check(&written, now).map_err(|faults| faults.join("\n"))?;
        let saved = self.block_on(self.store.save_task(&spec, TaskSource::Store, text, None, now));
        saved.map_err(|error| error.to_string())?;
        self.handle().wake();
        Ok(())
    }

    /// Opens a chat; returns it and the name of its task.
    pub(crate) fn chat(&self) -> (SessionId, String) {
        let mut spec =
            check(&Written { name: &name("chat"), text: &task(""), file: None, before: None }, self.clock.now())
                .expect("a definition");
        (spec.steps, spec.agent) = (vec![], Some(AgentSpec::default()));
        let new = NewSession { spec, title: None, by: "ann".into() };
        let chat = self.block_on(self.store.create_session(&new, self.clock.now())).expect("created");
        let run = self.block_on(self.store.run(chat)).expect("a store").expect("just created");
        (chat, run.task_name.to_string())
    }

    pub(crate) fn say(&self, chat: SessionId, text: &str) {
        let source = Source::Person { person: Person("ann".into()) };
        let input = Input { text: text.into(), attachments: vec![], source };
        self.block_on(self.store.say(chat, &input, None, self.clock.now())).expect("said");
        self.handle().wake();
    }

    pub(crate) fn row(&self, task: &str) -> TaskRow {
        self.block_on(self.store.task(&name(task))).expect("a store").expect("a task")
    }

    /// The runs of a task, oldest first.
    pub(crate) fn runs(&self, task: &str) -> Vec<Run> {
        self.block_on(runs(&self.store, task))
    }

    pub(crate) fn slots(&self, task: &str) -> Vec<SlotRecord> {
        let row = self.row(task);
        let slots = self.store.slots(row.id, Timestamp::MIN, Timestamp::MAX, 1000);
        self.block_on(slots).expect("a store")
    }

    /// Moves the clock and waits until all that is due by then has been seen to.
    pub(crate) fn advance(&self, to: &str) {
        self.hand.set(at(to));
        self.rest();
    }

    /// Moves the clock in steps, so that each slot comes on time.
    pub(crate) fn pass(&self, until: &str, step: SignedDuration) {
        while self.clock.now() < at(until) {
            self.hand.set((self.clock.now() + step).min(at(until)));
            self.rest();
        }
    }

    /// Waits until nothing is due, only held runs are at work, and the timer sleeps.
    pub(crate) fn rest(&self) {
        self.until("all is at rest", async || {
            let times = self.store.wake_times().await.expect("a store");
            let held = self.script.at_work.lock().expect("no panic").held;
            times.earliest().is_none_or(|at| at > self.clock.now())
                && !times.ready
                && self.handle().running() == held
                && self.hand.sleepers() == 1
        });
    }

    pub(crate) fn until_ended(&self, task: &str, count: usize) -> Vec<Run> {
        self.until(&format!("{count} runs of {task} have ended"), async || {
            let runs = runs(&self.store, task).await;
            runs.iter().filter(|run| !run.state.is_open()).count() >= count
        });
        self.runs(task)
    }

    /// Waits for a condition, looking at each change of the store and every few milliseconds.
    pub(crate) fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let mut head = self.store.stream_head();
        let wait = async {
            while !condition().await {
                drop(tokio::time::timeout(Duration::from_millis(5), head.changed()).await);
            }
        };
        let came = self.block_on(async { tokio::time::timeout(PATIENCE, wait).await });
        assert!(came.is_ok(), "did not come: {what}");
    }

    /// Stops as on SIGTERM.
    pub(crate) fn stop(mut self) {
        let automation = self.automation.take().expect("alive");
        self.block_on(automation.drain());
    }

    /// Stops as on SIGKILL: whatever was under way is gone.
    pub(crate) fn crash(mut self) {
        let runtime = self.runtime.take().expect("alive");
        // No task of owd runs any more when this returns, so none can tidy up.
        drop(runtime);
        self.automation = None;
    }
}

async fn runs(store: &SqliteStore, task: &str) -> Vec<Run> {
    let filter = RunFilter { task: Some(name(task)), ..RunFilter::default() };
    let page = PageRequest { after: None, limit: 1000 };
    let mut runs = store.runs(&filter, &page).await.expect("a store").rows;
    runs.reverse();
    runs
}

pub(crate) fn causes(runs: &[Run]) -> Vec<&'static str> {
    let word = |run: &Run| match run.cause {
        Cause::Schedule => "schedule",
        Cause::CatchUp { .. } => "catchup",
        Cause::Event { .. } => "event",
        Cause::Manual { .. } => "manual",
        Cause::Retry { .. } => "retry",
    };
    runs.iter().map(word).collect()
}

pub(crate) fn words(runs: &[Run]) -> Vec<&'static str> {
    runs.iter().map(|run| run.state.word()).collect()
}

/// What became of each slot, in a word, with the reason.
pub(crate) fn fates(slots: &[SlotRecord]) -> Vec<String> {
    let fate = |slot: &SlotRecord| match &slot.disposition {
        Disposition::Fired { .. } => "fired".to_owned(),
        Disposition::Skipped { why } => format!("skipped: {why}"),
        Disposition::Missed { why, folded_into: None } => format!("missed: {why}"),
        Disposition::Missed { folded_into: Some(_), .. } => "caught up".to_owned(),
        Disposition::Superseded { why, .. } => format!("superseded: {why}"),
        Disposition::Voided { why } => format!("voided: {why}"),
    };
    slots.iter().map(fate).collect()
}

struct Scripted {
    script: Arc<Script>,
    store: Arc<SqliteStore>,
    clock: Clock,
}

#[async_trait]
impl Performer for Scripted {
    async fn perform(&self, taken: TakenRun, stop: &Stop) {
        let (run, task) = (taken.run.id, taken.run.task_name.clone());
        self.script.begun.lock().expect("no panic").push((task.clone(), run));
        let act = self.script.acts.lock().expect("no panic").get(&task).copied().unwrap_or(Act::Succeed);
        let _present = Present::enter(&self.script, act);
        let next = u32::try_from(taken.journal.len()).expect("few facts");
        let end = async |outcome: Outcome| {
            // Refused only when the run was taken from this life.
            let end = EndRequest { run, next, facts: vec![], outcome, ran_for_ms: 0, retry_at: None };
            drop(self.store.end_run(&end, self.clock.now()).await);
        };
        match act {
            Act::Fail => {
                let failure = ow_model::Failure::Step;
                end(Outcome::Failed { failure, message: "as scripted".into() }).await;
            }
            Act::Panic => panic!("as scripted"),
            Act::Sleep(time) => {
                let said = self.store.inputs(run).await.expect("a store").into_iter();
                let facts = said.map(|(number, input)| Fact::Input { number: Some(number), input }).collect();
                let request = RestRequest { session: run, next, facts, ran_for_ms: 0 };
                let now = self.clock.now();
                drop(self.store.sleep_run(&request, Some(now + time), now).await);
            }
            Act::Hang => std::future::pending().await,
            Act::Ask if taken.journal.is_empty() => self.park(run).await,
            // A chat's run never ends by itself.
            Act::Succeed if taken.spec.agent.is_some() => {
                let said = self.store.inputs(run).await.expect("a store").into_iter();
                let facts = said.map(|(number, input)| Fact::Input { number: Some(number), input }).collect();
                let request = RestRequest { session: run, next, facts, ran_for_ms: 0 };
                drop(self.store.idle_run(&request, self.clock.now()).await);
            }
            Act::Succeed | Act::Ask => end(Outcome::Succeeded).await,
            Act::Hold => {
                let gate = self.script.gate.as_ref().expect("made with it");
                tokio::select! {
                    permit = gate.acquire() => {
                        permit.expect("never closed").forget();
                        end(Outcome::Succeeded).await;
                    }
                    () = stop.token().cancelled() => match stop.reason().expect("it was cancelled") {
                        StopReason::Interrupt => {
                            drop(self.store.interrupt_run(run, next, &[], 0, self.clock.now()).await);
                        }
                        StopReason::Cancel { why } => end(Outcome::Cancelled { why: why.clone() }).await,
                    },
                }
            }
        }
    }
}

impl Scripted {
    async fn park(&self, run: RunId) {
        let item = NewItem {
            task: None,
            run: Some(run),
            title: "a question".into(),
            kind: ItemKind::Question {
                questions: vec![ow_model::Question {
                    header: None,
                    text: "well?".into(),
                    options: vec![],
                    multi: false,
                }],
            },
            expires_in: Some(Span::from_secs(3600)),
            remind_after: None,
            inbox: ow_model::InboxName::default(),
        };
        let items = vec![(Position(0), item)];
        let request = ParkRequest { run, next: 0, facts: vec![], items, ran_for_ms: 0 };
        self.store.park(&request, self.clock.now()).await.expect("parked");
    }
}

/// Counts who is at work.
struct Present<'a>(&'a Script, bool);

impl<'a> Present<'a> {
    fn enter(script: &'a Script, act: Act) -> Self {
        let held = matches!(act, Act::Hold | Act::Hang);
        let mut at_work = script.at_work.lock().expect("no panic");
        at_work.now += 1;
        at_work.most = at_work.most.max(at_work.now);
        at_work.held += usize::from(held);
        Self(script, held)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let mut at_work = self.0.at_work.lock().expect("no panic");
        at_work.now -= 1;
        at_work.held -= usize::from(self.1);
    }
}

pub(crate) fn parked(run: &Run) -> Option<ow_model::ItemId> {
    match &run.state {
        RunState::Parked { items, .. } => items.first().copied(),
        _ => None,
    }
}
