//! Commands that no rule, mode or answer lets through.
//!
//! This net catches the well-known ruinous commands in whatever dress; what it misses still asks. It errs
//! toward asking, because nothing overrides it.

use std::path::{Path, PathBuf};

use super::script::{Line, Part, Script};
use super::unwrap::{base_name, is_interpreter, is_shell, levels, runs_stdin};
use super::word::UNKNOWN;
use crate::path::{holds_owds, is_owds, lexical};

/// How deep scripts inside commands are followed.
const DEPTH_LIMIT: u32 = 8;

/// Folders without which the system or the person's data is gone.
const SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/lib",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/Volumes",
    "/private",
    "/nix",
    "/mnt",
    "/media",
];

const DOWNLOADERS: &[&str] = &[
    "curl",
    "wget",
    "wget2",
    "fetch",
    "aria2c",
    "axel",
    "http",
    "https",
    "xh",
    "xhs",
    "curlie",
    "lynx",
    "w3m",
    "links",
    "ftp",
    "lwp-request",
    "GET",
    "nc",
    "ncat",
    "netcat",
    "socat",
];

const DISKS: &[&str] = &[
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper", "dm-", "md", "loop", "zd", "nbd", "sr",
    "mtd", "mem", "kmem", "port",
];

const DISK_WRITERS: &[&str] = &[
    "cp",
    "mv",
    "tee",
    "install",
    "shred",
    "wipefs",
    "badblocks",
    "blkdiscard",
    "truncate",
    "sgdisk",
    "gdisk",
    "fdisk",
    "cfdisk",
    "sfdisk",
    "parted",
    "mkswap",
    "mdadm",
    "cryptsetup",
    "pvcreate",
    "vgcreate",
    "hdparm",
    "nvme",
    "zpool",
    "flashrom",
    "ddrescue",
    "dcfldd",
    "pv",
    "sponge",
    "rsync",
    "split",
];

/// The folders that hard blocks are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground<'a> {
    pub(crate) home: &'a Path,
    pub(crate) protected: &'a [PathBuf],
    pub(crate) run_folder: Option<&'a Path>,
}

/// The rule and reason that block a script; none: it may be asked about.
pub(crate) fn block(script: &Script, ground: Ground) -> Option<(String, String)> {
    block_at(script, ground, 0)
}

fn block_at(script: &Script, ground: Ground, depth: u32) -> Option<(String, String)> {
    if depth > DEPTH_LIMIT {
        return Some(("hard-block: nesting".into(), "shells inside shells nest too deep to be read".into()));
    }
    let piped = script.lines.iter().find_map(|line| downloaded_code(line, ground));
    piped.or_else(|| {
        script
            .lines
            .iter()
            .flat_map(|line| &line.stages)
            .flat_map(|stage| &stage.parts)
            .find_map(|part| block_part(part, ground, depth))
    })
}

fn block_part(part: &Part, ground: Ground, depth: u32) -> Option<(String, String)> {
    let argv = part.texts();
    let (commands, mut scripts) = levels(&argv, ground.home, part.cwd.as_deref());
    for command in &commands {
        if is_shell(command.first().map_or("", String::as_str)) && runs_stdin(command) {
            scripts.extend(part.fed.iter().map(|text| Script::read(text, ground.home, part.cwd.as_deref())));
        }
        if let Some(found) = block_command(command, part, ground).or_else(|| takes_owds(command, part, ground)) {
            return Some(found);
        }
    }
    for target in &part.writes {
        if is_device(&place(target, part.cwd.as_deref(), ground)) {
            return Some(("hard-block: write to a device".into(), format!("`{target}` is a device")));
        }
    }
    for path in part.writes.iter().chain(&part.reads).chain(argv.iter().skip(1)) {
        if let Some(found) = own_file(path, part, ground) {
            return Some(found);
        }
    }
    scripts.iter().chain(&part.inner).find_map(|script| block_at(script, ground, depth + 1))
}

fn block_command(command: &[String], part: &Part, ground: Ground) -> Option<(String, String)> {
    let (program, arguments) = command.split_first()?;
    let name = base_name(program);
    let cwd = part.cwd.as_deref();
    let ruinous = |rule: &str, target: &str| {
        Some((format!("hard-block: {rule}"), format!("`{}` would destroy `{target}`", command.join(" "))))
    };
    let ruined = || operands(arguments).into_iter().find(|operand| is_ruinous(operand, cwd, ground));
    match name {
        "rm" | "srm" => {
            if has_long(arguments, "no-preserve-root") {
                return ruinous("rm of root", "/");
            }
            let recursive = has_short(arguments, &['r', 'R']) || has_long(arguments, "recursive");
            if recursive && let Some(target) = ruined() {
                return ruinous("rm of root", target);
            }
        }
        "shred" | "mv" if ruined().is_some() => return ruinous(name, ruined().unwrap_or_default()),
        "chmod" | "chown" | "chgrp" | "setfacl" if has_short(arguments, &['R']) || has_long(arguments, "recursive") => {
            let home = ground.home.to_string_lossy();
            let system = ruined().filter(|target| {
                place(target, cwd, ground) != *home && !target.starts_with(&*home) && !target.starts_with('.')
            });
            if let Some(target) = system {
                return ruinous(&format!("{name} of the system"), target);
            }
        }
        "find" => {
            let narrowed = arguments.iter().any(|argument| {
                ["-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-wholename"].contains(&argument.as_str())
                    || ["-mtime", "-mmin", "-atime", "-ctime", "-newer", "-empty", "-size", "-user", "-uid"]
                        .iter()
                        .any(|test| argument.starts_with(test))
            });
            let deletes = arguments.iter().any(|argument| argument == "-delete")
                || arguments
                    .windows(2)
                    .any(|pair| pair[0].starts_with("-exec") && matches!(base_name(&pair[1]), "rm" | "shred"));
            let start = arguments
                .iter()
                .take_while(|argument| !argument.starts_with(['-', '(', '!']))
                .find(|argument| is_ruinous(argument, cwd, ground));
            if deletes
                && !narrowed
                && let Some(start) = start
            {
                return ruinous("rm of root", start);
            }
        }
        "dd" => {
            let target = arguments.iter().find_map(|argument| argument.strip_prefix("of="));
            if let Some(target) = target.filter(|target| is_device(&place(target, cwd, ground))) {
                return ruinous("write to a device", target);
            }
        }
        "kill" if arguments.iter().any(|argument| argument == "-1") && arguments.len() > 1 => {
            return Some(("hard-block: kill of everything".into(), "`-1` means every process".into()));
        }
        _ if name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("newfs") || name == "mke2fs" => {
            return Some(("hard-block: new file system".into(), format!("`{name}` erases what it is given")));
        }
        _ if DISK_WRITERS.contains(&name) => {
            if let Some(target) = operands(arguments).into_iter().find(|operand| is_disk(&place(operand, cwd, ground)))
            {
                return ruinous("write to a device", target);
            }
        }
        _ => {}
    }
    let runs_code = is_shell(name) || is_interpreter(name) || matches!(name, "eval" | "source" | ".");
    let downloads = part.inner.iter().any(|script| script.parts().into_iter().any(|inner| downloads(inner, ground)));
    // `$(curl U)` as the command itself runs what was fetched, too.
    if downloads && (runs_code || name.starts_with(UNKNOWN)) {
        return Some(downloaded());
    }
    None
}

/// Whether a pipeline feeds what was fetched to something that runs it.
fn downloaded_code(line: &Line, ground: Ground) -> Option<(String, String)> {
    let mut fetched = false;
    let mut said: Vec<String> = vec![];
    for stage in &line.stages {
        for part in &stage.parts {
            let (commands, scripts) = levels(&part.texts(), ground.home, part.cwd.as_deref());
            let nested = scripts.iter().flat_map(Script::parts).map(Part::texts);
            if commands.iter().cloned().chain(nested).any(|command| runs_stdin(&command)) {
                if fetched {
                    return Some(downloaded());
                }
                // What `echo` says to a shell is a script like any other.
                let found = said.iter().find_map(|text| {
                    block_at(&Script::read(text, ground.home, part.cwd.as_deref()), ground, DEPTH_LIMIT)
                });
                if found.is_some() {
                    return found;
                }
            }
        }
        fetched |= stage.parts.iter().any(|part| downloads(part, ground));
        for part in &stage.parts {
            let texts = part.texts();
            if texts.first().is_some_and(|program| matches!(base_name(program), "echo" | "printf")) {
                said.push(texts[1..].join(" "));
            }
            said.extend(part.fed.iter().cloned());
        }
    }
    None
}

fn downloaded() -> (String, String) {
    (
        "hard-block: downloaded code".into(),
        "what is fetched would run unseen; save it to a file, read it, then run that file".into(),
    )
}

fn downloads(part: &Part, ground: Ground) -> bool {
    let (commands, scripts) = levels(&part.texts(), ground.home, part.cwd.as_deref());
    let fetches = |argv: &[String]| argv.first().is_some_and(|program| DOWNLOADERS.contains(&base_name(program)));
    commands.iter().any(|command| fetches(command))
        || scripts.iter().chain(&part.inner).flat_map(Script::parts).any(|inner| fetches(&inner.texts()))
}

/// Whether a command takes away, moves or re-owns a folder with owd's own files in it.
fn takes_owds(command: &[String], part: &Part, ground: Ground) -> Option<(String, String)> {
    let (program, arguments) = command.split_first()?;
    let recursive = || has_short(arguments, &['r', 'R']) || has_long(arguments, "recursive");
    let takes = match base_name(program) {
        "mv" | "shred" | "trash" | "trash-put" | "rmtree" => true,
        "rm" | "srm" | "chmod" | "chown" | "chgrp" | "setfacl" => recursive(),
        "find" => arguments.iter().any(|argument| argument == "-delete" || argument.starts_with("-exec")),
        _ => false,
    };
    let holds = |operand: &&str| {
        let at = place(operand, part.cwd.as_deref(), ground);
        at.starts_with('/') && holds_owds(Path::new(&at), ground.protected)
    };
    let target = takes.then(|| operands(arguments).into_iter().find(holds)).flatten()?;
    Some(("hard-block: owd's own files".into(), format!("`{target}` holds files of owd's own")))
}

fn own_file(path: &str, part: &Part, ground: Ground) -> Option<(String, String)> {
    // `--file=/path`, `of=/path` and `-f/path` name a path as well.
    let candidates = [Some(path), path.split_once('=').map(|(_, value)| value), path.find('/').map(|at| &path[at..])];
    let found = candidates.into_iter().flatten().filter(|text| !text.is_empty()).any(|text| {
        let at = place(text, part.cwd.as_deref(), ground);
        is_owds(Path::new(&at), ground.protected, ground.run_folder)
    });
    found.then(|| ("hard-block: owd's own files".into(), format!("`{path}` belongs to owd itself; use owctl")))
}

/// Whether removing this recursively takes the system or the whole home with it.
fn is_ruinous(operand: &str, cwd: Option<&Path>, ground: Ground) -> bool {
    let at = place(operand, cwd, ground);
    // A last component that matches everything stands for its folder.
    let (folder, last) = at.rsplit_once('/').unwrap_or(("", &at));
    let everything = !last.is_empty()
        && last.contains(['*', '?'])
        && last.chars().all(|letter| matches!(letter, '*' | '?' | '.' | '!' | '[' | ']' | '^' | '-'));
    let whole = if everything { if folder.is_empty() { "/" } else { folder } } else { &at };
    SYSTEM.contains(&whole)
        || Path::new(whole) == ground.home
        || ground.home.starts_with(whole) && whole.starts_with('/')
}

/// Where an operand lies, by its text; an operand of unknown folder stays as it is.
fn place(operand: &str, cwd: Option<&Path>, ground: Ground) -> String {
    let text = match operand.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", ground.home.display()),
        _ => operand.to_owned(),
    };
    let path = Path::new(&text);
    let whole = match (path.is_absolute(), cwd) {
        (true, _) => path.to_owned(),
        (false, Some(cwd)) => cwd.join(path),
        (false, None) => return text,
    };
    lexical(&whole).to_string_lossy().into_owned()
}

fn is_device(path: &str) -> bool {
    path.strip_prefix("/dev/").is_some_and(|name| {
        let harmless = ["null", "zero", "full", "stdin", "stdout", "stderr", "tty", "random", "urandom", "ptmx"];
        !harmless.contains(&name) && !name.starts_with("fd/") && !name.starts_with("pts/") && !name.starts_with("shm/")
    })
}

fn is_disk(path: &str) -> bool {
    path.strip_prefix("/dev/").is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}

fn operands(arguments: &[String]) -> Vec<&str> {
    let mut ended = false;
    let mut found = vec![];
    for argument in arguments {
        if argument == "--" && !ended {
            ended = true;
        } else if ended || !argument.starts_with('-') {
            found.push(argument.as_str());
        }
    }
    found
}

fn has_short(arguments: &[String], letters: &[char]) -> bool {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument.starts_with('-') && !argument.starts_with("--") && argument.contains(letters))
}

/// A long option, also abbreviated as GNU programs let it be.
fn has_long(arguments: &[String], name: &str) -> bool {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .any(|argument| argument.strip_prefix("--").is_some_and(|given| given.len() > 2 && name.starts_with(given)))
}
