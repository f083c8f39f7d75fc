use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ow_protocol::{DeliverRequest, DeliveredView, LARGEST_MAIL};

use crate::command::explain::read_mail;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};

/// Of a longer head no more is handed over.
const LARGEST_HEAD: usize = 1024 * 1024;

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
        let raw = read_mail(&self.file)?;
        // Who refuses a mail for its size sends it back to its sender: the head says whose it is and what it is about.
        let (raw, head_only) = if raw.len() > LARGEST_MAIL { (head(&raw), true) } else { (raw.as_slice(), false) };
        let request = DeliverRequest { mail: STANDARD.encode(raw), head_only };
        let delivered = context.with_daemon(async |owd| Ok(owd.deliver_mail(&request).await?)).map_err(|failure| {
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

/// A mail up to the empty line after its headers.
fn head(raw: &[u8]) -> &[u8] {
    let mut length = 0;
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        length += line.len();
        if line.trim_ascii().is_empty() || length > LARGEST_HEAD {
            break;
        }
    }
    &raw[..length.min(LARGEST_HEAD)]
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
