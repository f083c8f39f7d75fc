use ow_model::{Call, SessionOffer};

use crate::command::argv_of_simple;
use crate::judge::{Own, Reason, leaves_machine, own_verdict};
use crate::{Action, CommandForm, Facts, Situation};

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
    let allowed = situation.always_commands;
    let same = |form: &CommandForm| match form {
        CommandForm::Argv(_) => false,
        CommandForm::Line(line) => {
            allowed.iter().any(|argv| matches!(&argv[..], [sh, c, of] if sh == "sh" && c == "-c" && of == line))
        }
    };
    let is_allowed = allowed.contains(&command) || matches!(&facts.action, Action::Command { form, .. } if same(form));
    is_allowed.then(|| "session: always this command".into())
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
