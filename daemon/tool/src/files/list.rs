use jiff::Timestamp;
use ow_model::{Call, CallError, CallResult};
use ow_policy::{Facts, PathOp};
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::{Entry, Folder, Missing};
use crate::args::{self, Arg, Kind, Need};
use crate::capture::Finished;
use crate::helper::work::Work;
use crate::world;
use crate::{Place, Tool, ToolSpec};

/// More names are not read, whatever is asked for.
const READ: usize = 200_000;
const SHOWN: u64 = 1000;

const ARGS: &[Arg] = &[
    Arg {
        name: "path",
        kind: Kind::Name,
        need: Need::Optional,
        about: "the folder; the working directory if left out",
    },
    Arg { name: "limit", kind: Kind::Count(1, 10_000), need: Need::Optional, about: "how many entries at most" },
];

#[derive(Debug, Deserialize)]
struct ListArgs {
    path: Option<String>,
    limit: Option<u64>,
}

pub(crate) struct ListDir {
    spec: ToolSpec,
}

impl ListDir {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("list_dir", ARGS) }
    }
}

impl Tool for ListDir {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("list_dir", ARGS, value)
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(super::bad)?;
        let args: ListArgs = args::read(&call.args)?;
        Ok(super::reads(PathOp::Read, world::resolved(args.path.as_deref().unwrap_or("."), place)?))
    }
}

pub(crate) fn list(work: &Work) -> Result<Finished, CallError> {
    let args: ListArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let (mut entries, more) = Folder::open(path, &world::roots(&work.place), Missing::Refuse)
        .and_then(|folder| folder.entries(READ))
        .map_err(|error| world::io_failed("list", path, &error))?;
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    let most = usize::try_from(args.limit.unwrap_or(SHOWN)).unwrap_or(usize::MAX);
    let total = entries.len();
    let shown: Vec<Value> = entries.iter().take(most).map(shown).collect();
    let mut output = json!({ "path": path, "entries": shown, "total": total });
    if more || total > most {
        output["cut"] = true.into();
    }
    Ok(CallResult::ok(output).into())
}

fn shown(entry: &Entry) -> Value {
    let (name, escaped) = world::shown_name(&entry.name);
    let kind = match entry.kind() {
        FileType::RegularFile => "file",
        FileType::Directory => "folder",
        FileType::Symlink => "link",
        _ => "other",
    };
    let mut shown = json!({ "name": name, "kind": kind });
    if kind == "file" {
        shown["bytes"] = entry.stat.st_size.into();
    }
    if let Ok(modified) = Timestamp::from_second(entry.stat.st_mtime) {
        shown["modified"] = modified.to_string().into();
    }
    if escaped {
        shown["escaped"] = true.into();
    }
    shown
}
