//! `owctl doctor`: each check looks at one thing, names it, and says how to mend it.

use serde::Serialize;

use crate::command::checked::{self, Checked};
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::Paint;

mod bindings;
mod daemon;
mod files;
mod machine;
mod mail;
mod models;
mod slack;
mod system;
mod webhooks;

use machine::Machine;

/// Check that everything owd needs is in order
#[derive(Debug, clap::Args)]
#[command(after_help = "The exit code is 1 if a check fails; warnings do not count.")]
pub(crate) struct Doctor {}

/// What one look found.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Check {
    name: &'static str,
    state: State,
    message: String,
    /// What to do; none if all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    Ok,
    /// owd runs, but something will not work as one may expect.
    Warn,
    /// owd does not run, or must not be relied on.
    Fail,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, state: State::Ok, message: message.into(), remedy: None }
    }

    fn warn(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Warn, message: message.into(), remedy: Some(remedy.into()) }
    }

    fn fail(name: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, state: State::Fail, message: message.into(), remedy: Some(remedy.into()) }
    }
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

impl Doctor {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let machine = Machine::this(context)?;
        let answer = context.with_daemon(async |owd| Ok(daemon::ask(owd).await))?;
        let mut checks = all(&machine, &answer, &checked::ask(context, None));
        checks.push(models::check(context));
        checks.extend(mail::checks(&machine, context));
        checks.extend(slack::check(context, &answer));
        let ok = checks.iter().all(|check| check.state != State::Fail);
        context.out.give(&Report { ok, checks }, |report| in_words(report, context.out.paint));
        if ok { Ok(()) } else { Err(Failure::told(Exit::Failed)) }
    }
}

/// Every check, in the order in which one would mend things.
fn all(machine: &Machine, answer: &daemon::Answer, asked: &Result<Checked, Failure>) -> Vec<Check> {
    let mut checks = vec![
        daemon::reachable(answer),
        files::config(machine),
        files::tasks(machine, asked),
        files::hooks(machine),
        files::data_folder(machine),
        files::socket(machine),
        files::key(machine),
        files::secrets(machine, asked),
        files::disk(machine),
        system::watches(machine),
        system::zones(machine),
        system::local_zone(machine),
        system::clock(machine),
        system::service(machine),
    ];
    checks.extend(webhooks::check(machine, answer));
    checks.extend(bindings::check(machine));
    checks.push(daemon::damage(answer));
    checks.extend(daemon::warnings(answer));
    checks.push(daemon::programs(machine, answer));
    checks
}

fn in_words(report: &Report, paint: Paint) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Check { name, state, message, remedy } in &report.checks {
        let state = paint.state(state.word());
        let pad = if state.contains("ok") { "  " } else { "" };
        put!(text, "{state}{pad}  {name:width$}  {}\n", escape::line(message));
        if let Some(remedy) = remedy {
            put!(text, "{:width$}        next: {}\n", "", escape::line(remedy));
        }
    }
    text
}
