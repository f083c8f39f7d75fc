use std::fmt;

/// Declares the types together with their list, so that none can be told of that the list lacks.
macro_rules! told {
    ($($name:ident = $word:literal,)*) => {
        /// The type of an event that owd tells its watchers of. A session that waits for another would never wake.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum EventType {
            $($name,)*
        }

        impl EventType {
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

told! {
    AddressRefused = "address.refused",
    ItemCreated = "item.created",
    ItemDelegated = "item.delegated",
    ItemEscalated = "item.escalated",
    ItemExpired = "item.expired",
    ItemReminded = "item.reminded",
    ItemResolved = "item.resolved",
    ItemWithdrawn = "item.withdrawn",
    OwdPaused = "owd.paused",
    OwdResumed = "owd.resumed",
    OwdStarted = "owd.started",
    RunEnded = "run.ended",
    RunIdle = "run.idle",
    RunParked = "run.parked",
    RunQueued = "run.queued",
    RunRunning = "run.running",
    SessionCreated = "session.created",
    SessionRemoved = "session.removed",
    SessionRenamed = "session.renamed",
    SessionSaid = "session.said",
    SlotMissed = "slot.missed",
    SlotSkipped = "slot.skipped",
    StepDone = "step.done",
    TaskDeleted = "task.deleted",
    TaskPaused = "task.paused",
    TaskResumed = "task.resumed",
    TaskSaved = "task.saved",
}

impl EventType {
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
