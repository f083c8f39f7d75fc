//! owd: an always-on automation daemon with an Inbox.
//!
//! Reads the configuration, builds the parts, runs them, stops them. `main` is one screen; each command
//! has a file.

/// Says a line on standard output. Who no longer listens stops nothing of what owd does.
macro_rules! say {
    ($($words:tt)*) => {
        drop(std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($words)*))))
    };
}

mod args;
mod channels;
mod check;
mod control;
mod demo;
mod detach;
mod handover;
mod hook;
mod key;
mod life;
mod log;
mod mail;
mod models;
mod people;
mod remedy;
mod restart;
mod restore;
mod secret;
mod session;
mod settings;
mod signals;
mod slack;
mod tools;
mod webhooks;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    // Before anything else: a helper must not read a configuration, and no TLS client may start without a provider.
    if std::env::args_os().nth(1).is_some_and(|word| word == "helper") {
        return ow_tool::helper_main();
    }
    let Args { places, command } = Args::parse();
    let done = match command.unwrap_or(Command::Run) {
        Command::Run => life::run(&places),
        Command::Start { detach } => detach::start(&places, detach),
        Command::Stop => detach::stop(&places),
        Command::Demo { dir, seconds, model_url, no_model } => demo::run(dir, seconds, model_url.as_deref(), no_model),
        Command::HookTest(asked) => hook::test(&places, &asked),
        Command::SecretSet { name, check: true } => secret::check(&name),
        Command::SecretSet { name, check: false } => secret::set(&places, &name),
        Command::SecretRm { name } => secret::remove(&places, &name),
        Command::SecretList => secret::list(&places),
        Command::Model { names } => models::describe(&places, &names),
        Command::Check => check::check(&places),
        Command::MailCheck => mail::check(&places),
        Command::SlackCheck => slack::check(&places),
        Command::Restore { from } => restore::run(&places, &from),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("owd: {error:#}");
            if let Some(remedy) = remedy::of(&error) {
                eprintln!("next: {remedy}");
            }
            ExitCode::FAILURE
        }
    }
}
