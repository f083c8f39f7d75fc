//! A person's own programs that are asked before a call and told after it.
//!
//! Each runs in a helper of its own, so that nothing of it outlives its end, and knows nothing of owd's secrets. There is
//! no recursion to guard against: a process that owd started is answered nothing by owd.

mod said;

use std::path::{Path, PathBuf};

use ow_config::{HookConfig, OnFailure};
use ow_model::{Call, CallResult, HookEvent, HookReport, HookSaid};
use ow_tool::{Helpers, HookEnd, HookExit, HookJob};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::session::{blocking, millis};

/// What is kept of each output stream of a hook.
const STREAM_BYTES: usize = 10 * 1024;

/// Hooks in the order in which they are asked: those of the configuration, or those that are trusted of a workspace.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    hooks: Vec<(HookConfig, Program)>,
}

/// Where a hook's program is found.
#[derive(Clone, Debug)]
enum Program {
    /// In this folder, where it is looked at before each run.
    In(PathBuf),
    /// The copy that was kept when it was trusted.
    Kept(PathBuf),
}

/// What a hook is told of.
#[derive(Clone, Debug)]
pub struct Occasion {
    event: HookEvent,
    tool: Option<ow_model::ToolName>,
    stdin: String,
    cwd: PathBuf,
}

/// What all hooks together say to a call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Say {
    Pass,
    /// The first that refused; those behind it were not asked.
    Deny {
        why: String,
    },
    /// A person must be asked.
    Ask {
        why: String,
    },
    /// owd stopped them in the middle: nothing was said.
    Stopped,
}

impl Occasion {
    /// A call is about to run.
    #[must_use]
    pub fn before(call: &Call, session: &str, cwd: PathBuf) -> Self {
        Self::of_call(HookEvent::PreToolUse, call, &Value::Null, session, cwd)
    }

    /// A call has ended.
    #[must_use]
    pub fn after(call: &Call, result: &CallResult, session: &str, cwd: PathBuf) -> Self {
        let error = result.error.as_ref().map(|error| error.message.as_str());
        let response = json!({ "output": result.output, "error": error });
        Self::of_call(HookEvent::PostToolUse, call, &response, session, cwd)
    }

    /// A session begins or ends.
    #[must_use]
    pub fn of_session(event: HookEvent, session: &str, cwd: PathBuf) -> Self {
        Self { event, tool: None, stdin: told(event, &Value::Null, &Value::Null, &Value::Null, session), cwd }
    }

    fn of_call(event: HookEvent, call: &Call, response: &Value, session: &str, cwd: PathBuf) -> Self {
        let name = Value::String(call.tool.to_string());
        let stdin = told(event, &name, &call.args, response, session);
        Self { event, tool: Some(call.tool.clone()), stdin, cwd }
    }
}

fn told(event: HookEvent, tool: &Value, input: &Value, response: &Value, session: &str) -> String {
    json!({
        "event": event.word(),
        "tool_name": tool,
        "tool_input": input,
        "tool_response": response,
        "session_id": session,
    })
    .to_string()
}

impl Hooks {
    /// `folder`: where their programs lie, see [`ow_config::HOOKS_FOLDER`].
    #[must_use]
    pub fn new(hooks: Vec<HookConfig>, folder: &Path) -> Self {
        Self { hooks: hooks.into_iter().map(|hook| (hook, Program::In(folder.to_owned()))).collect() }
    }

    /// Each with the copy of its program that is trusted.
    pub(crate) fn trusted(hooks: Vec<(HookConfig, PathBuf)>) -> Self {
        Self { hooks: hooks.into_iter().map(|(hook, copy)| (hook, Program::Kept(copy))).collect() }
    }

    /// Whether any hook would be asked or told.
    #[must_use]
    pub fn concern(&self, event: HookEvent, tool: Option<&ow_model::ToolName>) -> bool {
        self.matching(event, tool).next().is_some()
    }

    fn matching(
        &self,
        event: HookEvent,
        tool: Option<&ow_model::ToolName>,
    ) -> impl Iterator<Item = &(HookConfig, Program)> {
        self.hooks.iter().filter(move |(hook, _)| hook.event == event && tool.is_none_or(|tool| hook.matches(tool)))
    }

    /// Asks or tells each hook that matches, in the order of the configuration, until one refuses.
    ///
    /// What they said is not redacted.
    pub async fn heed(
        &self,
        occasion: &Occasion,
        helpers: &Helpers,
        stop: &CancellationToken,
    ) -> (Vec<HookReport>, Say) {
        let mut reports = vec![];
        let mut say = Say::Pass;
        for (hook, program) in self.matching(occasion.event, occasion.tool.as_ref()) {
            let began = Instant::now();
            let end = run(hook, program, occasion, helpers, stop).await;
            let exit = match end.how {
                HookExit::Status(status) => Some(status),
                HookExit::Stopped => return (reports, Say::Stopped),
                _ => None,
            };
            let said = said::by(hook, &end);
            let report = HookReport {
                event: hook.event,
                command: hook.command.clone(),
                said,
                exit,
                took_ms: millis(began.elapsed()),
            };
            if matches!(report.said, HookSaid::Warn { .. }) {
                warn!(hook = %hook.command.display(), event = %hook.event, exit, "hook gave a warning");
            }
            let named = report.said.why().map(|why| format!("hook {}: {why}", hook.command.display()));
            let is_denied = match (&report.said, named) {
                (HookSaid::Deny { .. }, Some(why)) => {
                    say = Say::Deny { why };
                    true
                }
                (HookSaid::Ask { .. }, Some(why)) => {
                    say = Say::Ask { why };
                    false
                }
                _ => false,
            };
            reports.push(report);
            if is_denied {
                break;
            }
        }
        (reports, say)
    }
}

async fn run(
    hook: &HookConfig,
    program: &Program,
    occasion: &Occasion,
    helpers: &Helpers,
    stop: &CancellationToken,
) -> HookEnd {
    let without = |how| HookEnd { how, stdout: String::new(), stderr: String::new() };
    let looked_at = match program {
        Program::Kept(copy) => Ok(copy.clone()),
        Program::In(folder) => {
            let (hook, folder) = (hook.clone(), folder.clone());
            blocking(move || hook.program(&folder)).await
        }
    };
    let program = match looked_at {
        Ok(program) => program,
        Err(fault) => return without(HookExit::NotStarted(fault.to_string())),
    };
    let helper = match helpers.ready().await {
        Ok(helper) => helper,
        Err(error) => return without(HookExit::NotStarted(format!("no helper process: {error}"))),
    };
    let job = HookJob {
        program,
        arguments: vec![],
        cwd: occasion.cwd.clone(),
        stdin: occasion.stdin.clone(),
        time: hook.timeout,
        stream_bytes: STREAM_BYTES,
    };
    helper.run_hook(job, stop).await
}

/// Whether a broken hook refuses the call.
const fn refuses_broken(hook: &HookConfig) -> bool {
    matches!(hook.event, HookEvent::PreToolUse) && matches!(hook.on_failure, OnFailure::Deny)
}
