use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{Owctl, until};

/// The path of one of the workspace's binaries, built beside the running test.
///
/// # Panics
///
/// When it has not been built: `cargo build --bins` makes it.
#[must_use]
pub fn binary(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test knows its own path");
    let found = this.ancestors().skip(1).take(3).map(|dir| dir.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("no `{name}` beside {}; build it with `cargo build --bins`", this.display()))
}

/// A home for an owd, gone when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// # Panics
    ///
    /// When no folder can be made.
    #[must_use]
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("owd").tempdir().expect("a scratch folder");
        fs::create_dir_all(dir.path().join("config/tasks.d")).expect("a configuration folder");
        fs::create_dir_all(dir.path().join("work")).expect("a work folder");
        Self { dir }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A folder for the files that tasks work on.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    /// Writes `config/owd.toml`.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn config(&self, text: &str) {
        fs::write(self.path().join("config/owd.toml"), text).expect("the configuration is written");
    }

    /// Writes `tasks.d/<name>.toml`; `{work}` in the text becomes the work folder.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn task(&self, name: &str, text: &str) {
        let file = self.path().join("config/tasks.d").join(format!("{name}.toml"));
        fs::write(file, text.replace("{work}", &self.work().to_string_lossy())).expect("the task file is written");
    }

    #[must_use]
    pub fn owctl(&self) -> Owctl {
        Owctl::of(self.path().to_owned())
    }

    /// The command that starts owd in this home, in the foreground.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary("owd"));
        command.env("OWD_HOME", self.path()).env("TZ", "UTC").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Starts owd and waits until it says that it is ready.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    #[must_use]
    pub fn start(&self) -> Owd {
        self.start_with(|_| {})
    }

    /// The same, with the command prepared by the caller.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    #[must_use]
    pub fn start_with(&self, prepare: impl FnOnce(&mut Command)) -> Owd {
        self.started(prepare).unwrap_or_else(|status| {
            panic!("owd ended before it was ready ({status}); standard error of all its lives:\n{}", self.stderr())
        })
    }

    /// The same; none if owd has ended before it was ready, as it does when a fault strikes at once.
    ///
    /// # Panics
    ///
    /// When it neither becomes ready nor ends.
    #[must_use]
    pub fn try_start_with(&self, prepare: impl FnOnce(&mut Command)) -> Option<Owd> {
        self.started(prepare).ok()
    }

    fn started(&self, prepare: impl FnOnce(&mut Command)) -> Result<Owd, ExitStatus> {
        let notify = self.path().join("notify");
        drop(fs::remove_file(&notify));
        let socket = UnixDatagram::bind(&notify).expect("a notify socket");
        // Blocking, so that a start is seen when it happens; between two waits, whether owd has ended.
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
        let log = fs::File::options().create(true).append(true).open(self.path().join("stderr")).expect("a log");
        let mut command = self.command();
        command.env("NOTIFY_SOCKET", &notify).stderr(log);
        prepare(&mut command);
        let mut child = command.spawn().expect("owd starts");
        let mut message = [0; 4096];
        let ready = until("owd is ready", || {
            if let Ok(length) = socket.recv(&mut message) {
                let said = String::from_utf8_lossy(&message[..length]);
                return said.lines().any(|line| line == "READY=1").then_some(Ok::<(), ExitStatus>(()));
            }
            child.try_wait().expect("owd can be waited for").map(Err)
        });
        ready?;
        Ok(Owd { child: Some(child), owctl: self.owctl() })
    }

    /// What owd has written to standard error in this home so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        fs::read_to_string(self.path().join("stderr")).unwrap_or_default()
    }
}

/// A running owd; killed when dropped.
#[derive(Debug)]
pub struct Owd {
    child: Option<Child>,
    pub owctl: Owctl,
}

impl Owd {
    fn child(&self) -> &Child {
        self.child.as_ref().expect("it has not been waited for")
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// When there is no such process any more.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).expect("a pid")).expect("a pid is not 0");
        kill_process(pid, signal).expect("owd is running");
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.end(Signal::KILL);
    }

    /// SIGTERM, and waits until it has drained and ended well.
    ///
    /// # Panics
    ///
    /// When it ends with another code than 0.
    pub fn stop(mut self) {
        let status = self.end(Signal::TERM);
        assert!(status.success(), "owd ended with {status} after SIGTERM");
    }

    fn end(&mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_raw(i32::try_from(self.pid()).expect("a pid")).expect("a pid is not 0");
        match kill_process(pid, signal) {
            // It may have ended by itself; then there is nothing to send.
            Ok(()) | Err(_) => self.wait(),
        }
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    ///
    /// When it does not end within the limit.
    pub fn wait(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("it has not been waited for");
        let status = until("owd has ended", || child.try_wait().expect("owd can be waited for"));
        self.child = None;
        status
    }

    /// The pending Inbox items, newest first.
    #[must_use]
    pub fn items(&self) -> Vec<Value> {
        rows(&self.owctl.json(&["inbox", "list"]))
    }

    /// All Inbox items of a task, whatever became of them, newest first.
    #[must_use]
    pub fn all_items(&self, task: &str) -> Vec<Value> {
        rows(&self.owctl.json(&["inbox", "list", "--all", "--task", task]))
    }

    /// The runs of a task, newest first.
    #[must_use]
    pub fn runs(&self, task: &str) -> Vec<Value> {
        rows(&self.owctl.json(&["run", "list", "--task", task]))
    }

    /// Waits until the newest run of a task is in this state, and gives it.
    #[expect(clippy::must_use_candidate, reason = "often it is only waited for")]
    pub fn run_in(&self, task: &str, state: &str) -> Value {
        until(&format!("the newest run of {task} is {state}"), || {
            self.runs(task).into_iter().next().filter(|run| run["state"] == state)
        })
    }

    /// Waits until the newest run of a task has ended, however, and gives it.
    #[expect(clippy::must_use_candidate, reason = "often it is only waited for")]
    pub fn ended_run(&self, task: &str) -> Value {
        until(&format!("the newest run of {task} has ended"), || {
            self.runs(task).into_iter().next().filter(|run| !run["ended_at"].is_null())
        })
    }

    /// Waits until one item is pending, and gives it.
    #[expect(clippy::must_use_candidate, reason = "often it is only waited for")]
    pub fn item(&self) -> Value {
        until("an item is pending", || self.items().into_iter().next())
    }
}

/// The id of a row that `owctl` gave.
///
/// # Panics
///
/// When it has none.
#[must_use]
pub fn id(row: &Value) -> String {
    row["id"].as_str().unwrap_or_else(|| panic!("no id in {row}")).to_owned()
}

/// The rows of a page that `owctl` gave.
#[must_use]
pub fn rows(page: &Value) -> Vec<Value> {
    page["rows"].as_array().cloned().unwrap_or_default()
}

impl Drop for Owd {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
