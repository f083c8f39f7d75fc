//! The options by which a program that seems to read runs another program or writes a file.
//!
//! An allow entry names a program for what it is known for; it does not stand for these. What an entry
//! spells out itself is covered.

mod git;
mod options;
mod scripts;

use self::git::git;
use self::options::options;
use self::scripts::{awk, find, sed, tar};
use super::unwrap::{Inner, WRAPPING_LIMIT, base_name, inner, is_interpreter, is_shell, is_wrapper, shell_text};

/// One argument that does more than an entry stands for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Hazard {
    pub(crate) at: usize,
    pub(crate) why: String,
}

/// Programs whose operands are commands, or that hand them to a shell elsewhere: only what is spelled out.
const RUNNERS: &[&str] = &[
    "ssh",
    "mosh",
    "rsh",
    "su",
    "script",
    "npx",
    "bunx",
    "uvx",
    "pnpx",
    "tmux",
    "screen",
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "at",
    "batch",
    "crontab",
    "watchexec",
    "cargo-watch",
    "nodemon",
    "foreman",
    "direnv",
    "nix-shell",
    "nix",
    "guix",
    "vagrant",
    "distrobox",
    "toolbox",
    "lxc",
    "lxc-attach",
    "machinectl",
    "dlv",
    "m4",
    "dc",
    "bc",
    "xterm",
    "gnome-terminal",
    "konsole",
    "alacritty",
    "kitty",
    "open",
    "xdg-open",
    "run-parts",
    "start-stop-daemon",
    "logrotate",
    "hash",
    "enable",
    "set",
    "export",
    "unset",
    "declare",
    "typeset",
    "readonly",
    "shopt",
    "bind",
    "complete",
    "mapfile",
    "readarray",
    "fc",
    "aws-vault",
    "autossh",
    "bpftrace",
    "cgclassify",
    "cgexec",
    "chpst",
    "dotenv",
    "git-shell",
    "hyperfine",
    "ld.so",
    "mispipe",
    "parallel-ssh",
    "pdsh",
    "pee",
    "proot",
    "pssh",
    "reflex",
    "rr",
    "runcon",
    "rush",
    "sg",
    "socat",
    "softlimit",
    "systemd-nspawn",
    "ts",
    "zrun",
];

/// The same, by how their names begin: loaders of programs and machines that run them.
const RUNNER_FAMILIES: &[&str] = &["ld-linux", "ld-musl", "qemu-"];

/// Everything in this argv, after the program, that does more than an entry stands for.
pub(crate) fn hazards(argv: &[String]) -> Vec<Hazard> {
    hazards_at(argv, 0)
}

fn hazards_at(argv: &[String], depth: usize) -> Vec<Hazard> {
    let Some((program, arguments)) = argv.split_first() else { return vec![] };
    let name = base_name(program);
    if depth > WRAPPING_LIMIT {
        return all_of(arguments, name, 0);
    }
    if is_wrapper(name) {
        return wrapped(argv, name, depth);
    }
    if is_shell(name) || is_interpreter(name) {
        return interpreted(arguments, name);
    }
    if RUNNERS.contains(&name) || RUNNER_FAMILIES.iter().any(|family| name.starts_with(family)) {
        return all_of(arguments, name, 0);
    }
    let mut found = of_program(arguments, name);
    found.extend(options(arguments, name));
    found.extend(general(arguments, name));
    found
}

/// What a wrapper is given up to the program that it starts, then that program's own.
fn wrapped(argv: &[String], name: &str, depth: usize) -> Vec<Hazard> {
    let started = match inner(argv).pop() {
        Some(Inner::Argv(started)) if !started.is_empty() && argv.ends_with(&started) => started,
        Some(Inner::Argv(_) | Inner::Script(_)) | None => return all_of(&argv[1..], name, 0),
    };
    let offset = argv.len() - started.len();
    let mut found: Vec<Hazard> = all_of(&argv[1..], name, 0).into_iter().filter(|hazard| hazard.at <= offset).collect();
    found.extend(hazards_at(&started, depth + 1).into_iter().map(|hazard| Hazard { at: hazard.at + offset, ..hazard }));
    found
}

/// What an interpreter is given up to its program; what follows belongs to that program.
fn interpreted(arguments: &[String], name: &str) -> Vec<Hazard> {
    let code = code_of_interpreter(arguments, name);
    let script = arguments.iter().position(|argument| !argument.starts_with(['-', '+']));
    let (last, inline) = match (code, script) {
        (Some(code), _) => (code, true),
        (None, Some(script)) => (script, false),
        (None, None) => (arguments.len(), false),
    };
    all_of(arguments, name, 0)
        .into_iter()
        .filter(|hazard| {
            let index = hazard.at - 1;
            index <= last || (inline && !is_shell(name) && arguments[index].starts_with('-'))
        })
        .collect()
}

/// Which argument a shell or interpreter runs as program text.
pub(crate) fn code_of_interpreter(arguments: &[String], name: &str) -> Option<usize> {
    if is_shell(name) {
        return shell_text(arguments).map(|(index, _)| index);
    }
    let option = arguments.iter().take_while(|argument| argument.starts_with('-')).position(|argument| {
        let long = matches!(argument.as_str(), "--eval" | "--print" | "--execute" | "--command" | "--run");
        long || (!argument.starts_with("--") && argument.ends_with(['c', 'e', 'E', 'p', 'r', 'm']))
    })?;
    Some(option + 1).filter(|index| *index < arguments.len())
}

fn of_program(arguments: &[String], name: &str) -> Vec<Hazard> {
    match name {
        "git" => git(arguments),
        "find" => find(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => awk(arguments),
        "sed" | "gsed" => sed(arguments),
        "tar" | "bsdtar" | "gtar" => tar(arguments),
        "uniq" | "xxd" | "sqlite3" => second_operand(arguments, name),
        "curl" | "wget" | "wget2" => {
            let mut found = second_url(arguments, name);
            found.extend(found_at(arguments, name, |argument| {
                argument.contains("%output{").then(|| "%output{…}".into())
            }));
            found
        }
        "date" => date(arguments),
        "hostname" | "domainname" => operand_sets(arguments, name),
        "vi" | "vim" | "nvim" | "view" | "ex" | "vimdiff" | "gvim" | "gvimdiff" | "gview" | "rvim" | "rview"
        | "vimx" | "less" | "more" | "most" => plus_commands(arguments, name),
        "sysctl" | "make" | "gmake" => settings(arguments, name),
        _ => SUBCOMMANDS
            .iter()
            .find(|(names, _)| names.contains(&name))
            .map_or_else(Vec::new, |(_, harmful)| subcommands(arguments, name, harmful)),
    }
}

/// Sub-commands that start something, or change what later ones do.
const SUBCOMMANDS: &[(&[&str], &[&str])] = &[
    (
        &["docker", "podman"],
        &[
            "run", "exec", "cp", "build", "create", "plugin", "compose", "load", "import", "save", "export", "context",
            "buildx",
        ],
    ),
    (
        &["kubectl", "oc"],
        &[
            "exec",
            "run",
            "cp",
            "debug",
            "apply",
            "create",
            "edit",
            "patch",
            "replace",
            "proxy",
            "port-forward",
            "plugin",
            "attach",
            "rsh",
        ],
    ),
    (
        &["npm", "pnpm", "yarn", "bun"],
        &[
            "exec",
            "x",
            "dlx",
            "run",
            "run-script",
            "explore",
            "config",
            "set",
            "create",
            "init",
            "install",
            "i",
            "add",
            "link",
            "publish",
            "pkg",
            "edit",
            "rebuild",
            "update",
            "ci",
            "node",
        ],
    ),
    (&["cargo"], &["run", "r", "install", "fix", "publish", "bench", "script", "watch", "expand"]),
    (&["go"], &["run", "generate", "install", "get", "tool", "env", "work", "mod", "telemetry"]),
    (&["gh"], &["alias", "extension", "api", "codespace", "config", "auth", "secret", "run", "workflow", "browse"]),
    (
        &["poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba"],
        &["run", "shell", "install", "env", "config"],
    ),
    (
        &["mise", "asdf", "nvm", "rbenv", "pyenv", "nodenv", "rtx"],
        &["exec", "x", "run", "shell", "install", "global", "local"],
    ),
    (&["op", "doppler", "chamber", "sops", "infisical"], &["run", "exec", "exec-env", "exec-file", "edit", "secrets"]),
    (&["ip"], &["netns", "vrf"]),
    (&["pip", "pip3", "uv"], &["install", "download", "wheel", "run", "tool", "config", "add", "sync"]),
    (&["systemctl"], &["edit", "set-environment", "import-environment", "link", "enable", "mask", "switch-root"]),
];

/// A second URL is another request, which an entry for one does not mean.
fn second_url(arguments: &[String], name: &str) -> Vec<Hazard> {
    let mut urls = 0;
    let mut value = false;
    let mut found = vec![];
    for (index, argument) in arguments.iter().enumerate() {
        if std::mem::take(&mut value) {
            continue;
        }
        if argument.starts_with('-') {
            value = matches!(
                argument.as_str(),
                "-H" | "-A" | "-e" | "-m" | "-w" | "--header" | "--max-time" | "--user-agent"
            );
            continue;
        }
        urls += 1;
        if urls > 1 {
            found.push(hazard(index, name, "URL URL"));
        }
    }
    found
}

/// Options that mean the same wherever they occur.
fn general(arguments: &[String], name: &str) -> Vec<Hazard> {
    const LONG: &[&str] = &[
        "exec",
        "exec-batch",
        "execute",
        "command-string",
        "eval",
        "compress-program",
        "use-compress-program",
        "to-command",
        "rsh-command",
        "pager",
        "shell",
        "preprocessor",
        "output",
        "output-file",
        "outfile",
        "out-file",
        "out-dir",
        "in-place",
        "inplace",
        "upload-pack",
        "receive-pack",
        "post-file",
        "upload-file",
        "log-file",
        "logfile",
        "plugin",
        "load-extension",
        "checkpoint-action",
        "rsh",
        "editor",
        "filter-program",
        "hook",
        "run-command",
        "init-command",
        "ssh-command",
        "password-command",
        "credential-helper",
    ];
    found_at(arguments, name, |argument| {
        let given = argument.strip_prefix("--")?.split('=').next()?;
        LONG.contains(&given).then(|| format!("--{given}"))
    })
}

/// Each word from `from` on is more than the bare program stands for.
fn all_of(arguments: &[String], name: &str, from: usize) -> Vec<Hazard> {
    (from..arguments.len())
        .map(|index| Hazard {
            at: index + 1,
            why: format!("`{name}` runs what it is given, so an entry covers only the words that it spells out"),
        })
        .collect()
}

fn hazard(index: usize, name: &str, what: &str) -> Hazard {
    Hazard {
        at: index + 1,
        why: format!("`{name} {what}` can run a program or write, which an entry for `{name}` does not cover"),
    }
}

fn found_at(arguments: &[String], name: &str, what: impl Fn(&str) -> Option<String>) -> Vec<Hazard> {
    arguments
        .iter()
        .enumerate()
        .take_while(|(_, argument)| *argument != "--")
        .filter_map(|(index, argument)| what(argument).map(|what| hazard(index, name, &what)))
        .collect()
}

fn subcommands(arguments: &[String], name: &str, harmful: &[&str]) -> Vec<Hazard> {
    let first = arguments.iter().position(|argument| !argument.starts_with('-'));
    match first {
        Some(index) if harmful.contains(&arguments[index].as_str()) => {
            // What follows decides what runs, so an entry has to spell out all of it.
            let mut found = vec![hazard(index, name, &arguments[index])];
            found.extend(all_of(arguments, &format!("{name} {}", arguments[index]), index + 1));
            found
        }
        _ => vec![],
    }
}

/// `+cmd` operands run an editor's or pager's command.
fn plus_commands(arguments: &[String], name: &str) -> Vec<Hazard> {
    found_at(arguments, name, |argument| argument.starts_with('+').then(|| "+…".into()))
}

/// `NAME=value` operands set something.
fn settings(arguments: &[String], name: &str) -> Vec<Hazard> {
    found_at(arguments, name, |argument| {
        (!argument.starts_with('-') && argument.contains('=')).then(|| "NAME=value".into())
    })
}

fn second_operand(arguments: &[String], name: &str) -> Vec<Hazard> {
    let valued = match name {
        "uniq" => &["-f", "-s", "-w"][..],
        "xxd" => &["-c", "-g", "-l", "-o", "-s", "-n"][..],
        _ => &["-separator", "-nullvalue", "-newline"][..],
    };
    let mut operands = 0;
    let mut skip = false;
    for (index, argument) in arguments.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        if argument.starts_with('-') && argument.len() > 1 {
            skip = valued.contains(&argument.as_str());
            continue;
        }
        operands += 1;
        if operands == 2 {
            return vec![hazard(index, name, "INPUT OUTPUT")];
        }
    }
    vec![]
}

fn date(arguments: &[String]) -> Vec<Hazard> {
    let mut after_value = false;
    let mut found = vec![];
    for (index, argument) in arguments.iter().enumerate() {
        let is_operand = !argument.starts_with(['-', '+']) && !after_value;
        after_value =
            matches!(argument.as_str(), "-d" | "--date" | "-r" | "--reference" | "-f" | "--file" | "-v" | "-z");
        if is_operand {
            found.push(hazard(index, "date", "MMDDhhmm"));
        }
    }
    found
}

fn operand_sets(arguments: &[String], name: &str) -> Vec<Hazard> {
    found_at(arguments, name, |argument| (!argument.starts_with('-')).then(|| "NAME".into()))
}
