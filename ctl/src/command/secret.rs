use std::ffi::OsStr;
use std::io::{self, BufRead, Read, Write};
use std::process::{Command, Stdio};

use clap::Subcommand;
use ow_protocol::{Page, SecretView};
use rustix::termios::{self, LocalModes, OptionalActions};
use serde_json::{Value, json};

use crate::ask;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::tell;
use crate::program;
use crate::table::{Cell, Table};

/// Named secrets: keys, tokens and passwords that calls and models are given
#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    Set(Set),
    List(List),
    Rm(Remove),
}

/// Keep a secret; its value is asked for, or read from standard input
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl secret set OPENAI_API_KEY
  pass show mail | owctl secret set mail_password

The value is kept in secrets.toml beside the configuration, which only you may read. A call names it where it needs it:
env = { TOKEN = { secret = \"NAME\" } }. It never stands on a command line, in a log or in what a model is sent.")]
pub(crate) struct Set {
    /// Letters, digits, `_`, `-` and `.`; case does not matter
    name: String,
}

/// List the names of all secrets and where each comes from, never a value
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

/// Forget a secret that `owctl secret set` has kept
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    name: String,
}

impl Secret {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Set(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Rm(command) => command.run(context),
        }
    }
}

impl Set {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        // Nobody is asked for a value that has no place.
        owd(context, &["secret-set", &self.name, "--check"], None)?;
        let value = if ask::can_ask() {
            typed(&format!("Value of {}: ", escape::line(&self.name)))?
        } else {
            let mut value = String::new();
            io::stdin()
                .lock()
                .take(VALUE_LIMIT + 1)
                .read_to_string(&mut value)
                .map_err(|why| Failure::io("cannot read the value from standard input", &why))?;
            value
        };
        let value = value.strip_suffix('\n').unwrap_or(&value);
        if value.is_empty() {
            return Err(Failure::usage("the value is empty").hint("type it when asked, or pipe it in"));
        }
        if value.len() as u64 > VALUE_LIMIT {
            return Err(Failure::usage("the value is longer than 64 KiB").hint("name a file in its place"));
        }
        let said = owd(context, &["secret-set", &self.name], Some(value.as_bytes()))?;
        let told = reload(context);
        let answer = json!({ "name": said["name"], "file": said["file"], "in_effect": told });
        context.out.give(&answer, |_| {
            let file = escape::line(said["file"].as_str().unwrap_or_default()).into_owned();
            format!("{} is kept in {file}{}", escape::line(&self.name), in_effect(told))
        });
        Ok(())
    }
}

/// More than any key or certificate has.
const VALUE_LIMIT: u64 = 64 * 1024;

impl Remove {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let said = owd(context, &["secret-rm", &self.name], None)?;
        if said["removed"] != true {
            let file = said["file"].as_str().unwrap_or_default();
            return Err(Failure::new(Exit::NotFound, "not_found", format!("{file} holds no secret `{}`", self.name))
                .hint("`owctl secret list` says where each comes from"));
        }
        let told = reload(context);
        context.out.give(&json!({ "removed": self.name, "in_effect": told }), |_| {
            format!("{} is gone{}", escape::line(&self.name), in_effect(told))
        });
        Ok(())
    }
}

impl List {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        // What owd has is what counts: its environment and its credentials are its own.
        let asked = context.with_daemon(async |owd| Ok(owd.secrets().await?));
        let (page, running) = match asked {
            Ok(page) => (page, true),
            Err(_) => (read_here(context)?, false),
        };
        context.out.give(&page, |page| {
            if page.rows.is_empty() {
                return "No secrets. Keep one with `owctl secret set NAME`.".into();
            }
            let mut table = Table::new(context.out, &["NAME", "FROM"]);
            for SecretView { name, origin } in &page.rows {
                table.row([Cell::text(name), Cell::text(origin)]);
            }
            table.show()
        });
        if !running && !context.out.is_json() {
            tell("owd is not running: these are the secrets that it would find from here.");
        }
        Ok(())
    }
}

fn read_here(context: &Context) -> Result<Page<SecretView>, Failure> {
    let said = owd(context, &["secret-list"], None)?;
    serde_json::from_value(said).map_err(|_| Failure::failed("secret", "owd answered something else"))
}

/// Whether a running owd has read its secrets again; none: it does not run.
fn reload(context: &Context) -> Option<bool> {
    let reloaded = context.with_daemon(async |owd| Ok(owd.reload().await.is_ok()));
    match reloaded {
        Ok(true) => Some(true),
        // Nobody is there to be told, or it has found something wrong and says so itself.
        Ok(false) | Err(_) => None,
    }
}

fn in_effect(told: Option<bool>) -> &'static str {
    match told {
        Some(true) => "; owd uses it from now on.",
        _ => ". owd reads it when it starts, or with `owctl reload`.",
    }
}

/// Runs a command of owd that answers in JSON.
fn owd(context: &Context, args: &[&str], input: Option<&[u8]>) -> Result<Value, Failure> {
    let mut command: Command = program::owd_command(context)?;
    command.args(args.iter().map(OsStr::new)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let failed = |why: io::Error| Failure::io("cannot run owd", &why);
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        // One that refuses the name does not read it.
        drop(pipe.write_all(input));
    }
    let done = child.wait_with_output().map_err(failed)?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr).trim().trim_start_matches("owd: ").to_owned();
        return Err(Failure::usage(message));
    }
    serde_json::from_slice(&done.stdout).map_err(|_| Failure::failed("secret", "owd answered something else"))
}

/// A line that is typed without being shown.
fn typed(question: &str) -> Result<String, Failure> {
    let failed = |why: io::Error| Failure::io("cannot ask at the terminal", &why);
    let stdin = io::stdin();
    let before = termios::tcgetattr(&stdin).map_err(|why| failed(why.into()))?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question}").and_then(|()| stderr.flush()).map_err(failed)?;
    drop(stderr);
    termios::tcsetattr(&stdin, OptionalActions::Flush, &silent).map_err(|why| failed(why.into()))?;
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    // Whatever came, the terminal must show again what is typed.
    termios::tcsetattr(&stdin, OptionalActions::Now, &before).map_err(|why| failed(why.into()))?;
    read.map_err(failed)?;
    Ok(line)
}
