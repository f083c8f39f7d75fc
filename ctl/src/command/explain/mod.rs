//! `owctl explain …`: what owd would do, and why; without a daemon.

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

mod command;
mod cron;
mod links;
mod path;
mod reply;
mod url;

pub(crate) use reply::read_mail;

/// What owd would do and why; needs no daemon
#[derive(Debug, Subcommand)]
pub(crate) enum Explain {
    Cron(cron::Cron),
    Command(command::Command),
    Path(path::Path),
    Reply(reply::Reply),
    Url(url::Url),
}

impl Explain {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Cron(command) => command.run(context),
            Self::Command(command) => command.run(context),
            Self::Path(command) => command.run(context),
            Self::Reply(command) => command.run(context),
            Self::Url(command) => command.run(context),
        }
    }
}
