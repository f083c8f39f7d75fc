//! A helper, seen from owd.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use ow_model::{Call, CallErrorKind, CallResult, RunId, Span};
use ow_policy::{Action, Authorized, CommandForm, Facts};
use ow_secret::Secrets;
use serde_json::json;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::hook::{HookEnd, HookExit, HookJob};
use super::leftover::end_helper;
use super::pool::Shared;
use super::process;
use super::wire::{self, FromHelper, ToHelper, Told, WireJob};
use super::work::Judged;
use crate::{Limits, Net, Place, args, shell};

/// What a helper may take beyond its limits to end what it runs, before it is ended itself.
const MARGIN: Duration = Duration::from_secs(5);

/// What goes with a call into the helper.
#[derive(Clone, Debug)]
pub struct Job {
    /// Whose call it is: a background job is this run's.
    pub run: RunId,
    pub place: Place,
    pub limits: Limits,
    /// What was judged right before; the helper opens and runs exactly this.
    pub facts: Facts,
    /// All that are known. Those that the call names are put in, and all are taken out of the result.
    pub secrets: Arc<Secrets>,
    pub net: Net,
    /// owd's own files and folders: no search looks into them.
    pub protected: Vec<PathBuf>,
    /// Who may watch what the call prints while it runs.
    pub audience: Option<Arc<dyn Audience>>,
}

/// Those who watch what a call prints.
pub trait Audience: Debug + Send + Sync {
    /// Waits until there is somebody.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    fn arrives(&self) -> BoxFuture<'_, ()>;

    /// The newest of what was printed, without secrets: at most ten pieces a second from each stream, of whole
    /// characters. What is binary comes as replacement characters.
    fn hear(&self, text: &str);
}

/// How a call in a helper ended. Nothing that it started lives any more.
#[derive(Debug)]
pub enum HelperEnd {
    /// The tool's result, and the whole text of each field that it had to cut, by name. A call that ran out of
    /// time is here too when its helper could still tell: its error says so, and its output is what there was.
    Done(CallResult, Vec<(String, Vec<u8>)>),
    /// The time was up and the helper did not answer; it was ended.
    TimedOut,
    /// owd stopped it in the middle.
    Stopped,
    /// The helper is gone; whether the call took effect is not known.
    Lost(String),
}

/// After so many calls a helper is replaced: what the kernel counts for a process only ever grows.
const MOST_CALLS: u32 = 100;

/// A process that waits for a job. Dropping it ends the process and all that it started.
pub struct Helper {
    pid: u32,
    start: Option<u64>,
    child: Option<Child>,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    shared: Arc<Shared>,
    calls: u32,
}

impl Helper {
    pub(super) fn new(
        child: Child,
        pid: u32,
        start: Option<u64>,
        input: ChildStdin,
        output: ChildStdout,
        shared: Arc<Shared>,
    ) -> Self {
        Self { pid, start, child: Some(child), input: Some(input), output: Some(output), shared, calls: 0 }
    }

    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// When it began, in clock ticks after boot.
    #[must_use]
    pub const fn start_ticks(&self) -> Option<u64> {
        self.start
    }

    #[must_use]
    pub fn boot_id(&self) -> Option<String> {
        process::boot_id()
    }

    pub(super) fn output(&mut self) -> &mut ChildStdout {
        self.output.as_mut().expect("taken only when the helper is dropped")
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Runs the call to its end.
    ///
    /// `stop` asks it to end; it then has `grace` before it is killed. Secrets are resolved here, after
    /// policy and journal.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the call as if owd had died: at an unknown point.
    pub async fn run(mut self, call: &Authorized<Call>, job: Job, stop: CancellationToken, grace: Span) -> HelperEnd {
        let call = call.get();
        let named = args::secrets_named(&call.args);
        if let Some(unknown) = named.iter().find(|name| job.secrets.value(name).is_none()) {
            let error = args::unknown_secret(unknown.as_str());
            return HelperEnd::Done(CallResult::failed(error.kind, error.message), vec![]);
        }
        if let Some(time) = shell::in_background(call) {
            return HelperEnd::Done(self.go_on(call, job, time, grace), vec![]);
        }
        let time = job.limits.time.duration();
        // Nobody wants to see the pieces of what another tool does.
        let audience = job.audience.clone().filter(|_| call.tool.as_str() == "shell");
        let mut arrival = audience.as_ref().map(|audience| audience.arrives());
        let mut is_watched = arrival.as_mut().is_some_and(|arrival| arrival.now_or_never().is_some());
        let told = if audience.is_some() { Told::Latest { is_watched } } else { Told::Nothing };
        let message = ToHelper::Run(Box::new(wire_job(call, job, told)));
        let (Some(mut input), Some(mut output)) = (self.input.take(), self.output.take()) else {
            return HelperEnd::Lost("the helper was used before".into());
        };
        let mut limit = Instant::now() + time + MARGIN;
        let sent = tokio::select! {
            sent = wire::write(&mut input, &message) => sent,
            () = stop.cancelled() => Err(io::Error::other("stopped before it began")),
            () = sleep_until(limit) => Err(io::Error::other("the helper did not take its job")),
        };
        drop(message);
        if let Err(error) = sent {
            self.end().await;
            if stop.is_cancelled() {
                return HelperEnd::Stopped;
            }
            return HelperEnd::Lost(format!("the helper could not be told what to run: {error}"));
        }
        let (mut asked, mut is_told_late) = (false, false);
        let answered = {
            let mut answer = std::pin::pin!(receive(&mut output, audience.as_deref()));
            loop {
                tokio::select! {
                    biased;
                    answered = &mut answer => break Some(answered),
                    () = stop.cancelled(), if !asked => {
                        asked = true;
                        limit = Instant::now() + grace.duration() + MARGIN;
                        // If it cannot be told, it is gone, and the answer's pipe says so.
                        drop(timeout(MARGIN, wire::write(&mut input, &ToHelper::Stop { grace })).await);
                    }
                    () = some(&mut arrival), if !is_watched => {
                        (is_watched, is_told_late) = (true, true);
                        drop(timeout(MARGIN, wire::write(&mut input, &ToHelper::Watched)).await);
                    }
                    () = sleep_until(limit) => break None,
                }
            }
        };
        match answered {
            Some(Ok(Some((result, kept)))) => {
                let kind = result.error.as_ref().map(|error| error.kind);
                // One that was told something in mid-call may have left that unread; of one that lost an answer nothing is to
                // live.
                let is_over =
                    matches!(kind, Some(CallErrorKind::TimedOut | CallErrorKind::Limit | CallErrorKind::Lost));
                if !asked && !is_told_late && !is_over {
                    (self.input, self.output) = (Some(input), Some(output));
                    self.give_back();
                }
                if asked && kind == Some(CallErrorKind::Stopped) {
                    HelperEnd::Stopped
                } else {
                    HelperEnd::Done(result, kept)
                }
            }
            Some(gone) => {
                self.end().await;
                let why = match gone {
                    Err(error) => format!("the helper's answer could not be read: {error}"),
                    Ok(_) => "the helper died before it answered".into(),
                };
                HelperEnd::Lost(why)
            }
            None => {
                self.end().await;
                if asked { HelperEnd::Stopped } else { HelperEnd::TimedOut }
            }
        }
    }

    /// Lets the call go on in the background, as a job of its run.
    fn go_on(self, call: &Call, mut job: Job, time: Span, grace: Span) -> CallResult {
        job.limits.time = time;
        let (run, id) = (job.run, format!("j{}", call.position));
        let (command, outside) = match &job.facts.action {
            Action::Command { form, .. } => (shown(form), shell::fetches(form)),
            Action::Plain | Action::Paths { .. } | Action::Url { .. } | Action::Enclosed { .. } => {
                (String::new(), true)
            }
        };
        let stop = self.shared.stop();
        if let Err(error) = self.shared.background.begin(run, &id, command, outside, stop.clone()) {
            return CallResult::failed(error.kind, error.message);
        }
        let message = ToHelper::Run(Box::new(wire_job(call, job, Told::All)));
        let (tracker, background) = (self.shared.tracker().clone(), self.shared.background.clone());
        let note =
            format!("it goes on; read it with job_output, end it with job_kill, or wait with wake_on job = {id:?}");
        let output = json!({ "job": id, "state": "running", "note": note });
        tracker.spawn(async move {
            let result = self.follow(message, time, grace, &stop, |piece| background.printed(run, &id, piece)).await;
            background.ended(run, &id, result);
        });
        CallResult::ok(output)
    }

    /// Hears what a background job prints until it has ended.
    async fn follow(
        mut self,
        message: ToHelper,
        time: Span,
        grace: Span,
        stop: &CancellationToken,
        printed: impl FnMut(&[u8]),
    ) -> CallResult {
        let (Some(mut input), Some(mut output)) = (self.input.take(), self.output.take()) else {
            return CallResult::failed(CallErrorKind::Failed, "the helper was used before");
        };
        let mut limit = Instant::now() + time.duration() + MARGIN;
        let mut asked = false;
        let ended = if let Err(error) = wire::write(&mut input, &message).await {
            Some(Err(error))
        } else {
            let mut heard = std::pin::pin!(hear(&mut output, printed));
            loop {
                tokio::select! {
                    biased;
                    heard = &mut heard => break Some(heard),
                    () = stop.cancelled(), if !asked => {
                        asked = true;
                        limit = Instant::now() + grace.duration() + MARGIN;
                        // If it cannot be told, it is gone, and the answer's pipe says so.
                        drop(timeout(MARGIN, wire::write(&mut input, &ToHelper::Stop { grace })).await);
                    }
                    () = sleep_until(limit) => break None,
                }
            }
        };
        drop(message);
        match ended {
            Some(Ok(Some(result))) => result,
            Some(_) => {
                self.end().await;
                CallResult::failed(CallErrorKind::Failed, "its helper is gone; how far it came is not known")
            }
            None => {
                self.end().await;
                let kind = if asked { CallErrorKind::Stopped } else { CallErrorKind::TimedOut };
                CallResult::failed(kind, "it did not end in time, so it was ended")
            }
        }
    }

    /// Hands the process on to the next call: nothing that this one started lives any more.
    fn give_back(mut self) {
        self.calls += 1;
        if self.calls < MOST_CALLS {
            let shared = Arc::clone(&self.shared);
            Shared::offer(&shared, self);
        }
    }

    /// Runs a hook to its end, or until `stop`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the hook.
    pub async fn run_hook(mut self, job: HookJob, stop: &CancellationToken) -> HookEnd {
        let limit = Instant::now() + job.time.duration() + MARGIN;
        let (Some(mut input), Some(mut output)) = (self.input.take(), self.output.take()) else {
            return HookEnd::without_output(HookExit::Lost("the helper was used before".into()));
        };
        let message = ToHelper::Hook(job);
        let answered = {
            let asked = async {
                wire::write(&mut input, &message).await?;
                wire::read(&mut output).await
            };
            tokio::select! {
                answered = asked => answered,
                () = stop.cancelled() => return self.end_hook(HookExit::Stopped).await,
                () = sleep_until(limit) => return self.end_hook(HookExit::TimedOut).await,
            }
        };
        let how = match answered {
            Ok(Some(FromHelper::Hooked(end))) => {
                if matches!(end.how, HookExit::Status(_)) {
                    (self.input, self.output) = (Some(input), Some(output));
                    self.give_back();
                }
                return end;
            }
            Ok(_) => HookExit::Lost("the helper died before it answered".into()),
            Err(error) => HookExit::Lost(format!("the helper could not be spoken to: {error}")),
        };
        self.end_hook(how).await
    }

    async fn end_hook(self, how: HookExit) -> HookEnd {
        self.end().await;
        HookEnd::without_output(how)
    }

    /// Ends a helper that did not come to its end by itself, and whatever it left.
    async fn end(&self) {
        let (pid, start) = (self.pid, self.start);
        // It blocks for as long as processes take to die.
        drop(tokio::task::spawn_blocking(move || end_helper(pid, start)).await);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.output.take());
        let Some(mut child) = self.child.take() else { return };
        let (shared, pid, start) = (Arc::clone(&self.shared), self.pid, self.start);
        if tokio::runtime::Handle::try_current().is_err() {
            return shared.forget(pid);
        }
        // With its pipes closed it ends by itself; its status must still be taken note of.
        self.shared.tracker().spawn(async move {
            if timeout(MARGIN * 2, child.wait()).await.is_err() {
                drop(tokio::task::spawn_blocking(move || end_helper(pid, start)).await);
                drop(timeout(MARGIN, child.wait()).await);
            }
            shared.forget(pid);
        });
    }
}

fn wire_job(call: &Call, job: Job, live: Told) -> WireJob {
    let Job { run: _, place, limits, facts, secrets, net, protected, audience: _ } = job;
    let secrets: BTreeMap<String, String> =
        secrets.iter().map(|(name, value)| (name.to_string(), value.expose().to_owned())).collect();
    WireJob { call: call.clone(), place, limits, judged: Judged::of(&facts), net, protected, secrets, live }
}

/// A command in one line, for those who read of its job.
fn shown(form: &CommandForm) -> String {
    const LONGEST: usize = 200;
    let text = match form {
        CommandForm::Argv(argv) => argv.join(" "),
        CommandForm::Line(line) => line.clone(),
    };
    text.chars().take(LONGEST).collect()
}

/// Takes in what a background job prints until its result comes; none: the helper is gone.
async fn hear(output: &mut ChildStdout, mut printed: impl FnMut(&[u8])) -> io::Result<Option<CallResult>> {
    while let Some(told) = wire::read(output).await? {
        match told {
            FromHelper::Ready | FromHelper::Hooked(_) => {}
            FromHelper::Printed => {
                let Some(piece) = wire::read_bytes(output).await? else { break };
                printed(&piece);
            }
            FromHelper::Done { result, .. } => return Ok(Some(result)),
        }
    }
    Ok(None)
}

type Answer = (CallResult, Vec<(String, Vec<u8>)>);

/// The future's end; without one it never comes.
async fn some(future: &mut Option<BoxFuture<'_, ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn receive(output: &mut ChildStdout, audience: Option<&dyn Audience>) -> io::Result<Option<Answer>> {
    let (result, names) = loop {
        match wire::read(output).await? {
            Some(FromHelper::Done { result, kept }) => break (result, kept),
            Some(FromHelper::Printed) => {
                let Some(piece) = wire::read_bytes(output).await? else { return Ok(None) };
                if let Some(audience) = audience {
                    audience.hear(&String::from_utf8_lossy(&piece));
                }
            }
            Some(FromHelper::Ready | FromHelper::Hooked(_)) | None => return Ok(None),
        }
    };
    let mut kept = vec![];
    for name in names {
        let Some(mut text) = wire::read_bytes(output).await? else { return Ok(None) };
        kept.push((name, mem::take(&mut *text)));
    }
    Ok(Some((result, kept)))
}
