use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ow_engine::Stop;
use ow_model::RunId;

/// The runs that workers have, and how to stop each.
#[derive(Debug, Default)]
pub(crate) struct Running {
    table: Mutex<Table>,
}

/// While `halted`, every run in `stops` has been told to stop.
#[derive(Debug, Default)]
struct Table {
    stops: HashMap<RunId, Stop>,
    halted: bool,
}

impl Running {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a run. One that was taken just before everything was halted is told so at once.
    pub(crate) fn enter(&self, run: RunId) -> Stop {
        let stop = Stop::new();
        let mut table = self.table();
        if table.halted {
            stop.interrupt();
        }
        table.stops.insert(run, stop.clone());
        stop
    }

    pub(crate) fn leave(&self, run: RunId) {
        self.table().stops.remove(&run);
    }

    pub(crate) fn cancel(&self, run: RunId, why: &str) {
        if let Some(stop) = self.table().stops.get(&run) {
            stop.cancel(why);
        }
    }

    /// Interrupts all runs and those still to come, until [`Running::release`].
    pub(crate) fn halt(&self) {
        let mut table = self.table();
        table.halted = true;
        table.stops.values().for_each(Stop::interrupt);
    }

    /// Ends the halt; true if there was one.
    pub(crate) fn release(&self) -> bool {
        std::mem::take(&mut self.table().halted)
    }

    pub(crate) fn count(&self) -> usize {
        self.table().stops.len()
    }
}
