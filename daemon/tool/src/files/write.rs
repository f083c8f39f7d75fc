use std::path::PathBuf;

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
use crate::world;
use crate::{Place, Tool, ToolSpec};

const ARGS: &[Arg] = &[
    Arg { name: "path", kind: Kind::Name, need: Need::Required, about: "the file; folders inside a root are made" },
    Arg { name: "content", kind: Kind::Text, need: Need::Required, about: "all that the file will hold" },
];

#[derive(Debug, Deserialize)]
struct WriteArgs {
    path: String,
    content: String,
}

pub(crate) struct WriteFile {
    spec: ToolSpec,
}

impl WriteFile {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("write_file", ARGS) }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("write_file", ARGS, value)
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(super::bad)?;
        let args: WriteArgs = args::read(&call.args)?;
        let path = world::resolved(&args.path, place)?;
        let base =
            world::content_hash(&path.resolved).map_err(|error| world::io_failed("write", &path.resolved, &error))?;
        let base = Some((path.resolved.clone(), base));
        Ok(Facts { risk: Risk::WriteLocal, action: Action::Paths { op: PathOp::Write, paths: vec![path], base } })
    }

    fn diff(&self, call: &Call, place: &Place) -> Option<String> {
        let args: WriteArgs = args::read(&call.args).ok()?;
        let path = world::resolved(&args.path, place).ok()?.resolved;
        let spot = replace::target(&path, place, Missing::Refuse);
        let old = match spot {
            Ok(spot) => replace::current(&spot, &path).ok()?,
            Err(_) => None,
        };
        Some(difference(&path, old.as_deref(), args.content.as_bytes()))
    }

    fn base(&self, call: &Call, place: &Place) -> Option<(PathBuf, Option<BlobHash>)> {
        let args: WriteArgs = args::read(&call.args).ok()?;
        let path = world::resolved(&args.path, place).ok()?.resolved;
        let hash = world::content_hash(&path).ok()?;
        Some((path, hash))
    }

    fn note(&self, call: &Call, place: &Place) -> Value {
        let note = || {
            let args: WriteArgs = args::read(&call.args).ok()?;
            let path = world::resolved(&args.path, place).ok()?.resolved;
            Some(Note::of(&path, world::content_hash(&path).ok()?, args.content.as_bytes()))
        };
        note().unwrap_or_default()
    }

    fn reconcile(&self, _call: &Call, note: &Value, place: &Place) -> Reconciled {
        replace::reconcile(note, place)
    }
}

pub(crate) fn write(work: &Work) -> Result<Finished, CallError> {
    let args: WriteArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let spot = replace::target(path, &work.place, Missing::Create)?;
    let now = replace::hash_at(&spot).map_err(|error| world::io_failed("write", path, &error))?;
    replace::check_base(work, path, now)?;
    replace::replace(&spot, path, args.content.as_bytes(), Origin::of(&work.place)).map(Finished::from)
}
