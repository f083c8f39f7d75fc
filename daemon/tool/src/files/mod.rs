//! Tools over files. Each opens exactly the path that was judged, from a handle of its root and through no link.

mod diff;
mod edit;
mod folder;
mod glob;
mod grep;
mod lines;
mod list;
mod moving;
mod read;
mod replace;
mod search;
mod walk;
mod write;

pub(crate) use edit::{EditFile, edit};
pub(crate) use glob::{Glob, glob};
pub(crate) use grep::{Grep, grep};
pub(crate) use lines::{kind_of, known_kind};
pub(crate) use list::{ListDir, list};
pub(crate) use moving::{MoveFile, move_file};
pub(crate) use read::{ReadFile, read};
pub(crate) use search::{SearchFiles, search};
pub(crate) use write::{WriteFile, write};

use std::path::Path;

use ow_model::{Artifact, BlobHash, CallError, CallErrorKind, Risk};
use ow_policy::{Action, Facts, PathOp, ResolvedPath};

use crate::ToolSpec;
use crate::args::{self, Arg};

fn spec(name: &str, declared: &[Arg]) -> ToolSpec {
    ToolSpec::own(name, args::schema(declared))
}

fn bad(message: String) -> CallError {
    CallError { kind: CallErrorKind::BadArguments, message }
}

fn reads(op: PathOp, path: ResolvedPath) -> Facts {
    Facts { risk: Risk::Read, action: Action::Paths { op, paths: vec![path], base: None } }
}

/// The file as a run's artifact; none where its name could not be written down.
fn artifact(path: &Path, bytes: u64, hash: BlobHash) -> Vec<Artifact> {
    path.to_str().map(|_| Artifact::File { path: path.into(), bytes, hash }).into_iter().collect()
}
