//! What is known of programs by their options alone.

use super::{Hazard, found_at};

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
    program(&["shuf"], "o", "inr", &["output", "random-source"]),
    program(&["iconv"], "o", "ft", &["output"]),
    program(&["xsltproc", "xmllint"], "o", "", &["output", "writesubtree", "shell", "catalogs", "load-trace"]),
    program(&["tidy"], "om", "fcw", &["output-file", "write-back", "modify", "file"]),
    program(&["sar", "sadf"], "o", "feios", &["oneline"]),
    program(&["apt", "apt-get", "apt-cache", "aptitude"], "oc", "t", &["option", "config-file", "host-architecture"]),
    program(
        &["dpkg", "dpkg-query"],
        "",
        "",
        &["pre-invoke", "post-invoke", "status-logger", "admindir", "root", "instdir"],
    ),
    program(&["rpm"], "ED", "", &["eval", "define", "undefine", "pipe", "macros", "rcfile", "load", "root", "dbpath"]),
    program(
        &["exiftool"],
        "oW",
        "",
        &["config", "if", "if2", "if3", "execute", "overwrite_original", "out", "tagOut", "p", "userParam"],
    ),
    program(&["ghc"], "eo", "", &["e", "pgmF", "pgmL", "plugin-package", "fplugin"]),
    program(&["sort"], "oT", "ktSTo", &["output", "compress-program", "files0-from", "temporary-directory"]),
    program(&["rg", "ripgrep"], "z", "efgtTABCmMjrd", &["pre", "pre-glob", "hostname-bin", "search-zip"]),
    program(&["ag", "ack"], "z", "ABCmGg", &["pager", "search-zip", "ackrc", "output"]),
    program(&["fd", "fdfind"], "xX", "etdEcjSo", &["exec", "exec-batch"]),
    program(&["sed", "gsed"], "if", "el", &["in-place", "file"]),
    program(&["yq"], "is", "opI", &["inplace", "in-place", "split-exp", "from-file"]),
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
            "remote-name-all",
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
            "c",
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
        &[
            "vi", "vim", "nvim", "view", "ex", "vimdiff", "gvim", "gvimdiff", "gview", "rvim", "rview", "vimx", "ed",
            "emacs", "nano", "pico", "micro", "hx",
        ],
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
        &["latex", "pdflatex", "xelatex", "lualatex", "tex", "pdftex", "luatex", "xetex"],
        "",
        "",
        &["shell-escape", "enable-write18", "output-directory", "output-comment", "recorder"],
    ),
    program(
        &["ffmpeg", "convert", "magick", "pandoc"],
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

/// The harmful options among the arguments of a program that the table knows.
pub(super) fn options(arguments: &[String], name: &str) -> Vec<Hazard> {
    let Some(table) = PROGRAMS.iter().find(|program| program.names.contains(&name)) else { return vec![] };
    // `go`, `terraform` and their like take one dash for a long option.
    let one_dash = matches!(
        name,
        "go" | "terraform"
            | "tofu"
            | "openssl"
            | "java"
            | "nmap"
            | "gdb"
            | "sqlite3"
            | "ffmpeg"
            | "lldb"
            | "latex"
            | "pdflatex"
            | "xelatex"
            | "lualatex"
            | "tex"
            | "pdftex"
            | "luatex"
            | "xetex"
            | "gcc"
            | "g++"
            | "cc"
            | "c++"
            | "clang"
            | "clang++"
            | "ld"
            | "exiftool"
            | "ghc"
            | "xmllint"
            | "xsltproc"
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
pub(super) fn long_option(given: &str, harmful: &[&'static str]) -> Option<&'static str> {
    let given = given.split('=').next()?;
    harmful.iter().find(|option| option.starts_with(given) && !given.is_empty()).copied()
}
