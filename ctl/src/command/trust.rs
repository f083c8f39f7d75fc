use std::path::{Path, PathBuf};

use clap::Subcommand;
use ow_protocol::{NewTrust, Page, TrustHookView, TrustView};
use serde_json::json;

use crate::ask;
use crate::command::backup::absolute;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;
use crate::output::{Out, tell};
use crate::table::{Cell, Table};

/// Hooks that workspaces bring: which of them may run
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  owctl trust ~/src/shop
  owctl trust list
  owctl trust rm ~/src/shop

A workspace brings its own in DIR/.owd/workspace.toml: `deny`, patterns of commands that never run there, and [[hook]]
as in owd.toml, with programs in DIR/.owd/hooks. What it forbids holds at once; a hook runs only once you trust it, as
it is now: one that changes does not run until you trust it again. A workspace never allows anything.")]
pub(crate) struct Trust {
    #[command(subcommand)]
    command: Option<TrustCommand>,
    /// The workspace's folder: a root of a task or chat
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Trust its hooks as they are, without being asked
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
enum TrustCommand {
    /// List the workspaces whose hooks are trusted, and whether these are still as they were
    List,
    /// Take trust back; the folder need not be there any more
    Rm {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl Trust {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match (&self.command, &self.folder) {
            (Some(TrustCommand::List), _) => list(context),
            (Some(TrustCommand::Rm { folder }), _) => remove(folder, context),
            (None, Some(folder)) => self.give(folder, context),
            (None, None) => {
                Err(Failure::usage("no folder is named").hint("name the workspace: `owctl trust ~/src/shop`"))
            }
        }
    }

    fn give(&self, folder: &Path, context: &Context) -> Result<(), Failure> {
        let folder = absolute(folder)?;
        let shown = context.with_daemon(async |owd| Ok(owd.trust(Some(&folder)).await?))?.rows;
        let shown = shown.into_iter().next().ok_or_else(|| Failure::failed("trust", "owd answered something else"))?;
        let hashes: Vec<String> = shown.hooks.iter().filter_map(|hook| hook.hash.clone()).collect();
        let is_ready = shown.faults.is_empty() && !hashes.is_empty() && hashes.len() == shown.hooks.len();
        if is_ready && !self.yes {
            if !context.out.is_json() {
                tell(&in_words(context.out, &shown));
            }
            let question = format!("Let these hooks of {} run from now on?", escape::line(&shown.path));
            if !ask::can_ask() || context.out.is_json() {
                return Err(Failure::usage("nobody is there to be asked").hint("look at the hooks, then say `--yes`"));
            }
            if !ask::yes(&question) {
                return Err(Failure::failed("not_trusted", "nothing is trusted that was not before"));
            }
        }
        // What cannot be trusted is refused by owd, which says why.
        let given = NewTrust { path: folder, hooks: hashes };
        let view = context.with_daemon(async |owd| Ok(owd.give_trust(&given).await?))?;
        context.out.give(&view, |view| {
            let path = escape::line(&view.path);
            match view.hooks.len() {
                1 => format!("1 hook of {path} may run, as it is now."),
                count => format!("{count} hooks of {path} may run, as they are now."),
            }
        });
        Ok(())
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    let page: Page<TrustView> = context.with_daemon(async |owd| Ok(owd.trust(None).await?))?;
    context.out.give(&page, |page| {
        if page.rows.is_empty() {
            return "No workspace is trusted. `owctl trust DIR` shows what one brings.".into();
        }
        page.rows.iter().map(|view| in_words(context.out, view)).collect::<Vec<_>>().join("\n")
    });
    Ok(())
}

fn remove(folder: &Path, context: &Context) -> Result<(), Failure> {
    let folder = absolute(folder)?;
    context.with_daemon(async |owd| Ok(owd.take_trust(&folder).await?))?;
    context.out.give(&json!({ "removed": folder }), |_| {
        format!("{} is no longer trusted: its hooks do not run.", escape::line(&folder))
    });
    Ok(())
}

/// A workspace, what it forbids and its hooks.
fn in_words(out: Out, view: &TrustView) -> String {
    let mut text = escape::line(&view.path).into_owned();
    if let Some(by) = &view.trusted_by {
        put!(text, " (trusted by {})", escape::line(by));
    }
    for deny in &view.deny {
        put!(text, "\n  forbids `{}`", escape::line(deny));
    }
    for key in &view.ignored {
        put!(text, "\n  `{}` has no effect: a workspace allows nothing", escape::line(key));
    }
    for fault in &view.faults {
        put!(text, "\n  faulty: {}", escape::line(fault));
    }
    if view.hooks.is_empty() {
        return text;
    }
    let mut table = Table::new(out, &["COMMAND", "EVENT", "TOOLS", "STATE", "HASH"]);
    for TrustHookView { event, matcher, command, state, hash, why } in &view.hooks {
        table.row(vec![
            Cell::text(command),
            Cell::text(event),
            Cell::text(matcher.as_deref().unwrap_or("all")),
            why.as_ref().map_or_else(|| Cell::state(state), |why| Cell::text(why)),
            Cell::maybe(hash.as_deref().map(|hash| &hash[..hash.len().min(12)])),
        ]);
    }
    put!(text, "\n{}", table.show());
    text
}
