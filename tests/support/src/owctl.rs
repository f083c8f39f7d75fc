use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::binary;

/// `owctl` against one owd.
#[derive(Clone, Debug)]
pub struct Owctl {
    pub(crate) home: PathBuf,
}

/// What a call of `owctl` came to.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Owctl {
    #[must_use]
    pub fn of(home: PathBuf) -> Self {
        Self { home }
    }

    /// The command, ready to run: a clean environment that knows this home.
    #[must_use]
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(binary("owctl"));
        command.args(args).env("OWD_HOME", &self.home).env("NO_COLOR", "1").env("TZ", "UTC").stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Answer {
        Answer::of(&self.command(args).output().expect("owctl starts"))
    }

    /// Runs it and asks for success.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub fn ok<S: AsRef<OsStr> + std::fmt::Debug>(&self, args: &[S]) -> String {
        let answer = self.run(args);
        assert_eq!(answer.code, 0, "owctl {args:?}\n{}{}", answer.stdout, answer.stderr);
        answer.stdout
    }

    /// Runs it with `--json` and reads its answer; exits other than 0 are the caller's to judge.
    ///
    /// # Panics
    ///
    /// When the answer is not JSON.
    pub fn json<S: AsRef<OsStr> + std::fmt::Debug>(&self, args: &[S]) -> Value {
        let mut all: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
        all.push(OsStr::new("--json"));
        let answer = self.run(&all);
        serde_json::from_str(&answer.stdout)
            .unwrap_or_else(|error| panic!("owctl {args:?}: {error}\n{}{}", answer.stdout, answer.stderr))
    }
}

impl Answer {
    #[must_use]
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
