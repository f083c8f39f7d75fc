use std::fmt::Write as _;
use std::path::PathBuf;

use ow_model::{BlobHash, CallHash, Rule, RuleScope, RuleTarget};
use ow_protocol::{ProgramView, RuleTargetView, RuleView};

use super::{instant, path};
use crate::problem::Problem;

pub(crate) fn rule_view(rule: &Rule) -> RuleView {
    let Rule { id, scope, target, covers_outside, created_at, created_by, expires_at, uses_left, used } = rule;
    RuleView {
        id: id.to_string(),
        task: match scope {
            RuleScope::Task(task) => Some(task.to_string()),
            RuleScope::Everywhere => None,
        },
        target: target_view(target),
        text: target_words(target),
        covers_outside: *covers_outside,
        created_at: instant(*created_at),
        created_by: created_by.clone(),
        expires_at: expires_at.map(instant),
        uses_left: *uses_left,
        used: *used,
    }
}

pub(super) fn target_view(target: &RuleTarget) -> RuleTargetView {
    match target {
        RuleTarget::Step { step, text, program, parts, holes } => RuleTargetView::Step {
            step: *step,
            text_hash: text.to_string(),
            program: program.as_ref().map(|(program, _)| path(program)),
            program_hash: program.as_ref().map(|(_, hash)| hash.to_string()),
            parts: parts
                .iter()
                .map(|(program, hash)| ProgramView { program: path(program), hash: hash.to_string() })
                .collect(),
            holes: holes.clone(),
        },
        RuleTarget::Call { hash } => RuleTargetView::Call { hash: hash.to_string() },
        RuleTarget::Argv { argv, cwd } => RuleTargetView::Argv { argv: argv.clone(), cwd: cwd.as_deref().map(path) },
        RuleTarget::Path { tool, path: file } => RuleTargetView::Path { tool: tool.to_string(), path: path(file) },
        RuleTarget::Origin { method, origin } => {
            RuleTargetView::Origin { method: method.clone(), origin: origin.clone() }
        }
    }
}

fn target_words(target: &RuleTarget) -> String {
    match target {
        RuleTarget::Step { step, text: _, program, parts, holes } => {
            let mut words = format!("step {} as it is written now", step + 1);
            let programs: Vec<String> = program.iter().chain(parts).map(|(program, _)| path(program)).collect();
            match programs.as_slice() {
                [] => {}
                [one] => write!(words, ", with {one} as it is now").expect("a String takes all"),
                many => write!(words, ", with {} as they are now", many.join(", ")).expect("a String takes all"),
            }
            if !holes.is_empty() {
                write!(words, ", filled by {}", holes.join(", ")).expect("a String takes all");
            }
            words
        }
        RuleTarget::Call { hash } => format!("the very call {}", &hash.to_string()[..12]),
        RuleTarget::Argv { argv, cwd } => {
            let folder = cwd.as_deref().map(|cwd| format!(" in {}", path(cwd))).unwrap_or_default();
            format!("the command {}{folder}", argv.iter().map(|part| quoted(part)).collect::<Vec<_>>().join(" "))
        }
        RuleTarget::Path { tool, path: file } => format!("{tool} to {}", path(file)),
        RuleTarget::Origin { method, origin } => format!("{method} to {origin}"),
    }
}

/// One argument so that a person sees where it begins and ends.
fn quoted(part: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !part.is_empty() && part.chars().all(plain) {
        return part.into();
    }
    format!("'{}'", part.escape_debug())
}

/// Checks a target that a person wrote.
pub(crate) fn target_of(view: RuleTargetView) -> Result<RuleTarget, Problem> {
    Ok(match view {
        RuleTargetView::Step { step, text_hash, program, program_hash, parts, holes } => RuleTarget::Step {
            step,
            text: hash("text_hash", &text_hash)?,
            program: match (program, program_hash) {
                (None, None) => None,
                (Some(program), Some(program_hash)) => {
                    Some((absolute("program", program)?, hash("program_hash", &program_hash)?))
                }
                (Some(_), None) | (None, Some(_)) => {
                    return Err(Problem::invalid("`program` and `program_hash` go together"));
                }
            },
            parts: parts
                .into_iter()
                .map(|ProgramView { program, hash: content }| {
                    Ok((absolute("parts", program)?, hash("parts", &content)?))
                })
                .collect::<Result<_, Problem>>()?,
            holes,
        },
        RuleTargetView::Call { hash: call } => RuleTarget::Call { hash: CallHash(hash("hash", &call)?) },
        RuleTargetView::Argv { argv, cwd } => {
            if argv.first().is_none_or(String::is_empty) {
                return Err(Problem::invalid("`argv` names no program"));
            }
            RuleTarget::Argv { argv, cwd: cwd.map(|cwd| absolute("cwd", cwd)).transpose()? }
        }
        RuleTargetView::Path { tool, path } => RuleTarget::Path { tool: tool.parse()?, path: absolute("path", path)? },
        RuleTargetView::Origin { method, origin } => {
            if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                return Err(Problem::invalid(format!("`{method}` is not an HTTP method")));
            }
            RuleTarget::Origin { method: method.to_ascii_uppercase(), origin: whole_origin(&origin)? }
        }
    })
}

fn hash(key: &str, text: &str) -> Result<BlobHash, Problem> {
    text.parse().map_err(|error| Problem::invalid(format!("`{key}`: {error}")))
}

fn absolute(key: &str, text: String) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(text);
    let plain = !path.components().any(|part| matches!(part, std::path::Component::ParentDir));
    if path.is_absolute() && plain {
        Ok(path)
    } else {
        Err(Problem::invalid(format!("`{key}`: {} is not an absolute path without `..`", path.display())))
    }
}

/// `https://host:port` in whole: with its port, without a path, in lower case.
fn whole_origin(text: &str) -> Result<String, Problem> {
    let wrong = || {
        Problem::invalid(format!("`{text}` is not an origin"))
            .with_hint("write scheme and host, as in `https://api.example:443`")
    };
    let uri: axum::http::Uri = text.parse().map_err(|_| wrong())?;
    let (scheme, host) = (uri.scheme_str().ok_or_else(wrong)?, uri.host().ok_or_else(wrong)?);
    let port = match (scheme, uri.port_u16()) {
        ("http" | "https", Some(port)) => port,
        ("http", None) => 80,
        ("https", None) => 443,
        _ => return Err(wrong()),
    };
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if has_user || uri.query().is_some() || !matches!(uri.path(), "" | "/") {
        return Err(wrong());
    }
    Ok(format!("{scheme}://{}:{port}", host.to_ascii_lowercase()))
}
