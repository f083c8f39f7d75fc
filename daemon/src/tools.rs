//! The tools that calls may name, by the configuration.

use std::sync::Arc;

use ow_automation::TaskTools;
use ow_config::{Config, ToolChecker};
use ow_mail::Outgoing;
use ow_model::ToolName;
use ow_tool::{Background, Toolbox};
use serde_json::Value;

/// What the tools hold on to that come from other parts.
#[derive(Default)]
pub(crate) struct Behind {
    pub(crate) jobs: Background,
    pub(crate) slack: ow_slack::App,
    pub(crate) outgoing: Outgoing,
}

/// Adds all tools but `notify`, which needs a store.
pub(crate) fn register(toolbox: &mut Toolbox, config: &Config, behind: &Behind) -> TaskTools {
    ow_tool::register_jobs(toolbox, &behind.jobs);
    if config.slack.is_some() {
        ow_slack::register(toolbox, &behind.slack);
    }
    if config.mail.out.is_some() {
        ow_mail::register(toolbox, &behind.outgoing);
    }
    ow_automation::register_task_tools(toolbox)
}

/// Knows the tools to the configuration.
pub(crate) struct Checker {
    pub(crate) toolbox: Arc<Toolbox>,
}

impl Checker {
    /// The same without a store, for who runs nothing.
    pub(crate) fn alone(config: &Config) -> Self {
        let mut toolbox = Toolbox::builtin();
        ow_inbox::declare(&mut toolbox);
        drop(register(&mut toolbox, config, &Behind::default()));
        Self { toolbox: Arc::new(toolbox) }
    }
}

impl ToolChecker for Checker {
    fn known(&self) -> Vec<ToolName> {
        self.toolbox.specs().map(|spec| spec.name.clone()).collect()
    }

    fn check(&self, tool: &ToolName, args: &Value) -> Result<(), String> {
        self.toolbox.tool(tool).map_or(Ok(()), |tool| tool.check(&ow_tool::as_if_filled(tool.spec(), args)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ow_policy::{OWN_TOOLS, Performed};
    use ow_store::{SqliteStore, Store};

    use super::*;

    #[tokio::test]
    async fn what_owctl_knows_of_tools_is_what_owd_has() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store: Arc<dyn Store> = SqliteStore::open(folder.path()).expect("opens");
        let mut toolbox = Toolbox::builtin();
        ow_inbox::register(&mut toolbox, store);
        ow_tool::register_jobs(&mut toolbox, &Background::default());
        ow_slack::register(&mut toolbox, &ow_slack::App::default());
        ow_mail::register(&mut toolbox, &Outgoing::default());
        drop(ow_automation::register_task_tools(&mut toolbox));
        let has: BTreeSet<String> = toolbox.specs().map(|spec| spec.name.to_string()).collect();
        let known: BTreeSet<String> = {
            let in_steps = OWN_TOOLS.iter().filter(|tool| tool.performed == Performed::AsCall);
            in_steps.map(|tool| tool.name.to_owned()).collect()
        };
        assert_eq!(has, known);
    }
}
