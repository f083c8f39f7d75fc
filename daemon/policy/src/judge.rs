use ow_model::{Call, Category, Mode, Risk};

use crate::command::{Found, Rights, Subject};
use crate::path::{Scope, Standing, standing, words};
use crate::rules::{covering, offer};
use crate::url::{Guard, is_named};
use crate::{Action, Facts, HolePlace, PathOp, ResolvedPath, Situation, Verdict, command};

/// Judges a call: five layers, the strictest wins.
///
/// Total and without effect: the same input always gives the same verdict.
pub fn judge(call: &Call, facts: &Facts, situation: &Situation) -> Verdict {
    if let Some((rule, why)) = forbidden(facts, situation) {
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
    match own_verdict(facts, situation) {
        Own::Allow { rule } => Verdict::Allow { rule, by_rule: None },
        Own::Ask { rule, why } => match covering(call, facts, situation) {
            Some(standing) => Verdict::Allow { rule: format!("rule {}", standing.id), by_rule: Some(standing.id) },
            None => Verdict::Ask { rule, why, category: category(facts), rule_offer: offer(call, facts, situation) },
        },
    }
}

/// The rule by which the URL guard refuses a call.
pub const ADDRESS_BLOCK: &str = "hard-block: address";

/// What layers 1 and 2 and plan mode refuse, also to a call that a person allowed: rule and reason.
pub(crate) fn forbidden(facts: &Facts, situation: &Situation) -> Option<(String, String)> {
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
            for path in paths {
                let (verdict, rule, why) = words(&standing(path, *op, &scope(situation)), *op, path);
                if verdict == "deny" {
                    return Some((rule, why));
                }
            }
        }
        Action::Url { url, .. } => {
            let guard = Guard { allow: &settings.http_allow, own: &settings.own_addresses, hosts: None };
            if let Err(blocked) = guard.check(url) {
                return Some((ADDRESS_BLOCK.into(), blocked.why));
            }
        }
    }
    let reads = facts.risk == Risk::Read || is_safe(facts, situation);
    if situation.mode == Mode::Plan && !reads {
        return Some((
            "mode plan".into(),
            "nothing with side effects runs in mode plan; set the task's mode to ask, edit or auto".into(),
        ));
    }
    None
}

/// What call, mode and configuration say without standing rules.
enum Own {
    Allow { rule: String },
    Ask { rule: String, why: String },
}

fn own_verdict(facts: &Facts, situation: &Situation) -> Own {
    let own = match &facts.action {
        Action::Plain => plain(facts.risk, situation),
        Action::Command { .. } => of_command(facts, situation),
        Action::Paths { op, paths, .. } => of_paths(*op, paths, situation),
        Action::Url { .. } => of_url(facts, situation),
    };
    match (own, foreign_hole(facts, situation)) {
        (Own::Allow { .. }, Some(name)) => Own::Ask {
            rule: "ask: value from outside".into(),
            why: format!("`{name}` comes from outside; `owctl task allow` accepts it by name"),
        },
        (own, _) => own,
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
        },
        Found::Dynamic { why } => Own::Ask { rule: "ask: shell syntax".into(), why },
        Found::Nothing { .. } if situation.mode == Mode::Auto => auto(facts.risk, situation),
        Found::Nothing { why } => Own::Ask { rule: "ask: exec".into(), why },
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
            return Own::Ask { rule, why };
        }
        all_in_run_folder &= standing == Standing::RunFolder;
    }
    if paths.is_empty() {
        return Own::Ask { rule: "ask: no path".into(), why: "the call names no path that could be judged".into() };
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

fn of_url(facts: &Facts, situation: &Situation) -> Own {
    let Action::Url { method, url, has_body, own_headers } = &facts.action else { return ask_risk(facts.risk) };
    let host = url.host_str().unwrap_or_default();
    let is_fetch = matches!(method.as_str(), "GET" | "HEAD") && !has_body && !own_headers;
    let by_task = is_named(url, situation.task_http);
    let named = by_task || is_named(url, &situation.settings.http_allow);
    if facts.risk == Risk::Read && is_fetch && (named || !situation.tainted) {
        return Own::Allow { rule: "read: fetch".into() };
    }
    if !named {
        return Own::Ask { rule: "ask: host".into(), why: format!("neither the task nor http.allow names `{host}`") };
    }
    if situation.tainted && !is_fetch {
        return outside_content();
    }
    let whose = if by_task { "task http-allow" } else { "http.allow" };
    Own::Allow { rule: format!("{whose}: {host}") }
}

fn auto(risk: Risk, situation: &Situation) -> Own {
    if situation.tainted { outside_content() } else { Own::Allow { rule: format!("mode auto: {}", risk_word(risk)) } }
}

fn outside_content() -> Own {
    Own::Ask {
        rule: "ask: outside content".into(),
        why: "the session holds text from outside, so no mode covers this".into(),
    }
}

fn ask_risk(risk: Risk) -> Own {
    let word = risk_word(risk);
    Own::Ask { rule: format!("ask: {word}"), why: format!("no rule, setting or mode covers this ({word})") }
}

const fn risk_word(risk: Risk) -> &'static str {
    match risk {
        Risk::Read => "read",
        Risk::WriteLocal => "write",
        Risk::Exec => "exec",
        Risk::External => "external",
    }
}

const fn category(facts: &Facts) -> Category {
    match facts.risk {
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
                    return Some(format!("`{name}` would choose a host that neither the task nor http.allow names"));
                }
            }
            (Action::Plain | Action::Paths { .. } | Action::Url { .. }, _) => {}
        }
    }
    None
}
