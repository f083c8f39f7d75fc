use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_protocol::DeliveredView;

use crate::command::explain::read_mail;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};

/// Hand owd a mail that may answer an item
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl inbox deliver < answer.eml
  owd: \"|owctl inbox deliver\"        (a line of /etc/aliases or ~/.forward)

A mail counts if its one sender is an address of a person in the configuration, and that is proven: by the relay named
there (`mail.authserv-id`) on top of the mail, or by a signature of the sender's domain. Where a relay is named, hand over
only what comes from it. `owctl explain
reply` shows how a mail is read.

It ends with 0 once owd has taken the mail, whatever it decided, and with 75 if it is to be handed over again later: owd is
not running, or the sender could not be checked. A mail server keeps the mail then.")]
pub(crate) struct Deliver {
    /// The mail; standard input if not given
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

impl Deliver {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mail = STANDARD.encode(read_mail(&self.file)?);
        let delivered = context.with_daemon(async |owd| Ok(owd.deliver_mail(mail).await?)).map_err(|failure| {
            // A mail server sends back what ends otherwise.
            let later = matches!(failure.exit, Exit::NotRunning | Exit::Failed);
            if later { Failure { exit: Exit::Later, ..failure } } else { failure }
        })?;
        if delivered.outcome == "later" {
            return Err(Failure::new(Exit::Later, "later", delivered.why).hint("hand the mail over again"));
        }
        context.out.give(&delivered, |delivered| in_words(delivered, context));
        Ok(())
    }
}

fn in_words(delivered: &DeliveredView, context: &Context) -> String {
    let DeliveredView { outcome, item, decision: _, why, told } = delivered;
    let mut words = format!("{}: {}\n", context.out.paint.state(outcome), escape::line(why));
    for (name, value) in [("item", item), ("the sender may be told:", told)] {
        if let Some(value) = value {
            put!(words, "{name} {}\n", escape::line(value));
        }
    }
    words
}
