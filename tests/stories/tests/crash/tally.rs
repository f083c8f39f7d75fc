use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::checker::{Findings, check};
use crate::records::Records;
use crate::world::{Said, World};

/// What a test has done and found, over all its rounds.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) kills: u64,
    effects: u64,
    again: u64,
    unknowns: u64,
    acknowledged: u64,
    /// Commands that were told no: owd was gone, or could not write.
    refused: u64,
    found: Findings,
}

impl Tally {
    /// Checks a world whose owd has ended; `name` says which round it was.
    pub(crate) fn check(&mut self, name: &str, world: &World) {
        let records = Records::read(&world.scratch);
        let found = check(world, &records);
        self.count(&records, &world.said);
        self.note(name, found, || format!("{:?}\n{}", world.said, world.scratch.stderr()));
    }

    /// Adds one round's figures.
    pub(crate) fn count(&mut self, records: &Records, said: &Said) {
        self.rounds += 1;
        self.effects += records.effects.values().sum::<u64>();
        self.again += said.again.values().sum::<u64>();
        self.unknowns += records.items.values().filter(|item| item.category == "unknown-outcome").count() as u64;
        let acknowledged = said.tasks.len() + said.runs.len() + said.events.len() + said.answers.len();
        self.acknowledged += acknowledged as u64;
        self.refused += said.refusals.len() as u64;
    }

    /// Adds one round's findings; where there are any, they are printed with what else is known.
    pub(crate) fn note(&mut self, name: &str, found: Findings, known: impl FnOnce() -> String) {
        if format!("{found:?}") != format!("{:?}", Findings::default()) {
            println!("{name}: {found:#?}\n{}", known());
        }
        let Findings { duplicates, losses, unasked, contradictions } = found;
        let named = |text: String| format!("{name}: {text}");
        self.found.duplicates.extend(duplicates.into_iter().map(named));
        self.found.losses.extend(losses.into_iter().map(named));
        self.found.unasked.extend(unasked.into_iter().map(named));
        self.found.contradictions.extend(contradictions.into_iter().map(named));
    }

    fn add(&mut self, other: Self) {
        let Self { rounds, kills, effects, again, unknowns, acknowledged, refused, found } = other;
        self.rounds += rounds;
        self.kills += kills;
        self.effects += effects;
        self.again += again;
        self.unknowns += unknowns;
        self.acknowledged += acknowledged;
        self.refused += refused;
        let Findings { duplicates, losses, unasked, contradictions } = found;
        self.found.duplicates.extend(duplicates);
        self.found.losses.extend(losses);
        self.found.unasked.extend(unasked);
        self.found.contradictions.extend(contradictions);
    }

    /// Prints the figures and fails if anything was found.
    pub(crate) fn conclude(&self, name: &str) {
        let Findings { duplicates, losses, unasked, contradictions } = &self.found;
        println!(
            "{name}: {} rounds, {} kills, {} acknowledged, {} refused, {} effects, {} duplicates, {} losses, \
             {} unknowns ({} not asked about, {} allowed again), {} contradictions",
            self.rounds,
            self.kills,
            self.acknowledged,
            self.refused,
            self.effects,
            duplicates.len(),
            losses.len(),
            self.unknowns,
            unasked.len(),
            self.again,
            contradictions.len(),
        );
        let found = [duplicates, losses, unasked, contradictions];
        assert!(found.iter().all(|found| found.is_empty()), "{:#?}", self.found);
    }
}

/// Works the rounds off, a few at a time: they mostly wait for processes.
pub(crate) fn rounds<T: Send>(points: impl IntoIterator<Item = T>, round: impl Fn(T, &mut Tally) + Sync) -> Tally {
    let points: Mutex<VecDeque<T>> = Mutex::new(points.into_iter().collect());
    let next = || points.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        let mut tally = Tally::default();
        while let Some(point) = next() {
            round(point, &mut tally);
        }
        tally
    };
    let beside = thread::available_parallelism().map_or(1, usize::from);
    let mut all = Tally::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..beside).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(tally) => all.add(tally),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    all
}

/// Whether every point is to be taken; otherwise a sample that takes seconds.
pub(crate) fn is_full() -> bool {
    std::env::var_os("OW_CRASH").is_some_and(|value| value == "full")
}

/// All of `1..=last`, or about `sample` of them, spread.
pub(crate) fn points(last: u64, sample: u64) -> Vec<u64> {
    if is_full() || last <= sample {
        return (1..=last).collect();
    }
    (0..sample).map(|at| 1 + at * (last - 1) / (sample - 1).max(1)).collect()
}

/// Numbers that look random and are the same each time (xorshift).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `limit`.
    pub(crate) const fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}
