//! `owctl webhook …`: what senders outside deliver, and to whom.

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

mod list;
mod post;
mod test;

/// Webhooks: what senders outside deliver, and which tasks run on it
#[derive(Debug, Subcommand)]
pub(crate) enum Webhook {
    List(list::List),
    Test(test::Test),
}

impl Webhook {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Test(command) => command.run(context),
        }
    }
}
