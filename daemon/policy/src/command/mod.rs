//! What a command may do, told from its parsed text alone.
//!
//! A line is read by a shell parser and taken apart into the commands that it may run, those inside
//! substitutions, shells and wrappers too. All of them are held against hard blocks and denies. Only a line
//! of literal words can be allowed: as its argv if it is one command, else written back from the syntax
//! tree, so that what runs is what was judged.

mod allow;
mod deny;
mod explain;
mod hard;
mod hazard;
mod judge;
mod network;
mod operands;
mod safe;
mod script;
mod started;
mod unwrap;
mod word;

use std::path::Path;

pub use explain::{Question, explain, explain_with};
pub(crate) use judge::{
    Found, Rights, Subject, blocked, forbidden, hole_in_argv, is_plain_variable, layers, reads_code_from_stdin,
};
pub(crate) use network::reaches_out;
pub use operands::operands;
pub use started::{Started, started};

/// The argv of a line that is one literal simple command: no operator, expansion, redirection or
/// assignment. It runs as this argv, without a shell.
///
/// ```
/// let argv = ow_policy::command::argv_of_simple("grep 'foo|bar' a.txt");
/// assert_eq!(argv, Some(vec!["grep".into(), "foo|bar".into(), "a.txt".into()]));
/// assert_eq!(ow_policy::command::argv_of_simple("ls *"), None);
/// ```
#[must_use]
pub fn argv_of_simple(line: &str) -> Option<Vec<String>> {
    script::simple(line)
}

/// A line of literal commands joined by `;`, `&&`, `||` and `|`, written back from its syntax tree with
/// every word quoted; none where a shell would do more than that.
///
/// ```
/// let text = ow_policy::command::written_back("git log|head -1");
/// assert_eq!(text.as_deref(), Some("'git' 'log' | 'head' '-1'"));
/// assert_eq!(ow_policy::command::written_back("echo $HOME"), None);
/// ```
#[must_use]
pub fn written_back(line: &str) -> Option<String> {
    script::Script::read(line, Path::new("/"), None).written_back()
}
