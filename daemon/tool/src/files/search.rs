use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use ow_model::{Call, CallError, CallResult};
use ow_policy::path::secret_name;
use ow_policy::{Facts, PathOp};
use ow_secret::Redactor;
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::{Folder, Missing};
use crate::args::{self, Arg, Kind, Need};
use crate::capture::Finished;
use crate::helper::work::Work;
use crate::world;
use crate::{Place, Tool, ToolSpec};

const MATCHES: u64 = 200;
const ENTRIES: usize = 500_000;
const FOLDER_ENTRIES: usize = 100_000;
const DEPTH: usize = 64;
const FILE_BYTES: u64 = 16 * 1024 * 1024;
const ALL_BYTES: u64 = 512 * 1024 * 1024;
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

/// A walk through a tree, with what it found and what it left out.
struct Walk<'a> {
    work: &'a Work,
    args: &'a SearchArgs,
    root: &'a Path,
    redactor: Redactor,
    most: usize,
    matches: Vec<Value>,
    seen: usize,
    bytes: u64,
    cut: bool,
    outside: bool,
    links: u64,
    secrets: u64,
    unread: u64,
}

pub(crate) fn search(work: &Work) -> Result<Finished, CallError> {
    let args: SearchArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let failed = |error| world::io_failed("search", path, &error);
    let most = usize::try_from(args.limit.unwrap_or(MATCHES)).unwrap_or(usize::MAX);
    let mut walk = Walk {
        work,
        args: &args,
        root: path,
        redactor: work.secrets.redactor(),
        most,
        matches: vec![],
        seen: 0,
        bytes: 0,
        cut: false,
        outside: false,
        links: 0,
        secrets: 0,
        unread: 0,
    };
    let folder = Folder::open(path, &world::roots(&work.place), Missing::Refuse).map_err(failed)?;
    walk.folder(&folder, path, 0);
    let Walk { matches, cut, outside, links, secrets, unread, .. } = walk;
    let mut output = json!({ "path": path, "matches": matches });
    for (name, count) in [("links", links), ("secrets", secrets), ("unread", unread)] {
        if count > 0 {
            output["left-out"][name] = count.into();
        }
    }
    if cut {
        output["cut"] = true.into();
    }
    let mut result = CallResult::ok(output);
    result.outside = outside;
    Ok(result.into())
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Folder, path: &Path, depth: usize) {
        let Ok((mut entries, more)) = folder.entries(FOLDER_ENTRIES) else {
            self.unread += 1;
            return;
        };
        self.cut |= more;
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        for entry in entries {
            self.seen += 1;
            if self.matches.len() >= self.most || self.seen > ENTRIES || self.work.stop.token.is_cancelled() {
                self.cut = true;
                return;
            }
            let at = path.join(&entry.name);
            if ow_policy::path::is_owds(&at, &self.work.protected, Some(&self.work.place.run_folder)) {
                self.secrets += 1;
                continue;
            }
            match entry.kind() {
                FileType::Directory if depth >= DEPTH => self.cut = true,
                FileType::Directory => match folder.folder(&entry.name) {
                    Ok(below) => self.folder(&below, &at, depth + 1),
                    Err(_) => self.unread += 1,
                },
                FileType::RegularFile => self.file(folder, &entry.name, &at),
                FileType::Symlink => {
                    // A link is a name that can be found; where it leads is not read.
                    if self.args.text.is_none() {
                        self.name(&at);
                    } else {
                        self.links += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn file(&mut self, folder: &Folder, name: &OsStr, at: &Path) {
        let Some(text) = &self.args.text else { return self.name(at) };
        if !self.fits(at) {
            return;
        }
        if secret_name(at).is_some() {
            self.secrets += 1;
            return;
        }
        let Ok(file) = folder.file(name) else {
            self.unread += 1;
            return;
        };
        let Ok(metadata) = file.metadata() else { return };
        if metadata.len() > FILE_BYTES || self.bytes + metadata.len() > ALL_BYTES {
            self.unread += 1;
            return;
        }
        let mut content = Vec::new();
        if file.take(FILE_BYTES).read_to_end(&mut content).is_err() {
            self.unread += 1;
            return;
        }
        self.bytes += content.len() as u64;
        // A zero byte near the beginning is what tells a binary file.
        if content.iter().take(8192).any(|byte| *byte == 0) {
            return;
        }
        let wanted = text.as_bytes();
        for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let Some(column) = find(line, wanted) else { continue };
            if self.matches.len() >= self.most {
                self.cut = true;
                return;
            }
            self.outside |= world::is_strangers(&metadata);
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
    }

    fn name(&mut self, at: &Path) {
        if self.fits(at) {
            let found = self.shown(at);
            self.matches.push(found);
        }
    }

    fn fits(&self, at: &Path) -> bool {
        let Some(glob) = &self.args.glob else { return true };
        let below = self.below(at);
        let subject =
            if glob.contains('/') { below.as_path() } else { Path::new(below.file_name().unwrap_or_default()) };
        glob_match::glob_match(glob, &subject.to_string_lossy())
    }

    fn below(&self, at: &Path) -> PathBuf {
        at.strip_prefix(self.root).unwrap_or(at).to_owned()
    }

    fn shown(&self, at: &Path) -> Value {
        let (path, escaped) = world::shown_name(self.below(at).as_os_str());
        if escaped { json!({ "path": path, "escaped": true }) } else { json!({ "path": path }) }
    }
}

fn find(line: &[u8], wanted: &[u8]) -> Option<usize> {
    line.windows(wanted.len()).position(|window| window == wanted)
}

/// The line, or the part of a long one around the match.
fn around(line: &[u8], at: usize, length: usize) -> String {
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
