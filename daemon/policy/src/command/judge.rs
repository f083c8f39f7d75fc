use std::path::{Path, PathBuf};

use ow_model::BoundFile;

use super::allow::{Uncovered, covering};
use super::deny::denied;
use super::hard::{Ground, block};
use super::hazard::code_of_interpreter;
use super::safe::{build_use, safe_use};
use super::script::Script;
use super::unwrap::{Inner, WRAPPING_LIMIT, base_name, inner, is_interpreter, is_shell, runs_stdin};
use crate::path::{Scope, Standing, holds_owds, is_owds, standing};
use crate::{Action, CommandForm, Facts, PathOp, ResolvedPath, Settings, Situation};

/// A command with what was found out about it.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) form: &'a CommandForm,
    pub(crate) cwd: &'a Path,
    pub(crate) env_names: &'a [String],
    pub(crate) operands: &'a [ResolvedPath],
    pub(crate) program: Option<&'a Path>,
    pub(crate) parts: &'a [BoundFile],
}

impl<'a> Subject<'a> {
    pub(crate) fn of(facts: &'a Facts) -> Option<Self> {
        match &facts.action {
            Action::Command { form, cwd, env_names, operands, program, parts, files: _ } => Some(Self {
                form,
                cwd,
                env_names,
                operands,
                program: program.as_ref().map(|file| file.path.as_path()),
                parts,
            }),
            Action::Plain | Action::Paths { .. } | Action::Url { .. } | Action::Enclosed { .. } => None,
        }
    }
}

/// What configuration and task say about commands.
#[derive(Clone, Copy)]
pub(crate) struct Rights<'a> {
    pub(crate) allow: &'a [String],
    pub(crate) deny: &'a [String],
    pub(crate) safe: bool,
    pub(crate) roots: &'a [PathBuf],
    pub(crate) run_folder: Option<&'a Path>,
    pub(crate) protected: &'a [PathBuf],
    pub(crate) trusted: &'a [PathBuf],
    pub(crate) home: &'a Path,
}

impl<'a> Rights<'a> {
    pub(crate) fn of(situation: &Situation<'a>) -> Self {
        let settings = situation.settings;
        Self {
            allow: &settings.allow,
            deny: &settings.deny,
            safe: settings.safe_commands,
            roots: situation.roots,
            run_folder: situation.run_folder,
            protected: &settings.protected,
            trusted: &settings.trusted,
            home: &settings.home,
        }
    }
}

/// What layers 3 and 4 find.
pub(crate) enum Found {
    /// The built-in list knows that it only reads.
    Safe { rule: String },
    /// Configured entries cover all of it.
    Allowed { rule: String },
    /// A shell would do more than run literal commands.
    Dynamic { why: String },
    /// It is literal, and nothing covers it.
    Nothing { why: String },
}

/// What layers 1 and 2 refuse: rule and reason.
pub(crate) fn forbidden(subject: Subject, rights: &Rights) -> Option<(String, String)> {
    let script = read(subject, rights.home);
    let ground = Ground { home: rights.home, protected: rights.protected, run_folder: rights.run_folder };
    if let Some(found) = hard_blocked(subject, &script, ground) {
        return Some(found);
    }
    let line = match subject.form {
        CommandForm::Argv(argv) => argv.join(" "),
        CommandForm::Line(line) => line.clone(),
    };
    let (entry, part) = denied(&line, &script, rights.deny, rights.home)?;
    Some((format!("deny: {entry}"), format!("the entry `{entry}` denies `{part}`")))
}

/// What layer 1 refuses of it.
pub(crate) fn blocked(subject: Subject, settings: &Settings, run_folder: Option<&Path>) -> Option<(String, String)> {
    let Settings { home, protected, .. } = settings;
    hard_blocked(subject, &read(subject, home), Ground { home, protected, run_folder })
}

fn hard_blocked(subject: Subject, script: &Script, ground: Ground) -> Option<(String, String)> {
    if let Some(found) = block(script, ground) {
        return Some(found);
    }
    // A link may lead where the text does not.
    let owds = |at: &Path| is_owds(at, ground.protected, ground.run_folder);
    let own = subject.operands.iter().find(|path| owds(&path.resolved) || owds(&path.lexical))?;
    let why = format!("`{}` belongs to owd itself; use owctl", own.resolved.display());
    Some(("hard-block: owd's own files".into(), why))
}

/// Programs that tell the names of what a folder holds, and not what stands in it.
const NAMES_ONLY: &[&str] = &[
    "ls", "dir", "vdir", "exa", "eza", "tree", "stat", "du", "df", "find", "test", "[", "file", "realpath", "readlink",
    "dirname", "basename", "pwd", "cd", "pushd", "mkdir", "touch", "echo", "printf",
];

/// What layers 3 and 4 say.
pub(crate) fn layers(subject: Subject, rights: &Rights) -> Found {
    let commands = match subject.form {
        CommandForm::Argv(argv) if argv.first().is_some_and(|program| !program.trim().is_empty()) => vec![argv.clone()],
        CommandForm::Argv(_) => return Found::Dynamic { why: "it names no program".into() },
        CommandForm::Line(line) => {
            let script = Script::read(line, rights.home, Some(subject.cwd));
            match (script.literal(), script.dynamic) {
                (Some(commands), _) => commands,
                (None, why) => return Found::Dynamic { why: why.unwrap_or_else(|| "it cannot be read".into()) },
            }
        }
    };
    if let Some(name) = subject.env_names.iter().find(|name| !is_plain_variable(name)) {
        return Found::Nothing { why: format!("the variable {name} can change what runs") };
    }
    let found_inside = |program: &&Path| {
        rights.roots.iter().map(PathBuf::as_path).chain(rights.run_folder).any(|root| program.starts_with(root))
    };
    let programs = subject.program.into_iter().chain(subject.parts.iter().map(|file| file.path.as_path()));
    if let Some(program) = programs.into_iter().find(found_inside)
        && commands.iter().any(|command| !command[0].contains('/'))
    {
        // What a call may have written there is not the program that an entry means.
        return Found::Nothing { why: format!("the program was found inside a root: `{}`", program.display()) };
    }
    let holds = |path: &&ResolvedPath| holds_owds(&path.resolved, rights.protected);
    if let Some(folder) = subject.operands.iter().find(holds)
        && !commands.iter().all(|command| NAMES_ONLY.contains(&base_name(&command[0])))
    {
        // With its keys and its secrets: no entry means those.
        return Found::Nothing { why: format!("`{}` holds files of owd's own", folder.resolved.display()) };
    }
    // The safe list never covers an operator, so it sees single commands only. A line runs without a shell
    // only where both readings agree on its argv.
    let single = match subject.form {
        CommandForm::Argv(argv) => Some(argv.clone()),
        CommandForm::Line(line) => super::script::simple(line),
    };
    if rights.safe
        && let Some(argv) = single
        && let Some(rule) = safe_rule(&argv, subject, rights)
    {
        return Found::Safe { rule };
    }
    let mut entries: Vec<String> = vec![];
    let mut uncovered = None;
    for command in &commands {
        match covering(command, rights.allow) {
            Ok(entry) => entries.push(entry),
            Err(why) => {
                uncovered = Some((command, why));
                break;
            }
        }
    }
    let Some((command, why)) = uncovered else {
        entries.dedup();
        return Found::Allowed { rule: format!("allow: {}", entries.join(", ")) };
    };
    Found::Nothing {
        why: match why {
            Uncovered::NoEntry => format!("no entry or rule covers `{}`", command.join(" ")),
            Uncovered::Hazard { entry, why } => format!("the entry `{entry}` does not reach so far: {why}"),
        },
    }
}

/// How the rule ends that lets a build pass.
pub(super) const IN_TRUSTED: &str = "in a trusted workspace";

fn safe_rule(argv: &[String], subject: Subject, rights: &Rights) -> Option<String> {
    let inside = |path: &Path| {
        rights.roots.iter().map(PathBuf::as_path).chain(rights.run_folder).any(|root| path.starts_with(root))
    };
    if let Some(name) = build_use(argv) {
        let trusted = rights.trusted.iter().any(|folder| subject.cwd.starts_with(folder));
        return trusted.then(|| format!("safe: {name} {IN_TRUSTED}"));
    }
    let safe = safe_use(argv)?;
    if safe.reads_here && !inside(subject.cwd) {
        return None;
    }
    let scope = Scope { roots: rights.roots, run_folder: rights.run_folder, protected: rights.protected };
    for path in &safe.paths {
        // A path that nobody resolved is not judged by its text.
        let resolved = subject.operands.iter().find(|operand| operand.asked == Path::new(path))?;
        if !matches!(standing(resolved, PathOp::Read, &scope), Standing::Inside | Standing::RunFolder) {
            return None;
        }
    }
    Some(format!("safe: {}", safe.name))
}

fn read(subject: Subject, home: &Path) -> Script {
    match subject.form {
        CommandForm::Argv(argv) => Script::of_argv(argv, Some(subject.cwd)),
        CommandForm::Line(line) => Script::read(line, home, Some(subject.cwd)),
    }
}

/// Whether setting this variable changes no more than how a program speaks.
pub(crate) fn is_plain_variable(name: &str) -> bool {
    matches!(name, "LANG" | "LANGUAGE" | "TZ" | "TERM" | "NO_COLOR" | "COLUMNS" | "LINES" | "CI")
        || (name.starts_with("LC_") && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'))
}

/// Why a value from outside may not stand at this place of an argv; none: it may, once accepted.
pub(crate) fn hole_in_argv(argv: &[String], index: usize) -> Option<String> {
    let Some(element) = argv.get(index) else { return Some("fills a place that is not there".into()) };
    if index == 0 {
        return Some("would choose the program".into());
    }
    let ended = argv[..index].iter().any(|argument| argument == "--");
    if element.starts_with('-') && !ended {
        return Some("begins with `-` and would be taken for an option; put `--` before it".into());
    }
    if is_code(argv, index, 0) {
        return Some("would become part of a command line".into());
    }
    None
}

/// Whether the element is run as code, or chooses what runs.
fn is_code(argv: &[String], index: usize, depth: usize) -> bool {
    if depth > WRAPPING_LIMIT {
        return true;
    }
    let name = base_name(&argv[0]);
    let arguments = &argv[1..];
    let at = index - 1;
    if is_shell(name) || is_interpreter(name) {
        let script = arguments.iter().position(|argument| !argument.starts_with(['-', '+']));
        return at <= code_of_interpreter(arguments, name).or(script).unwrap_or(usize::MAX);
    }
    match name {
        "eval" | "ssh" | "source" | "." | "su" | "script" | "watch" | "parallel" | "npx" | "tmux" | "screen"
        | "find" | "fd" | "xargs" => true,
        "sed" | "gsed" | "awk" | "gawk" | "mawk" | "nawk" | "jq" | "perl" => {
            arguments.iter().position(|argument| !argument.starts_with('-')).is_none_or(|script| at <= script)
                || arguments.get(at.wrapping_sub(1)).is_some_and(|option| option == "-e" || option == "-f")
        }
        _ => match inner(argv).pop() {
            Some(Inner::Argv(started)) if argv.ends_with(&started) => {
                let offset = argv.len() - started.len();
                index <= offset || is_code(&started, index - offset, depth + 1)
            }
            Some(Inner::Argv(_) | Inner::Script(_)) => true,
            None => false,
        },
    }
}

/// Whether what is fed to the command is run as code.
pub(crate) fn reads_code_from_stdin(facts: &Facts) -> bool {
    let Action::Command { form, .. } = &facts.action else { return false };
    let commands = match form {
        CommandForm::Argv(argv) => vec![argv.clone()],
        CommandForm::Line(line) => match Script::read(line, Path::new("/"), None).literal() {
            Some(commands) => commands,
            None => return true,
        },
    };
    commands.iter().any(|command| {
        let name = command.first().map_or("", |program| base_name(program));
        runs_stdin(command)
            || matches!(name, "xargs" | "parallel" | "at" | "batch" | "crontab")
            || !inner(command).is_empty()
    })
}
