use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ow_model::{Mode, SessionId};
use tokio::sync::{mpsc, oneshot};

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

/// Hands commands to the workers of their sessions.
///
/// Nothing is kept here: who sends one hears whether a worker has made it durable, and writes it down where none has.
#[derive(Debug, Default)]
pub struct Commands {
    /// Sessions that a worker has.
    open: Mutex<HashMap<SessionId, mpsc::UnboundedSender<Told>>>,
}

/// A command on its way. Who sent it waits until it is taken, or dropped.
#[derive(Debug)]
pub struct Told {
    pub command: Command,
    taken: oneshot::Sender<()>,
}

impl Told {
    /// What the command asks for is durable.
    pub fn taken(self) {
        // Who sent it may have given up waiting.
        let _unheard = self.taken.send(());
    }
}

/// Commands of one session, for the worker that has it.
#[derive(Debug)]
pub struct CommandReceiver {
    commands: Arc<Commands>,
    session: SessionId,
    queue: mpsc::UnboundedReceiver<Told>,
}

impl Commands {
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Takes a session's commands from here on. One worker has a session at a time.
    #[must_use]
    pub fn open(self: &Arc<Self>, session: SessionId) -> CommandReceiver {
        let (sender, queue) = mpsc::unbounded_channel();
        self.table().insert(session, sender);
        CommandReceiver { commands: Arc::clone(self), session, queue }
    }

    /// Hands a command to the session's worker and waits until it is durable. False: nothing was done, because no
    /// worker has the session, or the one that had it has left it.
    ///
    /// # Cancel safety
    ///
    /// A worker may take the command after this was dropped.
    pub async fn send(&self, session: SessionId, command: Command) -> bool {
        let (taken, done) = oneshot::channel();
        let is_sent = self.table().get(&session).is_some_and(|worker| worker.send(Told { command, taken }).is_ok());
        is_sent && done.await.is_ok()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, mpsc::UnboundedSender<Told>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandReceiver {
    /// The next command; waits for it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when this is dropped.
    pub async fn recv(&mut self) -> Told {
        match self.queue.recv().await {
            Some(told) => told,
            // The sender stays until this receiver is dropped.
            None => std::future::pending().await,
        }
    }

    /// A command that has come already.
    pub fn try_recv(&mut self) -> Option<Told> {
        self.queue.try_recv().ok()
    }
}

impl Drop for CommandReceiver {
    fn drop(&mut self) {
        self.commands.table().remove(&self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_sends_a_command_hears_yes_when_the_worker_has_made_it_durable() {
        let (commands, session) = (Commands::new(), SessionId::from_bytes([1; 10]));
        assert!(!commands.send(session, Command::SetMode(Mode::Auto)).await, "no worker has it");
        let mut worker = commands.open(session);
        let taking = async {
            let told = worker.recv().await;
            assert_eq!(told.command, Command::SetMode(Mode::Auto));
            told.taken();
        };
        assert!(tokio::join!(commands.send(session, Command::SetMode(Mode::Auto)), taking).0);
    }

    #[tokio::test]
    async fn a_command_that_its_worker_left_behind_was_not_taken() {
        let (commands, session) = (Commands::new(), SessionId::from_bytes([1; 10]));
        let worker = commands.open(session);
        let leaving = async { drop(worker) };
        assert!(!tokio::join!(commands.send(session, Command::Compact), leaving).0);
        let mut worker = commands.open(session);
        let dying = async { drop(worker.recv().await) };
        assert!(!tokio::join!(commands.send(session, Command::Compact), dying).0);
    }
}
