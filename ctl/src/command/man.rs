use std::fs;
use std::path::{Path, PathBuf};

use clap_mangen::Man as Page;
use serde_json::json;

use crate::cli;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::write;

/// Print the manual page, or write those of all commands into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl man | man -l -
  owctl man --out ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The folder; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut grammar = cli::grammar();
        grammar.build();
        let Some(folder) = &self.out else {
            let page = String::from_utf8(page(&grammar)).expect("the grammar is text");
            if context.out.is_json() {
                context.out.json(&json!({ "page": page }));
            } else {
                write(&page);
            }
            return Ok(());
        };
        fs::create_dir_all(folder).map_err(|why| Failure::io(format!("cannot make {}", folder.display()), &why))?;
        let mut written = vec![];
        pages(&grammar, "owctl", folder, &mut written)?;
        context.out.give(&json!({ "written": written }), |_| {
            format!("{} manual pages written into {}", written.len(), folder.display())
        });
        Ok(())
    }
}

fn page(grammar: &clap::Command) -> Vec<u8> {
    let mut text = Vec::new();
    Page::new(grammar.clone()).render(&mut text).expect("writing to memory does not fail");
    text
}

/// `owctl.1`, `owctl-task.1`, `owctl-task-add.1` …
fn pages(grammar: &clap::Command, name: &str, folder: &Path, written: &mut Vec<String>) -> Result<(), Failure> {
    let file = folder.join(format!("{name}.1"));
    fs::write(&file, page(grammar)).map_err(|why| Failure::io(format!("cannot write {}", file.display()), &why))?;
    written.push(file.display().to_string());
    for command in grammar.get_subcommands().filter(|command| command.get_name() != "help") {
        pages(command, &format!("{name}-{}", command.get_name()), folder, written)?;
    }
    Ok(())
}
