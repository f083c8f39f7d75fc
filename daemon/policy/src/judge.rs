use ow_model::{Call, Category, Mode, Risk};

use crate::command::{Found, Rights, Subject};
use crate::path::{Scope, Standing, standing, words};
use crate::risk::overridden_risk;
use crate::rules::{covering, offer};
use crate::session::always;
use crate::url::{Guard, is_named};
use crate::{Action, Facts, HolePlace, PathOp, ResolvedPath, Situation, Verdict, command};

/// Judges a call: five layers, the strictest wins.
///
/// Total and without effect: the same input always gives the same verdict.
pub fn judge(call: &Call, facts: &Facts, situation: &Situation) -> Verdict {
    if let Some((rule, why)) = forbidden(call, facts, situation) {
        return Verdict::Deny { rule, why };
    }
    let hash = call.hash();
    if situation.denied.contains(&hash) {
        return Verdict::Deny {
            rule: "denied before".into(),
            why: "the same call was denied in this run and did not run; it is not asked again".into(),
        };
    }
    if situation.uncertain.contains(&hash) {
        return Verdict::Ask {
            rule: "ask: unknown outcome".into(),
            why: "an equal call of this session may or may not have taken effect".into(),
            category: Category::UnknownOutcome,
            rule_offer: None,
        };
    }
    let (rule, why, reason) = match own_verdict(call, facts, situation) {
        Own::Allow { rule } => return Verdict::Allow { rule, by_rule: None },
        Own::Ask { rule, why, reason } => (rule, why, reason),
    };
    if let Some(standing) = covering(call, facts, situation) {
        return Verdict::Allow { rule: format!("rule {}", standing.id), by_rule: Some(standing.id) };
    }
    if reason == Reason::Class
        && let Some(rule) = always(call, facts, situation)
    {
        return Verdict::Allow { rule, by_rule: None };
    }
    let category = category(effective_risk(call, facts, situation));
    Verdict::Ask { rule, why, category, rule_offer: offer(call, facts, situation) }
}

/// The rule by which the URL guard refuses a call.
pub const ADDRESS_BLOCK: &str = "hard-block: address";

/// What layers 1 and 2 and plan mode refuse, also to a call that a person allowed: rule and reason.
pub(crate) fn forbidden(call: &Call, facts: &Facts, situation: &Situation) -> Option<(String, String)> {
    let settings = situation.settings;
    match &facts.action {
        Action::Plain => {}
        Action::Command { .. } => {
            let denied = Subject::of(facts).and_then(|subject| command::forbidden(subject, &Rights::of(situation)));
            if denied.is_some() {
                return denied;
            }
        }
        Action::Paths { op, paths, .. } => {
            let denied = denied_path(*op, paths, &scope(situation));
            if denied.is_some() {
                return denied;
            }
        }
        Action::Enclosed { paths, .. } => {
            let denied = denied_path(PathOp::Read, paths, &scope(situation));
            if denied.is_some() {
                return denied;
            }
        }
        Action::Url { url, .. } => {
            let guard = Guard { allow: &settings.http_allow, own: &settings.own_addresses, hosts: None };
            if let Err(blocked) = guard.check(url) {
                return Some((ADDRESS_BLOCK.into(), blocked.why));
            }
        }
    }
    if situation.mode == Mode::Plan && !only_reads(call, facts, situation) {
        return Some((
            "mode plan".into(),
            "nothing with side effects runs in mode plan; set the mode to ask, edit or auto".into(),
        ));
    }
    None
}

pub(crate) fn denied_path(op: PathOp, paths: &[ResolvedPath], scope: &Scope) -> Option<(String, String)> {
    paths.iter().find_map(|path| {
        let (verdict, rule, why) = words(&standing(path, op, scope), op, path);
        (verdict == "deny").then_some((rule, why))
    })
}

/// Whether the call has no side effect, as far as that is known: by its class or as a command of the safe list.
fn only_reads(call: &Call, facts: &Facts, situation: &Situation) -> bool {
    let given = overridden_risk(&call.tool, &situation.settings.tool_risk);
    match (&facts.action, given) {
        (Action::Plain, Some(given)) => given == Risk::Read,
        // A class that a person lowered says who is asked, not what a command, a write or a request does.
        (_, Some(given)) if given > facts.risk => false,
        _ => facts.risk == Risk::Read || is_safe(facts, situation),
    }
}

/// What call, mode and configuration say without standing rules.
pub(crate) enum Own {
    Allow { rule: String },
    Ask { rule: String, why: String, reason: Reason },
}

/// What it is that asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reason {
    /// The class of the call's risk, and nothing else about it.
    Class,
    /// Its place, its shape or where it comes from: no class and no "always" of a session covers that.
    Itself,
}

pub(crate) fn own_verdict(call: &Call, facts: &Facts, situation: &Situation) -> Own {
    let own = match &facts.action {
        Action::Plain => plain(effective_risk(call, facts, situation), situation),
        Action::Command { .. } => of_command(facts, situation),
        Action::Paths { op, paths, .. } => of_paths(*op, paths, situation),
        Action::Url { .. } => of_url(facts, situation),
        Action::Enclosed { paths, .. } => of_enclosed(paths, effective_risk(call, facts, situation), situation),
    };
    match (by_given_class(own, call, facts, situation), foreign_hole(facts, situation)) {
        (Own::Allow { .. }, Some(name)) => Own::Ask {
            rule: "ask: value from outside".into(),
            why: format!("`{name}` comes from outside; `owctl task allow` accepts it by name"),
            reason: Reason::Itself,
        },
        (own, _) => own,
    }
}

/// The class by which a call is asked about: the tool's, or the one that a person gave it.
fn effective_risk(call: &Call, facts: &Facts, situation: &Situation) -> Risk {
    let own = || if leaves_machine(facts, situation).is_some() { Risk::External } else { facts.risk };
    overridden_risk(&call.tool, &situation.settings.tool_risk).unwrap_or_else(own)
}

/// The part of a command that is known to reach another machine.
pub(crate) fn leaves_machine(facts: &Facts, situation: &Situation) -> Option<String> {
    match &facts.action {
        Action::Command { form, .. } => command::reaches_out(form, &situation.settings.home),
        Action::Plain | Action::Paths { .. } | Action::Url { .. } | Action::Enclosed { .. } => None,
    }
}

/// Lets the class that a person gave the tool speak: a stricter one asks where the tool's own did not, a lower
/// one lifts what only the tool's own asked for.
fn by_given_class(own: Own, call: &Call, facts: &Facts, situation: &Situation) -> Own {
    let Some(given) = overridden_risk(&call.tool, &situation.settings.tool_risk) else { return own };
    if matches!(facts.action, Action::Plain | Action::Enclosed { .. }) {
        return own;
    }
    match own {
        Own::Allow { .. } if given > facts.risk => match plain(given, situation) {
            Own::Allow { .. } => own,
            asks @ Own::Ask { .. } => asks,
        },
        // Text from outside could choose what runs, so there a command or a request keeps its own class.
        Own::Ask { reason: Reason::Class, .. } if given < facts.risk && !situation.tainted => {
            match plain(given, situation) {
                Own::Allow { .. } => Own::Allow { rule: format!("tool-risk: {}", risk_word(given)) },
                asks @ Own::Ask { .. } => asks,
            }
        }
        own => own,
    }
}

/// The first hole of a call with side effects: no mode or configured allow covers one.
fn foreign_hole<'a>(facts: &Facts, situation: &Situation<'a>) -> Option<&'a str> {
    if facts.risk == Risk::Read && !matches!(facts.action, Action::Url { .. }) {
        return None;
    }
    situation.step?.holes.first().map(|hole| hole.name.as_str())
}

fn plain(risk: Risk, situation: &Situation) -> Own {
    match (risk, situation.mode) {
        (Risk::Read, _) => Own::Allow { rule: "read".into() },
        (Risk::WriteLocal | Risk::Exec, Mode::Auto) => auto(risk, situation),
        (risk, _) => ask_risk(risk),
    }
}

fn of_command(facts: &Facts, situation: &Situation) -> Own {
    let Some(subject) = Subject::of(facts) else { return ask_risk(facts.risk) };
    match command::layers(subject, &Rights::of(situation)) {
        Found::Safe { rule } => Own::Allow { rule },
        Found::Allowed { rule } if !situation.tainted => Own::Allow { rule },
        Found::Allowed { rule } => Own::Ask {
            rule: "ask: outside content".into(),
            why: format!("the session holds text from outside, so `{rule}` does not cover it"),
            reason: Reason::Itself,
        },
        Found::Dynamic { why } => Own::Ask { rule: "ask: shell syntax".into(), why, reason: Reason::Itself },
        Found::Nothing { .. } if situation.mode == Mode::Auto => match leaves_machine(facts, situation) {
            None => auto(facts.risk, situation),
            Some(client) => Own::Ask {
                rule: "ask: external".into(),
                why: format!("`{client}` reaches other machines; allow it by a rule or in `policy.allow`"),
                reason: Reason::Class,
            },
        },
        Found::Nothing { why } => Own::Ask { rule: "ask: exec".into(), why, reason: Reason::Class },
    }
}

fn is_safe(facts: &Facts, situation: &Situation) -> bool {
    Subject::of(facts)
        .is_some_and(|subject| matches!(command::layers(subject, &Rights::of(situation)), Found::Safe { .. }))
}

fn of_paths(op: PathOp, paths: &[ResolvedPath], situation: &Situation) -> Own {
    let scope = scope(situation);
    let mut all_in_run_folder = !paths.is_empty();
    for path in paths {
        let standing = standing(path, op, &scope);
        let (verdict, rule, why) = words(&standing, op, path);
        if verdict != "allow" {
            return Own::Ask { rule, why, reason: Reason::Itself };
        }
        all_in_run_folder &= standing == Standing::RunFolder;
    }
    if paths.is_empty() {
        return Own::Ask {
            rule: "ask: no path".into(),
            why: "the call names no path that could be judged".into(),
            reason: Reason::Itself,
        };
    }
    if op != PathOp::Write {
        return Own::Allow { rule: "read: inside root".into() };
    }
    if all_in_run_folder {
        return Own::Allow { rule: "write: the run's own folder".into() };
    }
    match situation.mode {
        Mode::Edit | Mode::Auto if situation.tainted => outside_content(),
        Mode::Edit => Own::Allow { rule: "mode edit: inside root".into() },
        Mode::Auto => Own::Allow { rule: "mode auto: inside root".into() },
        Mode::Ask | Mode::Plan => ask_risk(Risk::WriteLocal),
    }
}

fn of_enclosed(paths: &[ResolvedPath], risk: Risk, situation: &Situation) -> Own {
    match of_paths(PathOp::Read, paths, situation) {
        Own::Allow { .. } => plain(risk, situation),
        asks @ Own::Ask { .. } => asks,
    }
}

/// The first file that a call would take along from where no rule covers it.
pub(crate) fn strange_enclosure<'a>(facts: &'a Facts, situation: &Situation) -> Option<&'a ResolvedPath> {
    let Action::Enclosed { paths, .. } = &facts.action else { return None };
    let scope = scope(situation);
    paths.iter().find(|path| !matches!(standing(path, PathOp::Read, &scope), Standing::Inside | Standing::RunFolder))
}

fn of_url(facts: &Facts, situation: &Situation) -> Own {
    let Action::Url { method, url, has_body, own_headers } = &facts.action else { return ask_risk(facts.risk) };
    let host = url.host_str().unwrap_or_default();
    let is_fetch = matches!(method.as_str(), "GET" | "HEAD") && !has_body && !own_headers;
    let by_task = is_named(url, situation.task_http);
    // A host that is only mentioned may be fetched from; to send something there is another thing.
    let mentioned = is_fetch && is_named(url, situation.named_hosts);
    let named = by_task || mentioned || is_named(url, &situation.settings.http_allow);
    if facts.risk == Risk::Read && is_fetch && (named || !situation.tainted) {
        return Own::Allow { rule: "read: fetch".into() };
    }
    if !named {
        return Own::Ask {
            rule: "ask: host".into(),
            why: format!("no rule names `{host}`, nor does http-allow, in the task or in owd.toml"),
            reason: Reason::Class,
        };
    }
    if situation.tainted && !is_fetch {
        return outside_content();
    }
    let whose = match (by_task, mentioned) {
        (true, _) => "task http-allow",
        (false, true) => "named by a person or the task",
        (false, false) => "http.allow",
    };
    Own::Allow { rule: format!("{whose}: {host}") }
}

fn auto(risk: Risk, situation: &Situation) -> Own {
    if situation.tainted { outside_content() } else { Own::Allow { rule: format!("mode auto: {}", risk_word(risk)) } }
}

fn outside_content() -> Own {
    Own::Ask {
        rule: "ask: outside content".into(),
        why: "the session holds text from outside, so no mode covers this".into(),
        reason: Reason::Itself,
    }
}

fn ask_risk(risk: Risk) -> Own {
    let word = risk_word(risk);
    Own::Ask {
        rule: format!("ask: {word}"),
        why: format!("no rule, setting or mode covers this ({word})"),
        reason: Reason::Class,
    }
}

const fn risk_word(risk: Risk) -> &'static str {
    match risk {
        Risk::Read => "read",
        Risk::WriteLocal => "write",
        Risk::Exec => "exec",
        Risk::External => "external",
    }
}

const fn category(risk: Risk) -> Category {
    match risk {
        Risk::Read => Category::Read,
        Risk::WriteLocal => Category::WriteLocal,
        Risk::Exec => Category::Exec,
        Risk::External => Category::External,
    }
}

pub(crate) fn scope<'a>(situation: &Situation<'a>) -> Scope<'a> {
    Scope { roots: situation.roots, run_folder: situation.run_folder, protected: &situation.settings.protected }
}

/// Whether a hole stands where no acceptance covers it: its name and what is wrong.
pub(crate) fn hole_out_of_place(facts: &Facts, situation: &Situation) -> Option<String> {
    let step = situation.step?;
    for hole in &step.holes {
        let name = &hole.name;
        match (&facts.action, &hole.at) {
            (Action::Command { form: crate::CommandForm::Argv(argv), .. }, HolePlace::Argv(index)) => {
                if let Some(why) = command::hole_in_argv(argv, *index) {
                    return Some(format!("`{name}` {why}"));
                }
            }
            (Action::Command { .. }, HolePlace::Env(variable)) => {
                if !command::is_plain_variable(variable) {
                    return Some(format!("`{name}` would fill {variable}, which can change what runs"));
                }
            }
            (Action::Command { .. }, HolePlace::Stdin) => {
                if command::reads_code_from_stdin(facts) {
                    return Some(format!("`{name}` would be run as code from standard input"));
                }
            }
            (Action::Command { .. }, _) => {
                return Some(format!("`{name}` would become part of a command line"));
            }
            (Action::Paths { op, paths, .. }, HolePlace::Path | HolePlace::Other(_)) => {
                let scope = scope(situation);
                let inside = paths
                    .iter()
                    .all(|path| matches!(standing(path, *op, &scope), Standing::Inside | Standing::RunFolder));
                if !inside {
                    return Some(format!("`{name}` would choose a path that the roots do not cover"));
                }
            }
            (Action::Url { url, .. }, HolePlace::Url | HolePlace::Other(_)) => {
                let named = is_named(url, situation.task_http) || is_named(url, &situation.settings.http_allow);
                if !named {
                    return Some(format!(
                        "`{name}` would choose a host that http-allow names neither in the task nor in owd.toml"
                    ));
                }
            }
            (Action::Plain | Action::Paths { .. } | Action::Url { .. } | Action::Enclosed { .. }, _) => {}
        }
    }
    None
}
