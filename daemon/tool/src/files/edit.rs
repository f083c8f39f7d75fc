use std::path::{Path, PathBuf};

use ow_model::{BlobHash, Call, CallError, Reconciled, Risk};
use ow_policy::{Action, Facts, PathOp};
use serde::Deserialize;
use serde_json::Value;

use super::diff::difference;
use super::folder::Missing;
use super::replace::{self, Note, Origin};
use crate::args::{self, Arg, Kind, Need};
use crate::capture::Finished;
use crate::helper::work::Work;
use crate::world::{self, failed};
use crate::{Place, Tool, ToolSpec};

const ARGS: &[Arg] = &[
    Arg { name: "path", kind: Kind::Name, need: Need::Required, about: "the file, which must exist" },
    Arg {
        name: "old",
        kind: Kind::Text,
        need: Need::Required,
        about: "the text to replace, exactly as the file has it; it must stand there once, unless `all` is true",
    },
    Arg { name: "new", kind: Kind::Text, need: Need::Required, about: "the text that takes its place" },
    Arg {
        name: "all",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: replace it wherever it stands; false if left out",
    },
];

#[derive(Debug, Deserialize)]
struct EditArgs {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

pub(crate) struct EditFile {
    spec: ToolSpec,
}

impl EditFile {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("edit_file", ARGS) }
    }
}

impl Tool for EditFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("edit_file", ARGS, value)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text("old").is_empty() {
            return Err("argument `old` of `edit_file`: expected the text to replace, found \"\"; use write_file for a new file".into());
        }
        if text("old") == text("new") {
            return Err("arguments `old` and `new` of `edit_file` are the same, so nothing would change".into());
        }
        Ok(())
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(super::bad)?;
        let args: EditArgs = args::read(&call.args)?;
        let path = world::resolved(&args.path, place)?;
        let base =
            world::content_hash(&path.resolved).map_err(|error| world::io_failed("edit", &path.resolved, &error))?;
        let base = Some((path.resolved.clone(), base));
        Ok(Facts { risk: Risk::WriteLocal, action: Action::Paths { op: PathOp::Write, paths: vec![path], base } })
    }

    fn diff(&self, call: &Call, place: &Place) -> Option<String> {
        let (path, old, new) = planned(call, place).ok()?;
        Some(difference(&path, Some(&old), &new))
    }

    fn base(&self, call: &Call, place: &Place) -> Option<(PathBuf, Option<BlobHash>)> {
        let (path, old, _) = planned(call, place).ok()?;
        Some((path, Some(BlobHash::of(&old))))
    }

    fn note(&self, call: &Call, place: &Place) -> Value {
        planned(call, place).map(|(path, old, new)| Note::of(&path, Some(BlobHash::of(&old)), &new)).unwrap_or_default()
    }

    fn reconcile(&self, _call: &Call, note: &Value, place: &Place) -> Reconciled {
        replace::reconcile(note, place)
    }
}

/// Path, content and content to be.
fn planned(call: &Call, place: &Place) -> Result<(PathBuf, Vec<u8>, Vec<u8>), CallError> {
    let args: EditArgs = args::read(&call.args)?;
    let path = world::resolved(&args.path, place)?.resolved;
    let spot = replace::target(&path, place, Missing::Refuse)?;
    let old = replace::current(&spot, &path)?.ok_or_else(|| missing(&path))?;
    let (new, _) = edited(&path, &old, &args)?;
    Ok((path, old, new))
}

pub(crate) fn edit(work: &Work) -> Result<Finished, CallError> {
    let args: EditArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let spot = replace::target(path, &work.place, Missing::Refuse)?;
    let old = replace::current(&spot, path)?.ok_or_else(|| missing(path))?;
    replace::check_base(work, path, Some(BlobHash::of(&old)))?;
    let (new, line) = edited(path, &old, &args)?;
    let mut result = replace::replace(&spot, path, &new, Origin::of_edit(&work.place, &spot))?;
    result.output["line"] = line.into();
    if args.all {
        result.output["replaced"] = apart(&places(&old, args.old.as_bytes(), usize::MAX), args.old.len()).len().into();
    }
    Ok(result.into())
}

fn missing(path: &Path) -> CallError {
    failed(format!("cannot edit `{}`: it does not exist; use write_file for a new file", path.display()))
}

/// The new content and the line of the first change, counted from 1.
fn edited(path: &Path, content: &[u8], args: &EditArgs) -> Result<(Vec<u8>, usize), CallError> {
    const COUNTED: usize = 1000;
    let old = args.old.as_bytes();
    let found = places(content, old, if args.all { usize::MAX } else { COUNTED });
    match found.as_slice() {
        [first, ..] if args.all => {
            let mut new = Vec::with_capacity(content.len());
            let mut from = 0;
            for at in apart(&found, old.len()) {
                new.extend_from_slice(&content[from..at]);
                new.extend_from_slice(args.new.as_bytes());
                from = at + old.len();
            }
            new.extend_from_slice(&content[from..]);
            Ok((new, line_of(content, *first)))
        }
        [at] => {
            let new = [&content[..*at], args.new.as_bytes(), &content[*at + old.len()..]].concat();
            Ok((new, line_of(content, *at)))
        }
        [] => Err(failed(match alike(content, &args.old) {
            Some(line) => {
                format!("`old` is not in `{}`; line {line} differs from it only in blanks or line ends", path.display())
            }
            None => format!("`old` is not in `{}`", path.display()),
        })),
        several => {
            const NAMED: usize = 5;
            let lines: Vec<String> = several.iter().take(NAMED).map(|at| line_of(content, *at).to_string()).collect();
            let more = if several.len() > NAMED { ", …" } else { "" };
            Err(failed(format!(
                "`old` stands in `{}` {} times (lines {}{more}); make it longer until it stands there once, or give all = true",
                path.display(),
                several.len(),
                lines.join(", ")
            )))
        }
    }
}

/// Of places that overlap the first ones.
fn apart(places: &[usize], length: usize) -> Vec<usize> {
    let mut free = 0;
    let mut kept = vec![];
    for at in places.iter().copied() {
        if at >= free {
            kept.push(at);
            free = at + length;
        }
    }
    kept
}

/// Where `part` stands in `whole`; places that overlap count each.
fn places(whole: &[u8], part: &[u8], most: usize) -> Vec<usize> {
    let Some(first) = part.first() else { return vec![] };
    let mut found = vec![];
    let mut at = 0;
    while let Some(next) = whole.get(at..).and_then(|rest| rest.iter().position(|byte| byte == first)) {
        at += next;
        if whole[at..].starts_with(part) {
            found.push(at);
            if found.len() >= most {
                break;
            }
        }
        at += 1;
    }
    found
}

fn line_of(content: &[u8], at: usize) -> usize {
    content[..at].split(|byte| *byte == b'\n').count()
}

/// The first line from which the text would match if blanks did not count.
fn alike(content: &[u8], old: &str) -> Option<usize> {
    let content = String::from_utf8_lossy(content);
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.lines().map(squeezed).filter(|line| !line.is_empty()).collect();
    let have: Vec<(usize, String)> =
        content.lines().map(squeezed).enumerate().filter(|(_, line)| !line.is_empty()).collect();
    if wanted.is_empty() {
        return None;
    }
    have.windows(wanted.len()).find(|lines| lines.iter().map(|(_, line)| line).eq(&wanted)).map(|lines| lines[0].0 + 1)
}
