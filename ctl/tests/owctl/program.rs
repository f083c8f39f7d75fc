//! The program under test, in a home and an environment of its own.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::fake::Fake;

pub(crate) struct Owctl {
    home: tempfile::TempDir,
    command: Command,
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Owctl {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_owctl"));
        command.env_clear().env("HOME", home.path()).env("TZ", "UTC").env("PATH", "/usr/bin:/bin");
        command.current_dir(home.path()).stdin(Stdio::null());
        Self { home, command }
    }

    /// Speaks to this owd.
    pub(crate) fn to(fake: &Fake) -> Self {
        Self::new().with("OWD_SOCKET", fake.socket())
    }

    pub(crate) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Ran {
        self.command.args(args);
        Ran::of(&self.command.output().unwrap())
    }
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Code and both outputs, for a snapshot.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("exit {}\n{}", self.code, self.stdout);
        if !self.stderr.is_empty() {
            text.push_str("--\n");
            text.push_str(&self.stderr);
        }
        text
    }
}

/// Puts a script there that can be run.
///
/// A child writes it: while this process held it open for writing, a fork of another test could keep it from running.
pub(crate) fn script(path: &Path, text: &str) {
    let line = "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"";
    let done = Command::new("sh").args(["-c", line, "sh"]).arg(path).arg(text).status().unwrap();
    assert!(done.success());
}

/// Copies a program, likewise by a child.
pub(crate) fn copy(from: &str, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}
