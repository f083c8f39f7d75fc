//! The terminal: its mode, its size, its keys.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::key::{Decoder, Key};
use crate::failure::Failure;

/// Readings of the terminal that may wait to be looked at.
const READINGS: usize = 256;
/// How long the rest of a key's bytes may take; an Escape that nothing follows stands alone.
const REST_OF_A_KEY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What one reading of the terminal gave.
pub(super) struct Reading {
    pub(super) keys: Vec<Key>,
    pub(super) at: Instant,
}

/// The terminal while a chat has it: keys come one by one and unseen. As it was before once this is dropped.
pub(super) struct Tty {
    before: Termios,
    reader: Option<Reader>,
}

/// What becomes of keys that were pressed before the terminal was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TypedBefore {
    /// They are the beginning of what the person says.
    Kept,
    /// They were for whoever had the terminal.
    Dropped,
}

/// A thread that waits for keys; it ends when `stop` is closed.
struct Reader {
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    readings: mpsc::Receiver<Reading>,
}

impl Tty {
    pub(super) fn open() -> Result<Self, Failure> {
        let before = tcgetattr(io::stdin()).map_err(|why| Failure::io("cannot use the terminal", &why.into()))?;
        let mut tty = Self { before, reader: None };
        tty.take(TypedBefore::Kept)?;
        Ok(tty)
    }

    /// Columns and rows.
    pub(super) fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        // A terminal that does not say.
        let or = |given: u16, usual: usize| if given == 0 { usual } else { usize::from(given) };
        (or(size.0, 80), or(size.1, 24))
    }

    pub(super) fn write(bytes: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(bytes.as_bytes()).and_then(|()| stdout.flush());
        written.map_err(|why| Failure::io("cannot write to the terminal", &why))
    }

    pub(super) fn take(&mut self, typed: TypedBefore) -> Result<(), Failure> {
        let failed = |why: rustix::io::Errno| Failure::io("cannot use the terminal", &why.into());
        let mut raw = self.before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw).map_err(failed)?;
        if typed == TypedBefore::Dropped {
            tcflush(io::stdin(), QueueSelector::IFlush).map_err(failed)?;
        }
        // Pastes stand in brackets.
        Self::write("\x1b[?2004h")?;
        self.reader = Some(Reader::start().map_err(|why| Failure::io("cannot read the terminal", &why))?);
        Ok(())
    }

    /// Gives the terminal back, for an editor or a shell.
    pub(super) fn give_back(&mut self) {
        self.reader = None;
        drop(Self::write("\x1b[?2004l\x1b[?25h"));
        // A terminal that is gone needs no mode.
        let _set = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }

    /// The next keys; none: the terminal is gone.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped wait loses no key.
    pub(super) async fn next(&mut self) -> Option<Reading> {
        match &mut self.reader {
            Some(reader) => reader.readings.recv().await,
            None => None,
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Reader {
    fn start() -> io::Result<Self> {
        let (watched, stop) = rustix::pipe::pipe()?;
        let (sender, readings) = mpsc::channel(READINGS);
        let thread = std::thread::Builder::new().name("keys".into()).spawn(move || read(&watched, &sender))?;
        Ok(Self { stop: Some(stop), thread: Some(thread), readings })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop = None;
        // It may wait for room.
        self.readings.close();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn read(stop: &OwnedFd, readings: &mpsc::Sender<Reading>) {
    let stdin = io::stdin();
    let mut decoder = Decoder::default();
    let mut bytes = [0; 4096];
    loop {
        let mut watched = [
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
        ];
        let limit = decoder.is_within().then_some(&REST_OF_A_KEY);
        match poll(&mut watched, limit) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !watched[1].revents().is_empty() {
            return;
        }
        let keys = if watched[0].revents().is_empty() {
            decoder.settle()
        } else {
            match rustix::io::read(stdin.as_fd(), &mut bytes) {
                Ok(0) => return,
                Ok(length) => decoder.feed(&bytes[..length]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => vec![],
                Err(_) => return,
            }
        };
        if !keys.is_empty() && readings.blocking_send(Reading { keys, at: Instant::now() }).is_err() {
            return;
        }
    }
}
