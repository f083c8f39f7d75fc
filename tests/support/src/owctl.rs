use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{LIMIT, binary};

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
    /// When it cannot be started, or has not ended within the limit.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Answer {
        Answer::within_limit(&mut self.command(args))
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
    /// Runs a command to its end.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or has not ended within the limit; it is killed then.
    pub fn within_limit(command: &mut Command) -> Self {
        let shown = format!("{command:?}");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{shown}: {error}"));
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid is not 0");
        let (ended, output) = mpsc::channel();
        // Not joined: after the limit it holds the pipes of a process that is being killed.
        thread::spawn(move || ended.send(child.wait_with_output()));
        let Ok(output) = output.recv_timeout(LIMIT) else {
            let killed = kill_process(pid, Signal::KILL);
            panic!("killed ({killed:?}), having waited {LIMIT:?} for the end of {shown}");
        };
        Self::of(&output.expect("a child can be waited for"))
    }

    #[must_use]
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
