//! The helper's own end.

use std::io::{self, stdin, stdout};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::process::ExitCode;

use ow_model::CallResult;
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::hook::{self, HookJob};
use super::tree;
use super::wire::{self, FromHelper, ToHelper, WireJob};
use super::work::{self, Stop, Work};
use crate::capture::Finished;

/// Pieces of output on their way to owd: a job that prints faster waits.
const PIECES: usize = 4;

/// Runs the jobs that come in on standard input, one after the other, and answers on standard output.
///
/// The body of `owd helper`. It leads a session of its own, adopts the orphans below it, and hides its
/// memory from others of the same user, since secrets pass through it.
#[must_use]
pub fn helper_main() -> ExitCode {
    let served = become_helper()
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build())
        .and_then(|runtime| {
            let served = runtime.block_on(serve());
            // A thread may hang in a system call; the process ends without it.
            runtime.shutdown_background();
            served
        });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("owd helper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn become_helper() -> io::Result<()> {
    // It fails only where this process leads a group already, and then it is as good.
    let _leads_already = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

async fn serve() -> io::Result<()> {
    // A service manager's SIGTERM reaches every process of the service. owd says what becomes of a call,
    // and the closed pipe says that it is gone.
    let _terminate = signal(SignalKind::terminate())?;
    let _interrupt = signal(SignalKind::interrupt())?;
    let _hangup = signal(SignalKind::hangup())?;
    let mut input = pipe::Receiver::from_owned_fd(stdin().as_fd().try_clone_to_owned()?)?;
    let mut output = pipe::Sender::from_owned_fd(stdout().as_fd().try_clone_to_owned()?)?;
    wire::write(&mut output, &FromHelper::Ready).await?;
    loop {
        let served = match wire::read(&mut input).await? {
            Some(ToHelper::Run(job)) => serve_one(*job, &mut input, &mut output).await?,
            Some(ToHelper::Hook(job)) => serve_hook(job, &mut input, &mut output).await?,
            Some(ToHelper::Stop { .. } | ToHelper::Watched) | None => return Ok(()),
        };
        if served.is_break() {
            return Ok(());
        }
    }
}

/// Runs one job and answers. Nothing that it started lives when this has returned; breaks when owd is gone.
async fn serve_one(job: WireJob, input: &mut pipe::Receiver, output: &mut pipe::Sender) -> io::Result<ControlFlow<()>> {
    let stop = Stop::default();
    let (printed, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES);
    let watched = CancellationToken::new();
    let work = match Work::new(job, stop.clone(), printed, watched.clone()) {
        Ok(work) => work,
        Err(error) => {
            answer(output, CallResult::failed(error.kind, error.message).into()).await?;
            return Ok(ControlFlow::Continue(()));
        }
    };
    // What is left unread is of no harm: owd gives a helper that it told something in mid-call no further job.
    let owd_gone = async {
        while let Ok(Some(message)) = wire::read(input).await {
            match message {
                ToHelper::Stop { grace } => stop.ask(grace.duration()),
                ToHelper::Watched => watched.cancel(),
                ToHelper::Run(_) | ToHelper::Hook(_) => break,
            }
        }
    };
    let tell = async {
        while let Some(piece) = pieces.recv().await {
            wire::write(output, &FromHelper::Printed).await?;
            wire::write_bytes(output, &piece).await?;
        }
        io::Result::Ok(())
    };
    let finished = tokio::select! {
        (finished, told) = async { tokio::join!(work::run(work), tell) } => told.map(|()| Some(finished)),
        () = owd_gone => Ok(None),
    };
    tree::kill_all();
    match finished? {
        Some(finished) => {
            answer(output, finished).await?;
            Ok(ControlFlow::Continue(()))
        }
        None => Ok(ControlFlow::Break(())),
    }
}

/// The same for a hook.
async fn serve_hook(
    job: HookJob,
    input: &mut pipe::Receiver,
    output: &mut pipe::Sender,
) -> io::Result<ControlFlow<()>> {
    // owd says nothing before it has the answer: only the closed pipe speaks.
    let owd_gone = wire::read::<ToHelper>(input);
    tokio::select! {
        end = hook::run(job) => {
            wire::write(output, &FromHelper::Hooked(end)).await?;
            Ok(ControlFlow::Continue(()))
        }
        _ = owd_gone => {
            tree::kill_all();
            Ok(ControlFlow::Break(()))
        }
    }
}

async fn answer(output: &mut pipe::Sender, finished: Finished) -> io::Result<()> {
    let Finished { result, kept } = finished;
    let (names, texts): (Vec<String>, Vec<Vec<u8>>) = kept.into_iter().unzip();
    wire::write(output, &FromHelper::Done { result, kept: names }).await?;
    for text in texts {
        wire::write_bytes(output, &text).await?;
    }
    Ok(())
}
