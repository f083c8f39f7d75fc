use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use ow_config::{Account, PathFlags};

use crate::command::Command;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Out};

/// Talks to owd, the automation daemon: tasks, runs, the Inbox.
#[derive(Debug, Parser)]
#[command(name = "owctl", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Examples:
  owctl status                          what owd is doing
  owctl inbox list                      what waits for you
  owctl inbox approve 7k2               let it run, once
  owctl task add reports.toml           a new task
  owctl why reports yesterday           why it ran, or did not
  owctl explain cron '0 9 * * mon-fri'  when that would fire; needs no daemon

Ids may be shortened as long as they fit one thing only. `owctl help COMMAND` tells more,
`owctl help exit-codes` lists the exit codes.")]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Args)]
struct Global {
    /// Answer in JSON, errors too
    #[arg(long, global = true)]
    json: bool,
    /// The control socket of the owd that is meant
    #[arg(long, global = true, value_name = "PATH", env = "OWD_SOCKET", hide_env_values = true)]
    socket: Option<PathBuf>,
    /// The one folder that holds all of owd's files
    #[arg(long, global = true, value_name = "DIR", env = "OWD_HOME", hide_env_values = true)]
    home: Option<PathBuf>,
    /// Mean the system's owd (/run/owd) rather than your own
    #[arg(long, global = true)]
    system: bool,
}

/// Why the command line leads to no command: help was asked for, or it is wrong.
pub(crate) struct End {
    error: clap::Error,
    out: Out,
}

pub(crate) fn parse() -> Result<(Command, Context), End> {
    match Cli::try_parse() {
        Ok(Cli { global: Global { json, socket, home, system }, command }) => {
            let out = Out::new(if json { Form::Json } else { Form::Words });
            let flags = PathFlags { socket, home, ..PathFlags::default() };
            let account = if system { Account::System } else { Account::Person };
            Ok((command, Context::new(out, flags, account)))
        }
        Err(error) => {
            let json =
                std::env::args_os().take_while(|arg| arg != OsStr::new("--")).any(|arg| arg == OsStr::new("--json"));
            Err(End { error, out: Out::new(if json { Form::Json } else { Form::Words }) })
        }
    }
}

/// The whole command line as data, for completions and manual pages.
pub(crate) fn grammar() -> clap::Command {
    Cli::command()
}

impl End {
    pub(crate) fn print(&self) -> ExitCode {
        let asked_for = matches!(self.error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if asked_for || !self.out.is_json() {
            // A closed pipe is no failure, and there is nobody left to tell.
            drop(self.error.print());
            return if asked_for { ExitCode::SUCCESS } else { ExitCode::from(Exit::Usage as u8) };
        }
        self.out.fail(&in_json(&self.error.render().to_string()))
    }
}

/// The first paragraph of clap's text is what is wrong; the others are tips and usage.
fn in_json(text: &str) -> Failure {
    let mut paragraphs = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let first = paragraphs.next().unwrap_or_default();
    let tip = paragraphs.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
    Failure::usage(first.trim_start_matches("error: "))
        .hint(tip.unwrap_or_else(|| "see `owctl help` and `owctl help COMMAND`".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        grammar().debug_assert();
    }

    #[test]
    fn json_may_stand_anywhere_before_a_double_dash() {
        for line in [
            "owctl --json task list",
            "owctl task --json list",
            "owctl task list --json",
            "owctl explain cron --json @daily",
        ] {
            let Cli { global, .. } = Cli::try_parse_from(line.split(' ')).expect(line);
            assert!(global.json, "{line}");
        }
        let words = ["owctl", "explain", "command", "--", "--json"];
        assert!(!Cli::try_parse_from(words).expect("a command line").global.json);
    }

    #[test]
    fn an_expression_that_begins_with_a_hyphen_is_no_flag() {
        let words = ["owctl", "explain", "cron", "-1 * * * *", "--tz", "UTC", "--json"];
        assert!(Cli::try_parse_from(words).expect("a command line").global.json);
    }
}
