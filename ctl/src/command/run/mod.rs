//! `owctl run …`: one file a sub-command.

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

mod cancel;
mod list;
mod open;
mod retry;
mod show;
pub(crate) mod view;
mod watch;

/// Runs: what was done, what came of it
#[derive(Debug, Subcommand)]
pub(crate) enum Run {
    List(list::List),
    Show(show::Show),
    Watch(watch::Watch),
    Cancel(cancel::Cancel),
    Retry(retry::Retry),
    Open(open::Open),
}

impl Run {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Watch(command) => command.run(context),
            Self::Cancel(command) => command.run(context),
            Self::Retry(command) => command.run(context),
            Self::Open(command) => command.run(context),
        }
    }
}
