use jiff::{SignedDuration, Timestamp};
use ow_model::{CatchUp, Cause, Disposition, EventDelivery, EventId, ItemId, Overlap, RunId, SlotKey, WaitingEvent};

use crate::every::TICK;
use crate::line::{Blocked, Line};
use crate::plan::{Gate, Plan, PlanInput, PlannedRun};
use crate::stretch::{Stretch, next_unfired, stretches};

/// A run with more causes before it than this is taken for a loop of tasks that start each other.
pub const DEPTH_LIMIT: u32 = 8;

/// Decides what a task's due slots and waiting events become at `input.now`.
///
/// Every instant in (`accounted_until`, now - jitter] that has not fired gets exactly one record, ranges being counted
/// and never gone through. Asking again after the plan was written changes nothing, so a wake-up too many is harmless.
/// `ids` gives the ids of new runs.
pub fn plan(input: &PlanInput<'_>, ids: &mut dyn FnMut() -> RunId) -> Plan {
    let mut planner = Planner { input, ids, line: Line::new(input.spec, input.active), plan: Plan::default() };
    match &input.gate {
        Gate::Open => {
            planner.slots();
            planner.events();
        }
        Gate::Closed { why } => planner.skip_slots(why),
    }
    planner.refuse_events();

    let mark = input.accounted_until.max(input.horizon());
    let mut plan = planner.plan;
    plan.accounted_until = (mark > input.accounted_until).then_some(mark);
    if input.gate == Gate::Open {
        plan.wake_at = next_unfired(input.schedule, mark, input.fired_ahead).map(|next| input.schedule.due(next));
    }
    plan
}

impl PlanInput<'_> {
    /// The last instant that is due by now.
    fn horizon(&self) -> Timestamp {
        earlier(self.now, self.schedule.jitter())
    }

    /// The last instant that is too late to be started.
    fn too_late(&self) -> Timestamp {
        let deadline = self.spec.start_deadline.map(ow_model::Span::signed);
        deadline.map_or(Timestamp::MIN, |deadline| earlier(earlier(self.horizon(), deadline), TICK))
    }

    /// The last instant that came due before owd was awake.
    fn missed(&self) -> Timestamp {
        earlier(earlier(self.awake_since, self.schedule.jitter()), TICK)
    }

    fn stretches(&self, after: Timestamp, until: Timestamp) -> Vec<Stretch> {
        stretches(self.schedule, after, until, self.fired_ahead)
    }
}

struct Planner<'a, 'i> {
    input: &'a PlanInput<'i>,
    ids: &'a mut dyn FnMut() -> RunId,
    line: Line,
    plan: Plan,
}

impl Planner<'_, '_> {
    fn slots(&mut self) {
        let (from, horizon) = (self.input.accounted_until, self.input.horizon());
        if from >= horizon {
            return;
        }
        let late = self.input.too_late().clamp(from, horizon);
        let missed = self.input.missed().clamp(late, horizon);
        for stretch in self.input.stretches(from, late) {
            self.record(&stretch, missed_for("start deadline", None));
        }
        // A newer slot cancels an older one's run, so that of all that are due together only the newest is begun.
        if self.input.spec.overlap == Overlap::CancelPrevious {
            self.newest_only(late, missed, horizon);
        } else {
            self.catch_up(late, missed);
            self.on_time(missed, horizon);
        }
    }

    fn skip_slots(&mut self, why: &str) {
        for stretch in self.input.stretches(self.input.accounted_until, self.input.horizon()) {
            self.record(&stretch, Disposition::Skipped { why: why.into() });
        }
    }

    /// Records the slots of `(after, until]`, which came due while owd was not awake.
    fn catch_up(&mut self, after: Timestamp, until: Timestamp) {
        let missed = self.input.stretches(after, until);
        let (Some(first), Some(last)) = (missed.first(), missed.last()) else { return };
        match self.input.spec.catch_up {
            CatchUp::None | CatchUp::All { max: 0 } => {
                for stretch in &missed {
                    self.record(stretch, missed_for("down", None));
                }
            }
            CatchUp::Once => {
                let cause = Cause::CatchUp {
                    from: first.from,
                    until: last.until,
                    count: missed.iter().map(|stretch| stretch.count).sum(),
                };
                match self.line.admits_slot() {
                    Ok(()) => {
                        let run = self.start(cause, last.until);
                        for stretch in &missed {
                            self.record(stretch, missed_for("down", Some(run)));
                        }
                    }
                    Err(blocked) => self.skip(&missed, &blocked),
                }
            }
            CatchUp::All { max } => match self.line.admits_slot() {
                // They come one behind the other, whatever the overlap rule: all of them are wanted.
                Ok(()) => self.catch_up_each(after, until, max),
                Err(blocked) => self.skip(&missed, &blocked),
            },
        }
    }

    fn catch_up_each(&mut self, after: Timestamp, until: Timestamp, max: u32) {
        let fired = self.input.fired_ahead;
        let mut newest = self.input.schedule.newest(after, until, max as usize + fired.len());
        newest.retain(|instant| fired.binary_search(instant).is_err());
        newest.drain(..newest.len().saturating_sub(max as usize));
        let Some(oldest) = newest.first() else { return };
        for stretch in self.input.stretches(after, earlier(*oldest, TICK)) {
            self.record(&stretch, missed_for(&format!("down: more than {max} to catch up"), None));
        }
        for (place, instant) in newest.into_iter().enumerate() {
            let cause = Cause::CatchUp { from: instant, until: instant, count: 1 };
            // The first makes others go; the rest wait behind it instead of cancelling it.
            let run = if place == 0 { self.start(cause, instant) } else { self.queue(cause, instant) };
            self.record(&Stretch::one(instant), missed_for("down", Some(run)));
        }
    }

    /// Records the slots of `(after, until]`, at which owd was awake: in their order, as if each had been met at its time.
    fn on_time(&mut self, after: Timestamp, until: Timestamp) {
        let mut after = after;
        while let Some(instant) = next_unfired(self.input.schedule, after, self.input.fired_ahead)
            && instant <= until
        {
            if let Err(blocked) = self.line.admits_slot() {
                let rest = self.input.stretches(after, until);
                self.skip(&rest, &blocked);
                return;
            }
            let run = self.start(Cause::Schedule, instant);
            self.record(&Stretch::one(instant), Disposition::Fired { run });
            after = instant;
        }
    }

    fn newest_only(&mut self, after: Timestamp, missed: Timestamp, horizon: Timestamp) {
        let due = self.input.stretches(missed, horizon);
        let Some(newest) = due.last().map(|stretch| stretch.until) else {
            return self.catch_up(after, missed);
        };
        let run = self.start(Cause::Schedule, newest);
        let slept = match self.input.spec.catch_up {
            CatchUp::None | CatchUp::All { max: 0 } => missed_for("down", None),
            CatchUp::Once | CatchUp::All { .. } => superseded(run),
        };
        for stretch in self.input.stretches(after, missed) {
            self.record(&stretch, slept.clone());
        }
        for stretch in self.input.stretches(missed, earlier(newest, TICK)) {
            self.record(&stretch, superseded(run));
        }
        self.record(&Stretch::one(newest), Disposition::Fired { run });
    }

    fn skip(&mut self, stretches: &[Stretch], blocked: &Blocked) {
        let count = stretches.iter().map(|stretch| stretch.count).sum();
        for stretch in stretches {
            self.record(stretch, Disposition::Skipped { why: blocked.to_string() });
        }
        if let Blocked::Held { item } = blocked {
            self.hold_back(*item, count);
        }
    }

    fn hold_back(&mut self, item: ItemId, count: u64) {
        match self.plan.held_back.iter_mut().find(|(held, _)| *held == item) {
            Some((_, held)) => *held += count,
            None => self.plan.held_back.push((item, count)),
        }
    }

    /// Creates a run for slots, and cancels those that have to make way for it.
    fn start(&mut self, cause: Cause, scheduled_for: Timestamp) -> RunId {
        let run = self.queue(cause, scheduled_for);
        self.plan.cancel.extend(self.line.leaves_for_slot(run));
        run
    }

    /// Creates a run beside or behind those that there are.
    fn queue(&mut self, cause: Cause, scheduled_for: Timestamp) -> RunId {
        let run = (self.ids)();
        self.line.join(run);
        self.plan.runs.push(PlannedRun { id: run, cause, scheduled_for, events: Vec::new(), depth: 0 });
        run
    }

    fn events(&mut self) {
        let input = self.input;
        let mut waiting = input.waiting.iter().filter(|event| event.depth <= DEPTH_LIMIT).peekable();
        match input.spec.events {
            EventDelivery::Batch { max } => {
                let batch: Vec<&WaitingEvent> = waiting.by_ref().take(max.max(1) as usize).collect();
                if batch.is_empty() {
                } else if let Some(run) = self.plan.runs.first().map(|run| run.id) {
                    self.give(run, &batch);
                } else if self.line.admits_event() {
                    let count = u32::try_from(batch.len()).expect("at most `max` were taken");
                    let run = self.start_for_events(count, batch[0].received_at);
                    self.give(run, &batch);
                }
            }
            EventDelivery::Each { .. } => {
                while let Some(event) = waiting.peek().copied()
                    && self.line.admits_event()
                {
                    waiting.next();
                    let run = self.start_for_events(1, event.received_at);
                    self.give(run, &[event]);
                }
            }
        }
    }

    fn start_for_events(&mut self, count: u32, received_at: Timestamp) -> RunId {
        let run = self.queue(Cause::Event { count }, received_at);
        self.plan.cancel.extend(self.line.leaves_for_event(run));
        run
    }

    fn give(&mut self, run: RunId, events: &[&WaitingEvent]) {
        for event in events {
            self.plan.records.push((SlotKey::Event(event.key.clone()), Disposition::Fired { run }));
        }
        let planned = self.plan.runs.iter_mut().find(|planned| planned.id == run).expect("it was planned just before");
        planned.events.extend(events.iter().map(|event| event.id));
        planned.depth = events.iter().map(|event| event.depth).fold(planned.depth, u32::max);
    }

    /// Refuses what would never end and what is too much; the newest of the latter.
    fn refuse_events(&mut self) {
        let max = match self.input.spec.events {
            EventDelivery::Batch { max } | EventDelivery::Each { max } => max.max(1) as usize,
        };
        let mut taken: Vec<EventId> = self.plan.runs.iter().flat_map(|run| run.events.iter().copied()).collect();
        taken.sort_unstable();
        let mut left = 0;
        for event in self.input.waiting.iter().filter(|event| taken.binary_search(&event.id).is_err()) {
            let why = if event.depth > DEPTH_LIMIT {
                "loop"
            } else if left == max {
                "too many waiting"
            } else {
                left += 1;
                continue;
            };
            self.plan.records.push((SlotKey::Event(event.key.clone()), Disposition::Skipped { why: why.into() }));
            self.plan.refused.push((event.id, why.into()));
        }
    }

    fn record(&mut self, stretch: &Stretch, disposition: Disposition) {
        self.plan.records.push((stretch.key(), disposition));
    }
}

fn missed_for(why: &str, folded_into: Option<RunId>) -> Disposition {
    Disposition::Missed { why: why.into(), folded_into }
}

fn superseded(by: RunId) -> Disposition {
    Disposition::Superseded { by: Some(by), why: "overlap: cancel-previous".into() }
}

fn earlier(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_sub(by).unwrap_or(Timestamp::MIN)
}
