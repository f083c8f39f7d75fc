use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use ow_model::{
    CatchUp, Cause, Disposition, Outcome, Run, SlotKey, Span, TaskId, TaskSource, TaskSpec, Trigger, ZoneName,
};
use serde::Deserialize;

use super::Place;
use super::support::{Any, at, claim, later, name, page, spec, take};
use crate::{RunFilter, TaskError};

#[derive(Deserialize)]
struct Scenarios {
    cases: Vec<Scenario>,
}

#[derive(Deserialize)]
struct Scenario {
    id: String,
    given: BTreeMap<String, serde_json::Value>,
    expect: BTreeMap<String, serde_json::Value>,
}

impl Scenario {
    fn given(&self, key: &str) -> &str {
        self.given[key].as_str().expect("a text")
    }

    fn next(&self) -> Timestamp {
        at(self.expect["next"].as_str().expect("a text"))
    }

    fn task(&self) -> TaskSpec {
        let mut task = spec("case", vec![Trigger::Cron(self.given("schedule").into())]);
        task.timezone = ZoneName(self.given("tz").into());
        task
    }
}

/// An owd on a clock that the test moves: sleeps to each instant that the store names, claims, works, ends.
struct Owd {
    store: Any,
    now: Timestamp,
    awake_since: Timestamp,
    /// How long each run works, in seconds.
    work: i64,
    busy: Vec<(Timestamp, crate::TakenRun)>,
}

impl Owd {
    async fn start(place: &impl Place, now: Timestamp) -> Self {
        let store = place.open().await;
        store.begin_life(&now.to_string(), now).await.expect("begun");
        let mut owd = Self { store, now, awake_since: now, work: 0, busy: vec![] };
        owd.work().await;
        owd
    }

    async fn save(&self, task: &TaskSpec) -> TaskId {
        self.store.save_task(task, TaskSource::Store, "", None, self.now).await.expect("saved").task
    }

    async fn work(&mut self) {
        for (_, taken) in self.busy.extract_if(.., |(done, _)| *done <= self.now).collect::<Vec<_>>() {
            super::support::end(&self.store, &taken, Outcome::Succeeded, self.now).await;
        }
        claim(&self.store, self.now, self.awake_since).await;
        for taken in take(&self.store, self.now).await {
            if self.work == 0 {
                super::support::end(&self.store, &taken, Outcome::Succeeded, self.now).await;
            } else {
                self.busy.push((later(self.now, self.work), taken));
            }
        }
    }

    async fn until(&mut self, end: Timestamp) {
        loop {
            let due = self.store.wake_times().await.expect("read").tasks;
            let done = self.busy.iter().map(|(done, _)| *done).min();
            match [due, done].into_iter().flatten().min().filter(|next| *next <= end) {
                Some(next) => self.now = next.max(self.now),
                None => break,
            }
            self.work().await;
        }
        self.now = end;
    }

    async fn runs(&self) -> Vec<Run> {
        let mut runs = self.store.runs(&RunFilter::default(), &page(1000)).await.expect("read").rows;
        runs.reverse();
        runs
    }

    async fn next_due(&self) -> Option<Timestamp> {
        self.store.task(&name("case")).await.expect("read").expect("there").next_due
    }
}

/// Each instant of the records, with what became of it; fails if one has two records.
async fn accounted(owd: &Owd, task: TaskId) -> Vec<(SlotKey, Disposition)> {
    let records = owd.store.slots(task, Timestamp::MIN, Timestamp::MAX, 10_000).await.expect("read");
    let mut last = Timestamp::MIN;
    for record in &records {
        let (from, until) = match &record.key {
            SlotKey::Instant(at) => (*at, *at),
            SlotKey::Range { from, until, .. } => (*from, *until),
            SlotKey::Event(_) | SlotKey::Manual(_) => continue,
        };
        assert!(from > last, "two records for {from}: {records:?}");
        last = until;
    }
    records.into_iter().map(|record| (record.key, record.disposition)).collect()
}

/// All of `scheduler-scenarios.json`, driven through the store on a clock of its own. Each uses a task named `case`,
/// removed afterwards.
pub async fn scheduler_scenarios_hold(place: &impl Place) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/scheduler-scenarios.json");
    let text = std::fs::read_to_string(&path).expect("the cases are in the repository");
    let scenarios: Scenarios = serde_json::from_str(&text).expect("the cases can be read");
    for case in &scenarios.cases {
        match case.id.as_str() {
            "sched-01" => {
                down_over(place, case, "2026-03-02T11:00:00Z", "2026-03-03T10:00:00Z", "2026-03-06T15:00:00Z", 4).await;
            }
            "sched-02" => {
                down_over(place, case, "2026-03-02T08:30:00Z", "2026-03-03T08:29:47Z", "2026-03-03T08:30:05Z", 1).await;
            }
            "sched-03" => crash_after_the_run_began(place, case).await,
            "sched-05" => one_shot_missed(place, case).await,
            "sched-06" => one_shot_in_the_past(place, case).await,
            "sched-09" => zone_edited(place, case).await,
            "sched-11" => edit_and_enable(place, case).await,
            "sched-12" => interval_over_restarts(place, case).await,
            "sched-17" => {
                down_over(place, case, "2026-03-03T00:00:00Z", "2026-03-03T00:00:30Z", "2026-03-03T03:20:30Z", 200)
                    .await;
            }
            "sched-18" => overlap_skip(place, case).await,
            "sched-19" => crash_while_running(place, case).await,
            "sched-22" => catch_up_off(place, case).await,
            other => panic!("no test for case {other}"),
        }
        let store = place.open().await;
        store.delete_task(&name("case"), at("2026-12-31T00:00:00Z")).await.ok();
        let all = ow_model::Span::from_millis(0);
        let retention = crate::Retention { runs: all, items: all, slots: all, event_keys: all, stream: 1, step: 1000 };
        while store.retain(&retention, at("2027-01-01T00:00:00Z")).await.expect("removed") {}
    }
}

/// The runs of this case; the store keeps the newest run of the case before.
async fn case_runs(owd: &Owd, task: TaskId) -> Vec<Run> {
    owd.runs().await.into_iter().filter(|run| run.task == task).collect()
}

async fn down_over(place: &impl Place, case: &Scenario, created: &str, down: &str, up: &str, missed: u64) {
    let owd = Owd::start(place, at(created)).await;
    let task = owd.save(&case.task()).await;
    let mut owd = owd;
    owd.until(at(down)).await;
    let before = case_runs(&owd, task).await.len();
    drop(owd);
    let owd = Owd::start(place, at(up)).await;
    let runs = case_runs(&owd, task).await;
    assert_eq!(runs.len() - before, 1, "{}: one run for all", case.id);
    let run = runs.last().expect("just counted");
    assert!(matches!(run.cause, Cause::CatchUp { count, .. } if count == missed), "{}: {run:?}", case.id);
    assert_eq!(run.created_at, at(up), "{}", case.id);
    let folded: u64 = accounted(&owd, task)
        .await
        .into_iter()
        .filter_map(|(key, disposition)| match (key, disposition) {
            (SlotKey::Range { count, .. }, Disposition::Missed { folded_into: Some(_), .. }) => Some(count),
            (SlotKey::Instant(_), Disposition::Missed { folded_into: Some(_), .. }) => Some(1),
            _ => None,
        })
        .sum();
    assert_eq!(folded, missed, "{}: the missed slots are listed", case.id);
    if case.expect.contains_key("next") {
        assert_eq!(owd.next_due().await, Some(case.next()), "{}", case.id);
    }
}

async fn crash_after_the_run_began(place: &impl Place, case: &Scenario) {
    let mut owd = Owd::start(place, at("2026-03-03T08:59:00Z")).await;
    let task = owd.save(&case.task()).await;
    owd.work = 60;
    owd.until(at("2026-03-03T09:00:02Z")).await;
    let began = case_runs(&owd, task).await;
    assert_eq!((began.len(), began[0].state.word()), (1, "running"));
    drop(owd);
    let owd = Owd::start(place, at("2026-03-03T09:00:10Z")).await;
    let runs = case_runs(&owd, task).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(runs[0].id, began[0].id, "the same run goes on");
    assert_eq!(owd.next_due().await, Some(at("2026-03-04T09:00:00Z")));
}

async fn one_shot_missed(place: &impl Place, case: &Scenario) {
    let mut owd = Owd::start(place, at("2026-03-03T08:00:00Z")).await;
    let task = owd.save(&spec("case", vec![Trigger::At(at(case.given("once")))])).await;
    owd.until(at("2026-03-03T08:55:00Z")).await;
    drop(owd);
    let owd = Owd::start(place, at("2026-03-03T14:00:00Z")).await;
    let runs = case_runs(&owd, task).await;
    assert!(matches!(runs[..], [Run { cause: Cause::CatchUp { count: 1, .. }, .. }]), "{runs:?}");
    assert_eq!(owd.next_due().await, None, "done");
}

async fn one_shot_in_the_past(place: &impl Place, case: &Scenario) {
    let owd = Owd::start(place, at(case.given("now"))).await;
    let task = spec("case", vec![Trigger::At(at(case.given("once")))]);
    let refused = owd.store.save_task(&task, TaskSource::Store, "", None, owd.now).await;
    assert!(matches!(refused, Err(TaskError::Refused { .. })), "{refused:?}");
    assert_eq!(owd.store.task(&name("case")).await.expect("read"), None);
}

async fn zone_edited(place: &impl Place, case: &Scenario) {
    let mut owd = Owd::start(place, at(case.given("now"))).await;
    let mut edited = spec("case", vec![Trigger::Cron(case.given("schedule").into())]);
    edited.timezone = ZoneName(case.given("tz_before").into());
    // Saved a moment before its next slot by the old zone would have come due.
    let task = owd.save(&edited).await;
    edited.timezone = ZoneName(case.given("tz_after").into());
    owd.save(&edited).await;
    assert_eq!(owd.next_due().await, Some(case.next()));
    owd.until(later(case.next(), -1)).await;
    assert_eq!(case_runs(&owd, task).await, []);
    owd.until(case.next()).await;
    assert_eq!(case_runs(&owd, task).await.len(), 1);
}

async fn edit_and_enable(place: &impl Place, case: &Scenario) {
    let mut owd = Owd::start(place, at("2026-03-03T10:01:00Z")).await;
    let mut edited = case.task();
    let task = owd.save(&edited).await;
    for title in ["one", "two"] {
        edited.title = Some(title.into());
        owd.save(&edited).await;
    }
    owd.store.pause_task(&name("case"), ow_model::PauseReason::Person, owd.now).await.expect("paused");
    owd.store.resume_task(&name("case"), owd.now).await.expect("resumed");
    owd.until(at("2026-03-03T11:01:00Z")).await;
    let runs = case_runs(&owd, task).await;
    assert_eq!(runs.len(), 12, "one a slot");
    accounted(&owd, task).await;
}

async fn interval_over_restarts(place: &impl Place, case: &Scenario) {
    let created = at(case.given("created"));
    let period: Span = case.given("every").parse().expect("a span");
    let owd = Owd::start(place, created).await;
    let task = owd.save(&spec("case", vec![Trigger::Every { period, anchor: None }])).await;
    drop(owd);
    let mut now = created;
    for _ in 0..5 {
        let mut owd = Owd::start(place, now).await;
        owd.until(later(now, 4 * 3600)).await;
        now = later(now, 5 * 3600);
    }
    let owd = Owd::start(place, now).await;
    let elapsed = now.duration_since(created).as_secs();
    let slots = elapsed / 21_600;
    let runs = case_runs(&owd, task).await;
    assert_eq!(i64::try_from(runs.len()).expect("few"), slots, "one each 6 h of wall clock: {runs:?}");
    assert!(runs.iter().any(|run| matches!(run.cause, Cause::Schedule)), "those while awake are on time");
    let next = owd.next_due().await.expect("goes on");
    assert_eq!(next.duration_since(created).as_secs() % 21_600, 0, "a restart begins nothing anew");
}

async fn overlap_skip(place: &impl Place, case: &Scenario) {
    let begin = at("2026-03-03T10:00:30Z");
    let mut owd = Owd::start(place, begin).await;
    let task = owd.save(&case.task()).await;
    owd.work = 150;
    owd.until(later(begin, 600)).await;
    let slots = accounted(&owd, task).await;
    let fired = slots.iter().filter(|(_, disposition)| matches!(disposition, Disposition::Fired { .. })).count();
    let skipped =
        slots.iter().filter(|(_, disposition)| matches!(disposition, Disposition::Skipped { why } if why == "overlap"));
    assert_eq!((fired, skipped.count()), (4, 6), "{slots:?}");
    let mut ended = Timestamp::MIN;
    for run in case_runs(&owd, task).await {
        assert!(run.started_at.expect("begun") >= ended, "never two at once");
        ended = run.ended_at.unwrap_or(Timestamp::MAX);
    }
}

async fn crash_while_running(place: &impl Place, case: &Scenario) {
    let mut owd = Owd::start(place, at("2026-03-03T09:59:00Z")).await;
    let task = owd.save(&case.task()).await;
    owd.work = 60;
    owd.until(at("2026-03-03T10:00:05Z")).await;
    assert_eq!(case_runs(&owd, task).await[0].state.word(), "running");
    drop(owd);
    let mut owd = Owd::start(place, at("2026-03-03T10:00:30Z")).await;
    assert_eq!(owd.next_due().await, Some(at("2026-03-03T10:10:00Z")));
    assert_eq!(owd.store.stats().await.expect("read").runs_running, 0, "the run that went on has ended");
    owd.store.run_now(&name("case"), "anna", None, owd.now).await.expect("works at once");
    owd.work().await;
    owd.until(at("2026-03-03T10:10:00Z")).await;
    let slot = at("2026-03-03T10:10:00Z");
    let runs = case_runs(&owd, task).await;
    let at_slot = runs.iter().filter(|run| run.scheduled_for == slot && run.cause == Cause::Schedule).count();
    assert_eq!(at_slot, 1, "{runs:?}");
}

async fn catch_up_off(place: &impl Place, case: &Scenario) {
    let mut off = case.task();
    off.catch_up = CatchUp::None;
    // Tuesday; 11:00 in Shanghai is 03:00 UTC.
    let mut owd = Owd::start(place, at("2026-03-03T02:00:00Z")).await;
    let task = owd.save(&off).await;
    owd.until(at("2026-03-03T02:30:00Z")).await;
    drop(owd);
    let owd = Owd::start(place, at("2026-03-03T14:00:00Z")).await;
    assert_eq!(case_runs(&owd, task).await, []);
    let slots = accounted(&owd, task).await;
    assert!(matches!(slots[..], [(_, Disposition::Missed { folded_into: None, .. })]), "{slots:?}");
}
