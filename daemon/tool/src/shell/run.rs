//! Runs a command to its end, with everything that it starts.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use ow_model::{CallError, CallErrorKind, CallResult};
use ow_policy::{CommandForm, command};
use ow_secret::{RedactStream, Redactor};
use rustix::process::{Pid, Signal, WaitStatus};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::latest::Latest;
use super::{ShellArgs, allowed, fetches};
use crate::Limits;
use crate::args;
use crate::capture::{Capture, Captured, Finished};
use crate::helper::tree::{self, Tree};
use crate::helper::work::{Judged, Live, Work};
use crate::world::{self, failed, reason};

/// How long a command that ran out of time may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long what a finished command left behind may take to end by itself, and then on request.
const LEFT_BEHIND: Duration = Duration::from_millis(100);
const LEFT_BEHIND_ASKED: Duration = Duration::from_millis(400);
/// How long output may still come when every process is gone: only a process outside the tree can hold the pipe.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
const FIRST_COUNT: Duration = Duration::from_millis(4);
const LAST_COUNT: Duration = Duration::from_millis(250);

/// How the command came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    ByItself,
    OutOfTime,
    TooMany,
    Stopped,
}

pub(crate) async fn run(work: &Work) -> Result<Finished, CallError> {
    let args: ShellArgs = args::read(&work.call.args)?;
    let Judged::Command { form, cwd, program } = &work.judged else {
        return Err(failed("a command was not judged as one"));
    };
    let time = args.timeout.map_or(work.limits.time, |time| time.min(work.limits.time)).duration();
    let mut command = command_of(form, program.as_deref(), cwd)?;
    command.env_clear().envs(allowed()).env(crate::HELPER_MARK, tree::mark());
    for (name, value) in &args.env {
        command.env(name, value.text(&work.secrets)?.as_str());
    }
    command.current_dir(cwd);
    let input = args.stdin.as_ref().map(|value| value.text(&work.secrets)).transpose()?;
    let input = input.as_ref().map(|input| input.as_bytes());
    let outside = fetches(form) || names_outside(form, cwd);
    let ran = run_command(command, input, time, &work.limits, work).await?;
    Ok(finished(ran, outside, work, time))
}

/// Whether a word of the command names a file that was drawn from outside.
fn names_outside(form: &CommandForm, cwd: &Path) -> bool {
    let is_marked = |word: &str| {
        // Never a pipe: to open one waits for its other end.
        let path = std::fs::canonicalize(cwd.join(word.trim_matches(['"', '\''])));
        let file = path.and_then(|path| world::open_regular(&path));
        matches!(file, Ok(Some(file)) if world::is_marked(&file))
    };
    match form {
        CommandForm::Argv(argv) => argv.iter().skip(1).any(|word| is_marked(word)),
        CommandForm::Line(line) => line.split_whitespace().any(is_marked),
    }
}

/// What a command left when nothing of it lived any more.
pub(crate) struct Ran {
    pub(crate) end: End,
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

/// Runs a command, which has its environment and folder, to its end, with everything that it starts.
pub(crate) async fn run_command(
    mut command: Command,
    input: Option<&[u8]>,
    time: Duration,
    limits: &Limits,
    work: &Work,
) -> Result<Ran, CallError> {
    let deadline = Instant::now() + time;
    let redactor = work.secrets.redactor();
    // Before the start: a child that ends at once must be heard of.
    let mut children =
        signal(SignalKind::child()).map_err(|error| failed(format!("cannot watch children: {error}")))?;
    command.process_group(0);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    tree::limit_processes(work.limits.processes);
    let mut child = command.spawn().map_err(|error| {
        failed(format!("cannot run `{}`: {}", Path::new(command.get_program()).display(), reason(&error)))
    })?;
    let main = Pid::from_child(&child);
    let stdin = child.stdin.take().map(OwnedFd::from);
    let stdout = child.stdout.take().map(OwnedFd::from);
    let stderr = child.stderr.take().map(OwnedFd::from);
    let over = CancellationToken::new();
    let supervised = async {
        let ended = supervise(main, deadline, work, &mut children).await;
        over.cancel();
        ended
    };
    let fed = async {
        if let (Some(pipe), Some(input)) = (stdin, input) {
            feed(pipe, input, &over).await;
        }
    };
    let (stdout, stderr, (end, status), ()) = tokio::join!(
        collect(stdout, limits, work, &redactor, &over),
        collect(stderr, limits, work, &redactor, &over),
        supervised,
        fed
    );
    Ok(Ran { end, status, stdout, stderr })
}

fn command_of(form: &CommandForm, program: Option<&Path>, cwd: &Path) -> Result<Command, CallError> {
    match form {
        CommandForm::Argv(argv) => {
            let name = argv.first().map(String::as_str).unwrap_or_default();
            let Some(program) = program else {
                return Err(failed(format!("there is no program `{name}` (from `{}`)", cwd.display())));
            };
            let mut command = Command::new(program);
            command.arg0(name).args(&argv[1..]);
            Ok(command)
        }
        CommandForm::Line(line) => {
            let Some(program) = program else { return Err(failed("there is no `sh` on the search path")) };
            let line = command::written_back(line).unwrap_or_else(|| line.clone());
            let mut command = Command::new(program);
            command.arg0("sh").args(["-c", "--", &line]);
            Ok(command)
        }
    }
}

/// Waits for the command, ends it when it must, and returns when nothing of its tree lives.
async fn supervise(
    main: Pid,
    deadline: Instant,
    work: &Work,
    children: &mut tokio::signal::unix::Signal,
) -> (End, Option<ExitStatus>) {
    let mut end = End::ByItself;
    let mut status = None;
    let mut kill_at: Option<Instant> = None;
    let mut count_after = FIRST_COUNT;
    let mut count_at = Instant::now() + count_after;
    let mut asked = false;
    loop {
        for (pid, how) in tree::reap() {
            if pid == main {
                status = Some(exit_status(how));
            }
        }
        let alive = Tree::below_self(work.limits.processes as usize);
        if status.is_some() && alive.is_empty() {
            return (end, status);
        }
        if status.is_some() && kill_at.is_none() {
            kill_at = Some(Instant::now() + LEFT_BEHIND);
        }
        if end == End::ByItself && alive.len() > work.limits.processes as usize {
            tree::kill_all();
            return (End::TooMany, status);
        }
        let running = end == End::ByItself && status.is_none();
        tokio::select! {
            biased;
            () = work.stop.token.cancelled(), if running => {
                end = End::Stopped;
                ask_to_end();
                asked = true;
                kill_at = Some(Instant::now() + work.stop.grace());
            }
            () = sleep_until(deadline), if running => {
                end = End::OutOfTime;
                ask_to_end();
                asked = true;
                kill_at = Some(Instant::now() + GRACE);
            }
            () = sleep_until(kill_at.unwrap_or(deadline)), if kill_at.is_some() => {
                if asked {
                    tree::kill_all();
                    return (end, status);
                }
                ask_to_end();
                asked = true;
                kill_at = Some(Instant::now() + LEFT_BEHIND_ASKED);
            }
            _ = children.recv() => {}
            () = sleep_until(count_at) => {
                count_after = (count_after * 2).min(LAST_COUNT);
                count_at = Instant::now() + count_after;
            }
        }
    }
}

fn ask_to_end() {
    let tree = Tree::below(std::process::id());
    tree.signal(Signal::TERM);
    // A stopped process hears of it only when it goes on.
    tree.signal(Signal::CONT);
}

fn exit_status(how: WaitStatus) -> ExitStatus {
    ExitStatus::from_raw(how.as_raw())
}

async fn feed(pipe: OwnedFd, input: &[u8], over: &CancellationToken) {
    let Ok(mut sender) = pipe::Sender::from_owned_fd(pipe) else { return };
    // A command that does not read all of its input is no error.
    tokio::select! {
        _ = sender.write_all(input) => {}
        () = over.cancelled() => {}
    }
}

async fn collect(
    pipe: Option<OwnedFd>,
    limits: &Limits,
    work: &Work,
    redactor: &Redactor,
    over: &CancellationToken,
) -> Captured {
    let captured = || Capture::new(limits, redactor);
    let mut taker = match &work.live {
        Live::Nothing => Taker::Captured(captured(), None),
        Live::Latest { printed, watched } => {
            let latest = Latest::new(printed.clone(), watched.clone(), Instant::now());
            Taker::Captured(captured(), Some(latest))
        }
        Live::All(printed) => Taker::Live(redactor.stream(), printed.clone()),
    };
    if let Some(receiver) = pipe.and_then(|pipe| pipe::Receiver::from_owned_fd(pipe).ok()) {
        let read = read_all(receiver, &mut taker);
        tokio::pin!(read);
        tokio::select! {
            _ = &mut read => {}
            () = over.cancelled() => drop(timeout(LAST_OUTPUT, read).await),
        }
    }
    taker.finish(limits, redactor).await
}

/// Where a stream goes.
enum Taker {
    /// Into the result, and its newest to those who watch.
    Captured(Capture, Option<Latest>),
    /// To owd, as it comes.
    Live(RedactStream, mpsc::Sender<Vec<u8>>),
}

impl Taker {
    async fn push(&mut self, piece: &[u8]) {
        match self {
            Self::Captured(capture, latest) => {
                let clean = capture.push(piece);
                if let Some(latest) = latest {
                    latest.take(&clean, Instant::now());
                }
            }
            Self::Live(redact, printed) => {
                let clean = redact.push(piece);
                tell(printed, clean).await;
            }
        }
    }

    const fn latest(&mut self) -> Option<&mut Latest> {
        match self {
            Self::Captured(_, latest) => latest.as_mut(),
            Self::Live(..) => None,
        }
    }

    async fn finish(self, limits: &Limits, redactor: &Redactor) -> Captured {
        match self {
            Self::Captured(capture, _) => capture.finish(),
            Self::Live(redact, printed) => {
                tell(&printed, redact.finish()).await;
                Capture::new(limits, redactor).finish()
            }
        }
    }
}

/// Where nobody takes it any more, owd is gone and the helper with it.
async fn tell(printed: &mpsc::Sender<Vec<u8>>, piece: Vec<u8>) {
    if !piece.is_empty() {
        drop(printed.send(piece).await);
    }
}

async fn read_all(mut receiver: pipe::Receiver, taker: &mut Taker) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = match taker.latest() {
            None => receiver.read(&mut buffer).await?,
            Some(latest) => tokio::select! {
                biased;
                length = receiver.read(&mut buffer) => length?,
                () = latest.due() => {
                    latest.tell(Instant::now());
                    continue;
                }
            },
        };
        match length {
            0 => return Ok(()),
            length => taker.push(&buffer[..length]).await,
        }
    }
}

fn finished(ran: Ran, outside: bool, work: &Work, time: Duration) -> Finished {
    let Ran { end, status, stdout, stderr } = ran;
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    let mut output = json!({ "stdout": stdout.text, "stderr": stderr.text, "status": code, "signal": signal });
    let mut kept = vec![];
    for (name, captured) in [("stdout", stdout), ("stderr", stderr)] {
        if let Some(whole) = captured.whole {
            output["cut"][name] = Value::from(captured.total);
            kept.push((name.to_owned(), whole));
        }
    }
    let error = |kind, message: String| Some(CallError { kind, message });
    let error = match end {
        End::ByItself => match (code, signal) {
            (Some(0), _) => None,
            (Some(code), _) => error(CallErrorKind::Failed, format!("exit status {code}")),
            (None, Some(signal)) => error(CallErrorKind::Failed, format!("ended by signal {signal}")),
            (None, None) => error(CallErrorKind::Failed, "ended in an unknown way".into()),
        },
        End::OutOfTime => {
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            let span = ow_model::Span::from_millis(millis);
            error(CallErrorKind::TimedOut, format!("still running after {span}, so it was ended"))
        }
        End::TooMany => {
            let most = work.limits.processes;
            error(CallErrorKind::Limit, format!("had more than {most} processes at once, so it was ended"))
        }
        End::Stopped => error(CallErrorKind::Stopped, "stopped by owd; how far it came is not known".into()),
    };
    let result = CallResult { output, kept: vec![], artifacts: vec![], outside, error };
    Finished { result, kept }
}
