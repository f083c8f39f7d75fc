//! P1 over random histories: every due instant and every event gets one record, and nothing fires twice.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use ow_model::{
    CatchUp, Disposition, EventDelivery, EventId, EventKey, ItemId, Overlap, RunId, SlotKey, Span, TaskSpec,
    WaitingEvent, WhileParked,
};
use ow_schedule::{ActiveRun, ActiveState, Gate, Plan, PlanInput, Rewind, Schedule, close, may_begin, plan, rewind};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::support::{at, cron, every, seconds, task};

#[derive(Clone, Debug)]
enum Step {
    /// Time passes and owd looks when it meant to look.
    Pass(i64),
    /// Time passes and owd is kept from looking until the end.
    Stall(i64),
    /// owd is down, or the machine sleeps.
    Sleep(i64),
    SetBack(i64),
    Pause(i64),
    /// An event comes, so many causes deep.
    Event(u32),
    /// The open run of this number, counted round, moves on.
    End(usize),
    Begin(usize),
    Park(usize, bool),
    /// The definition is written anew, equal to the old one: the same slots must not come again.
    Edit,
}

fn step() -> impl Strategy<Value = Step> {
    let span = || prop_oneof![1_i64..300, 1_i64..20_000, 1_i64..500_000];
    prop_oneof![
        4 => (1_i64..4000).prop_map(Step::Pass),
        2 => span().prop_map(Step::Stall),
        3 => span().prop_map(Step::Sleep),
        2 => span().prop_map(Step::SetBack),
        1 => span().prop_map(Step::Pause),
        3 => (0_u32..11).prop_map(Step::Event),
        3 => (0_usize..6).prop_map(Step::End),
        2 => (0_usize..6).prop_map(Step::Begin),
        2 => (0_usize..6, any::<bool>()).prop_map(|(run, holds)| Step::Park(run, holds)),
        1 => Just(Step::Edit),
    ]
}

fn spec() -> impl Strategy<Value = TaskSpec> {
    let triggers = prop::sample::select(vec![
        vec![cron("*/10 * * * *")],
        vec![cron("0 * * * *"), cron("30 2 * * *")],
        vec![cron("15 */3 * * 1-5"), every(Span::from_secs(5400))],
        vec![every(Span::from_secs(420))],
        vec![cron("0 9 * * *"), ow_model::Trigger::At(at("2026-03-28T10:00:00Z"))],
        vec![],
    ]);
    let overlap =
        prop::sample::select(vec![Overlap::Skip, Overlap::Queue, Overlap::CancelPrevious, Overlap::Allow { max: 2 }]);
    let catch_up =
        prop::sample::select(vec![CatchUp::Once, CatchUp::None, CatchUp::All { max: 3 }, CatchUp::All { max: 0 }]);
    let while_parked = prop::sample::select(vec![WhileParked::Hold, WhileParked::Release, WhileParked::Supersede]);
    let events = prop::sample::select(vec![EventDelivery::Batch { max: 3 }, EventDelivery::Each { max: 3 }]);
    let spans = (prop::option::of(60_u64..9000), prop_oneof![Just(0_u64), 1_u64..900]);
    (triggers, overlap, catch_up, while_parked, events, spans).prop_map(
        |(triggers, overlap, catch_up, while_parked, events, (deadline, jitter))| {
            let mut spec = task("America/New_York", triggers);
            (spec.overlap, spec.catch_up, spec.while_parked, spec.events) = (overlap, catch_up, while_parked, events);
            spec.start_deadline = deadline.map(Span::from_secs);
            spec.jitter = Span::from_secs(jitter);
            spec
        },
    )
}

/// A task in a store that writes down each plan as it is.
struct World {
    spec: TaskSpec,
    schedule: Schedule,
    created: Timestamp,
    now: Timestamp,
    awake_since: Timestamp,
    mark: Timestamp,
    gate: Gate,
    records: Vec<(SlotKey, Disposition)>,
    active: Vec<ActiveRun>,
    waiting: Vec<WaitingEvent>,
    /// Events that have come, been given to a run, been refused.
    accepted: BTreeSet<i64>,
    ended_events: Vec<i64>,
    runs: u64,
    wake_at: Option<Timestamp>,
}

impl World {
    fn new(spec: TaskSpec) -> Self {
        let created = at("2026-03-03T05:55:00Z");
        let schedule = Schedule::compile(&spec, created).expect("a schedule");
        Self {
            spec,
            schedule,
            created,
            now: created,
            awake_since: created,
            mark: created,
            gate: Gate::Open,
            records: vec![],
            active: vec![],
            waiting: vec![],
            accepted: BTreeSet::new(),
            ended_events: vec![],
            runs: 0,
            wake_at: None,
        }
    }

    fn fired_ahead(&self) -> Vec<Timestamp> {
        let mut fired: Vec<Timestamp> = self
            .records
            .iter()
            .filter_map(|record| match record {
                (SlotKey::Instant(at), Disposition::Fired { .. }) if *at > self.mark => Some(*at),
                _ => None,
            })
            .collect();
        fired.sort_unstable();
        fired
    }

    fn plan(&mut self) -> Result<(), TestCaseError> {
        let fired_ahead = self.fired_ahead();
        let before = self.active.clone();
        let runs = &mut self.runs;
        let plan = plan(
            &PlanInput {
                spec: &self.spec,
                schedule: &self.schedule,
                now: self.now,
                awake_since: self.awake_since,
                accounted_until: self.mark,
                fired_ahead: &fired_ahead,
                gate: self.gate.clone(),
                active: &self.active,
                waiting: &self.waiting,
            },
            &mut || {
                *runs += 1;
                let mut bytes = [0; 10];
                bytes[2..].copy_from_slice(&runs.to_be_bytes());
                RunId::from_bytes(bytes)
            },
        );
        self.check_cost(&plan, fired_ahead.len())?;
        prop_assert!(plan.accounted_until.is_none_or(|mark| mark > self.mark));
        prop_assert!(plan.wake_at.is_none_or(|wake| wake > self.now), "{:?} at {}", plan.wake_at, self.now);
        self.mark = plan.accounted_until.unwrap_or(self.mark);
        self.wake_at = plan.wake_at;
        for (run, _) in &plan.cancel {
            prop_assert!(before.iter().any(|active| active.run == *run), "only a run that was open is cancelled");
        }
        self.active.retain(|active| !plan.cancel.iter().any(|(run, _)| *run == active.run));
        for planned in &plan.runs {
            self.active.push(ActiveRun { run: planned.id, state: ActiveState::Queued });
            prop_assert!(planned.depth <= 8);
            self.ended_events.extend(planned.events.iter().map(|event| event.0));
        }
        self.ended_events.extend(plan.refused.iter().map(|(event, _)| event.0));
        self.waiting.retain(|event| !self.ended_events.contains(&event.id.0));
        self.records.extend(plan.records);
        Ok(())
    }

    /// What is written grows with what is due and allowed, not with how long nobody looked.
    fn check_cost(&self, plan: &Plan, fired: usize) -> Result<(), TestCaseError> {
        let allowed = 4 * (fired + 1) + 2 * 3 + self.waiting.len();
        prop_assert!(plan.records.len() <= allowed, "{} records", plan.records.len());
        prop_assert!(plan.runs.len() <= 3 + 2 + self.waiting.len());
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let numbered = |active: &[ActiveRun], number: usize| (!active.is_empty()).then(|| number % active.len());
        match *step {
            Step::Pass(span) => {
                let until = self.now + seconds(span);
                while let Some(wake) = self.wake_at.filter(|wake| *wake <= until) {
                    self.now = wake;
                    self.plan()?;
                }
                self.now = until;
            }
            Step::Stall(span) => self.now += seconds(span),
            Step::Sleep(span) => {
                self.now += seconds(span);
                self.awake_since = self.now;
            }
            Step::SetBack(span) => self.set_back(span),
            Step::Pause(span) => {
                self.plan()?;
                self.gate = Gate::Closed { why: "paused".into() };
                self.now += seconds(span);
                self.plan()?;
                self.gate = Gate::Open;
            }
            Step::Event(depth) => {
                let number = i64::try_from(self.accepted.len()).expect("few");
                self.accepted.insert(number);
                self.waiting.push(WaitingEvent {
                    id: EventId(number),
                    key: EventKey(number.to_string()),
                    depth,
                    received_at: self.now,
                });
            }
            Step::End(number) => {
                if let Some(index) = numbered(&self.active, number) {
                    self.active.remove(index);
                }
            }
            Step::Begin(number) => {
                if let Some(index) = numbered(&self.active, number) {
                    let others: Vec<ActiveState> = self
                        .active
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| *at != index)
                        .map(|(_, run)| run.state)
                        .collect();
                    if self.active[index].state == ActiveState::Queued && may_begin(&self.spec, &others) {
                        self.active[index].state = ActiveState::Running;
                    }
                }
            }
            Step::Park(number, holds) => {
                if let Some(index) = numbered(&self.active, number) {
                    let item = ItemId::from_bytes([u8::try_from(number).expect("few"); 10]);
                    self.active[index].state = ActiveState::Parked { item, holds };
                }
            }
            Step::Edit => {
                self.plan()?;
                let closed = close(&self.schedule, self.mark, &self.fired_ahead(), "edited", self.now);
                self.records.extend(closed);
                self.mark = self.mark.max(self.now);
            }
        }
        self.plan()
    }

    /// As a store does it: see `rewind`.
    fn set_back(&mut self, span: i64) {
        self.now = (self.now - seconds(span)).max(self.created);
        self.awake_since = self.awake_since.min(self.now);
        let end = |key: &SlotKey| match key {
            SlotKey::Instant(at) => Some(*at),
            SlotKey::Range { until, .. } => Some(*until),
            SlotKey::Event(_) | SlotKey::Manual(_) => None,
        };
        let stood_for = self.records.iter().filter_map(|(key, disposition)| match disposition {
            Disposition::Missed { folded_into: Some(_), .. } => end(key),
            _ => None,
        });
        let keep_until = stood_for.fold(self.now, Timestamp::max);
        let mut kept = Vec::new();
        for (key, disposition) in std::mem::take(&mut self.records) {
            match rewind(&self.schedule, &key, &disposition, keep_until) {
                Rewind::Keep => kept.push((key, disposition)),
                Rewind::Void => {}
                Rewind::Split { keep, .. } => kept.push((keep, disposition)),
            }
        }
        self.records = kept;
        self.mark = self.mark.min(keep_until);
    }

    /// Each instant up to the mark has one record, those after it have one only if they fired; so have events.
    fn check(&self) -> Result<(), TestCaseError> {
        let mut times: BTreeMap<Timestamp, u32> = BTreeMap::new();
        for (key, disposition) in &self.records {
            match key {
                SlotKey::Instant(at) => *times.entry(*at).or_default() += 1,
                SlotKey::Range { from, until, count } => {
                    let before = *from - SignedDuration::from_nanos(1);
                    let covered: Vec<Timestamp> = self.schedule.occurrences(before, *until).collect();
                    prop_assert_eq!(covered.len() as u64, *count, "{}", key);
                    prop_assert_eq!(covered.first(), Some(from));
                    prop_assert_eq!(covered.last(), Some(until));
                    for at in covered {
                        *times.entry(at).or_default() += 1;
                    }
                    prop_assert!(!matches!(disposition, Disposition::Fired { .. }), "a range never fires");
                }
                SlotKey::Event(_) | SlotKey::Manual(_) => {}
            }
        }
        for instant in self.schedule.occurrences(self.created, self.mark) {
            prop_assert_eq!(times.remove(&instant), Some(1), "{}", instant);
        }
        let fired_ahead = self.fired_ahead();
        prop_assert!(times.iter().all(|(at, times)| *times == 1 && fired_ahead.contains(at)), "{:?}", times);

        let events: Vec<&EventKey> = self
            .records
            .iter()
            .filter_map(|(key, _)| if let SlotKey::Event(key) = key { Some(key) } else { None })
            .collect();
        let distinct: BTreeSet<&str> = events.iter().map(|key| key.0.as_str()).collect();
        prop_assert_eq!(distinct.len(), events.len(), "an event has one record");
        prop_assert_eq!(events.len() + self.waiting.len(), self.accepted.len(), "none is lost");
        prop_assert!(self.waiting.len() <= 3);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_due_instant_and_every_event_has_exactly_one_record(
        spec in spec(),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut world = World::new(spec);
        world.plan()?;
        for step in &steps {
            world.step(step)?;
            world.check().map_err(|error| TestCaseError::fail(format!("after {step:?}: {error}")))?;
        }
    }

    #[test]
    fn no_more_runs_are_under_way_than_the_rule_allows(
        spec in spec(),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        // A person may park any run; what may begin is what is held to the rule.
        let limit = if let Overlap::Allow { max } = spec.overlap { max as usize } else { 1 };
        let mut world = World::new(spec);
        for step in steps.iter().filter(|step| !matches!(step, Step::Park(..))) {
            world.step(step)?;
            let running = world.active.iter().filter(|run| run.state == ActiveState::Running).count();
            prop_assert!(running <= limit);
        }
    }
}
