use std::path::Path;

use super::script::Script;

/// What a command that starts another one would start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Inner {
    Argv(Vec<String>),
    /// Shell text.
    Script(String),
}

/// More wrappers around one another are no honest command; what is further in asks anyway.
pub(crate) const WRAPPING_LIMIT: usize = 8;

/// Programs that run their arguments as a command, with the options that take a value of their own and the
/// number of operands before the command.
const WRAPPERS: &[(&str, &[&str], usize)] = &[
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group", "--chdir"], 0),
    ("doas", &["-u", "-C"], 0),
    ("env", &["-u", "-C", "--unset", "--chdir"], 0),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("command", &[], 0),
    ("builtin", &[], 0),
    ("exec", &["-a"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "-p"], 0),
    ("chrt", &[], 1),
    ("taskset", &[], 1),
    ("time", &["-f", "-o"], 0),
    ("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("unbuffer", &[], 0),
    ("chronic", &[], 0),
    ("caffeinate", &["-t", "-w"], 0),
    ("strace", &["-e", "-o", "-p", "-s", "-u", "-E"], 0),
    ("ltrace", &["-e", "-o", "-p", "-s", "-u"], 0),
    ("xargs", &["-I", "-n", "-P", "-d", "-E", "-L", "-s", "-a", "--max-args", "--max-procs", "--delimiter"], 0),
    ("busybox", &[], 0),
    ("toybox", &[], 0),
    ("chroot", &["--userspec", "--groups"], 1),
    ("flock", &["-w", "-E", "-c"], 1),
    ("parallel", &["-j", "-n", "-N"], 0),
    ("setarch", &[], 1),
    ("linux32", &[], 0),
    ("linux64", &[], 0),
    ("unshare", &[], 0),
    ("nsenter", &["-t", "--target"], 0),
    ("firejail", &[], 0),
    ("bwrap", &[], 0),
    ("systemd-run", &["-p", "-u", "--unit", "--property", "-E", "--setenv"], 0),
    ("dbus-run-session", &[], 0),
    ("xvfb-run", &["-n", "-s", "-e"], 0),
    ("fakeroot", &[], 0),
    ("proxychains", &["-f"], 0),
    ("torsocks", &[], 0),
    ("ssh-agent", &["-a", "-t"], 0),
    ("watch", &["-n", "--interval"], 0),
    ("choom", &["-n", "--adjust"], 0),
    ("gosu", &[], 1),
    ("su-exec", &[], 1),
    ("s6-setuidgid", &[], 1),
    ("tini", &["-p", "-e"], 0),
    ("dumb-init", &["--rewrite", "-r"], 0),
    ("catchsegv", &[], 0),
    ("eatmydata", &[], 0),
    ("fakechroot", &["-l", "-d", "-e", "-c", "-b"], 0),
    ("faketime", &["-f", "-m", "--exclude-monotonic"], 1),
    ("cpulimit", &["-l", "-e", "-p", "-P"], 0),
    (
        "rlwrap",
        &["-C", "-f", "-H", "-s", "-z", "-a", "-b", "-l", "-O", "-p", "-P", "-q", "-S", "-t", "-w", "-m", "-g", "-D"],
        0,
    ),
    ("logsave", &[], 1),
    ("run0", &["-u", "--user", "-g", "--group", "-D", "--chdir"], 0),
    ("systemd-inhibit", &["--what", "--who", "--why", "--mode"], 0),
    ("systemd-cat", &["-t", "-p"], 0),
    ("sshpass", &["-p", "-f", "-d", "-P"], 0),
    ("envdir", &[], 1),
    ("setlock", &[], 1),
    ("lckdo", &["-w", "-W"], 1),
    ("ifne", &[], 0),
    ("heaptrack", &["-o", "-p"], 0),
    ("nq", &[], 0),
    ("tsp", &["-L", "-D", "-N", "-O"], 0),
    ("entr", &[], 0),
    ("runuser", &["-u", "-g"], 0),
    ("pkexec", &["--user"], 0),
    ("setpriv", &[], 0),
    ("capsh", &[], 0),
    ("prlimit", &[], 0),
    ("cgexec", &["-g"], 0),
    ("numactl", &[], 0),
    ("perf", &[], 1),
    ("valgrind", &[], 0),
    ("winpty", &[], 0),
    ("coproc", &[], 0),
];

const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ash",
    "ksh",
    "ksh93",
    "mksh",
    "fish",
    "csh",
    "tcsh",
    "rbash",
    "yash",
    "elvish",
    "nu",
    "pwsh",
    "busybox-sh",
];

const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "pypy",
    "pypy3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "guile",
    "racket",
    "osascript",
    "Rscript",
    "R",
    "julia",
    "irb",
    "ipython",
    "expect",
    "groovy",
    "scala",
    "swift",
    "ghci",
    "erl",
    "elixir",
    "iex",
    "ts-node",
    "tsx",
    "runghc",
    "runhaskell",
];

/// The file name of a program, without the folder it was named in.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

pub(crate) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&base_name(program))
}

pub(crate) fn is_interpreter(program: &str) -> bool {
    let name = base_name(program);
    // `python3.12` is `python3` too.
    INTERPRETERS.contains(&name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.'))
        || INTERPRETERS.contains(&name)
}

pub(crate) fn is_wrapper(program: &str) -> bool {
    WRAPPERS.iter().any(|(name, ..)| *name == base_name(program))
}

/// What this command would start in its turn, one level down.
pub(crate) fn inner(argv: &[String]) -> Vec<Inner> {
    let Some((program, arguments)) = argv.split_first() else { return vec![] };
    let name = base_name(program);
    if is_shell(name) {
        return shell_text(arguments).map(|(_, text)| Inner::Script(text.clone())).into_iter().collect();
    }
    match name {
        "eval" => return vec![Inner::Script(arguments.join(" "))],
        "find" | "fd" | "fdfind" => return executed_by_find(arguments),
        "ssh" => {
            let operands =
                after_options(arguments, &["-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b", "-c"]);
            return operands
                .get(1..)
                .filter(|rest| !rest.is_empty())
                .map(|rest| Inner::Script(rest.join(" ")))
                .into_iter()
                .collect();
        }
        "su" | "script" | "runuser" | "flock" => {
            if let Some((_, text)) = value_of(arguments, "-c").or_else(|| value_of(arguments, "--command")) {
                return vec![Inner::Script(text.clone())];
            }
        }
        _ => {}
    }
    let Some((_, valued, operands)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) else { return vec![] };
    if name == "env"
        && let Some(text) = split_string(arguments)
    {
        return vec![Inner::Script(text)];
    }
    let rest: Vec<String> = after_options(arguments, valued)
        .iter()
        .skip_while(|word| matches!(name, "env" | "sudo" | "doas") && is_assignment(word))
        .skip(*operands)
        .cloned()
        .collect();
    if rest.is_empty() {
        return vec![];
    }
    if matches!(name, "watch" | "parallel") {
        return vec![Inner::Script(rest.join(" "))];
    }
    vec![Inner::Argv(rest)]
}

/// Every command that a part may come down to: itself, then what it starts, level by level.
///
/// Shell text inside is read into scripts of its own, which come second.
pub(crate) fn levels(argv: &[String], home: &Path, cwd: Option<&Path>) -> (Vec<Vec<String>>, Vec<Script>) {
    let (mut commands, mut scripts) = (vec![argv.to_vec()], vec![]);
    let mut at = 0;
    while at < commands.len() && at < WRAPPING_LIMIT {
        for found in inner(&commands[at]) {
            match found {
                Inner::Argv(argv) => commands.push(argv),
                Inner::Script(text) => scripts.push(Script::read(&text, home, cwd)),
            }
        }
        at += 1;
    }
    (commands, scripts)
}

/// The text that a shell is given with `-c`, with its index among the arguments.
pub(crate) fn shell_text(arguments: &[String]) -> Option<(usize, &String)> {
    let option = arguments.iter().position(|argument| {
        argument.starts_with('-') && !argument.starts_with("--") && argument.contains('c') || argument == "--command"
    })?;
    let mut index = option + 1;
    while arguments.get(index).is_some_and(|argument| argument.len() > 1 && argument.starts_with(['-', '+'])) {
        index += 1;
    }
    arguments.get(index).map(|text| (index, text))
}

/// Whether a shell or interpreter with these arguments runs what comes on its standard input.
pub(crate) fn runs_stdin(argv: &[String]) -> bool {
    let Some((program, arguments)) = argv.split_first() else { return false };
    let from_stdin =
        |argument: &String| matches!(argument.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
    if is_shell(program) {
        let asks_for_stdin = arguments
            .iter()
            .any(|argument| argument.starts_with('-') && !argument.starts_with("--") && argument.contains('s'));
        return shell_text(arguments).is_none()
            && (asks_for_stdin
                || arguments.iter().all(|argument| argument.starts_with(['-', '+']) || from_stdin(argument)));
    }
    if is_interpreter(program) {
        return arguments.iter().all(|argument| {
            from_stdin(argument)
                || (argument.starts_with('-') && !argument.contains(['c', 'm', 'e', 'n', 'p', 'r', 'E', 'V', 'h']))
        });
    }
    matches!(base_name(program), "source" | ".") && arguments.first().is_some_and(from_stdin)
}

fn executed_by_find(arguments: &[String]) -> Vec<Inner> {
    let mut found = vec![];
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let runs = matches!(
            argument.as_str(),
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
        );
        if runs {
            found.push(Inner::Argv(
                rest.by_ref().take_while(|word| !matches!(word.as_str(), ";" | "+")).cloned().collect(),
            ));
        }
    }
    found
}

fn after_options<'a>(arguments: &'a [String], valued: &[&str]) -> &'a [String] {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        if argument == "--" {
            return &arguments[at + 1..];
        }
        if !argument.starts_with('-') || argument.len() == 1 {
            break;
        }
        at += if valued.contains(&argument.as_str()) { 2 } else { 1 };
    }
    arguments.get(at..).unwrap_or_default()
}

fn value_of<'a>(arguments: &'a [String], option: &str) -> Option<(usize, &'a String)> {
    let at = arguments.iter().position(|argument| argument == option)?;
    arguments.get(at + 1).map(|value| (at + 1, value))
}

/// What `env -S` is given, in whichever of its spellings, with all that follows: it becomes further words.
fn split_string(arguments: &[String]) -> Option<String> {
    let (at, rest) = arguments.iter().enumerate().find_map(|(at, argument)| {
        if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            // Long options may be cut short.
            return (!name.is_empty() && "split-string".starts_with(name)).then_some((at, value));
        }
        let cluster = argument.strip_prefix('-')?;
        // The options before it in the cluster take no value of their own.
        let (flags, value) = cluster.split_once('S')?;
        flags
            .chars()
            .all(|flag| matches!(flag, 'i' | '0' | 'v'))
            .then_some((at, Some(value).filter(|it| !it.is_empty())))
    })?;
    let first = rest.map(str::to_owned).or_else(|| arguments.get(at + 1).cloned())?;
    let further = arguments.iter().skip(if rest.is_some() { at + 1 } else { at + 2 }).cloned();
    Some(std::iter::once(first).chain(further).collect::<Vec<_>>().join(" "))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}
