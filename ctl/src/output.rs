use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::escape;
use crate::failure::Failure;

/// Where answers go, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) form: Form,
    pub(crate) paint: Paint,
    /// Columns of the terminal; none: not a terminal, lines are as long as they are.
    pub(crate) width: Option<u16>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    Words,
    Json,
}

/// Whether colours are used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Paint {
    Plain,
    Colours,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Colour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Colour {
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Red => "\x1b[31m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
            Self::Cyan => "\x1b[36m",
        }
    }

    pub(crate) const END: &'static str = "\x1b[0m";

    /// The colour of a word that says how something stands.
    pub(crate) fn of_state(word: &str) -> Option<Self> {
        match word {
            "succeeded" | "approved" | "answered" | "acknowledged" | "allow" | "ok" | "done" | "active" | "fired" => {
                Some(Self::Green)
            }
            "failed" | "refused" | "denied" | "deny" | "fail" | "unknown" | "missed" => Some(Self::Red),
            "parked" | "pending" | "paused" | "interrupted" | "ask" | "warn" | "expired" | "stopped" | "skipped" => {
                Some(Self::Yellow)
            }
            "running" | "queued" => Some(Self::Cyan),
            "cancelled" | "withdrawn" | "superseded" | "voided" | "skip" => Some(Self::Dim),
            _ => None,
        }
    }
}

impl Paint {
    /// `text` must be safe already.
    pub(crate) fn in_colour(self, colour: Colour, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colours => format!("{}{text}{}", colour.code(), Colour::END),
        }
    }

    pub(crate) fn state(self, word: &str) -> String {
        let safe = escape::line(word);
        match Colour::of_state(word) {
            Some(colour) => self.in_colour(colour, &safe),
            None => safe.into_owned(),
        }
    }
}

impl Out {
    /// As the terminal and `NO_COLOR` have it.
    pub(crate) fn new(form: Form) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let refused = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        let paint = if is_terminal && !refused { Paint::Colours } else { Paint::Plain };
        let width = is_terminal.then(|| match rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col) {
            // A terminal that does not say.
            0 => 80,
            columns => columns.max(40),
        });
        Self { form, paint, width }
    }

    pub(crate) fn is_json(self) -> bool {
        self.form == Form::Json
    }

    /// Gives the answer: the wire value as JSON, or what `words` makes of it.
    pub(crate) fn give<T: Serialize>(self, value: &T, words: impl FnOnce(&T) -> String) {
        match self.form {
            Form::Json => self.json(value),
            Form::Words => write(&words(value)),
        }
    }

    /// One JSON document: on a terminal over several lines, else in one.
    pub(crate) fn json<T: Serialize>(self, value: &T) {
        let text =
            if self.width.is_some() { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
        write(&escape::json(&text.expect("wire types have text keys and write to memory")));
    }

    /// Something beside the answer, for the person only.
    pub(crate) fn note(self, text: &str) {
        if self.form == Form::Words {
            tell(text);
        }
    }

    pub(crate) fn fail(self, failure: &Failure) -> ExitCode {
        match self.form {
            _ if failure.is_told() => {}
            Form::Json => self.json(&failure.json()),
            Form::Words => tell(&failure_in_words(failure, Self::error_paint(self.paint))),
        }
        ExitCode::from(failure.exit as u8)
    }

    /// Errors go to another stream, which may not be the terminal.
    fn error_paint(paint: Paint) -> Paint {
        if io::stderr().is_terminal() { paint } else { Paint::Plain }
    }
}

fn failure_in_words(failure: &Failure, paint: Paint) -> String {
    let mut text = format!("{} {}", paint.in_colour(Colour::Red, "error:"), escape::block(&failure.message));
    for detail in &failure.details {
        text.push_str("\n  ");
        // A detail is a line: a file's name in it must not make another one.
        text.push_str(&escape::line(detail));
    }
    if let Some(hint) = &failure.hint {
        text.push('\n');
        text.push_str(&paint.in_colour(Colour::Cyan, "next:"));
        text.push_str("  ");
        text.push_str(&escape::block(hint));
    }
    text
}

/// Writes one JSON document of a stream of them, in a line of its own.
pub(crate) fn json_line<T: Serialize>(value: &T) {
    let text = serde_json::to_string(value).expect("wire types have text keys and write to memory");
    write(&escape::json(&text));
}

/// Writes to standard output, with a line end if there is none.
///
/// Whoever read the output may have gone (`owctl run list | head -1`): that ends the program, and is no failure.
pub(crate) fn write(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut stdout = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(end.as_bytes()));
    if let Err(why) = written.and_then(|()| stdout.flush()) {
        let is_gone = why.kind() == io::ErrorKind::BrokenPipe;
        if !is_gone {
            tell(&format!("error: cannot write the answer: {why}"));
        }
        std::process::exit(i32::from(!is_gone));
    }
}

/// Writes bytes to standard output: into a pipe as they are, on a terminal made safe.
pub(crate) fn write_bytes(bytes: &[u8], out: Out) -> Result<(), Failure> {
    if out.width.is_some() {
        write(&escape::block(&String::from_utf8_lossy(bytes)));
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|why| Failure::io("cannot write the output", &why))
}

/// Writes to standard error. Where that is closed there is nobody left to tell.
pub(crate) fn tell(text: &str) {
    let mut stderr = io::stderr().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.write_all(end.as_bytes())));
}
