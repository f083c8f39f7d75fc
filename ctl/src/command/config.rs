use std::path::{Path, PathBuf};

use clap::Subcommand;
use jiff::Timestamp;
use ow_config::{Config as Settings, FileFault, HOOKS_FOLDER, Host, TaskDefaults, TaskFile, ToolChecker, load_tasks};
use ow_model::{LoopLimits, ToolName};
use ow_policy::{OWN_TOOLS, Performed};
use serde_json::{Value, json};

use crate::command::model;
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

/// Check the configuration and the task files; needs no daemon and changes nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "The arguments of steps are checked by owd itself when it reads a task file: `owctl status`.")]
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
        let tasks = read_tasks(&tasks_dir, &settings.task_defaults(&host), context.clock().now())
            .map_err(|fault| faulty(&[*fault]))?;
        let faults: Vec<FileFault> =
            tasks.iter().filter_map(|task| task.task.as_ref().err()).flatten().cloned().collect();
        if !faults.is_empty() {
            return Err(faulty(&faults));
        }
        let mut warnings = unsure_models(&file, &settings, &tasks, context)?;
        warnings.extend(broken_hooks(&file, &settings));
        warnings.extend(unknown_tools(&file, &settings));
        warnings.extend(about_listener(&settings));
        let answer = json!({
            "config": file.display().to_string(),
            "present": file.exists(),
            "tasks": tasks.len(),
            "warnings": warnings,
        });
        context.out.give(&answer, |_| {
            let file = if file.exists() {
                format!("{} is good", file.display())
            } else {
                format!("{} is not there: the defaults are in effect", file.display())
            };
            let mut text = format!(
                "{}; so are {} task files in {}.",
                escape::line(&file),
                tasks.len(),
                escape::line(&tasks_dir.display().to_string())
            );
            for warning in &warnings {
                put!(text, "\nwarning: {}", escape::line(warning));
            }
            text
        });
        Ok(())
    }
}

/// What is to be known of the models that the configuration and the tasks name. Without owd's own program nobody
/// can tell, and then nothing is said.
fn unsure_models(
    file: &Path,
    settings: &Settings,
    tasks: &[TaskFile],
    context: &Context,
) -> Result<Vec<String>, Failure> {
    let agents = tasks.iter().filter_map(|task| task.task.as_ref().ok()?.agent.as_ref());
    let named = agents.flat_map(|agent| agent.model.iter().chain(&agent.failover));
    let mut names: Vec<String> =
        settings.agent.model.iter().chain(&settings.agent.failover).chain(named).cloned().collect();
    names.sort();
    names.dedup();
    let has_table = file.with_file_name("models.toml").exists();
    if names.is_empty() && !has_table {
        return Ok(vec![]);
    }
    match model::ask_with(context, Some(file).filter(|file| file.exists()), &names) {
        Ok(answer) if names.is_empty() => drop(answer),
        Ok(answer) => return Ok(answer.models.into_iter().flat_map(|model| model.warnings).collect()),
        // With such a table owd does not start.
        Err(fault) if has_table && matches!(fault.exit, Exit::Usage) => return Err(fault),
        Err(_) => {}
    }
    Ok(vec![])
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
    settings.map(|settings| (file, settings)).map_err(|error| faulty(&error.faults))
}

fn faulty(faults: &[FileFault]) -> Failure {
    let message = match faults.len() {
        1 => "1 fault; it is not in effect".to_owned(),
        many => format!("{many} faults; what they are in is not in effect"),
    };
    Failure::new(Exit::Usage, "invalid", message)
        .details(faults.iter().map(ToString::to_string).collect())
        .hint("correct what is named, then `owctl config check` again")
}

/// Reads task files as far as that goes without the tools themselves.
pub(crate) fn read_tasks(
    folder: &std::path::Path,
    defaults: &TaskDefaults,
    now: Timestamp,
) -> Result<Vec<TaskFile>, Box<FileFault>> {
    load_tasks(folder, defaults, &ToolNames, now)
}

/// Knows the tools by name; their arguments only owd can check.
struct ToolNames;

impl ToolChecker for ToolNames {
    fn known(&self) -> Vec<ToolName> {
        let in_steps = OWN_TOOLS.iter().filter(|tool| tool.performed == Performed::AsCall);
        in_steps.map(|tool| tool.name.parse().expect("a tool's name")).collect()
    }

    fn check(&self, _tool: &ToolName, _args: &Value) -> Result<(), String> {
        Ok(())
    }
}
