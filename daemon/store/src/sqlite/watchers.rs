use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ow_model::SessionId;
use tokio::sync::watch;

/// Who is looked after before those that left are forgotten.
const FORGET_ABOVE: usize = 64;

/// Who wants to know when a session changes.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// One that nobody holds the other end of is forgotten sooner or later.
    sessions: HashMap<SessionId, watch::Sender<u64>>,
    /// How many may be in it before it is gone through again.
    bound: usize,
}

impl Watchers {
    pub(crate) fn watch(&self, session: SessionId) -> watch::Receiver<u64> {
        let mut table = self.table();
        if table.sessions.len() >= table.bound.max(FORGET_ABOVE) {
            table.sessions.retain(|_, sender| sender.receiver_count() > 0);
            table.bound = 2 * table.sessions.len();
        }
        table.sessions.entry(session).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// Tells the watchers of these sessions to look again.
    pub(crate) fn tell(&self, touched: &[SessionId]) {
        if touched.is_empty() {
            return;
        }
        let mut table = self.table();
        for session in touched {
            let Some(sender) = table.sessions.get(session) else { continue };
            if sender.receiver_count() == 0 {
                table.sessions.remove(session);
            } else {
                sender.send_modify(|changes| *changes += 1);
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_watches_is_told_and_who_left_is_forgotten() {
        let watchers = Watchers::default();
        let session = |number: u8| SessionId::from_bytes([number; 10]);
        let mut watcher = watchers.watch(session(0));
        watchers.tell(&[session(1), session(0)]);
        assert!(watcher.has_changed().expect("the sender is kept"));
        assert_eq!(*watcher.borrow_and_update(), 1);
        for number in 1..=u8::MAX {
            drop(watchers.watch(session(number)));
        }
        assert!(watchers.table().sessions.len() <= 2 * FORGET_ABOVE, "those that left are forgotten");
        drop(watcher);
        watchers.tell(&[session(0)]);
        assert!(!watchers.table().sessions.contains_key(&session(0)));
    }
}
