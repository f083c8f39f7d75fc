use std::ops::ControlFlow;
use std::path::Path;

use ow_model::{Call, CallError, CallErrorKind, CallResult};
use ow_policy::{Facts, PathOp};
use ow_secret::Redactor;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::{Folder, Missing, Spot};
use super::search::around;
use super::walk::{self, BUILD_FOLDERS, Content, Met, Walk};
use crate::args::{self, Arg, Kind, Need};
use crate::capture::Finished;
use crate::helper::work::Work;
use crate::world;
use crate::{Place, Tool, ToolSpec};

const HITS: u64 = 100;
const HITS_MOST: u64 = 1000;
/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 4 * 1024 * 1024;

const ARGS: &[Arg] = &[
    Arg {
        name: "pattern",
        kind: Kind::Name,
        need: Need::Required,
        about: "a regular expression that a line holds, such as \"fn \\\\w+\\\\(\"; without look-around and back-references",
    },
    Arg {
        name: "path",
        kind: Kind::Name,
        need: Need::Optional,
        about: "the folder or file to look in; the working directory if left out",
    },
    Arg {
        name: "glob",
        kind: Kind::Name,
        need: Need::Optional,
        about: "only files whose name fits, such as \"*.rs\", or whose path below `path` does, such as \"src/**/*.rs\"",
    },
    Arg {
        name: "literal",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: the pattern is plain text; false if left out",
    },
    Arg {
        name: "ignore-case",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: upper and lower case are alike; false if left out",
    },
    Arg {
        name: "files-only",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: the files that hold it, each once, without their lines; false if left out",
    },
    Arg {
        name: "all",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: also in .git, node_modules, target and other folders of builds; false if left out",
    },
    Arg {
        name: "limit",
        kind: Kind::Count(1, HITS_MOST),
        need: Need::Optional,
        about: "how many hits at most; 100 if left out",
    },
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "they are the call's switches")]
struct GrepArgs {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    files_only: bool,
    #[serde(default)]
    all: bool,
    limit: Option<u64>,
}

impl GrepArgs {
    fn regex(&self) -> Result<Regex, String> {
        let pattern = if self.literal { regex::escape(&self.pattern) } else { self.pattern.clone() };
        let mut builder = RegexBuilder::new(&pattern);
        builder.case_insensitive(self.ignore_case).multi_line(true).crlf(true).size_limit(PATTERN_BYTES);
        builder.build().map_err(|error| {
            // The library draws where the fault is over several lines; its last line says what it is.
            let said = error.to_string();
            let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!(
                "argument `pattern` of `grep`: {:?} is not a regular expression: {why}; with literal = true it is plain text",
                self.pattern
            )
        })
    }
}

pub(crate) struct Grep {
    spec: ToolSpec,
}

impl Grep {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("grep", ARGS) }
    }
}

impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("grep", ARGS, value)?;
        let args: GrepArgs = args::read(value).map_err(|error| error.message)?;
        args.regex().map(drop)
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        args::check("grep", ARGS, &call.args).map_err(super::bad)?;
        let args: GrepArgs = args::read(&call.args)?;
        Ok(super::reads(PathOp::Search, world::resolved(args.path.as_deref().unwrap_or("."), place)?))
    }
}

/// Hits so far, each `path:line: text` or, where only files are asked for, a path.
struct Hits<'a> {
    args: &'a GrepArgs,
    regex: Regex,
    root: &'a Path,
    redactor: Redactor,
    most: usize,
    found: Vec<String>,
    files: u64,
    outside: bool,
}

pub(crate) fn grep(work: &Work) -> Result<Finished, CallError> {
    let args: GrepArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let failed = |error| world::io_failed("search", path, &error);
    let regex = args.regex().map_err(|message| CallError { kind: CallErrorKind::BadArguments, message })?;
    let mut hits = Hits {
        args: &args,
        regex,
        root: path,
        redactor: work.secrets.redactor(),
        most: usize::try_from(args.limit.unwrap_or(HITS)).unwrap_or(usize::MAX),
        found: vec![],
        files: 0,
        outside: false,
    };
    let mut walk = Walk::new(work, if args.all { &[] } else { BUILD_FOLDERS });
    let roots = world::roots(&work.place);
    match Folder::open(path, &roots, Missing::Refuse) {
        Ok(folder) => walk.through(&folder, path, &mut |walk, at, met| hits.meet(walk, at, &met)),
        // A file named by itself is looked into, whatever its name.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            let file = Spot::open(path, &roots, Missing::Refuse).and_then(|spot| spot.file()).map_err(failed)?;
            match walk.content(file) {
                Some(content) => walk.cut |= hits.lines(&content, path).is_break(),
                None => return Err(world::failed(format!("`{}` is too large or no text", path.display()))),
            }
        }
        Err(error) => return Err(failed(error)),
    }
    let mut output = json!({ "path": path, "hits": hits.found, "files": hits.files });
    walk.report(&mut output);
    if walk.cut {
        output["note"] = "there may be more: narrow it by `path` or `glob`, or raise `limit`".into();
    }
    let mut result = CallResult::ok(output);
    result.outside = hits.outside;
    Ok(result.into())
}

impl Hits<'_> {
    fn meet(&mut self, walk: &mut Walk<'_>, at: &Path, met: &Met<'_>) -> ControlFlow<()> {
        match met {
            Met::File(folder, name) if self.fits(at) => match walk.text_of(folder, name, at) {
                Some(content) => self.lines(&content, at),
                None => ControlFlow::Continue(()),
            },
            Met::Link => {
                walk.pass_link();
                ControlFlow::Continue(())
            }
            Met::File(..) | Met::Folder => ControlFlow::Continue(()),
        }
    }

    fn fits(&self, at: &Path) -> bool {
        self.args.glob.as_ref().is_none_or(|glob| walk::fits(glob, &walk::below(at, self.root)))
    }

    fn lines(&mut self, content: &Content, at: &Path) -> ControlFlow<()> {
        let name = self.name(at);
        let bytes = &content.bytes;
        let mut is_first = true;
        let (mut line, mut counted) = (1, 0);
        let mut from = 0;
        while let Some(hit) = self.regex.find_at(bytes, from) {
            // An empty match after the last line end stands in no line.
            if hit.start() == bytes.len() && bytes.last().is_none_or(|byte| *byte == b'\n') {
                break;
            }
            let begin = bytes[..hit.start()].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let end =
                bytes[hit.start()..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| hit.start() + at);
            if self.found.len() >= self.most {
                return ControlFlow::Break(());
            }
            self.files += u64::from(is_first);
            is_first = false;
            self.outside |= content.outside;
            if self.args.files_only {
                self.found.push(name);
                return ControlFlow::Continue(());
            }
            line += bytes[counted..begin].split(|byte| *byte == b'\n').count() - 1;
            counted = begin;
            let whole = &bytes[begin..end];
            // A pattern such as `[^;]*` goes on over line ends; what counts is what one line holds.
            if hit.end() > end && !self.regex.is_match(whole) {
                from = end + 1;
                if from > bytes.len() {
                    break;
                }
                continue;
            }
            // A cut could leave a part of a secret, so it is taken out of the whole line first.
            let text = if self.redactor.holds_secret(whole) {
                around(&self.redactor.redact_bytes(whole), 0, 0)
            } else {
                around(whole, hit.start() - begin, hit.end().min(end) - hit.start())
            };
            self.found.push(format!("{name}:{line}: {text}"));
            from = end + 1;
            if from > bytes.len() {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// The path from where the search began; of a file that was named itself, its own name.
    fn name(&self, at: &Path) -> String {
        let below = walk::below(at, self.root);
        let shown = if below.as_os_str().is_empty() { at.file_name().unwrap_or_default() } else { below.as_os_str() };
        world::shown_name(shown).0
    }
}
