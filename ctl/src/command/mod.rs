//! The commands, one file each, in the order in which `owctl help` lists them.

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::failure::Failure;

mod audit;
mod backup;
mod chat;
mod checked;
mod completions;
mod config;
mod doctor;
mod events;
mod exit_codes;
mod explain;
mod follow;
mod forecast;
mod hook;
mod hook_url;
mod inbox;
mod logs;
mod man;
mod model;
mod openapi;
mod paging;
mod pause;
mod printed;
mod reload;
mod restore;
mod resume;
mod rule;
mod run;
mod secret;
mod sent;
mod service;
mod session;
mod status;
mod task;
mod tool;
mod trust;
mod webhook;
mod why;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Status(status::Status),
    Chat(chat::Chat),
    #[command(subcommand)]
    Session(session::Session),
    #[command(subcommand)]
    Task(task::Task),
    #[command(subcommand)]
    Run(run::Run),
    #[command(subcommand)]
    Inbox(inbox::Inbox),
    #[command(subcommand)]
    Rule(rule::Rule),
    #[command(subcommand)]
    Tool(tool::Tool),
    Why(why::Why),
    Forecast(forecast::Forecast),
    #[command(subcommand)]
    Explain(explain::Explain),
    #[command(subcommand)]
    Audit(audit::Audit),
    #[command(subcommand)]
    Model(model::Model),
    #[command(subcommand)]
    Secret(secret::Secret),
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    #[command(name = "hook-url")]
    HookUrl(hook_url::HookUrl),
    Events(events::Events),
    Logs(logs::Logs),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Reload(reload::Reload),
    Backup(backup::Backup),
    Restore(restore::Restore),
    #[command(subcommand)]
    Config(config::Config),
    #[command(subcommand)]
    Hook(hook::Hook),
    Trust(trust::Trust),
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
    /// The grammar of one command alone, as it stands in that of all; none if there is no such command.
    ///
    /// Building all of them takes longer than what most of them do.
    pub(crate) fn grammar_of(name: &str) -> Option<clap::Command> {
        fn one<T: Args>(name: &'static str) -> clap::Command {
            T::augment_args(clap::Command::new(name))
        }
        fn several<T: Subcommand>(name: &'static str) -> clap::Command {
            let grammar = T::augment_subcommands(clap::Command::new(name));
            grammar.subcommand_required(true).arg_required_else_help(true)
        }
        Some(match name {
            "status" => one::<status::Status>("status"),
            "chat" => one::<chat::Chat>("chat"),
            "session" => several::<session::Session>("session"),
            "task" => several::<task::Task>("task"),
            "run" => several::<run::Run>("run"),
            "inbox" => several::<inbox::Inbox>("inbox"),
            "rule" => several::<rule::Rule>("rule"),
            "tool" => several::<tool::Tool>("tool"),
            "why" => one::<why::Why>("why"),
            "forecast" => one::<forecast::Forecast>("forecast"),
            "explain" => several::<explain::Explain>("explain"),
            "audit" => several::<audit::Audit>("audit"),
            "model" => several::<model::Model>("model"),
            "secret" => several::<secret::Secret>("secret"),
            "webhook" => several::<webhook::Webhook>("webhook"),
            "hook-url" => one::<hook_url::HookUrl>("hook-url"),
            "events" => one::<events::Events>("events"),
            "logs" => one::<logs::Logs>("logs"),
            "pause" => one::<pause::Pause>("pause"),
            "resume" => one::<resume::Resume>("resume"),
            "reload" => one::<reload::Reload>("reload"),
            "backup" => one::<backup::Backup>("backup"),
            "restore" => one::<restore::Restore>("restore"),
            "config" => several::<config::Config>("config"),
            "hook" => several::<hook::Hook>("hook"),
            "trust" => one::<trust::Trust>("trust"),
            "doctor" => one::<doctor::Doctor>("doctor"),
            "service" => several::<service::Service>("service"),
            "completions" => one::<completions::Completions>("completions"),
            "man" => one::<man::Man>("man"),
            "openapi" => one::<openapi::OpenApi>("openapi"),
            "exit-codes" => one::<exit_codes::ExitCodes>("exit-codes"),
            _ => return None,
        })
    }

    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Status(command) => command.run(context),
            Self::Chat(command) => command.run(context),
            Self::Session(command) => command.run(context),
            Self::Task(command) => command.run(context),
            Self::Run(command) => command.run(context),
            Self::Inbox(command) => command.run(context),
            Self::Rule(command) => command.run(context),
            Self::Tool(command) => command.run(context),
            Self::Why(command) => command.run(context),
            Self::Forecast(command) => command.run(context),
            Self::Explain(command) => command.run(context),
            Self::Audit(command) => command.run(context),
            Self::Model(command) => command.run(context),
            Self::Secret(command) => command.run(context),
            Self::Webhook(command) => command.run(context),
            Self::HookUrl(command) => command.run(context),
            Self::Events(command) => command.run(context),
            Self::Logs(command) => command.run(context),
            Self::Pause(command) => command.run(context),
            Self::Resume(command) => command.run(context),
            Self::Reload(command) => command.run(context),
            Self::Backup(command) => command.run(context),
            Self::Restore(command) => command.run(context),
            Self::Config(command) => command.run(context),
            Self::Hook(command) => command.run(context),
            Self::Trust(command) => command.run(context),
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
