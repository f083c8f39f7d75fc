//! `owctl chat`: an agent with the person present.

use std::io::IsTerminal;
use std::path::PathBuf;

use crate::context::Context;
use crate::failure::Failure;
use crate::reference::Reference;

mod attach;
mod models;
mod opening;
mod script;
mod talk;

/// Talk with an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl chat                                 in this folder
  owctl chat --continue                      go on with the last one
  owctl chat --mode plan --attach notes.txt  it only looks, and proposes what to do
  owctl chat -p 'why does the build fail?'   one question, from a script
  git diff | owctl chat -p 'review this' --mode plan

On a terminal, what the agent asks is answered by a key. Ctrl-C interrupts the turn, once more
leaves; a turn that runs goes on, and its questions are in the Inbox. /help lists the chat's own
commands and keys.

With -p, or with something piped in, only the answer is printed; with --json all events, a line
each. The exit code is 0 if the turn was completed. What the agent asks meanwhile is in the Inbox:
the exit code is then 1, and the turn goes on when it is answered; --wait waits for that.")]
pub(crate) struct Chat {
    /// Go on with the chat that was last active
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    go_on: bool,
    /// Go on with this chat: its id, or a unique beginning of it
    #[arg(long, short = 's', value_name = "ID")]
    session: Option<Reference>,
    /// Say this, print the answer and leave
    #[arg(long = "print", short = 'p', value_name = "TEXT")]
    say: Option<String>,
    /// With -p: wait until what the agent asks is answered
    #[arg(long)]
    wait: bool,
    /// The model: `provider:model`
    #[arg(long, short = 'm', value_name = "MODEL")]
    model: Option<String>,
    /// How far it may go by itself
    #[arg(long, value_name = "MODE", value_parser = ["plan", "ask", "edit", "auto"])]
    mode: Option<String>,
    /// A folder that it may work in, instead of this one; more than one may be given
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// A file to go with the first message; more than one may be given
    #[arg(long = "attach", value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// A name for the chat
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The inbox that its questions go to, instead of `default`
    #[arg(long, value_name = "NAME")]
    inbox: Option<String>,
}

impl Chat {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let stdin = std::io::stdin();
        let typed = if self.say.is_none() || script::is_piped(&stdin) { script::piped(&stdin)? } else { None };
        let said = match (&self.say, typed) {
            (Some(say), Some(piped)) => Some(format!("{say}\n\n{piped}")),
            (Some(say), None) => Some(say.clone()),
            (None, piped) => piped,
        };
        if let Some(said) = said {
            return context.with_daemon(async |owd| script::one_turn(owd, self, &said, context).await);
        }
        if !stdin.is_terminal() || !std::io::stdout().is_terminal() {
            return Err(Failure::usage("there is no terminal to talk over, and nothing was piped in")
                .hint("say it with -p: owctl chat -p 'why does the build fail?'"));
        }
        if context.out.is_json() {
            return Err(Failure::usage("on a terminal a chat is for people")
                .hint("say it with -p: owctl chat --json -p 'why does the build fail?'"));
        }
        context.with_daemon(async |owd| talk::talk(owd, self, context).await)
    }
}
