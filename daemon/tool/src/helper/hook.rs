//! A person's own program that is asked before a call or told after it, inside the helper.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use ow_model::Span;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::tree;
use crate::shell;
use crate::world::reason;

/// How long output may still come when every process is gone.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// What a helper is to run in place of a call.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HookJob {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Where it runs, if that is a folder; else at the root.
    pub cwd: PathBuf,
    pub stdin: String,
    pub time: Span,
    /// What is kept of each of its output streams; the rest is read and dropped.
    pub stream_bytes: usize,
}

/// How it ended. Nothing that it started lives any more.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HookEnd {
    pub how: HookExit,
    pub stdout: String,
    pub stderr: String,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum HookExit {
    Status(i32),
    /// Ended by this signal, which the helper did not send.
    Signal(i32),
    TimedOut,
    NotStarted(String),
    /// owd stopped it in the middle.
    Stopped,
    /// Its helper is gone.
    Lost(String),
}

impl HookEnd {
    pub(super) const fn without_output(how: HookExit) -> Self {
        Self { how, stdout: String::new(), stderr: String::new() }
    }
}

pub(super) async fn run(job: HookJob) -> HookEnd {
    let deadline = Instant::now() + job.time.duration();
    let not_started = |why: String| HookEnd::without_output(HookExit::NotStarted(why));
    // Before the start: a child that ends at once must be heard of.
    let mut children = match signal(SignalKind::child()) {
        Ok(children) => children,
        Err(error) => return not_started(format!("cannot watch children: {error}")),
    };
    let mut command = Command::new(&job.program);
    command.args(&job.arguments);
    command.env_clear().envs(shell::allowed()).env(super::HELPER_MARK, tree::mark());
    command.current_dir(if job.cwd.is_dir() { job.cwd.as_path() } else { std::path::Path::new("/") });
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return not_started(reason(&error)),
    };
    let main = Pid::from_child(&child);
    let stdin = child.stdin.take().map(OwnedFd::from);
    let stdout = child.stdout.take().map(OwnedFd::from);
    let stderr = child.stderr.take().map(OwnedFd::from);
    let over = CancellationToken::new();
    let waited = async {
        let how = wait(main, deadline, &mut children).await;
        // Whatever it left behind would hold its output open, and outlive what it was asked about.
        tree::kill_all();
        over.cancel();
        how
    };
    let (how, stdout, stderr, ()) = tokio::join!(
        waited,
        collect(stdout, job.stream_bytes, &over),
        collect(stderr, job.stream_bytes, &over),
        feed(stdin, job.stdin.as_bytes(), &over)
    );
    HookEnd { how, stdout, stderr }
}

async fn wait(main: Pid, deadline: Instant, children: &mut Signal) -> HookExit {
    loop {
        if let Some((_, how)) = tree::reap().into_iter().find(|(pid, _)| *pid == main) {
            let status = ExitStatus::from_raw(how.as_raw());
            return status
                .code()
                .map_or_else(|| HookExit::Signal(status.signal().unwrap_or_default()), HookExit::Status);
        }
        tokio::select! {
            biased;
            _ = children.recv() => {}
            () = sleep_until(deadline) => return HookExit::TimedOut,
        }
    }
}

async fn feed(pipe: Option<OwnedFd>, input: &[u8], over: &CancellationToken) {
    let Some(mut sender) = pipe.and_then(|pipe| pipe::Sender::from_owned_fd(pipe).ok()) else { return };
    // A hook need not read what it is told.
    tokio::select! {
        _ = sender.write_all(input) => {}
        () = over.cancelled() => {}
    }
}

async fn collect(pipe: Option<OwnedFd>, most: usize, over: &CancellationToken) -> String {
    let mut kept = Vec::new();
    if let Some(receiver) = pipe.and_then(|pipe| pipe::Receiver::from_owned_fd(pipe).ok()) {
        let read = read_all(receiver, most, &mut kept);
        tokio::pin!(read);
        tokio::select! {
            _ = &mut read => {}
            () = over.cancelled() => drop(timeout(LAST_OUTPUT, read).await),
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

async fn read_all(mut receiver: pipe::Receiver, most: usize, kept: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match receiver.read(&mut buffer).await? {
            0 => return Ok(()),
            length => {
                let room = most.saturating_sub(kept.len());
                kept.extend_from_slice(&buffer[..length.min(room)]);
            }
        }
    }
}
