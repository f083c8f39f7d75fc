use std::path::PathBuf;

use ow_policy::command::{Question, explain_with};

use super::links::SystemLinks;
use super::path::{home, in_words, own_places};
use crate::context::Context;
use crate::failure::Failure;

/// What owd would say to a command line
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl explain command --allow 'git status' -- 'git status -s'
  owctl explain command --safe -- 'ls -l | sort'
  owctl explain command --deny 'rm *' -- 'make clean; rm -rf build'

The safe list counts only with --safe, and configured rules only as given here.")]
pub(crate) struct Command {
    /// An entry of the allow list: the beginning of an argv
    #[arg(long, value_name = "ENTRY", allow_hyphen_values = true)]
    allow: Vec<String>,
    /// An entry of the deny list: a pattern, `*` stands for anything
    #[arg(long, value_name = "ENTRY", allow_hyphen_values = true)]
    deny: Vec<String>,
    /// Count the built-in list of programs that only read
    #[arg(long)]
    safe: bool,
    /// Count the folder as a workspace whose builds and tests are trusted
    #[arg(long)]
    trusted: bool,
    /// Where it would run; also the only root. The current folder if not given
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The command line, as one word after `--`
    #[arg(value_name = "COMMAND LINE", allow_hyphen_values = true)]
    line: String,
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let cwd = self.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let cwd = std::path::absolute(&cwd).map_err(|why| Failure::io("cannot tell the current folder", &why))?;
        let question = Question {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            safe: self.safe,
            home: home(),
            trusted: if self.trusted { vec![cwd.clone()] } else { vec![] },
            cwd,
            protected: own_places(context),
        };
        let explained = explain_with(&self.line, &question, &SystemLinks);
        context.out.give(&explained, |explained| in_words(explained, context.out.paint));
        Ok(())
    }
}
