//! `owctl service …`: owd under the system's service manager.

use std::path::PathBuf;

use clap::Subcommand;
use ow_config::{Account, PathFlags};

use crate::context::Context;
use crate::failure::Failure;
use crate::program;

mod launchd;
mod steps;
mod systemd;

use steps::{Plan, Standing};

/// Have the system start owd and keep it running
#[derive(Debug, Subcommand)]
pub(crate) enum Service {
    Install(Install),
    Uninstall(Uninstall),
    Status(Status),
}

/// Install owd as a service, and start it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  owctl service install              for you
  owctl service install --dry-run    only show what would be done
  sudo owctl service install --system

The service uses the folder and the socket that --home, --socket, OWD_HOME and OWD_SOCKET name.

For you it also turns on lingering, so that owd goes on while you are logged out; where that is not
permitted it says so.")]
pub(crate) struct Install {
    /// Only show the files and the commands
    #[arg(long)]
    dry_run: bool,
    /// Where owd is; beside owctl or on the search path if not given
    #[arg(long, value_name = "PATH")]
    owd: Option<PathBuf>,
}

/// Stop the service and remove it; owd's files stay
#[derive(Debug, clap::Args)]
pub(crate) struct Uninstall {
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

/// Tell whether the service is installed, enabled and running
#[derive(Debug, clap::Args)]
pub(crate) struct Status {}

impl Service {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Install(command) => command.run(context),
            Self::Uninstall(command) => command.run(context),
            Self::Status(command) => command.run(context),
        }
    }
}

/// What starts and stops services here.
#[derive(Clone, Copy)]
enum Manager {
    Systemd,
    Launchd,
}

const fn manager() -> Manager {
    if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd }
}

impl Install {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let owd = match &self.owd {
            Some(path) => Some(path.clone()).filter(|path| program::is_program(path)),
            None => program::owd(),
        };
        let owd = owd.and_then(|path| std::path::absolute(path).ok()).ok_or_else(|| {
            Failure::usage("the program `owd` is not found").hint("name it with --owd, or put it beside owctl")
        })?;
        let start = Start { owd, places: places(context)? };
        let plan = match manager() {
            Manager::Systemd => systemd::install(context.account, &start)?,
            Manager::Launchd => launchd::install(context.account, &start, &context.paths()?.log_file)?,
        };
        finish(&plan, self.dry_run, context)
    }
}

/// How the service starts owd.
struct Start {
    owd: PathBuf,
    /// Flags by which it finds its files where owctl was told that they are.
    places: Vec<(&'static str, PathBuf)>,
}

fn places(context: &Context) -> Result<Vec<(&'static str, PathBuf)>, Failure> {
    let PathFlags { home, socket, .. } = &context.flags;
    let named = [("--home", home), ("--socket", socket)];
    // A service starts in another folder than this one.
    let absolute =
        |place: &PathBuf| std::path::absolute(place).map_err(|why| Failure::io("cannot tell the current folder", &why));
    let named = named.into_iter().filter_map(|(flag, place)| Some((flag, place.as_ref()?)));
    let places = named.map(|(flag, place)| Ok((flag, absolute(place)?))).collect::<Result<Vec<_>, Failure>>()?;
    if let (Some((flag, _)), Account::System) = (places.first(), context.account) {
        return Err(Failure::usage(format!("the system's service has its own places, and {flag} names another"))
            .hint("leave out --home and --socket, OWD_HOME and OWD_SOCKET too"));
    }
    Ok(places)
}

impl Uninstall {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let plan = match manager() {
            Manager::Systemd => systemd::uninstall(context.account)?,
            Manager::Launchd => launchd::uninstall(context.account)?,
        };
        finish(&plan, self.dry_run, context)
    }
}

impl Status {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let Self {} = self;
        let standing = match manager() {
            Manager::Systemd => systemd::standing(context.account)?,
            Manager::Launchd => launchd::standing(context.account)?,
        };
        context.out.give(&standing, Standing::in_words);
        Ok(())
    }
}

fn finish(plan: &Plan, dry_run: bool, context: &Context) -> Result<(), Failure> {
    if dry_run {
        context.out.give(plan, Plan::in_words);
        return Ok(());
    }
    let done = plan.perform(|line| context.out.note(line))?;
    context.out.give(&done, |done| done.in_words(plan));
    Ok(())
}

/// Whose service it is, for the text of a failure.
const fn whose(account: Account) -> &'static str {
    match account {
        Account::Person => "yours",
        Account::System => "the system's",
    }
}
