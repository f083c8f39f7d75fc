//! `owctl inbox …`: one file a sub-command.

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

pub(crate) mod answer;
mod approve;
mod delegate;
mod deliver;
mod deny;
mod list;
mod show;
mod test;
mod view;
mod watch;

/// The Inbox: what waits for your answer
#[derive(Debug, Subcommand)]
pub(crate) enum Inbox {
    List(list::List),
    Show(show::Show),
    Approve(approve::Approve),
    Deny(deny::Deny),
    Answer(answer::Answer),
    Delegate(delegate::Delegate),
    Watch(watch::Watch),
    Deliver(deliver::Deliver),
    Test(test::Test),
}

impl Inbox {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Approve(command) => command.run(context),
            Self::Deny(command) => command.run(context),
            Self::Answer(command) => command.run(context),
            Self::Delegate(command) => command.run(context),
            Self::Watch(command) => command.run(context),
            Self::Deliver(command) => command.run(context),
            Self::Test(command) => command.run(context),
        }
    }
}
