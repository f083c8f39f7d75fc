use std::ops::ControlFlow;
use std::path::Path;

use ow_model::{Call, CallError, CallResult};
use ow_policy::{Facts, PathOp};
use ow_secret::Redactor;
use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::{Folder, Missing};
use super::walk::{self, Content, Met, Walk};
use crate::args::{self, Arg, Kind, Need};
use crate::capture::Finished;
use crate::helper::work::Work;
use crate::world;
use crate::{Place, Tool, ToolSpec};

const MATCHES: u64 = 200;
const LINE: usize = 240;

const ARGS: &[Arg] = &[
    Arg {
        name: "path",
        kind: Kind::Name,
        need: Need::Optional,
        about: "where to begin; the working directory if left out",
    },
    Arg { name: "text", kind: Kind::Name, need: Need::Optional, about: "a text that a line of the file holds" },
    Arg {
        name: "glob",
        kind: Kind::Name,
        need: Need::Optional,
        about: "a pattern for names, such as \"*.txt\", or for paths below `path`, such as \"docs/**/*.md\"",
    },
    Arg { name: "limit", kind: Kind::Count(1, 10_000), need: Need::Optional, about: "how many matches at most" },
];

#[derive(Debug, Deserialize)]
struct SearchArgs {
    path: Option<String>,
    text: Option<String>,
    glob: Option<String>,
    limit: Option<u64>,
}

pub(crate) struct SearchFiles {
    spec: ToolSpec,
}

impl SearchFiles {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("search_files", ARGS) }
    }
}

impl Tool for SearchFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("search_files", ARGS, value)?;
        if value.get("text").is_none() && value.get("glob").is_none() {
            return Err("`search_files` needs `text` or `glob`: write glob = \"*.txt\"".into());
        }
        Ok(())
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(super::bad)?;
        let args: SearchArgs = args::read(&call.args)?;
        Ok(super::reads(PathOp::Search, world::resolved(args.path.as_deref().unwrap_or("."), place)?))
    }
}

/// What was found so far.
struct Finds<'a> {
    args: &'a SearchArgs,
    root: &'a Path,
    redactor: Redactor,
    most: usize,
    matches: Vec<Value>,
    outside: bool,
}

pub(crate) fn search(work: &Work) -> Result<Finished, CallError> {
    let args: SearchArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let failed = |error| world::io_failed("search", path, &error);
    let most = usize::try_from(args.limit.unwrap_or(MATCHES)).unwrap_or(usize::MAX);
    let redactor = work.secrets.redactor();
    let mut finds = Finds { args: &args, root: path, redactor, most, matches: vec![], outside: false };
    let folder = Folder::open(path, &world::roots(&work.place), Missing::Refuse).map_err(failed)?;
    // Here all is looked into: a task may well be about what a build made.
    let mut walk = Walk::new(work, &[]);
    walk.through(&folder, path, &mut |walk, at, met| finds.meet(walk, at, &met));
    let mut output = json!({ "path": path, "matches": finds.matches });
    walk.report(&mut output);
    let mut result = CallResult::ok(output);
    result.outside = finds.outside;
    Ok(result.into())
}

impl Finds<'_> {
    fn meet(&mut self, walk: &mut Walk<'_>, at: &Path, met: &Met<'_>) -> ControlFlow<()> {
        if self.matches.len() >= self.most {
            return ControlFlow::Break(());
        }
        match (met, &self.args.text) {
            // A link is a name that can be found; where it leads is not read.
            (Met::File(..) | Met::Link, None) => self.name(at),
            (Met::Link, Some(_)) => walk.pass_link(),
            (Met::File(folder, name), Some(text)) if self.fits(at) => {
                let content = walk.text_of(folder, name, at);
                return content.map_or(ControlFlow::Continue(()), |content| self.lines(&content, text.as_bytes(), at));
            }
            (Met::File(..), Some(_)) | (Met::Folder, _) => {}
        }
        ControlFlow::Continue(())
    }

    fn lines(&mut self, content: &Content, wanted: &[u8], at: &Path) -> ControlFlow<()> {
        for (index, line) in content.bytes.split(|byte| *byte == b'\n').enumerate() {
            let Some(column) = find(line, wanted) else { continue };
            if self.matches.len() >= self.most {
                return ControlFlow::Break(());
            }
            self.outside |= content.outside;
            let mut found = self.shown(at);
            found["line"] = (index + 1).into();
            // A cut could leave a part of a secret, so it is taken out of the whole line first.
            found["text"] = if self.redactor.holds_secret(line) {
                around(&self.redactor.redact_bytes(line), 0, 0).into()
            } else {
                around(line, column, wanted.len()).into()
            };
            self.matches.push(found);
        }
        ControlFlow::Continue(())
    }

    fn name(&mut self, at: &Path) {
        if self.fits(at) {
            let found = self.shown(at);
            self.matches.push(found);
        }
    }

    fn fits(&self, at: &Path) -> bool {
        self.args.glob.as_ref().is_none_or(|glob| walk::fits(glob, &walk::below(at, self.root)))
    }

    fn shown(&self, at: &Path) -> Value {
        let (path, escaped) = world::shown_name(walk::below(at, self.root).as_os_str());
        if escaped { json!({ "path": path, "escaped": true }) } else { json!({ "path": path }) }
    }
}

fn find(line: &[u8], wanted: &[u8]) -> Option<usize> {
    line.windows(wanted.len()).position(|window| window == wanted)
}

/// The line, or the part of a long one around the match.
pub(super) fn around(line: &[u8], at: usize, length: usize) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let begin = at.saturating_sub(LINE / 2).min(line.len());
    let end = (at + length.min(LINE) + LINE / 2).min(line.len());
    let text = String::from_utf8_lossy(&line[begin..end]).replace('\u{fffd}', "");
    let (before, after) = (if begin > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{before}{text}{after}")
}
