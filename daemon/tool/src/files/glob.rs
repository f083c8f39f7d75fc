use std::ops::ControlFlow;

use ow_model::{Call, CallError, CallResult};
use ow_policy::{Facts, PathOp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::{Folder, Missing};
use super::walk::{self, BUILD_FOLDERS, Met, Walk};
use crate::args::{self, Arg, Kind, Need};
use crate::capture::Finished;
use crate::helper::work::Work;
use crate::world;
use crate::{Place, Tool, ToolSpec};

const FOUND: u64 = 500;
const FOUND_MOST: u64 = 5000;

const ARGS: &[Arg] = &[
    Arg {
        name: "pattern",
        kind: Kind::Name,
        need: Need::Required,
        about: "a pattern for names at any depth, such as \"*.rs\", or for paths below `path`, such as \"src/**/*.rs\" or \
                \"{a,b}/*.md\"",
    },
    Arg {
        name: "path",
        kind: Kind::Name,
        need: Need::Optional,
        about: "the folder to begin in; the working directory if left out",
    },
    Arg {
        name: "all",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: also in .git, node_modules, target and other folders of builds; false if left out",
    },
    Arg {
        name: "limit",
        kind: Kind::Count(1, FOUND_MOST),
        need: Need::Optional,
        about: "how many paths at most; 500 if left out",
    },
];

#[derive(Debug, Deserialize)]
struct GlobArgs {
    pattern: String,
    path: Option<String>,
    #[serde(default)]
    all: bool,
    limit: Option<u64>,
}

pub(crate) struct Glob {
    spec: ToolSpec,
}

impl Glob {
    pub(crate) fn new() -> Self {
        Self { spec: super::spec("glob", ARGS) }
    }
}

impl Tool for Glob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("glob", ARGS, value)?;
        let pattern = value.get("pattern").and_then(Value::as_str).unwrap_or_default();
        if pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..") {
            return Err(format!(
                "argument `pattern` of `glob`: expected a pattern below `path`, found {pattern:?}; give the folder as `path`"
            ));
        }
        Ok(())
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(super::bad)?;
        let args: GlobArgs = args::read(&call.args)?;
        Ok(super::reads(PathOp::Search, world::resolved(args.path.as_deref().unwrap_or("."), place)?))
    }
}

/// Paths below the beginning in the order of their names; a folder's ends in a slash.
pub(crate) fn glob(work: &Work) -> Result<Finished, CallError> {
    let args: GlobArgs = args::read(&work.call.args)?;
    let path = work.path()?;
    let failed = |error| world::io_failed("search", path, &error);
    let most = usize::try_from(args.limit.unwrap_or(FOUND)).unwrap_or(usize::MAX);
    let pattern = args.pattern.trim_start_matches("./");
    let mut found: Vec<String> = vec![];
    let folder = Folder::open(path, &world::roots(&work.place), Missing::Refuse).map_err(failed)?;
    let mut walk = Walk::new(work, if args.all { &[] } else { BUILD_FOLDERS });
    walk.through(&folder, path, &mut |_, at, met| {
        let below = walk::below(at, path);
        if !walk::fits(pattern, &below) {
            return ControlFlow::Continue(());
        }
        if found.len() >= most {
            return ControlFlow::Break(());
        }
        let (mut name, _) = world::shown_name(below.as_os_str());
        if matches!(met, Met::Folder) {
            name.push('/');
        }
        found.push(name);
        ControlFlow::Continue(())
    });
    let mut output = json!({ "path": path, "found": found });
    walk.report(&mut output);
    Ok(CallResult::ok(output).into())
}
