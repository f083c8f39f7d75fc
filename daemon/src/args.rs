use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};
use ow_config::{Account, Host, PathFlags, Paths};

use crate::hook::HookTest;

/// An always-on automation daemon with an Inbox: scheduled and triggered tasks, with consent where it is due.
#[derive(Debug, Parser)]
#[command(name = "owd", version, max_term_width = 100)]
#[command(after_help = "Without a command, owd runs in the foreground until SIGTERM or Ctrl-C.\n\
    SIGHUP reads configuration and task files again and reopens the log.\n\
    Talk to it with owctl; see what it can do with `owd demo`.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) places: Places,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run in the foreground (the default)
    Run,
    /// Start owd where there is no service manager
    Start {
        /// In a session of its own; returns when owd is ready
        #[arg(long)]
        detach: bool,
    },
    /// Stop the owd that was started with `start --detach`
    Stop,
    /// See owd at work on this machine: no configuration, nothing left behind but a scratch folder
    Demo {
        /// Where the demo keeps its files [default: a folder below the temporary folder]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// End by itself after this many seconds
        #[arg(long, value_name = "N")]
        seconds: Option<u64>,
        /// Where a model server of this machine listens: http://127.0.0.1:PORT/v1 [default: the usual places are tried, then
        /// vendors' keys in the environment]
        #[arg(long, value_name = "URL", conflicts_with = "no_model")]
        model_url: Option<String>,
        /// Leave out the agent, and ask no model
        #[arg(long)]
        no_model: bool,
    },
    /// The dry run behind `owctl hook test`
    #[command(hide = true)]
    HookTest(HookTest),
    /// Keeps a secret from standard input; behind `owctl secret set`
    #[command(hide = true)]
    SecretSet {
        name: String,
        /// Look at the name alone, before a person is asked for the value.
        #[arg(long)]
        check: bool,
    },
    /// Behind `owctl secret rm`
    #[command(hide = true)]
    SecretRm { name: String },
    /// Behind `owctl secret list`
    #[command(hide = true)]
    SecretList,
    /// What owd would refuse; behind `owctl config check`
    #[command(hide = true)]
    Check,
    /// Behind `owctl model`
    #[command(hide = true)]
    Model { names: Vec<String> },
    /// Behind `owctl doctor`: tries the way of a mail, and sends none.
    #[command(hide = true)]
    MailCheck,
    /// Behind `owctl doctor`
    #[command(hide = true)]
    SlackCheck,
    /// Put a backup in the place of the store; owd must not be running
    Restore {
        /// A folder that `owctl backup` made
        from: PathBuf,
    },
}

/// Where owd's files are; each wins over the environment.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Places {
    /// One folder for everything: configuration, data, socket and log
    #[arg(long, global = true, value_name = "DIR", env = "OWD_HOME")]
    home: Option<PathBuf>,
    /// The configuration file; tasks.d lies beside it
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The store and what belongs to it
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The control socket
    #[arg(long, global = true, value_name = "PATH", env = "OWD_SOCKET")]
    socket: Option<PathBuf>,
    /// The log, where it goes to a file
    #[arg(long, global = true, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Use the system's folders (/etc/owd, /var/lib/owd, /run/owd) rather than the account's own
    #[arg(long, global = true)]
    system: bool,
}

impl Places {
    pub(crate) fn below(home: PathBuf) -> Self {
        Self { home: Some(home), ..Self::default() }
    }

    pub(crate) fn is_system(&self) -> bool {
        self.system
    }

    pub(crate) fn paths(&self) -> anyhow::Result<Paths> {
        let account = if self.system { Account::System } else { Account::Person };
        let flags = PathFlags {
            home: self.home.clone(),
            config_file: self.config.clone(),
            data_dir: self.data_dir.clone(),
            socket: self.socket.clone(),
            log_file: self.log_file.clone(),
        };
        Paths::for_user(account, &|name| std::env::var_os(name), &flags).context("cannot tell where owd's files are")
    }

    /// The same places as arguments for another owd.
    pub(crate) fn to_args(&self) -> Vec<std::ffi::OsString> {
        let mut args = vec![];
        let named = [
            ("--home", &self.home),
            ("--config", &self.config),
            ("--data-dir", &self.data_dir),
            ("--socket", &self.socket),
            ("--log-file", &self.log_file),
        ];
        for (flag, value) in named {
            if let Some(value) = value {
                args.extend([flag.into(), value.into()]);
            }
        }
        if self.system {
            args.push("--system".into());
        }
        args
    }
}

/// What this machine supplies where the configuration is silent.
pub(crate) fn host() -> Host {
    Host::new(&|name| std::env::var_os(name))
}
