use ow_model::{Call, ToolName};

use crate::command::argv_of_simple;
use crate::judge::{Own, Reason, leaves_machine, own_verdict};
use crate::{Action, CommandForm, Facts, Situation};

/// What an "always" may cover for the rest of a session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionOffer {
    /// Always this tool.
    pub tool: Option<ToolName>,
    /// Always this command: its exact argv.
    pub command: Option<Vec<String>>,
}

/// What "always" may be offered for a call that asks: nothing where a later equal call would ask all the same.
#[must_use]
pub fn session_offer(call: &Call, facts: &Facts, situation: &Situation) -> SessionOffer {
    let by_class = matches!(own_verdict(call, facts, situation), Own::Ask { reason: Reason::Class, .. });
    if !by_class || situation.tainted || situation.uncertain.contains(&call.hash()) {
        return SessionOffer::default();
    }
    // "Always the shell" is said of work on this machine; what leaves it is allowed by its own words.
    let tool = leaves_machine(facts, situation).is_none().then(|| call.tool.clone());
    SessionOffer { tool, command: plain_command(facts, situation) }
}

/// The "always" that covers a call which asks for its class alone.
///
/// Hard blocks, denies and unknown outcomes are settled before. What asks for its place, its shape or its
/// origin goes on asking, and in a session that holds text from outside no "always" counts.
pub(crate) fn always(call: &Call, facts: &Facts, situation: &Situation) -> Option<String> {
    if situation.tainted {
        return None;
    }
    if situation.always_tools.contains(&call.tool) && leaves_machine(facts, situation).is_none() {
        return Some(format!("session: always {}", call.tool));
    }
    let command = plain_command(facts, situation)?;
    situation.always_commands.contains(&command).then(|| "session: always this command".into())
}

/// The argv of a command whose meaning depends on nothing else of the call: no variables of its own, and a
/// working directory inside the session's folders.
fn plain_command(facts: &Facts, situation: &Situation) -> Option<Vec<String>> {
    let Action::Command { form, cwd, env_names, .. } = &facts.action else { return None };
    let mut folders = situation.roots.iter().map(std::path::PathBuf::as_path).chain(situation.run_folder);
    if !env_names.is_empty() || !folders.any(|folder| cwd.starts_with(folder)) {
        return None;
    }
    match form {
        CommandForm::Argv(argv) => Some(argv.clone()),
        CommandForm::Line(line) => argv_of_simple(line),
    }
}
