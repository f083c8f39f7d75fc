//! `shell`: a program with its arguments, or a command line.

mod environment;
mod latest;
mod run;

use std::collections::BTreeMap;
use std::path::Path;

use ow_model::{BoundFile, Call, CallError, CallErrorKind, Risk, Span};
use ow_policy::command::{self, Started};
use ow_policy::{Action, CommandForm, Facts};
use serde::Deserialize;
use serde_json::Value;

use crate::args::{self, Arg, Hidden, Kind, Need};
use crate::world::{self, FileSystem};
use crate::{Place, Tool, ToolSpec};

pub(crate) use environment::allowed;
pub(crate) use run::{End, Ran, run, run_command};

const ARGS: &[Arg] = &[
    Arg {
        name: "argv",
        kind: Kind::Argv,
        need: Need::Optional,
        about: "the program and its arguments; runs without a shell",
    },
    Arg { name: "command", kind: Kind::Name, need: Need::Optional, about: "a command line for sh, instead of argv" },
    Arg { name: "cwd", kind: Kind::Name, need: Need::Optional, about: "the working directory" },
    Arg {
        name: "env",
        kind: Kind::HiddenMap,
        need: Need::Optional,
        about: "variables to set; a value is a string or { secret = \"name\" }",
    },
    Arg {
        name: "stdin",
        kind: Kind::Hidden,
        need: Need::Optional,
        about: "what the program reads; a string or { secret = \"name\" }",
    },
    Arg { name: "timeout", kind: Kind::Time, need: Need::Optional, about: "the longest running time, such as \"90s\"" },
    Arg {
        name: "background",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: returns a job's id at once while the command goes on, until it ends, the session ends or an hour is \
                over (`timeout`: at most 24h); read it with job_output. false if left out",
    },
];

/// Variables with which a shell would run more than the line it was given.
const SHELL_HOOKS: &[&str] = &["ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "IFS"];

/// Programs whose output is what somebody else wrote.
const FETCHERS: &[&str] =
    &["curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "lynx", "w3m", "links", "aria2c", "ftp", "http"];

#[derive(Debug, Deserialize)]
pub(crate) struct ShellArgs {
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) command: Option<String>,
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, Hidden>,
    pub(crate) stdin: Option<Hidden>,
    pub(crate) timeout: Option<Span>,
}

/// How long a background job may run where the call does not say, and at most.
const BACKGROUND: Span = Span::from_secs(3600);
const BACKGROUND_MOST: Span = Span::from_secs(86_400);

/// How long a call's job may run in the background; none: it is no such call.
pub(crate) fn in_background(call: &Call) -> Option<Span> {
    if call.tool.as_str() != "shell" || call.args.get("background") != Some(&Value::Bool(true)) {
        return None;
    }
    let given = call.args.get("timeout").and_then(Value::as_str).and_then(|span| span.parse().ok());
    Some(given.unwrap_or(BACKGROUND).min(BACKGROUND_MOST))
}

pub(crate) struct Shell {
    spec: ToolSpec,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { spec: ToolSpec::own("shell", args::schema(ARGS)) }
    }
}

impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("shell", ARGS, value)?;
        match (value.get("argv"), value.get("command")) {
            (None, None) => Err("`shell` needs `argv` or `command`: write argv = [\"df\", \"-h\"]".into()),
            (Some(_), Some(_)) => Err("`shell` takes `argv` or `command`, not both".into()),
            _ => check_variables(value),
        }
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(|message| CallError { kind: CallErrorKind::BadArguments, message })?;
        let args: ShellArgs = args::read(&call.args)?;
        let cwd = world::working_directory(args.cwd.as_deref(), place)?;
        let form = form(&args);
        let operands = command::operands(&form, &cwd, &place.home, &FileSystem);
        let program = match &form {
            CommandForm::Argv(words) => words.first().and_then(|name| world::program(name, &cwd)),
            CommandForm::Line(_) => world::program("sh", &cwd),
        };
        // A call may bring a search path of its own, which holds for all but the first program.
        let own_path = match args.env.get("PATH") {
            Some(Hidden::Plain(path)) => Some(path.as_str()),
            Some(Hidden::Secret { .. }) | None => None,
        };
        let mut parts: Vec<BoundFile> = vec![];
        for Started { name, cwd } in command::started(&form, &cwd, &place.home) {
            let file =
                world::program_on(&name, &cwd, own_path).and_then(|path| world::bound_file(&path).ok().flatten());
            if let Some(file) = file.filter(|file| !parts.contains(file)) {
                parts.push(file);
            }
        }
        let mut files: Vec<BoundFile> = vec![];
        for operand in &operands {
            // What cannot be read by owd cannot be read by the program either.
            let Ok(Some(file)) = world::bound_file(&operand.resolved) else { continue };
            world::readable_name(&file.path)?;
            if !files.contains(&file) {
                files.push(file);
            }
        }
        let program = program.and_then(|path| world::bound_file(&path).ok().flatten());
        let env_names = args.env.keys().cloned().collect();
        Ok(Facts {
            risk: Risk::Exec,
            action: Action::Command { form, cwd, env_names, program, parts, files, operands },
        })
    }
}

/// A line that is one literal simple command runs as its argv.
fn form(args: &ShellArgs) -> CommandForm {
    match (&args.argv, &args.command) {
        (Some(words), _) => CommandForm::Argv(words.clone()),
        (None, line) => {
            let line = line.clone().unwrap_or_default();
            command::argv_of_simple(&line).map_or(CommandForm::Line(line), CommandForm::Argv)
        }
    }
}

fn check_variables(value: &Value) -> Result<(), String> {
    let Some(env) = value.get("env").and_then(Value::as_object) else { return Ok(()) };
    for name in env.keys() {
        if name == crate::HELPER_MARK {
            return Err(format!("argument `env` of `shell`: `{name}` is set by owd itself"));
        }
        if value.get("command").is_some() && SHELL_HOOKS.contains(&name.as_str()) {
            return Err(format!(
                "argument `env` of `shell`: `{name}` would change what the command line means; use argv"
            ));
        }
    }
    Ok(())
}

/// Whether what the command prints was written by somebody else.
pub(crate) fn fetches(form: &CommandForm) -> bool {
    let is_fetcher = |word: &str| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word);
        FETCHERS.contains(&name)
    };
    match form {
        CommandForm::Argv(argv) => argv.iter().any(|word| is_fetcher(word)),
        CommandForm::Line(line) => {
            line.split(|letter: char| letter.is_whitespace() || "|&;()<>`$\"'{}".contains(letter)).any(is_fetcher)
        }
    }
}
