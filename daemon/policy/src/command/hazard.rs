//! The options by which a program that seems to read runs another program or writes a file.
//!
//! An allow entry names a program for what it is known for; it does not stand for these. What an entry
//! spells out itself is covered.

use super::unwrap::{Inner, base_name, inner, is_interpreter, is_shell, is_wrapper, shell_text};

/// One argument that does more than an entry stands for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Hazard {
    pub(crate) at: usize,
    pub(crate) why: String,
}

struct Program {
    names: &'static [&'static str],
    /// One-letter options that write or run.
    short: &'static str,
    /// One-letter options that take a value, so that a cluster is read rightly.
    valued: &'static str,
    /// Long options that write or run, without dashes; abbreviations count.
    long: &'static [&'static str],
}

const fn program(
    names: &'static [&'static str],
    short: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
) -> Program {
    Program { names, short, valued, long }
}

const PROGRAMS: &[Program] = &[
    program(&["sort"], "oTS", "ktSTo", &["output", "compress-program", "files0-from", "temporary-directory"]),
    program(&["rg", "ripgrep"], "z", "efgtTABCmMjrd", &["pre", "pre-glob", "hostname-bin", "search-zip"]),
    program(&["ag", "ack"], "z", "ABCmGg", &["pager", "search-zip", "ackrc", "output"]),
    program(&["fd", "fdfind"], "xX", "etdEcjSo", &["exec", "exec-batch"]),
    program(&["sed", "gsed"], "isEnz", "eflis", &["in-place", "file", "null-data"]),
    program(&["yq"], "i", "opI", &["inplace", "in-place", "split-exp", "from-file"]),
    program(&["jq"], "", "fL", &[]),
    program(
        &["less", "more", "most"],
        "oOkKp",
        "bhjopPtTxyz",
        &["log-file", "LOG-FILE", "lesskey-file", "lesskey-src"],
    ),
    program(
        &["man"],
        "PHCMlT",
        "CRLmMsSePpErT",
        &["pager", "html", "config-file", "manpath", "local-file", "preprocessor", "troff-device"],
    ),
    program(&["bat", "batcat"], "", "lHrAm", &["pager", "paging", "map-syntax", "config-file"]),
    program(&["date"], "s", "dfrs", &["set", "file"]),
    program(&["hostname"], "Fb", "F", &["file", "boot"]),
    program(&["sysctl"], "wp", "wprN", &["write", "load", "system"]),
    program(&["xxd"], "r", "cglos", &["revert"]),
    program(&["od", "hexdump", "strings"], "", "", &[]),
    program(&["tree"], "oR", "oLPIH", &["output"]),
    program(&["file"], "C", "feFmP", &["compile", "magic-file"]),
    program(&["dmesg"], "cCDEn", "fFlns", &["clear", "read-clear", "console-off", "console-on"]),
    program(
        &["journalctl"],
        "",
        "nupotgDS",
        &[
            "rotate",
            "vacuum-size",
            "vacuum-time",
            "vacuum-files",
            "flush",
            "sync",
            "setup-keys",
            "update-catalog",
            "relinquish-var",
        ],
    ),
    program(&["ip", "ifconfig", "route"], "bf", "", &["batch"]),
    program(&["ss", "netstat"], "KD", "fADF", &["kill", "diag"]),
    program(&["tcpdump"], "zwGZ", "zwcCGirsFT", &["write", "postrotate"]),
    program(&["nmap"], "oiS", "opis", &["script", "script-args", "datadir", "servicedb", "iL"]),
    program(&["ps"], "", "", &[]),
    program(&["top", "htop"], "", "", &[]),
    program(&["cp", "mv", "ln", "install"], "tS", "tSm", &["target-directory", "suffix", "backup", "strip-program"]),
    program(&["tee", "truncate", "split", "csplit", "shred"], "", "", &["filter"]),
    program(&["tar", "bsdtar", "gtar"], "", "", &[]),
    program(&["zip"], "TOmb", "bnPtixO", &["test", "unzip-command", "output-file", "out", "move", "temp-path"]),
    program(&["unzip", "7z", "7za", "7zr", "unrar", "rar"], "do", "dPx", &["out"]),
    program(
        &["gzip", "gunzip", "bzip2", "xz", "zstd", "lz4"],
        "So",
        "SoT",
        &["suffix", "output-dir-flat", "output-dir-mirror"],
    ),
    program(
        &["curl"],
        "oOTKDcdFXQEtJxuUjPyYC",
        "AbcCdDeEFhHKmoPQrtTuUwxXyYzn",
        &[
            "output",
            "remote-name",
            "output-dir",
            "upload-file",
            "config",
            "dump-header",
            "cookie-jar",
            "data",
            "form",
            "json",
            "request",
            "url-query",
            "quote",
            "trace",
            "stderr",
            "cert",
            "key",
            "engine",
            "proxy",
            "preproxy",
            "unix-socket",
            "abstract-unix-socket",
            "netrc-file",
            "user",
            "create-dirs",
            "libcurl",
            "etag-save",
            "hsts",
            "alt-svc",
            "ipfs-gateway",
            "resolve",
            "connect-to",
            "doh-url",
            "interface",
            "dns-servers",
            "mail-from",
            "mail-rcpt",
            "telnet-option",
            "next",
            "write-out",
            "variable",
            "socks4",
            "socks5",
            "post301",
            "remote-header-name",
        ],
    ),
    program(
        &["wget", "wget2"],
        "OoaPiBeU",
        "OoaPiBeUtTQlADIRX",
        &[
            "output-document",
            "output-file",
            "append-output",
            "directory-prefix",
            "input-file",
            "config",
            "execute",
            "post-data",
            "post-file",
            "method",
            "body-data",
            "body-file",
            "use-askpass",
            "save-cookies",
            "warc-file",
            "mirror",
            "recursive",
            "hsts-file",
            "preferred-location",
            "rejected-log",
        ],
    ),
    program(
        &["rsync"],
        "ebTf",
        "eBbTfM",
        &[
            "rsh",
            "rsync-path",
            "delete",
            "remove-source-files",
            "log-file",
            "backup-dir",
            "partial-dir",
            "temp-dir",
            "write-batch",
            "only-write-batch",
            "read-batch",
            "filter",
            "files-from",
            "daemon",
            "config",
            "password-file",
        ],
    ),
    program(&["scp", "sftp"], "SoFDJbBP", "SoFDJibBclPRsX", &[]),
    program(
        &["go"],
        "",
        "",
        &[
            "exec",
            "toolexec",
            "vettool",
            "o",
            "overlay",
            "modfile",
            "ldflags",
            "gcflags",
            "asmflags",
            "gccgoflags",
            "C",
            "cpuprofile",
            "memprofile",
            "blockprofile",
            "mutexprofile",
            "trace",
            "outputdir",
            "coverprofile",
            "test.outputdir",
        ],
    ),
    program(
        &["cargo"],
        "ZC",
        "ZCpjF",
        &["config", "manifest-path", "target-dir", "out-dir", "artifact-dir", "fix", "lockfile-path"],
    ),
    program(
        &["rustc", "rustdoc", "clippy-driver"],
        "oC",
        "oCLlZ",
        &["out-dir", "codegen", "emit", "extern", "sysroot"],
    ),
    program(
        &["make", "gmake", "ninja", "just", "task"],
        "fCIEW",
        "fCIEWojl",
        &[
            "file",
            "makefile",
            "directory",
            "include-dir",
            "eval",
            "justfile",
            "shell",
            "shell-arg",
            "taskfile",
            "dir",
            "old-file",
        ],
    ),
    program(
        &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as"],
        "oBL",
        "oBLIDUx",
        &["specs", "fplugin", "wrapper", "fuse-ld", "output", "plugin", "dynamic-linker"],
    ),
    program(
        &["npm", "pnpm", "yarn", "bun"],
        "C",
        "C",
        &[
            "script-shell",
            "prefix",
            "node-options",
            "userconfig",
            "globalconfig",
            "cwd",
            "dir",
            "call",
            "shell",
            "editor",
            "viewer",
            "git",
            "init-module",
            "registry",
            "onload-script",
            "ignore-scripts",
        ],
    ),
    program(
        &["pip", "pip3", "uv", "pipx"],
        "tricef",
        "tricef",
        &[
            "target",
            "requirement",
            "index-url",
            "extra-index-url",
            "editable",
            "log",
            "python",
            "config-settings",
            "global-option",
            "prefix",
            "root",
            "find-links",
            "with",
        ],
    ),
    program(
        &["pytest", "py.test", "tox", "nox"],
        "pco",
        "pckomnr",
        &[
            "confcutdir",
            "rootdir",
            "config-file",
            "override-ini",
            "basetemp",
            "junitxml",
            "junit-xml",
            "log-file",
            "pdbcls",
            "debug",
        ],
    ),
    program(
        &["mvn", "gradle", "gradlew"],
        "fIDsPtbpgc",
        "fIDsPtbpgc",
        &[
            "file",
            "init-script",
            "settings",
            "build-file",
            "project-dir",
            "include-build",
            "gradle-user-home",
            "settings-file",
        ],
    ),
    program(&["kubectl", "oc"], "f", "fnlock", &["kubeconfig", "raw", "filename", "template", "show-managed-fields"]),
    program(
        &["terraform", "tofu"],
        "",
        "",
        &["out", "chdir", "var-file", "plugin-dir", "state", "backup", "generate-config-out"],
    ),
    program(
        &["docker", "podman"],
        "vHcfo",
        "vHcfonpew",
        &[
            "volume",
            "mount",
            "privileged",
            "config",
            "host",
            "context",
            "device",
            "pid",
            "network",
            "file",
            "output",
            "entrypoint",
            "env-file",
            "cap-add",
            "security-opt",
            "cidfile",
            "iidfile",
        ],
    ),
    program(&["gh"], "t", "tRqL", &["show-token", "output", "dir", "output-file", "editor"]),
    program(
        &["aws", "gcloud", "az"],
        "",
        "",
        &[
            "endpoint-url",
            "output-file",
            "profile",
            "query",
            "cli-input-json",
            "ca-bundle",
            "configuration",
            "flags-file",
            "impersonate-service-account",
            "no-sign-request",
        ],
    ),
    program(&["systemctl"], "HM", "HMtpno", &["host", "machine", "root", "image", "force", "now"]),
    program(&["sqlite3"], "", "", &["cmd", "init"]),
    program(
        &["psql", "mysql", "mariadb", "mongosh"],
        "cfoLveE",
        "cfoLvhpUdeEu",
        &[
            "command",
            "file",
            "output",
            "log-file",
            "execute",
            "pager",
            "tee",
            "eval",
            "init-command",
            "plugin-dir",
            "defaults-file",
            "single-transaction",
        ],
    ),
    program(
        &["gpg", "gpg2", "openssl"],
        "o",
        "o",
        &[
            "output",
            "out",
            "exec-path",
            "agent-program",
            "dirmngr-program",
            "pinentry-program",
            "engine",
            "provider",
            "writerand",
            "keyserver",
            "photo-viewer",
            "edit-key",
            "export-secret-keys",
        ],
    ),
    program(&["diff", "cmp", "colordiff"], "", "", &["output"]),
    program(&["patch"], "odrzBY", "oidrzBYpDF", &["output", "directory", "reject-file", "prefix", "suffix"]),
    program(
        &[
            "column", "cut", "tr", "head", "wc", "cat", "nl", "tac", "rev", "grep", "egrep", "fgrep", "ls", "du", "df",
            "stat",
        ],
        "",
        "",
        &[],
    ),
    program(&["tail"], "fF", "cns", &["follow", "retry"]),
    program(
        &["vi", "vim", "nvim", "view", "ex", "ed", "emacs", "nano", "pico", "micro", "hx"],
        "csSuWwVq",
        "csSuWwVq",
        &["cmd", "eval", "load", "execute", "batch", "rcfile", "operatingdir", "speller"],
    ),
    program(
        &["gdb", "lldb"],
        "xe",
        "xeosp",
        &[
            "ex",
            "eval-command",
            "command",
            "args",
            "batch",
            "source",
            "one-line",
            "init-command",
            "init-eval-command",
            "iex",
        ],
    ),
    program(
        &["fzf", "sk"],
        "c",
        "nqdcm",
        &["bind", "preview", "listen", "listen-unsafe", "become", "cmd", "with-shell", "history"],
    ),
    program(
        &["ffmpeg", "convert", "magick", "pandoc", "pdflatex", "latex", "tex"],
        "ofFL",
        "",
        &[
            "output",
            "filter",
            "lua-filter",
            "pdf-engine",
            "shell-escape",
            "extract-media",
            "log",
            "data-dir",
            "template",
        ],
    ),
    program(&["crontab", "at", "batch"], "refu", "u", &[]),
    program(&["mount", "umount", "losetup"], "oit", "oit", &["bind", "options", "types"]),
    program(
        &["nc", "ncat", "netcat", "socat", "telnet"],
        "ecl",
        "ecl",
        &["exec", "sh-exec", "lua-exec", "listen", "output"],
    ),
    program(&["mail", "mailx", "sendmail", "mutt"], "ArSCXOae", "ArSCXOae", &["attach"]),
    program(&["lsof"], "Dmk", "Dmk", &[]),
    program(&["logger", "wall", "write"], "nuf", "", &["server", "socket", "file"]),
    program(
        &["rclone", "restic", "borg"],
        "",
        "",
        &[
            "config",
            "password-command",
            "rsh",
            "remote-path",
            "log-file",
            "filter-from",
            "rc",
            "metadata-mapper",
            "cache-dir",
        ],
    ),
    program(
        &["ansible", "ansible-playbook"],
        "imMe",
        "imMe",
        &[
            "inventory",
            "module-path",
            "extra-vars",
            "become",
            "vault-password-file",
            "ssh-extra-args",
            "ssh-common-args",
        ],
    ),
];

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
];

/// Everything in this argv, after the program, that does more than an entry stands for.
pub(crate) fn hazards(argv: &[String]) -> Vec<Hazard> {
    let Some((program, arguments)) = argv.split_first() else { return vec![] };
    let name = base_name(program);
    if is_wrapper(name) {
        return wrapped(argv, name);
    }
    if is_shell(name) || is_interpreter(name) {
        return interpreted(arguments, name);
    }
    if RUNNERS.contains(&name) {
        return all_of(arguments, name, 0);
    }
    let mut found = of_program(arguments, name);
    if let Some(table) = PROGRAMS.iter().find(|program| program.names.contains(&name)) {
        found.extend(options(arguments, name, table));
    }
    found.extend(general(arguments, name));
    found
}

/// What a wrapper is given up to the program that it starts, then that program's own.
fn wrapped(argv: &[String], name: &str) -> Vec<Hazard> {
    let started = match inner(argv).pop() {
        Some(Inner::Argv(started)) if !started.is_empty() && argv.ends_with(&started) => started,
        Some(Inner::Argv(_) | Inner::Script(_)) | None => return all_of(&argv[1..], name, 0),
    };
    let offset = argv.len() - started.len();
    let mut found: Vec<Hazard> = all_of(&argv[1..], name, 0).into_iter().filter(|hazard| hazard.at <= offset).collect();
    found.extend(hazards(&started).into_iter().map(|hazard| Hazard { at: hazard.at + offset, ..hazard }));
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
        "curl" | "wget" | "wget2" => second_url(arguments, name),
        "date" => date(arguments),
        "hostname" | "domainname" => operand_sets(arguments, name),
        "vi" | "vim" | "nvim" | "view" | "ex" | "less" | "more" | "most" => plus_commands(arguments, name),
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

fn options(arguments: &[String], name: &str, table: &Program) -> Vec<Hazard> {
    // `go`, `terraform` and their like take one dash for a long option.
    let one_dash = matches!(
        name,
        "go" | "terraform" | "tofu" | "openssl" | "java" | "nmap" | "gdb" | "sqlite3" | "ffmpeg" | "lldb"
    );
    found_at(arguments, name, |argument| {
        if let Some(given) = argument.strip_prefix("--") {
            return long_option(given, table.long).map(|option| format!("--{option}"));
        }
        let letters = argument.strip_prefix('-').filter(|letters| !letters.is_empty())?;
        if one_dash {
            let given = letters.split('=').next()?;
            if let Some(option) = table.long.iter().find(|option| **option == given) {
                return Some(format!("-{option}"));
            }
        }
        for letter in letters.chars() {
            if table.short.contains(letter) {
                return Some(format!("-{letter}"));
            }
            if table.valued.contains(letter) {
                // The rest of the cluster is this option's value.
                return None;
            }
        }
        None
    })
}

/// The harmful long option that a given one is, or abbreviates.
fn long_option(given: &str, harmful: &[&'static str]) -> Option<&'static str> {
    let given = given.split('=').next()?;
    harmful.iter().find(|option| option.starts_with(given) && !given.is_empty()).copied()
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

fn find(arguments: &[String]) -> Vec<Hazard> {
    const ACTIONS: &[&str] =
        &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"];
    arguments
        .iter()
        .enumerate()
        .filter(|(_, argument)| ACTIONS.contains(&argument.as_str()))
        .map(|(index, argument)| hazard(index, "find", argument))
        .collect()
}

/// A program text of awk that prints columns is plain; one that can start, write or read elsewhere is not.
fn awk(arguments: &[String]) -> Vec<Hazard> {
    let harmful = |text: &str| {
        ["system", "getline", "|", ">", "@load", "@include", "close", "ARGV", "ENVIRON", "/inet", "`"]
            .iter()
            .any(|word| text.contains(word))
    };
    let mut found = vec![];
    let mut seen_program = false;
    let mut valued = false;
    for (index, argument) in arguments.iter().enumerate() {
        if std::mem::take(&mut valued) {
            continue;
        }
        match argument.as_str() {
            "-F" | "-v" | "--field-separator" | "--assign" => valued = true,
            option if option.starts_with("-F") || option.starts_with("-v") || option.starts_with("--field") => {}
            option if option.starts_with('-') && option.len() > 1 => found.push(hazard(index, "awk", option)),
            text if !seen_program => {
                seen_program = true;
                if harmful(text) {
                    found.push(hazard(index, "awk", "PROGRAM"));
                }
            }
            _ => {}
        }
    }
    found
}

/// A script of sed that only selects, substitutes and prints is plain.
fn sed(arguments: &[String]) -> Vec<Hazard> {
    let mut found = vec![];
    let mut given = false;
    let mut next_is_script = false;
    let explicit = arguments
        .iter()
        .any(|argument| argument == "-e" || argument.starts_with("--expression") || clustered(argument, 'e'));
    for (index, argument) in arguments.iter().enumerate() {
        let script = if std::mem::take(&mut next_is_script) {
            Some(argument.as_str())
        } else if argument == "-e"
            || argument == "--expression"
            || (clustered(argument, 'e') && argument.ends_with('e'))
        {
            next_is_script = true;
            None
        } else if let Some(text) = argument.strip_prefix("--expression=").or_else(|| argument.strip_prefix("-e")) {
            Some(text)
        } else if argument.starts_with('-') && argument.len() > 1 {
            // A cluster that holds `e` with the script behind it is rare enough to ask about.
            if clustered(argument, 'e') {
                found.push(hazard(index, "sed", argument));
            }
            None
        } else if !explicit && !given {
            given = true;
            Some(argument.as_str())
        } else {
            None
        };
        if script.is_some_and(|script| !is_plain_sed(script)) {
            found.push(hazard(index, "sed", "SCRIPT"));
        }
    }
    found
}

fn clustered(argument: &str, letter: char) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && argument.contains(letter)
}

/// Whether each command of a sed script is one of `p d q = n N D P g G h H x l s y` with plain flags.
fn is_plain_sed(script: &str) -> bool {
    let mut rest = script.trim_start_matches([' ', '\t', ';', '\n', '{', '}']);
    while !rest.is_empty() {
        rest = match after_addresses(rest) {
            Some(rest) => rest,
            None => return false,
        };
        let Some(command) = rest.chars().next() else { return true };
        rest = &rest[command.len_utf8()..];
        match command {
            'p' | 'd' | '=' | 'n' | 'N' | 'D' | 'P' | 'g' | 'G' | 'h' | 'H' | 'x' | 'l' | '{' | '}' => {}
            'q' | 'Q' => rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit()),
            's' | 'y' => {
                let Some(after) = after_substitution(rest) else { return false };
                let flags = after.find([';', '\n', '}', ' ']).unwrap_or(after.len());
                // `e` runs the result and `w` writes it.
                if !after[..flags]
                    .chars()
                    .all(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || flag.is_ascii_digit())
                {
                    return false;
                }
                rest = &after[flags..];
            }
            _ => return false,
        }
        let next = rest.trim_start_matches([' ', '\t']);
        if !(next.is_empty() || next.starts_with([';', '\n', '}']) || matches!(command, '{' | '}')) {
            return false;
        }
        rest = next.trim_start_matches([' ', '\t', ';', '\n']);
    }
    true
}

fn after_addresses(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || matches!(letter, ' ' | '$' | ',' | '~' | '+' | '!')
        });
        let Some(first) = rest.chars().next() else { return Some(rest) };
        if first != '/' {
            return Some(rest);
        }
        let mut letters = rest.char_indices().skip(1);
        let end = loop {
            match letters.next()? {
                (_, '\\') => {
                    letters.next()?;
                }
                (at, '/') => break at,
                _ => {}
            }
        };
        rest = rest[end + 1..].trim_start_matches(['I', 'M']);
    }
}

fn after_substitution(text: &str) -> Option<&str> {
    let delimiter = text.chars().next()?;
    if delimiter == '\\' || delimiter == '\n' {
        return None;
    }
    let mut ends = 0;
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next()?;
        } else if letter == delimiter {
            ends += 1;
            if ends == 2 {
                return Some(&text[at + delimiter.len_utf8()..]);
            }
        }
    }
    None
}

fn tar(arguments: &[String]) -> Vec<Hazard> {
    const HARMFUL: &[&str] = &[
        "checkpoint-action",
        "to-command",
        "use-compress-program",
        "info-script",
        "new-volume-script",
        "rsh-command",
        "rmt-command",
        "index-file",
        "extract",
        "get",
        "create",
        "append",
        "update",
        "concatenate",
        "catenate",
        "delete",
        "remove-files",
        "volno-file",
        "listed-incremental",
        "files-from",
        "directory",
        "absolute-names",
        "overwrite",
        "unlink-first",
        "recursive-unlink",
        "backup",
        "transform",
        "xform",
    ];
    let mut found = vec![];
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(given) = argument.strip_prefix("--") {
            if let Some(option) = long_option(given, HARMFUL) {
                found.push(hazard(index, "tar", &format!("--{option}")));
            }
            continue;
        }
        // The first word is a cluster even without a dash.
        let letters = match argument.strip_prefix('-') {
            Some(letters) => letters,
            None if index == 0 => argument.as_str(),
            None => continue,
        };
        for letter in letters.chars() {
            if "xcruAIFCPgGTdUW".contains(letter) {
                found.push(hazard(index, "tar", &format!("-{letter}")));
                break;
            }
            // After the file's name nothing of the cluster is an option.
            if letter == 'f' && argument.starts_with('-') {
                break;
            }
        }
    }
    found
}

fn git(arguments: &[String]) -> Vec<Hazard> {
    /// Sub-commands that do no more than their name says; for the rest an entry has to name them.
    const KNOWN: &[&str] = &[
        "add",
        "blame",
        "branch",
        "cat-file",
        "check-ignore",
        "checkout",
        "cherry",
        "cherry-pick",
        "clean",
        "clone",
        "commit",
        "count-objects",
        "describe",
        "diff",
        "diff-files",
        "diff-index",
        "diff-tree",
        "fetch",
        "for-each-ref",
        "fsck",
        "gc",
        "grep",
        "init",
        "log",
        "ls-files",
        "ls-remote",
        "ls-tree",
        "merge",
        "merge-base",
        "mv",
        "name-rev",
        "pull",
        "push",
        "range-diff",
        "rebase",
        "reflog",
        "remote",
        "reset",
        "restore",
        "rev-list",
        "rev-parse",
        "revert",
        "rm",
        "shortlog",
        "show",
        "show-branch",
        "show-ref",
        "stash",
        "status",
        "switch",
        "tag",
        "var",
        "version",
        "whatchanged",
        "worktree",
        "archive",
        "apply",
        "am",
        "format-patch",
        "bundle",
    ];
    const LONG: &[&str] = &[
        "output",
        "output-directory",
        "exec",
        "upload-pack",
        "receive-pack",
        "open-files-in-pager",
        "ext-diff",
        "textconv",
        "config",
        "template",
        "extcmd",
        "tool",
        "remote",
        "server-option",
        "separate-git-dir",
        "reference",
        "recurse-submodules",
        "strategy",
        "edit",
        "gpg-sign",
        "sign",
        "local-user",
        "signed",
        "trailer",
        "pathspec-from-file",
        "contents",
    ];
    let mut found = vec![];
    let Some(at) = arguments.iter().position(|argument| !argument.starts_with('-')) else {
        return all_of(arguments, "git", 0)
            .into_iter()
            .filter(|hazard| !matches!(arguments[hazard.at - 1].as_str(), "--version" | "-v" | "--help" | "-h"))
            .collect();
    };
    for (index, argument) in arguments[..at].iter().enumerate() {
        if !matches!(
            argument.as_str(),
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" | "--no-replace-objects"
        ) {
            found.push(hazard(index, "git", argument));
        }
    }
    if !found.is_empty() {
        // An option before the sub-command may take the next word, so nothing after it can be told.
        found.extend(all_of(arguments, "git", at));
        return found;
    }
    let sub = arguments[at].as_str();
    if !KNOWN.contains(&sub) {
        found.push(hazard(at, "git", sub));
        found.extend(all_of(arguments, &format!("git {sub}"), at + 1));
        return found;
    }
    let short = match sub {
        "clone" | "init" => "cu",
        "grep" | "diff" | "log" | "show" | "whatchanged" | "diff-tree" | "diff-index" | "diff-files" | "range-diff" => {
            "O"
        }
        "rebase" => "xiS",
        "archive" | "format-patch" => "o",
        "commit" | "merge" | "revert" | "cherry-pick" => "Ss",
        "tag" => "ufdasm",
        "branch" => "dDmMcCfu",
        _ => "",
    };
    let valued = match sub {
        "log" | "show" | "diff" | "grep" | "whatchanged" => "nSGUlABCem",
        "commit" | "tag" | "merge" => "mFCc",
        _ => "",
    };
    for (index, argument) in arguments.iter().enumerate().skip(at + 1) {
        if argument == "--" {
            break;
        }
        if argument.contains("::") && !argument.starts_with('-') {
            found.push(hazard(index, "git", "EXT::…"));
        } else if let Some(given) = argument.strip_prefix("--") {
            if let Some(option) = long_option(given, LONG) {
                found.push(hazard(index, &format!("git {sub}"), &format!("--{option}")));
            }
        } else if let Some(letters) = argument.strip_prefix('-') {
            for letter in letters.chars() {
                if short.contains(letter) {
                    found.push(hazard(index, &format!("git {sub}"), &format!("-{letter}")));
                    break;
                }
                if valued.contains(letter) {
                    break;
                }
            }
        }
    }
    // Words that change rather than show.
    let words: &[&str] = match sub {
        "remote" => {
            &["add", "remove", "rm", "rename", "set-url", "set-head", "set-branches", "prune", "update", "show"]
        }
        "stash" => &["drop", "clear", "pop", "apply", "push", "save", "store", "create", "branch"],
        "reflog" => &["expire", "delete"],
        "worktree" => &["add", "move", "remove", "prune", "repair"],
        "bundle" => &["create", "unbundle"],
        _ => &[],
    };
    if let Some(index) = (at + 1..arguments.len()).find(|index| !arguments[*index].starts_with('-'))
        && words.contains(&arguments[index].as_str())
    {
        found.push(hazard(index, &format!("git {sub}"), &arguments[index]));
    }
    if matches!(sub, "branch" | "tag") {
        let lists = arguments[at + 1..].iter().any(|argument| {
            matches!(
                argument.as_str(),
                "-l" | "--list" | "--contains" | "--merged" | "--no-merged" | "--points-at" | "--sort" | "--format"
            )
        });
        if !lists && let Some(index) = (at + 1..arguments.len()).find(|index| !arguments[*index].starts_with('-')) {
            found.push(hazard(index, &format!("git {sub}"), "NAME"));
        }
    }
    found
}
