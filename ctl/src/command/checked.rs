use std::ffi::OsStr;
use std::path::Path;

use serde::Deserialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::program;

/// What `owd check` found: what owd would refuse of what a person wrote, and what is doubtful in it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Checked {
    /// How many task files there are.
    pub(crate) tasks: usize,
    pub(crate) faults: Vec<Fault>,
    pub(crate) doubts: Vec<Doubt>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Fault {
    pub(crate) about: About,
    pub(crate) message: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Doubt {
    pub(crate) about: About,
    /// A task that takes the doubt away if owd has it.
    pub(crate) task: Option<String>,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum About {
    Tasks,
    Secrets,
    Models,
    /// Of a task file: an `after` that names no task.
    After,
    /// Of a task file: an `at` that has passed.
    Past,
}

/// Asks owd's own program, running or not, about the customary places or those of another configuration.
pub(crate) fn ask(context: &Context, file: Option<&Path>) -> Result<Checked, Failure> {
    let named = file.into_iter().flat_map(|file| [OsStr::new("--config"), file.as_os_str()]);
    let mut checked: Checked = program::ask_owd(context, named.chain([OsStr::new("check")]))?;
    // A running owd has tasks that no file makes. Of another configuration it says nothing.
    if file.is_none() && checked.doubts.iter().any(|doubt| doubt.task.is_some()) {
        let has = context.with_daemon(async |owd| {
            let mut has = vec![];
            for name in checked.doubts.iter().filter_map(|doubt| doubt.task.clone()) {
                has.extend(owd.task(&name).await.is_ok().then_some(name));
            }
            Ok(has)
        })?;
        checked.doubts.retain(|doubt| doubt.task.as_ref().is_none_or(|task| !has.contains(task)));
    }
    Ok(checked)
}

impl Checked {
    /// The faults about one thing.
    pub(crate) fn faults(&self, about: About) -> impl Iterator<Item = &str> {
        self.faults.iter().filter(move |fault| fault.about == about).map(|fault| &*fault.message)
    }

    /// The doubts about any of these.
    pub(crate) fn doubts<'a>(&'a self, about: &'a [About]) -> impl Iterator<Item = &'a str> {
        self.doubts.iter().filter(|doubt| about.contains(&doubt.about)).map(|doubt| &*doubt.message)
    }
}
