use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tracing::error;

use super::fault::Lost;
use super::memory::Shared;
use super::runs;
use super::writer::{Fact, Tx};
use crate::{FreeHands, HandedOut};

/// Of each kind so many are given something at most by one transaction: what came with it waits for all of them. The others
/// are found ready by who asks next.
const MOST: usize = 8;

/// The workers that were left with the store, and what they were given. One who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    free: FreeHands,
    /// A transaction gives to them; it is not durable yet.
    giving: bool,
    given: HandedOut,
}

impl Hands {
    pub(crate) fn leave(&self, free: FreeHands) {
        self.state().free = free;
    }

    /// From its return on nothing is given to those that were left; what they were given meanwhile.
    pub(crate) async fn take_back(&self) -> HandedOut {
        loop {
            {
                let mut state = self.state();
                state.free = FreeHands::default();
                if !state.giving {
                    return std::mem::take(&mut state.given);
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits until something was given.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when this is dropped.
    pub(crate) async fn given(&self) -> HandedOut {
        loop {
            {
                let mut state = self.state();
                if !state.given.is_empty() {
                    return std::mem::take(&mut state.given);
                }
            }
            self.changed.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last fact of a group in which runs became ready: free hands take them in the same transaction.
pub(crate) struct HandOut {
    shared: Arc<Shared>,
    free: FreeHands,
    given: HandedOut,
}

impl HandOut {
    /// None: nobody is free.
    pub(crate) fn begin(shared: &Arc<Shared>) -> Option<Self> {
        let mut state = shared.hands.state();
        let FreeHands { any, kept, chats } = state.free;
        if any + kept + chats == 0 {
            return None;
        }
        let free = FreeHands { any: any.min(MOST), kept: kept.min(MOST), chats: chats.min(MOST) };
        state.giving = true;
        Some(Self { shared: Arc::clone(shared), free, given: HandedOut::default() })
    }
}

impl Fact for HandOut {
    fn perform(&mut self, tx: &mut Tx<'_>) -> Result<(), Option<Lost>> {
        let free = self.free;
        match catch_unwind(AssertUnwindSafe(|| runs::hand_out(tx, free))) {
            Ok(Ok(given)) => {
                self.given = given;
                Ok(())
            }
            // Undone alone: whoever asks next for what is ready meets the same error, and tells it.
            Ok(Err(error)) => Err(Lost::of(&error)),
            Err(_) => {
                error!("handing out panicked; it was undone");
                Err(None)
            }
        }
    }

    fn answer(self: Box<Self>, lost: Option<&Lost>) {
        let mut state = self.shared.hands.state();
        state.giving = false;
        if lost.is_none() {
            let HandedOut { answered, fresh, chats } = self.given;
            state.free.any =
                state.free.any.saturating_sub(fresh.len() + answered.len().saturating_sub(state.free.kept));
            state.free.kept = state.free.kept.saturating_sub(answered.len());
            state.free.chats = state.free.chats.saturating_sub(chats.len());
            state.given.answered.extend(answered);
            state.given.fresh.extend(fresh);
            state.given.chats.extend(chats);
        }
        drop(state);
        self.shared.hands.changed.notify_one();
    }
}
