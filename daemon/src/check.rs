//! What owd would refuse of what a person wrote, found without a store and without a start; behind `owctl config check`.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use ow_clock::Clock;
use ow_config::{Config, TaskDefaults, TaskFile, load_tasks, parse_task, read_task_file};
use ow_model::{TaskName, Trigger};
use ow_provider::Router;
use ow_secret::{SecretError, Secrets};
use serde_json::{Value, json};

use crate::args::{Places, host};
use crate::tools::Checker;

/// Prints as JSON how many task files there are, what is wrong and what is doubtful.
pub(crate) fn check(places: &Places) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let host = host();
    let config = Config::load_if_present(&paths.config_file, &host)?;
    let clock = Clock::system();
    let mut found = Found::default();

    let secrets = crate::settings::load_secrets(&config, &paths).unwrap_or_else(|error| {
        let text = format!("{error:#}");
        match error.downcast_ref() {
            // The account that owd runs under may be another one.
            Some(SecretError::Read { source, .. })
                if places.is_system() && source.kind() == ErrorKind::PermissionDenied =>
            {
                found.doubt("secrets", None, text);
            }
            _ => found.fault("secrets", text),
        }
        Arc::new(Secrets::default())
    });

    let checker = Checker::alone(&config);
    let defaults = config.task_defaults(&host);
    let files = load_tasks(&paths.tasks_dir, &defaults, &checker, clock.now()).unwrap_or_else(|fault| {
        found.fault("tasks", fault.to_string());
        vec![]
    });
    for file in &files {
        found.judge(file, &defaults, &checker);
    }
    found.unknown_sources(&files);

    match crate::models::router(&config, &paths, &secrets, &clock) {
        Ok(router) => {
            let agents = files.iter().filter_map(|file| file.task.as_ref().ok()?.agent.as_ref());
            let named = agents.flat_map(|agent| agent.model.iter().chain(&agent.failover));
            let names: BTreeSet<&String> =
                config.agent.model.iter().chain(&config.agent.failover).chain(named).collect();
            for warning in names.into_iter().flat_map(|name| router.resolve(name).warnings) {
                found.doubt("models", None, warning.to_string());
            }
            found.unpriced(&files, &config, &router);
        }
        Err(error) => found.fault("models", format!("{error:#}")),
    }
    let Found { faults, doubts } = found;
    println!("{}", json!({ "tasks": files.len(), "faults": faults, "doubts": doubts }));
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Found {
    faults: Vec<Value>,
    doubts: Vec<Value>,
}

impl Found {
    fn fault(&mut self, about: &str, message: impl Into<Value>) {
        self.faults.push(json!({ "about": about, "message": message.into() }));
    }

    fn doubt(&mut self, about: &str, task: Option<&TaskName>, message: impl Into<Value>) {
        self.doubts.push(json!({ "about": about, "task": task.map(TaskName::as_str), "message": message.into() }));
    }

    /// A file that is faulty only because its `at` has passed may be right: owd has its task from before then.
    fn judge(&mut self, file: &TaskFile, defaults: &TaskDefaults, checker: &Checker) {
        let Err(faults) = &file.task else { return };
        // Of one place in the text: a circle is what all files make together.
        let is_of_a_place = matches!(&**faults, [fault] if fault.line > 0);
        let was_right = is_of_a_place
            && file.name.as_ref().is_some_and(|name| {
                let text = read_task_file(&file.path);
                text.is_ok_and(|text| parse_task(name, &text, None, defaults, checker, Timestamp::UNIX_EPOCH).is_ok())
            });
        for fault in faults {
            if was_right {
                self.doubt("past", None, format!("{fault}, unless owd has had this task since before then"));
            } else {
                self.fault("tasks", fault.to_string());
            }
        }
    }

    /// Tasks whose budget of money does not hold, as nobody knows what their model costs.
    fn unpriced(&mut self, files: &[TaskFile], config: &Config, router: &Router) {
        for file in files {
            let agent = file.task.as_ref().ok().and_then(|spec| spec.agent.as_ref());
            let Some(agent) = agent.filter(|agent| agent.budget.cost_micros.is_some()) else { continue };
            let Some(model) = agent.model.as_ref().or(config.agent.model.as_ref()) else { continue };
            if router.resolve(model).capabilities.price.is_none() {
                let message = format!(
                    "{}: the price of {model} is not known, so `budget.cost` limits nothing; give it one in models.toml",
                    file.path.display()
                );
                self.doubt("models", None, message);
            }
        }
    }

    /// Tasks that follow one that no file makes. It may be in the store, which is another owd's.
    fn unknown_sources(&mut self, files: &[TaskFile]) {
        let names: BTreeSet<&TaskName> = files.iter().filter_map(|file| file.name.as_ref()).collect();
        for file in files {
            let triggers = file.task.iter().flat_map(|spec| &spec.triggers);
            for source in triggers.filter_map(|trigger| match trigger {
                Trigger::After { task, .. } if !names.contains(task) => Some(task),
                _ => None,
            }) {
                let message = format!(
                    "{}: after = \"{source}\": there is no such task; make it, or correct the name: until then this \
                     trigger never fires",
                    file.path.display()
                );
                self.doubt("after", Some(source), message);
            }
        }
    }
}
