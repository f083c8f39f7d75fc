use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser};
use ow_config::{Account, PathFlags};
use serde_json::json;

use crate::command::Command;
use crate::context::Context;
use crate::failure::{Exit, Failure};
use crate::output::{Form, Out};

/// Talks to owd, the automation daemon: tasks, runs, the Inbox.
#[derive(Debug, Parser)]
#[command(name = "owctl", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Examples:
  owctl status                          what owd is doing
  owctl chat                            talk with an agent
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
    let args: Vec<OsString> = std::env::args_os().collect();
    match read(&args) {
        Ok(Cli { global: Global { json, socket, home, system }, command }) => {
            let out = Out::new(if json { Form::Json } else { Form::Words });
            let flags = PathFlags { socket, home, ..PathFlags::default() };
            let account = if system { Account::System } else { Account::Person };
            Ok((command, Context::new(out, flags, account)))
        }
        Err(error) => {
            let json = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
            Err(End { error, out: Out::new(if json { Form::Json } else { Form::Words }) })
        }
    }
}

/// The whole command line as data, for completions and manual pages.
pub(crate) fn grammar() -> clap::Command {
    Cli::command()
}

fn read(args: &[OsString]) -> Result<Cli, clap::Error> {
    let grammar = || command_word(args).and_then(Command::grammar_of).map_or_else(Cli::command, lean);
    let matches = grammar().try_get_matches_from(args).map_err(|error| {
        if is_asked_for(&error) {
            return error;
        }
        // The usage names what is set. What comes from the environment was not typed, so it is no part of that.
        let typed = grammar().mut_args(|arg| arg.env(None::<&str>));
        typed.try_get_matches_from(args).err().unwrap_or(error)
    })?;
    Ok(Cli { global: Global::from_arg_matches(&matches)?, command: Command::from_arg_matches(&matches)? })
}

fn is_asked_for(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// The command line of one command alone, which parses it as that of all would.
fn lean(command: clap::Command) -> clap::Command {
    let top = clap::Command::new("owctl").version(env!("CARGO_PKG_VERSION")).max_term_width(100);
    Global::augment_args(top).subcommand_required(true).subcommand(command)
}

/// The first word that is no flag of ours; none where that is not plain to see.
fn command_word(args: &[OsString]) -> Option<&str> {
    let mut words = args.iter().skip(1).map(|arg| arg.to_str());
    loop {
        match words.next()?? {
            "--json" | "--system" => {}
            "--socket" | "--home" => drop(words.next()?),
            word if word.starts_with("--socket=") || word.starts_with("--home=") => {}
            word if word.starts_with('-') => return None,
            word => return Some(word),
        }
    }
}

impl End {
    pub(crate) fn print(&self) -> ExitCode {
        let asked_for = is_asked_for(&self.error);
        if self.error.kind() == ErrorKind::DisplayVersion && self.out.is_json() {
            self.out.json(&json!({ "version": env!("CARGO_PKG_VERSION") }));
            return ExitCode::SUCCESS;
        }
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

    fn parsed(words: &[&str]) -> Cli {
        read(&words.iter().map(OsString::from).collect::<Vec<_>>()).expect("a command line")
    }

    /// The help of a command and of all below it.
    fn helps(command: &mut clap::Command) -> Vec<String> {
        let mut texts = vec![command.render_long_help().to_string()];
        texts.extend(command.get_subcommands_mut().flat_map(helps));
        texts
    }

    #[test]
    fn a_command_alone_is_what_it_is_among_all() {
        let mut whole = grammar();
        whole.build();
        for command in whole.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let name = command.get_name().to_owned();
            let mut alone = lean(Command::grammar_of(&name).unwrap_or_else(|| panic!("`{name}` is not listed")));
            alone.build();
            let alone = alone.find_subcommand_mut(&name).expect("it was just put there");
            assert_eq!(helps(alone), helps(command), "{name}");
        }
    }

    #[test]
    fn the_command_word_is_found_behind_flags() {
        let word =
            |line: &str| command_word(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).map(str::to_owned);
        assert_eq!(word("owctl --json --socket /x --home=/y status -f").as_deref(), Some("status"));
        assert_eq!(word("owctl --version"), None);
        assert_eq!(word("owctl"), None);
    }

    #[test]
    fn json_may_stand_anywhere_before_a_double_dash() {
        for line in [
            "owctl --json task list",
            "owctl task --json list",
            "owctl task list --json",
            "owctl explain cron --json @daily",
        ] {
            let Cli { global, .. } = parsed(&line.split(' ').collect::<Vec<_>>());
            assert!(global.json, "{line}");
        }
        let words = ["owctl", "explain", "command", "--", "--json"];
        assert!(!parsed(&words).global.json);
    }

    #[test]
    fn an_expression_that_begins_with_a_hyphen_is_no_flag() {
        let words = ["owctl", "explain", "cron", "-1 * * * *", "--tz", "UTC", "--json"];
        assert!(parsed(&words).global.json);
    }
}
