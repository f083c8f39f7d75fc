//! Programs that only read, each with the options that it may carry.
//!
//! A list of what is known to be harmless, unlike the hazards: an option that is not named here asks.

use super::word::literal;

/// How the operands of a safe program are to be taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operands {
    None,
    /// Paths; without any the program reads the working directory.
    PathsOrHere,
    /// Paths; without any the program reads its standard input.
    Paths,
    /// A pattern, then paths.
    PatternThenPaths,
    /// One path only: a second one would be written.
    OnePath,
    /// Text that is no path.
    Text,
    /// `+FORMAT` only.
    Format,
    /// Revisions or paths.
    Revisions,
    /// A plain word that is not an option.
    BsdPs,
}

struct Safe {
    /// The words that it begins with.
    words: &'static [&'static str],
    /// One-letter options without a value.
    short: &'static str,
    /// One-letter options with one.
    valued: &'static str,
    /// Long options, with or without `=value`; never abbreviated.
    long: &'static [&'static str],
    operands: Operands,
}

const fn safe(
    words: &'static [&'static str],
    short: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Safe {
    Safe { words, short, valued, long, operands }
}

const DIFF_OPTIONS: &[&str] = &[
    "stat",
    "shortstat",
    "numstat",
    "name-only",
    "name-status",
    "summary",
    "patch",
    "no-patch",
    "cached",
    "staged",
    "color",
    "no-color",
    "word-diff",
    "ignore-all-space",
    "ignore-space-change",
    "unified",
    "exit-code",
    "quiet",
    "no-ext-diff",
    "no-textconv",
    "oneline",
    "graph",
    "decorate",
    "no-decorate",
    "all",
    "branches",
    "tags",
    "remotes",
    "author",
    "grep",
    "since",
    "until",
    "after",
    "before",
    "max-count",
    "skip",
    "reverse",
    "first-parent",
    "merges",
    "no-merges",
    "follow",
    "abbrev-commit",
    "abbrev",
    "pretty",
    "format",
    "date",
    "diff-filter",
    "find-renames",
    "minimal",
    "patience",
    "histogram",
    "check",
    "relative",
    "no-renames",
    "full-index",
];

const LIST: &[Safe] = &[
    safe(
        &["ls"],
        "aAlhrtSR1dFGgimnopqsUuXcCxNQ",
        "",
        &[
            "all",
            "almost-all",
            "human-readable",
            "size",
            "color",
            "recursive",
            "reverse",
            "inode",
            "directory",
            "time-style",
            "sort",
            "full-time",
            "group-directories-first",
        ],
        Operands::PathsOrHere,
    ),
    safe(&["pwd"], "LP", "", &[], Operands::None),
    safe(
        &["cat"],
        "nbsAETvet",
        "",
        &["number", "number-nonblank", "squeeze-blank", "show-all", "show-ends", "show-tabs"],
        Operands::Paths,
    ),
    safe(&["tac"], "", "", &[], Operands::Paths),
    safe(&["head"], "qv", "nc", &["lines", "bytes", "quiet", "verbose"], Operands::Paths),
    safe(&["tail"], "qv", "nc", &["lines", "bytes", "quiet", "verbose"], Operands::Paths),
    safe(&["wc"], "lwcmL", "", &["lines", "words", "bytes", "chars", "max-line-length"], Operands::Paths),
    safe(&["nl"], "", "bw", &[], Operands::Paths),
    safe(
        &["cut"],
        "s",
        "dfcb",
        &["delimiter", "fields", "characters", "bytes", "complement", "only-delimited", "output-delimiter"],
        Operands::Paths,
    ),
    safe(&["tr"], "dscC", "", &["delete", "squeeze-repeats", "complement"], Operands::Text),
    safe(
        &["sort"],
        "nrufbdghMRVcCsz",
        "kt",
        &[
            "numeric-sort",
            "reverse",
            "unique",
            "key",
            "field-separator",
            "human-numeric-sort",
            "version-sort",
            "ignore-case",
            "stable",
            "check",
        ],
        Operands::Paths,
    ),
    safe(
        &["uniq"],
        "cdDiuz",
        "fsw",
        &["count", "repeated", "unique", "ignore-case", "skip-fields", "skip-chars"],
        Operands::OnePath,
    ),
    safe(&["rev"], "", "", &[], Operands::Paths),
    safe(&["fold"], "bs", "w", &["width", "spaces"], Operands::Paths),
    safe(&["comm"], "123", "", &[], Operands::Paths),
    safe(&["paste"], "s", "d", &[], Operands::Paths),
    safe(
        &["diff"],
        "uqsbBwiaEy",
        "UCW",
        &["unified", "brief", "ignore-case", "ignore-all-space", "side-by-side", "color"],
        Operands::Paths,
    ),
    safe(&["cmp"], "bls", "n", &["silent", "quiet"], Operands::Paths),
    safe(
        &["grep"],
        "invclLHhoqswxEFGaPzbT",
        "eABCm",
        &[
            "ignore-case",
            "line-number",
            "invert-match",
            "count",
            "files-with-matches",
            "files-without-match",
            "only-matching",
            "quiet",
            "word-regexp",
            "line-regexp",
            "extended-regexp",
            "fixed-strings",
            "after-context",
            "before-context",
            "context",
            "max-count",
            "color",
            "no-messages",
            "with-filename",
            "no-filename",
            "text",
        ],
        Operands::PatternThenPaths,
    ),
    safe(&["egrep"], "invclLHhoqswx", "eABCm", &[], Operands::PatternThenPaths),
    safe(&["fgrep"], "invclLHhoqswx", "eABCm", &[], Operands::PatternThenPaths),
    safe(&["stat"], "Lft", "c", &["format", "printf", "terse", "dereference"], Operands::Paths),
    safe(&["file"], "bikLhz", "", &["brief", "mime", "mime-type", "mime-encoding"], Operands::Paths),
    safe(
        &["du"],
        "achksmxLSD0",
        "dt",
        &[
            "human-readable",
            "summarize",
            "all",
            "total",
            "max-depth",
            "apparent-size",
            "bytes",
            "si",
            "one-file-system",
            "time",
        ],
        Operands::PathsOrHere,
    ),
    safe(
        &["df"],
        "ahHiklPTt",
        "xB",
        &[
            "human-readable",
            "si",
            "all",
            "inodes",
            "local",
            "portability",
            "print-type",
            "total",
            "output",
            "block-size",
            "type",
            "exclude-type",
        ],
        Operands::Paths,
    ),
    safe(&["tree"], "adfhilpsugDFrtvSnC", "L", &["dirsfirst", "noreport", "du", "si"], Operands::PathsOrHere),
    safe(&["realpath"], "emsqLPz", "", &[], Operands::Paths),
    safe(&["readlink"], "femnqsvz", "", &[], Operands::Paths),
    safe(&["basename"], "az", "s", &[], Operands::Text),
    safe(&["dirname"], "z", "", &[], Operands::Text),
    safe(&["md5sum"], "btz", "", &["binary", "text", "tag"], Operands::Paths),
    safe(&["sha1sum"], "btz", "", &["binary", "text", "tag"], Operands::Paths),
    safe(&["sha256sum"], "btz", "", &["binary", "text", "tag"], Operands::Paths),
    safe(&["sha512sum"], "btz", "", &["binary", "text", "tag"], Operands::Paths),
    safe(&["b2sum"], "btz", "", &[], Operands::Paths),
    safe(&["cksum"], "", "", &[], Operands::Paths),
    safe(&["which"], "a", "", &["all"], Operands::Text),
    safe(&["date"], "uRI", "d", &["utc", "universal", "iso-8601", "rfc-3339", "rfc-email", "date"], Operands::Format),
    safe(&["cal"], "m13yjs", "", &[], Operands::Text),
    safe(
        &["uname"],
        "asnrvmpio",
        "",
        &["all", "kernel-name", "kernel-release", "machine", "operating-system"],
        Operands::None,
    ),
    safe(&["hostname"], "fsiIdA", "", &["fqdn", "short", "long", "ip-address", "all-ip-addresses"], Operands::None),
    safe(&["hostnamectl"], "", "", &[], Operands::None),
    safe(&["whoami"], "", "", &[], Operands::None),
    safe(&["id"], "ugGnr", "", &["user", "group", "groups", "name", "real"], Operands::Text),
    safe(&["groups"], "", "", &[], Operands::Text),
    safe(&["arch"], "", "", &[], Operands::None),
    safe(&["nproc"], "", "", &["all"], Operands::None),
    safe(&["uptime"], "ps", "", &["pretty", "since"], Operands::None),
    safe(&["free"], "bkmghtwlv", "", &["human", "mega", "giga", "wide", "total", "si"], Operands::None),
    safe(&["lscpu"], "aebJ", "", &[], Operands::None),
    safe(&["lsblk"], "abdfilmnprtJO", "o", &["all", "bytes", "fs", "json", "list", "output"], Operands::None),
    safe(&["ps"], "efAaulxjwdT", "opCUG", &["no-headers", "sort", "format", "pid", "user", "forest"], Operands::BsdPs),
    safe(&["who"], "abdHlmqrsTu", "", &[], Operands::None),
    safe(&["w"], "hsfi", "", &[], Operands::None),
    safe(&["echo"], "neE", "", &[], Operands::Text),
    safe(&["true"], "", "", &[], Operands::None),
    safe(&["false"], "", "", &[], Operands::None),
    safe(&["seq"], "w", "sf", &[], Operands::Text),
    safe(
        &["git", "status"],
        "sbuvz",
        "",
        &[
            "short",
            "branch",
            "porcelain",
            "long",
            "show-stash",
            "untracked-files",
            "ignored",
            "ahead-behind",
            "column",
            "no-column",
            "no-renames",
        ],
        Operands::Revisions,
    ),
    safe(&["git", "diff"], "psuwbzrR", "U", DIFF_OPTIONS, Operands::Revisions),
    safe(&["git", "log"], "psuwbzirEF", "nUSGL", DIFF_OPTIONS, Operands::Revisions),
    safe(&["git", "show"], "psuwbz", "nU", DIFF_OPTIONS, Operands::Revisions),
    safe(&["git", "shortlog"], "nse", "", &["numbered", "summary", "email", "since", "until"], Operands::Revisions),
    safe(&["git", "blame"], "wsetMC", "L", &[], Operands::Revisions),
    safe(
        &["git", "branch"],
        "arv",
        "",
        &["all", "remotes", "verbose", "list", "show-current", "merged", "no-merged", "contains"],
        Operands::None,
    ),
    safe(&["git", "tag"], "ln", "", &["list", "sort", "contains", "merged", "no-merged", "points-at"], Operands::None),
    safe(&["git", "remote"], "v", "", &["verbose"], Operands::None),
    safe(&["git", "stash", "list"], "", "", &[], Operands::None),
    safe(&["git", "worktree", "list"], "v", "", &["porcelain", "verbose"], Operands::None),
    safe(
        &["git", "rev-parse"],
        "q",
        "",
        &["short", "abbrev-ref", "show-toplevel", "verify", "git-dir", "is-inside-work-tree", "quiet"],
        Operands::Revisions,
    ),
    safe(&["git", "rev-list"], "n", "", &["count", "all", "max-count", "since", "until"], Operands::Revisions),
    safe(
        &["git", "ls-files"],
        "cdmosutvz",
        "",
        &["cached", "deleted", "modified", "others", "stage", "exclude-standard", "full-name"],
        Operands::Revisions,
    ),
    safe(&["git", "ls-tree"], "rdtlz", "", &["name-only", "full-tree", "long"], Operands::Revisions),
    safe(
        &["git", "describe"],
        "",
        "",
        &["tags", "all", "always", "dirty", "long", "abbrev", "exact-match"],
        Operands::Revisions,
    ),
    safe(&["git", "version"], "", "", &[], Operands::None),
];

/// Builds and tests: they run the project's own code, so only a workspace that the person trusts has them.
const BUILDS: &[&[&str]] = &[
    &["make"],
    &["make", "all"],
    &["make", "build"],
    &["make", "test"],
    &["make", "check"],
    &["go", "build"],
    &["go", "test"],
    &["go", "vet"],
    &["cargo", "build"],
    &["cargo", "check"],
    &["cargo", "clippy"],
    &["cargo", "test"],
    &["cargo", "doc"],
    &["npm", "test"],
    &["npm", "run", "build"],
    &["npm", "run", "test"],
    &["npm", "run", "lint"],
    &["pytest"],
    &["mvn", "test"],
    &["gradle", "test"],
    &["gradle", "build"],
];

const BUILD_OPTIONS: &[&str] = &[
    "-v",
    "-q",
    "-x",
    "-s",
    "-race",
    "-short",
    "-count=1",
    "-cover",
    "--release",
    "--workspace",
    "--all-targets",
    "--all-features",
    "--no-default-features",
    "--lib",
    "--bins",
    "--tests",
    "--doc",
    "--quiet",
    "--verbose",
    "--locked",
    "--offline",
    "--frozen",
    "--no-deps",
];

/// A safe command: its name in verdicts, and the arguments that must be judged as paths.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SafeUse {
    pub(crate) name: String,
    pub(crate) paths: Vec<String>,
    /// It reads the working directory itself.
    pub(crate) reads_here: bool,
}

/// How this argv is safe; none where the list does not know all of it.
pub(crate) fn safe_use(argv: &[String]) -> Option<SafeUse> {
    let safe = LIST
        .iter()
        .filter(|safe| argv.len() >= safe.words.len() && safe.words.iter().zip(argv).all(|(word, given)| word == given))
        .max_by_key(|safe| safe.words.len())?;
    let arguments = &argv[safe.words.len()..];
    let mut operands = vec![];
    let mut given_pattern = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            operands.extend(rest.by_ref().cloned());
        } else if let Some(option) = argument.strip_prefix("--") {
            let (name, _) = option.split_once('=').unwrap_or((option, ""));
            if !safe.long.contains(&name) {
                return None;
            }
        } else if argument.len() > 1 && argument.starts_with('-') {
            let takes_next = short_options(safe, &argument[1..])?;
            given_pattern |= safe.operands == Operands::PatternThenPaths && argument.contains('e');
            if takes_next {
                rest.next()?;
            }
        } else {
            operands.push(argument.clone());
        }
    }
    let name = safe.words.join(" ");
    let is_git = safe.words[0] == "git";
    let here = is_git || (safe.operands == Operands::PathsOrHere && operands.is_empty());
    let paths = match safe.operands {
        Operands::None if operands.is_empty() => vec![],
        Operands::PathsOrHere | Operands::Paths => operands,
        Operands::OnePath if operands.len() <= 1 => operands,
        Operands::PatternThenPaths => operands.split_off(usize::from(!given_pattern).min(operands.len())),
        Operands::Text => vec![],
        Operands::Format if operands.iter().all(|operand| operand.starts_with('+')) => vec![],
        // A revision with a colon names a file of the past, which is judged by its name as well.
        Operands::Revisions => operands
            .iter()
            .map(|operand| operand.split_once(':').map_or(operand.as_str(), |(_, path)| path).to_owned())
            .filter(|operand| !operand.is_empty())
            .collect(),
        Operands::BsdPs if operands.iter().all(|operand| operand.chars().all(|letter| "auxfjlw".contains(letter))) => {
            vec![]
        }
        Operands::None | Operands::OnePath | Operands::Format | Operands::BsdPs => return None,
    };
    Some(SafeUse { name, paths, reads_here: here })
}

/// Reads a cluster of one-letter options: whether the next word is a value; none for an unknown one.
fn short_options(safe: &Safe, cluster: &str) -> Option<bool> {
    // `-3` and `-20` are counts where a count is known by letter.
    if cluster.chars().all(|letter| letter.is_ascii_digit()) && (safe.valued.contains('n') || safe.valued.contains('C'))
    {
        return Some(false);
    }
    let mut letters = cluster.chars();
    while let Some(letter) = letters.next() {
        if safe.valued.contains(letter) {
            return Some(letters.as_str().is_empty());
        }
        if !safe.short.contains(letter) {
            return None;
        }
    }
    Some(false)
}

/// The build or test that this argv is; it must run in a trusted workspace.
pub(crate) fn build_use(argv: &[String]) -> Option<String> {
    let words = BUILDS
        .iter()
        .filter(|words| argv.len() >= words.len() && words.iter().zip(argv).all(|(word, given)| word == given))
        .max_by_key(|words| words.len())?;
    let plain = argv[words.len()..].iter().all(|argument| {
        BUILD_OPTIONS.contains(&argument.as_str())
            || (!argument.starts_with('-')
                && !argument.starts_with('/')
                && !argument.contains(['=', ':', '@'])
                && argument.split('/').all(|part| part != "..")
                && words.first() != Some(&"make")
                && literal(argument).is_some())
    });
    plain.then(|| words.join(" "))
}
