use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ow_model::{Mode, SessionId};
use tokio::sync::mpsc;

/// What a person tells a session beside messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// The turn ends here; the session stays.
    Interrupt {
        by: String,
    },
    SetMode(Mode),
    /// `provider:model`, for the next model call.
    SetModel(String),
    /// The outgoing history is shortened before the next model call.
    Compact,
}

/// Where commands wait for the workers of their sessions.
///
/// One that comes while no worker has the session is refused, and who sent it writes it down; but for
/// `Compact`, which no fact can stand for: it waits for the session's next worker, and is lost with owd.
#[derive(Debug, Default)]
pub struct Commands {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Sessions that a worker has.
    open: HashMap<SessionId, mpsc::UnboundedSender<Command>>,
    /// Sessions that are to be compacted once a worker has them.
    compact: HashSet<SessionId>,
}

/// Commands of one session, for the worker that has it.
#[derive(Debug)]
pub struct CommandReceiver {
    commands: Arc<Commands>,
    session: SessionId,
    queue: mpsc::UnboundedReceiver<Command>,
}

impl Commands {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Takes a session's commands from here on, those that wait first. One worker has a session at a time.
    #[must_use]
    pub fn open(self: &Arc<Self>, session: SessionId) -> CommandReceiver {
        let (sender, queue) = mpsc::unbounded_channel();
        let mut table = self.table();
        if table.compact.remove(&session) {
            drop(sender.send(Command::Compact));
        }
        table.open.insert(session, sender);
        CommandReceiver { commands: Arc::clone(self), session, queue }
    }

    /// Hands a command to the session's worker. False: no worker has it.
    pub fn send(&self, session: SessionId, command: Command) -> bool {
        let mut table = self.table();
        if let Some(worker) = table.open.get(&session) {
            return worker.send(command).is_ok();
        }
        if command == Command::Compact {
            table.compact.insert(session);
        }
        false
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandReceiver {
    /// The next command; waits for it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when this is dropped.
    pub async fn recv(&mut self) -> Command {
        match self.queue.recv().await {
            Some(command) => command,
            // The sender stays until this receiver is dropped.
            None => std::future::pending().await,
        }
    }

    /// A command that has come already.
    pub fn try_recv(&mut self) -> Option<Command> {
        self.queue.try_recv().ok()
    }
}

impl Drop for CommandReceiver {
    fn drop(&mut self) {
        let mut table = self.commands.table();
        table.open.remove(&self.session);
        while let Ok(command) = self.queue.try_recv() {
            if command == Command::Compact {
                table.compact.insert(self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_reaches_the_worker_that_has_the_session() {
        let (commands, session) = (Commands::new(), SessionId::from_bytes([1; 10]));
        assert!(!commands.send(session, Command::SetMode(Mode::Auto)), "no worker has it");
        let mut worker = commands.open(session);
        assert!(commands.send(session, Command::SetMode(Mode::Auto)));
        assert_eq!(worker.recv().await, Command::SetMode(Mode::Auto));
        drop(worker);
        assert!(!commands.send(session, Command::Interrupt { by: "ada".into() }));
    }

    #[test]
    fn to_compact_waits_for_the_next_worker() {
        let (commands, session) = (Commands::new(), SessionId::from_bytes([1; 10]));
        assert!(!commands.send(session, Command::Compact));
        let mut worker = commands.open(session);
        assert_eq!(worker.try_recv(), Some(Command::Compact));
        assert!(commands.send(session, Command::Compact));
        drop(worker);
        assert_eq!(commands.open(session).try_recv(), Some(Command::Compact), "left by a worker that went");
    }
}
