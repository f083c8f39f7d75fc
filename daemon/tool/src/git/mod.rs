//! `git`: reads a repository, and nothing that the repository names runs.

mod repository;
mod run;

use ow_model::{Call, CallError, CallErrorKind, Risk};
use ow_policy::{Action, Facts, PathOp};
use serde::Deserialize;
use serde_json::Value;

use crate::args::{self, Arg, Kind, Need};
use crate::{Place, Tool, ToolSpec, world};

pub(crate) use run::run;

const COMMITS: u64 = 20;
const COMMITS_MOST: u64 = 200;

const ARGS: &[Arg] = &[
    Arg {
        name: "action",
        kind: Kind::OneOf(&["status", "diff", "log", "show", "branch"]),
        need: Need::Required,
        about: "status: what is changed; diff: the changes of the working tree, or against `commit`; log: commits; show: one \
                commit with its changes; branch: all branches",
    },
    Arg {
        name: "path",
        kind: Kind::Name,
        need: Need::Optional,
        about: "a folder of the repository; the working directory if left out",
    },
    Arg {
        name: "commit",
        kind: Kind::Name,
        need: Need::Optional,
        about: "a commit, branch, tag or range such as \"main..HEAD\", for diff, log and show; HEAD if left out",
    },
    Arg {
        name: "files",
        kind: Kind::Names,
        need: Need::Optional,
        about: "only these files and folders, literally, from `path` on; for status, diff, log and show",
    },
    Arg {
        name: "staged",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: for diff, what is staged instead of what is not; false if left out",
    },
    Arg {
        name: "summary",
        kind: Kind::Flag,
        need: Need::Optional,
        about: "true: for diff, log and show, the changed files with counts instead of the changes; false if left out",
    },
    Arg {
        name: "limit",
        kind: Kind::Count(1, COMMITS_MOST),
        need: Need::Optional,
        about: "for log, how many commits at most; 20 if left out",
    },
];

#[derive(Debug, Deserialize)]
struct GitArgs {
    action: String,
    path: Option<String>,
    commit: Option<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    staged: bool,
    #[serde(default)]
    summary: bool,
    limit: Option<u64>,
}

pub(crate) struct Git {
    spec: ToolSpec,
}

impl Git {
    pub(crate) fn new() -> Self {
        Self { spec: ToolSpec::own("git", args::schema(ARGS)) }
    }
}

impl Tool for Git {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        args::check("git", ARGS, value)?;
        let commit = value.get("commit").and_then(Value::as_str).unwrap_or("HEAD");
        if commit.starts_with('-') || commit.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
            return Err(format!("argument `commit` of `git`: expected a commit, branch or range, found {commit:?}"));
        }
        if commit.contains(':') {
            return Err(format!(
                "argument `commit` of `git`: {commit:?} names a file in a commit; give the commit alone and the file in `files`"
            ));
        }
        Ok(())
    }

    fn facts(&self, call: &Call, place: &Place) -> Result<Facts, CallError> {
        self.check(&call.args).map_err(|message| CallError { kind: CallErrorKind::BadArguments, message })?;
        let args: GitArgs = args::read(&call.args)?;
        let folder = world::resolved(args.path.as_deref().unwrap_or("."), place)?;
        // What a repository refers to is read as well, so it is judged as well.
        let paths = repository::paths(folder, place)?;
        Ok(Facts { risk: Risk::Read, action: Action::Paths { op: PathOp::Search, paths, base: None } })
    }
}
