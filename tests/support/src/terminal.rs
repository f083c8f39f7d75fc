use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::wait::{LIMIT, monotonic, pause, until};

/// A program on a terminal of its own, of which the test is the keyboard and the screen. Killed when dropped.
///
/// The terminal is nobody's controlling terminal: keys that a kernel would make signals of reach a program in raw mode
/// all the same, and a change of size is told by the signal that a kernel would send.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    /// Starts the program on a terminal of this size.
    ///
    /// # Panics
    ///
    /// When there is no terminal to be had, or the program does not start.
    #[must_use]
    pub fn start(command: &mut Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let name = ptsname(&master, vec![]).expect("it has a name");
        let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
        tcsetwinsize(&master, size(columns, rows)).expect("a size");
        let end = || Stdio::from(slave.try_clone().expect("a copy"));
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
        let child = command.spawn().expect("the program starts");
        // The program's own copies are then the only ones, and its end is the end of what can be read.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(slave);
        let keyboard = File::from(master);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 1000)));
        let shown = Arc::clone(&screen);
        let mut output = keyboard.try_clone().expect("a copy");
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                lock(&shown).process(&bytes[..length]);
            }
        });
        Self { child, keyboard, screen, reader: Some(reader) }
    }

    /// Presses keys: the bytes that a terminal sends for them.
    ///
    /// # Panics
    ///
    /// When the program is gone.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the program is there");
    }

    /// What is on the screen.
    #[must_use]
    pub fn screen(&self) -> String {
        lock(&self.screen).screen().contents()
    }

    /// All that was ever written into the scrollback, and what is on the screen, row by row.
    #[must_use]
    pub fn scrollback(&self) -> Vec<String> {
        let mut parser = lock(&self.screen);
        let screen = parser.screen_mut();
        let (height, columns) = screen.size();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let mut rows = vec![];
        for offset in (1..=above).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns).take(usize::from(height)));
        rows
    }

    /// The screen with its colours, as escape sequences.
    #[must_use]
    pub fn painted(&self) -> String {
        String::from_utf8_lossy(&lock(&self.screen).screen().contents_formatted()).into_owned()
    }

    /// The row that the cursor is in.
    #[must_use]
    pub fn row_of_cursor(&self) -> String {
        let screen = lock(&self.screen);
        let (row, _) = screen.screen().cursor_position();
        let columns = screen.screen().size().1;
        screen.screen().rows(0, columns).nth(usize::from(row)).unwrap_or_default()
    }

    /// Waits until this text is on the screen.
    ///
    /// # Panics
    ///
    /// When it is not within the limit; with the screen.
    pub fn shows(&self, text: &str) {
        self.is(&format!("`{text}` is shown"), |screen| screen.contains(text));
    }

    /// Waits until this text is not on the screen.
    ///
    /// # Panics
    ///
    /// When it is after the limit; with the screen.
    pub fn hides(&self, text: &str) {
        self.is(&format!("`{text}` is gone"), |screen| !screen.contains(text));
    }

    /// Waits until the screen is as `what` says.
    ///
    /// # Panics
    ///
    /// When it is not within the limit; with the screen.
    pub fn is(&self, what: &str, looks_so: impl Fn(&str) -> bool) {
        let began = monotonic();
        while !looks_so(&self.screen()) {
            assert!(monotonic().saturating_sub(began) < LIMIT, "waited for: {what}\nthe screen:\n{}", self.screen());
            pause();
        }
    }

    /// Gives the terminal another size, and tells the program.
    ///
    /// # Panics
    ///
    /// When the program is gone.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        lock(&self.screen).screen_mut().set_size(rows, columns);
        tcsetwinsize(&self.keyboard, size(columns, rows)).expect("a size");
        kill_process(self.pid(), Signal::WINCH).expect("the program is there");
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("a pid is not 0")
    }

    /// Waits until the program has ended, and gives its exit code.
    ///
    /// # Panics
    ///
    /// When it does not end within the limit.
    pub fn ended(&mut self) -> i32 {
        let began = monotonic();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            assert!(monotonic().saturating_sub(began) < LIMIT, "it has not ended; the screen:\n{}", self.screen());
            pause();
        };
        // All that it wrote is on the screen then.
        if let Some(reader) = self.reader.take() {
            until("its output has ended", || reader.is_finished().then_some(()));
        }
        status.code().unwrap_or(-1)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn lock(screen: &Mutex<vt100::Parser>) -> MutexGuard<'_, vt100::Parser> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}
