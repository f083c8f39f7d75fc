use std::path::{Path, PathBuf};

use ow_model::{BlobHash, BoundFile, Call, Risk, Rule, RuleScope, RuleTarget};

use crate::command::Subject;
use crate::judge::{denied_path, hole_out_of_place, strange_enclosure};
use crate::path::{NoLinks, Scope, resolve};
use crate::{Action, CommandForm, Facts, PathOp, Settings, Situation, StepFacts, command, url};

type Program = (PathBuf, BlobHash);

/// The rule that `owctl task allow` stores for a step, whose program is the one it resolves to now.
///
/// `holes` are the names that the person accepts. The rule belongs to the scope of one task.
#[must_use]
pub fn rule_for_step(step: u32, text: BlobHash, facts: Option<&Facts>, holes: Vec<String>) -> RuleTarget {
    let (program, parts) = facts.map_or((None, vec![]), programs);
    RuleTarget::Step { step, text, program, parts, holes }
}

/// The exact rule that covers this call and no other.
#[must_use]
pub fn rule_for_call(call: &Call, facts: &Facts) -> RuleTarget {
    match &facts.action {
        Action::Command { form, cwd, env_names, .. } if env_names.is_empty() => match literal_argv(form) {
            Some(argv) => RuleTarget::Argv { argv, cwd: Some(cwd.clone()) },
            None => RuleTarget::Call { hash: call.hash() },
        },
        Action::Paths { op: PathOp::Write, paths, .. } if paths.len() == 1 => {
            RuleTarget::Path { tool: call.tool.clone(), path: paths[0].resolved.clone() }
        }
        Action::Url { method, url, .. } => RuleTarget::Origin { method: method.clone(), origin: url::origin(url) },
        Action::Plain | Action::Command { .. } | Action::Paths { .. } | Action::Enclosed { .. } => {
            RuleTarget::Call { hash: call.hash() }
        }
    }
}

/// What no rule, mode or answer ever lifts of a call: the hard block's rule and reason.
#[must_use]
pub fn hard_block(facts: &Facts, settings: &Settings, run_folder: Option<&Path>) -> Option<(String, String)> {
    match &facts.action {
        Action::Command { .. } => command::blocked(Subject::of(facts)?, settings, run_folder),
        Action::Paths { op, paths, .. } => {
            let scope = Scope { roots: &[], run_folder, protected: &settings.protected };
            denied_path(*op, paths, &scope)
        }
        // The configuration may open an address.
        Action::Plain | Action::Url { .. } | Action::Enclosed { .. } => None,
    }
}

/// Why a rule would never permit anything: a hard block refuses all that it names, wherever that runs.
#[must_use]
pub fn never_permits(target: &RuleTarget, settings: &Settings) -> Option<(String, String)> {
    let action = match target {
        RuleTarget::Argv { argv, cwd } => {
            // A place that nothing is in: what is refused only somewhere is no matter here.
            let cwd = cwd.clone().unwrap_or_else(|| PathBuf::from("/nowhere/in/particular"));
            let form = CommandForm::Argv(argv.clone());
            let operands = command::operands(&form, &cwd, &settings.home, &NoLinks);
            Action::Command { form, cwd, env_names: vec![], program: None, parts: vec![], files: vec![], operands }
        }
        RuleTarget::Path { path, .. } => {
            let paths = resolve(path, Path::new("/"), &settings.home, &NoLinks).ok().into_iter().collect();
            Action::Paths { op: PathOp::Write, paths, base: None }
        }
        RuleTarget::Step { .. } | RuleTarget::Call { .. } | RuleTarget::Origin { .. } => return None,
    };
    hard_block(&Facts { risk: Risk::Exec, action }, settings, None)
}

/// The rule that "for this task" would store; none where no rule may cover the call.
pub(crate) fn offer(call: &Call, facts: &Facts, situation: &Situation) -> Option<RuleTarget> {
    situation.task?;
    if strange_enclosure(facts, situation).is_some() {
        return None;
    }
    match situation.step {
        Some(StepFacts { step, text, holes }) => {
            if hole_out_of_place(facts, situation).is_some() {
                return None;
            }
            let mut names: Vec<String> = holes.iter().map(|hole| hole.name.clone()).collect();
            names.sort();
            names.dedup();
            Some(rule_for_step(*step, *text, Some(facts), names))
        }
        // In a tainted session only a rule that says so covers anything; that is made by hand.
        None if situation.tainted => None,
        None => Some(rule_for_call(call, facts)),
    }
}

/// The standing rule that covers a call that would ask.
pub(crate) fn covering<'a>(call: &Call, facts: &Facts, situation: &Situation<'a>) -> Option<&'a Rule> {
    situation.rules.iter().find(|rule| applies(rule, situation) && covers(rule, call, facts, situation))
}

fn applies(rule: &Rule, situation: &Situation) -> bool {
    let in_scope = match &rule.scope {
        RuleScope::Task(task) => situation.task == Some(task),
        RuleScope::Everywhere => true,
    };
    in_scope && rule.expires_at.is_none_or(|at| situation.now < at) && rule.uses_left != Some(0)
}

fn covers(rule: &Rule, call: &Call, facts: &Facts, situation: &Situation) -> bool {
    // A rule names a path; what a link makes of it later may be anything.
    if strange_enclosure(facts, situation).is_some() {
        return false;
    }
    if let RuleTarget::Step { step, text, program, parts, holes } = &rule.target {
        // Outside text reaches a step only through its holes, so accepting them by name is what taint asks for.
        return matches!(rule.scope, RuleScope::Task(_))
            && situation.step.is_some_and(|facts| {
                facts.step == *step && facts.text == *text && facts.holes.iter().all(|hole| holes.contains(&hole.name))
            })
            && programs(facts) == (program.clone(), parts.clone())
            && hole_out_of_place(facts, situation).is_none();
    }
    if situation.tainted && !rule.covers_outside {
        return false;
    }
    let has_holes = situation.step.is_some_and(|step| !step.holes.is_empty());
    match &rule.target {
        RuleTarget::Call { hash } => call.hash() == *hash,
        _ if has_holes => false,
        RuleTarget::Argv { argv, cwd: bound } => match &facts.action {
            Action::Command { form, cwd, env_names, .. } => {
                env_names.is_empty()
                    && bound.as_ref().is_none_or(|bound| bound == cwd)
                    && literal_argv(form).as_ref() == Some(argv)
            }
            _ => false,
        },
        RuleTarget::Path { tool, path } => match &facts.action {
            Action::Paths { op: PathOp::Write, paths, .. } => {
                call.tool == *tool && paths.len() == 1 && paths[0].resolved == *path
            }
            _ => false,
        },
        RuleTarget::Origin { method, origin } => match &facts.action {
            Action::Url { method: own, url, .. } => own.eq_ignore_ascii_case(method) && url::origin(url) == *origin,
            _ => false,
        },
        RuleTarget::Step { .. } => false,
    }
}

/// The program that a call starts, and all others that its text names.
fn programs(facts: &Facts) -> (Option<Program>, Vec<Program>) {
    let of = |file: &BoundFile| (file.path.clone(), file.hash);
    match &facts.action {
        Action::Command { program, parts, .. } => (program.as_ref().map(of), parts.iter().map(of).collect()),
        Action::Plain | Action::Paths { .. } | Action::Url { .. } | Action::Enclosed { .. } => (None, vec![]),
    }
}

fn literal_argv(form: &CommandForm) -> Option<Vec<String>> {
    match form {
        CommandForm::Argv(argv) => Some(argv.clone()),
        CommandForm::Line(line) => command::argv_of_simple(line),
    }
}
