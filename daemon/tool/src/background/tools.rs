use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ow_model::{Call, CallError, CallErrorKind, CallResult, Risk, Span};
use ow_policy::{Action, Authorized, Facts};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{Background, Reading};
use crate::args::{self, Arg, Kind, Need};
use crate::{CallOf, DaemonTool, Place, Runner, Tool, ToolSpec, Toolbox};

/// A call that waits longer holds a worker for nothing: the session can sleep instead.
const LONGEST_WAIT: Span = Span::from_secs(60);
/// How long a job that is killed may take until a call stops waiting for its end.
const KILL_WAIT: Duration = Duration::from_secs(15);

const OUTPUT_ARGS: &[Arg] = &[
    Arg { name: "job", kind: Kind::Name, need: Need::Required, about: "the job's id, as shell gave it" },
    Arg {
        name: "wait",
        kind: Kind::Time,
        need: Need::Optional,
        about: "wait so long for something new, at most \"60s\"; not at all if left out. To wait longer use wake_on",
    },
];

const KILL_ARGS: &[Arg] =
    &[Arg { name: "job", kind: Kind::Name, need: Need::Required, about: "the job's id, as shell gave it" }];

/// Adds `job_output` and `job_kill` to the tools.
pub fn register(toolbox: &mut Toolbox, jobs: &Background) {
    for (name, declared) in [("job_output", OUTPUT_ARGS), ("job_kill", KILL_ARGS)] {
        let tool = JobTool { spec: ToolSpec::own(name, args::schema(declared)), declared, jobs: jobs.clone() };
        let tool = Arc::new(tool);
        toolbox.register(tool.clone(), Runner::Daemon(tool));
    }
}

#[derive(Debug, Deserialize)]
struct JobArgs {
    job: String,
    wait: Option<Span>,
}

struct JobTool {
    spec: ToolSpec,
    declared: &'static [Arg],
    jobs: Background,
}

impl Tool for JobTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check(self.spec.name.as_str(), self.declared, value)
    }

    fn facts(&self, call: &Call, _place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(|message| CallError { kind: CallErrorKind::BadArguments, message })?;
        // A session reads and ends its own jobs alone, each of which was allowed when it began.
        Ok(Facts { risk: Risk::Read, action: Action::Plain })
    }
}

#[async_trait]
impl DaemonTool for JobTool {
    async fn run(&self, call: &Authorized<Call>, of: &CallOf) -> CallResult {
        let done = match args::read(&call.get().args) {
            Ok(args) if call.get().tool.as_str() == "job_kill" => self.kill(&args, of).await,
            Ok(args) => self.output(&args, of).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(Reading { output, outside, .. }) => CallResult { outside, ..CallResult::ok(output) },
            Err(error) => CallResult::failed(error.kind, error.message),
        }
    }
}

impl JobTool {
    async fn output(&self, args: &JobArgs, of: &CallOf) -> Result<Reading, CallError> {
        let mut news = self.jobs.news(of.run, &args.job)?;
        let reading = self.jobs.read(of.run, &args.job)?;
        let (Some(wait), false) = (args.wait, reading.has_news) else { return Ok(reading) };
        let deadline = Instant::now() + wait.min(LONGEST_WAIT).duration();
        // News, time-out and a job that is gone lead to the same look.
        drop(timeout_at(deadline, news.changed()).await);
        self.jobs.read(of.run, &args.job)
    }

    async fn kill(&self, args: &JobArgs, of: &CallOf) -> Result<Reading, CallError> {
        let mut news = self.jobs.news(of.run, &args.job)?;
        self.jobs.kill(of.run, &args.job)?;
        let deadline = Instant::now() + KILL_WAIT;
        while self.jobs.is_running(of.run, &args.job) {
            if !matches!(timeout_at(deadline, news.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        self.jobs.read(of.run, &args.job)
    }
}
