use std::fmt;

use ow_model::{ItemId, Overlap, RunId, TaskSpec, WhileParked};
use thiserror::Error;

use crate::plan::{ActiveRun, ActiveState};

/// A task's open runs, as its overlap rule sees them.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    overlap: Overlap,
    while_parked: WhileParked,
    runs: Vec<ActiveRun>,
}

/// Why a slot does not become a run now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Blocked {
    /// A run waits for a person's answer to this item.
    Held {
        item: ItemId,
    },
    /// One waits already.
    QueueFull,
    Overlap,
}

/// Why a task cannot be run by hand at the moment.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("run {run} is still open and overlap = {rule} lets no other begin ({why}); wait for it or cancel it")]
pub struct Busy {
    /// The oldest of the runs in the way.
    pub run: RunId,
    pub rule: &'static str,
    pub why: String,
}

/// Says whether a run by hand with the id `run` may be created beside the task's open runs, and which of these it
/// cancels.
///
/// It is an occasion like a slot: the overlap rule and `while-parked` govern it. The task's next slot stays as it is.
pub fn by_hand(spec: &TaskSpec, active: &[ActiveRun], run: RunId) -> Result<Vec<(RunId, String)>, Busy> {
    let mut line = Line::new(spec, active);
    let oldest = line.counted().next().map(|oldest| oldest.run);
    match (line.admits_slot(), oldest) {
        (Err(blocked), Some(run)) => Err(Busy {
            run,
            rule: match spec.overlap {
                Overlap::Skip => "skip",
                Overlap::Queue => "queue",
                Overlap::CancelPrevious => "cancel-previous",
                Overlap::Allow { .. } => "allow",
            },
            why: blocked.to_string(),
        }),
        (Ok(()), _) | (_, None) => Ok(line.leaves_for_slot(run)),
    }
}

/// Says whether a worker may take a queued run now; `others` are the task's other open runs.
///
/// Runs are created in line (`overlap = "queue"`, catch-up of all): those in line begin one after the other, or as many
/// beside each other as `allow` permits. Take the oldest first. A run that goes on after an answer needs no leave: it
/// had its place already.
#[must_use]
pub fn may_begin(spec: &TaskSpec, others: &[ActiveState]) -> bool {
    let begun = others.iter().filter(|state| match state {
        ActiveState::Queued => false,
        ActiveState::Running => true,
        ActiveState::Parked { holds, .. } => *holds && spec.while_parked != WhileParked::Release,
    });
    begun.count() < allowed(spec.overlap)
}

impl Line {
    pub(crate) fn new(spec: &TaskSpec, active: &[ActiveRun]) -> Self {
        Self { overlap: spec.overlap, while_parked: spec.while_parked, runs: active.to_vec() }
    }

    pub(crate) fn admits_slot(&self) -> Result<(), Blocked> {
        let limit = match self.overlap {
            Overlap::CancelPrevious => usize::MAX,
            Overlap::Queue => 2,
            Overlap::Skip | Overlap::Allow { .. } => allowed(self.overlap),
        };
        if self.counted().count() < limit {
            return Ok(());
        }
        let parked = self.counted().find_map(|run| match run.state {
            ActiveState::Parked { item, .. } => Some(item),
            ActiveState::Queued | ActiveState::Running => None,
        });
        Err(match (parked, self.overlap) {
            (Some(item), _) => Blocked::Held { item },
            (None, Overlap::Queue) => Blocked::QueueFull,
            (None, _) => Blocked::Overlap,
        })
    }

    /// Events are work that waits its turn: they neither queue a run nor cancel one.
    pub(crate) fn admits_event(&self) -> bool {
        self.counted().count() < allowed(self.overlap)
    }

    /// Takes out the runs that make way for `newer`, with the reasons.
    pub(crate) fn leaves_for_slot(&mut self, newer: RunId) -> Vec<(RunId, String)> {
        let cancels = self.overlap == Overlap::CancelPrevious;
        let others = self.counted().map(|run| run.run).filter(|run| cancels && *run != newer);
        let previous: Vec<RunId> = others.collect();
        self.runs.retain(|run| !previous.contains(&run.run));
        let mut leaving: Vec<_> = previous.into_iter().map(|run| (run, "overlap: cancel-previous".into())).collect();
        leaving.extend(self.leaves_for_event(newer));
        leaving
    }

    pub(crate) fn leaves_for_event(&mut self, newer: RunId) -> Vec<(RunId, String)> {
        if self.while_parked != WhileParked::Supersede {
            return Vec::new();
        }
        let asks = |run: &ActiveRun| matches!(run.state, ActiveState::Parked { holds: true, .. });
        let leaving = self.runs.iter().filter(|run| asks(run));
        let leaving = leaving.map(|run| (run.run, format!("superseded by {newer}"))).collect();
        self.runs.retain(|run| !asks(run));
        leaving
    }

    pub(crate) fn join(&mut self, run: RunId) {
        self.runs.push(ActiveRun { run, state: ActiveState::Queued });
    }

    /// The runs that count as running, oldest first.
    fn counted(&self) -> impl Iterator<Item = &ActiveRun> {
        self.runs.iter().filter(|run| match run.state {
            ActiveState::Queued | ActiveState::Running => true,
            ActiveState::Parked { holds, .. } => holds && self.while_parked == WhileParked::Hold,
        })
    }
}

/// How many runs may be under way at once.
fn allowed(overlap: Overlap) -> usize {
    match overlap {
        Overlap::Allow { max } => max.max(1) as usize,
        Overlap::Skip | Overlap::Queue | Overlap::CancelPrevious => 1,
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { item } => write!(f, "held by {item}"),
            Self::QueueFull => f.write_str("queue full"),
            Self::Overlap => f.write_str("overlap"),
        }
    }
}
