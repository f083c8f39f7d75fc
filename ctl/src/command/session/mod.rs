//! `owctl session …`: one file a sub-command.

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

mod export;
mod list;
mod remove;
mod show;

/// Chats: what was said, and what stands open
#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    List(list::List),
    Show(show::Show),
    Export(export::Export),
    #[command(name = "rm")]
    Remove(remove::Remove),
}

impl Session {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Export(command) => command.run(context),
            Self::Remove(command) => command.run(context),
        }
    }
}
