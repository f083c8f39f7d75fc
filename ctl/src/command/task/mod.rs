//! `owctl task …`: one file a sub-command.

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

mod add;
mod allow;
mod definition;
mod edit;
mod export;
mod import;
mod list;
mod pause;
mod remove;
mod run;
mod show;

/// Tasks: what is done when, with what rights
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Add(add::Add),
    List(list::List),
    Show(show::Show),
    Edit(edit::Edit),
    Rm(remove::Remove),
    Run(run::Run),
    Allow(allow::Allow),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Export(export::Export),
    Import(import::Import),
}

impl Task {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Add(command) => command.run(context),
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Edit(command) => command.run(context),
            Self::Rm(command) => command.run(context),
            Self::Run(command) => command.run(context),
            Self::Allow(command) => command.run(context),
            Self::Pause(command) => command.run(context),
            Self::Resume(command) => command.run(context),
            Self::Export(command) => command.run(context),
            Self::Import(command) => command.run(context),
        }
    }
}
