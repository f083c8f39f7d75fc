use ow_protocol::{Page, TriedBinding};

use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::{Colour, Paint};

/// Send a test notice to wherever an inbox is told of, and say what each answered
#[derive(Debug, clap::Args)]
#[command(after_help = "The exit code is 1 if one of them was not reached.")]
pub(crate) struct Test {
    /// The inbox, as owd.toml names it
    #[arg(default_value = "default")]
    inbox: String,
}

impl Test {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let tried = context.with_daemon(async |owd| Ok(owd.try_bindings(&self.inbox).await?))?;
        let all_well = tried.rows.iter().all(|row| row.fault.is_none());
        context.out.give(&tried, |tried| in_words(tried, &self.inbox, context.out.paint));
        if all_well { Ok(()) } else { Err(Failure::told(Exit::Failed)) }
    }
}

fn in_words(tried: &Page<TriedBinding>, inbox: &str, paint: Paint) -> String {
    if tried.rows.is_empty() {
        return format!(
            "inbox `{}` is told of nowhere: its items show in `owctl inbox list` alone\n",
            escape::line(inbox)
        );
    }
    let mut text = String::new();
    for TriedBinding { binding, fault } in &tried.rows {
        let binding = escape::line(binding);
        match fault {
            None => put!(text, "{} {binding}\n", paint.in_colour(Colour::Green, "sent")),
            Some(fault) => {
                put!(text, "{} {binding}: {}\n", paint.in_colour(Colour::Red, "failed"), escape::line(fault));
            }
        }
    }
    text
}
