use std::path::{Path, PathBuf};

use clap::Subcommand;
use ow_config::{Config as Settings, HOOKS_FOLDER, Host};
use ow_model::LoopLimits;
use ow_policy::OWN_TOOLS;
use serde_json::json;

use crate::command::checked;
use crate::context::Context;
use crate::escape;
use crate::failure::{Exit, Failure};
use crate::output::write;
use crate::place::environment;

/// The configuration file and the task files
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    Check(Check),
    Show(Show),
}

/// Check the configuration, the task files and the secrets; needs no daemon and changes nothing
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The configuration file; tasks.d lies beside it. Where owd looks if not given
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Show the configuration in effect, defaults included, as TOML
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The configuration file. Where owd looks if not given
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Config {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Check(command) => command.run(context),
            Self::Show(command) => command.run(context),
        }
    }
}

impl Check {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let host = Host::new(&environment);
        let (file, settings) = load(self.file.as_ref(), context, &host)?;
        let tasks_dir = file.with_file_name("tasks.d");
        let checked = checked::ask(context, self.file.as_ref().map(|_| &*file))?;
        if !checked.faults.is_empty() {
            return Err(faulty(checked.faults.into_iter().map(|fault| fault.message).collect()));
        }
        let mut warnings: Vec<String> = checked.doubts.into_iter().map(|doubt| doubt.message).collect();
        warnings.extend(broken_hooks(&file, &settings));
        warnings.extend(unknown_tools(&file, &settings));
        warnings.extend(about_listener(&settings));
        let answer = json!({
            "config": file.display().to_string(),
            "present": file.exists(),
            "tasks": checked.tasks,
            "warnings": warnings,
        });
        context.out.give(&answer, |_| {
            let file = if file.exists() {
                format!("{} is good", file.display())
            } else {
                format!("{} is not there: the defaults are in effect", file.display())
            };
            let folder = tasks_dir.display();
            let tasks = match checked.tasks {
                0 => format!("there is no task file in {folder}"),
                1 => format!("the one task file in {folder} is good"),
                many => format!("the {many} task files in {folder} are good"),
            };
            let mut text = format!("{}; {}.", escape::line(&file), escape::line(&tasks));
            for warning in &warnings {
                put!(text, "\nwarning: {}", escape::line(warning));
            }
            text
        });
        Ok(())
    }
}

/// Tools whose loop detectors are set and that owd does not have: the lines do nothing.
fn unknown_tools(file: &Path, settings: &Settings) -> Vec<String> {
    let LoopLimits(limits) = &settings.agent.loops;
    let is_known = |name: &str| name == LoopLimits::ALL_TOOLS || OWN_TOOLS.iter().any(|tool| tool.name == name);
    let unknown = limits.keys().filter(|name| !is_known(name));
    unknown
        .map(|name| {
            let remedy = match ow_config::nearest(name, OWN_TOOLS.iter().map(|tool| tool.name)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`owctl tool list` shows all".into(),
            };
            format!("{}: agent.loops.{name}: there is no tool `{name}`; {remedy}", file.display())
        })
        .collect()
}

/// Which hooks would not run, and so refuse what they are asked about.
fn broken_hooks(file: &Path, settings: &Settings) -> Vec<String> {
    let folder = file.with_file_name(HOOKS_FOLDER);
    let broken = settings.hook.iter().filter_map(|hook| Some((hook, hook.program(&folder).err()?)));
    broken.map(|(hook, fault)| format!("{} hook {}: {fault}", hook.event, hook.command.display())).collect()
}

/// What is to be known of the listener for webhooks.
fn about_listener(settings: &Settings) -> Vec<String> {
    let mut warnings = vec![];
    if let Some(address) = settings.listener.address.filter(|_| settings.listener.is_exposed()) {
        warnings.push(format!(
            "[listener] address {address} is open to other machines, without TLS; only signatures guard it"
        ));
    }
    if settings.listener.address.is_none() && !settings.webhook.is_empty() {
        warnings.push("there are webhooks and no `[listener] address`: nothing can be delivered".to_owned());
    }
    warnings
}

impl Show {
    fn run(&self, context: &Context) -> Result<(), Failure> {
        let (_, settings) = load(self.file.as_ref(), context, &Host::new(&environment))?;
        if context.out.is_json() {
            context.out.json(&settings);
        } else {
            write(&settings.show());
        }
        Ok(())
    }
}

/// A file that was named must exist; the customary one need not.
pub(super) fn load(named: Option<&PathBuf>, context: &Context, host: &Host) -> Result<(PathBuf, Settings), Failure> {
    let (file, settings) = if let Some(file) = named {
        let file = std::path::absolute(file).map_err(|why| Failure::io("cannot tell the current folder", &why))?;
        let settings = Settings::load(&file, host);
        (file, settings)
    } else {
        let file = context.paths()?.config_file;
        let settings = Settings::load_if_present(&file, host);
        (file, settings)
    };
    settings
        .map(|settings| (file, settings))
        .map_err(|error| faulty(error.faults.iter().map(ToString::to_string).collect()))
}

fn faulty(faults: Vec<String>) -> Failure {
    let message = match faults.len() {
        1 => "1 fault; it is not in effect".to_owned(),
        many => format!("{many} faults; what they are in is not in effect"),
    };
    Failure::new(Exit::Usage, "invalid", message)
        .details(faults)
        .hint("correct what is named, then `owctl config check` again")
}
