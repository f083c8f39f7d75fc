//! The commands, one file each, in the order in which `owctl help` lists them.

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

mod backup;
mod completions;
mod config;
mod doctor;
mod events;
mod exit_codes;
mod explain;
mod follow;
mod forecast;
mod inbox;
mod logs;
mod man;
mod openapi;
mod paging;
mod pause;
mod reload;
mod restore;
mod resume;
mod rule;
mod run;
mod service;
mod status;
mod task;
mod why;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Status(status::Status),
    #[command(subcommand)]
    Task(task::Task),
    #[command(subcommand)]
    Run(run::Run),
    #[command(subcommand)]
    Inbox(inbox::Inbox),
    #[command(subcommand)]
    Rule(rule::Rule),
    Why(why::Why),
    Forecast(forecast::Forecast),
    #[command(subcommand)]
    Explain(explain::Explain),
    Events(events::Events),
    Logs(logs::Logs),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Reload(reload::Reload),
    Backup(backup::Backup),
    Restore(restore::Restore),
    #[command(subcommand)]
    Config(config::Config),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Service(service::Service),
    Completions(completions::Completions),
    Man(man::Man),
    Openapi(openapi::OpenApi),
    #[command(name = "exit-codes")]
    ExitCodes(exit_codes::ExitCodes),
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Status(command) => command.run(context),
            Self::Task(command) => command.run(context),
            Self::Run(command) => command.run(context),
            Self::Inbox(command) => command.run(context),
            Self::Rule(command) => command.run(context),
            Self::Why(command) => command.run(context),
            Self::Forecast(command) => command.run(context),
            Self::Explain(command) => command.run(context),
            Self::Events(command) => command.run(context),
            Self::Logs(command) => command.run(context),
            Self::Pause(command) => command.run(context),
            Self::Resume(command) => command.run(context),
            Self::Reload(command) => command.run(context),
            Self::Backup(command) => command.run(context),
            Self::Restore(command) => command.run(context),
            Self::Config(command) => command.run(context),
            Self::Doctor(command) => command.run(context),
            Self::Service(command) => command.run(context),
            Self::Completions(command) => {
                command.run(context);
                Ok(())
            }
            Self::Man(command) => command.run(context),
            Self::Openapi(command) => command.run(context),
            Self::ExitCodes(command) => {
                command.run(context);
                Ok(())
            }
        }
    }
}
