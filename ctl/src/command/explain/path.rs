use std::path::PathBuf;

use clap::ValueEnum;
use ow_policy::path::explain;
use ow_policy::{Explained, PathOp};

use super::links::SystemLinks;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::Paint;
use crate::place::environment;

/// What owd would say to a file tool that asks for a path
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl explain path --root ~/reports --op write 2026.md
  owctl explain path --root ~/reports --op read ../other/notes.md

The answer is for the scope alone, as in mode edit. Links are followed as they are now. For a search the tree is looked
through, and the answer is that on the first link in it that the search would leave out.")]
pub(crate) struct Path {
    /// The folder that the task may work in
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// What would be done
    #[arg(long, value_name = "OP", default_value = "read")]
    op: Op,
    /// The path, from the root on if it is not absolute
    #[arg(value_name = "PATH", allow_hyphen_values = true)]
    asked: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Op {
    Read,
    Write,
    Search,
}

impl Path {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let op = match self.op {
            Op::Read => PathOp::Read,
            Op::Write => PathOp::Write,
            Op::Search => PathOp::Search,
        };
        let root =
            std::path::absolute(&self.root).map_err(|why| Failure::io("cannot tell the current folder", &why))?;
        let judge = |asked: &std::path::Path| explain(&root, op, asked, &home(), &own_places(context), &SystemLinks);
        let mut explained = judge(&self.asked);
        if op == PathOp::Search && explained.verdict == "allow" {
            let start = root.join(&self.asked);
            if let Some(found) = left_out(&start, &judge) {
                explained = found;
            }
        }
        context.out.give(&explained, |explained| in_words(explained, context.out.paint));
        Ok(())
    }
}

/// The first thing in a tree that a search leaves out, said as the verdict on it: what a link there leads to.
fn left_out(start: &std::path::Path, judge: &dyn Fn(&std::path::Path) -> Explained) -> Option<Explained> {
    /// A tree that is larger is not looked through to its end.
    const MOST: usize = 20_000;
    let mut folders = vec![start.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MOST {
                return None;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_symlink() {
                let found = judge(&entry.path());
                if found.verdict != "allow" {
                    return Some(Explained {
                        why: format!("{}; a search leaves that out and looks through the rest", found.why),
                        ..found
                    });
                }
            }
        }
    }
    None
}

/// What `~` stands for.
pub(super) fn home() -> PathBuf {
    environment("HOME").map(PathBuf::from).filter(|home| home.is_absolute()).unwrap_or_else(|| PathBuf::from("/"))
}

/// What belongs to owd itself, where that can be told.
pub(super) fn own_places(context: &Context) -> Vec<PathBuf> {
    context.paths().map_or_else(|_| vec![], |paths| vec![paths.config_dir, paths.data_dir, paths.socket])
}

pub(super) fn in_words(explained: &Explained, paint: Paint) -> String {
    let Explained { verdict, rule, why } = explained;
    format!("{}: {}\nby {}\n", paint.state(verdict), escape::line(why), escape::line(rule))
}
