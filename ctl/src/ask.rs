use std::io::{self, BufRead, IsTerminal, Write};

use crate::output::tell;

/// Whether a person can be asked: both what we say and what they type go over a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for a yes. Anything but a yes is a no, an end of input too.
pub(crate) fn yes(question: &str) -> bool {
    let mut stderr = io::stderr().lock();
    if write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    drop(stderr);
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
        tell("");
        return false;
    }
    matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}
