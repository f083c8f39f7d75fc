use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ow_model::{BoundFile, Call, CallResult, InboxName, Position, Risk, RunId, TaskName, ToolName};
use ow_policy::{Authorized, RiskOverride, overridden_risk};

use crate::{Tool, ToolSpec, files, git, http, interactive, shell};

/// The tools that there are, by name.
#[derive(Default)]
pub struct Toolbox {
    tools: BTreeMap<ToolName, (Arc<dyn Tool>, Runner)>,
}

/// Where a tool's calls run.
#[derive(Clone)]
pub enum Runner {
    /// In a helper process; for the built-in tools only, since the helper knows no others.
    Helper,
    /// In owd itself: a tool that starts nothing and writes no file.
    Daemon(Arc<dyn DaemonTool>),
}

/// The effect of a tool that runs inside owd.
#[async_trait]
pub trait DaemonTool: Send + Sync {
    async fn run(&self, call: &Authorized<Call>, of: &CallOf) -> CallResult;
}

/// Which call of whom.
#[derive(Clone, Debug)]
pub struct CallOf {
    pub task: Option<TaskName>,
    pub inbox: InboxName,
    pub run: RunId,
    pub position: Position,
    pub now: Timestamp,
    /// The files that it takes along, as they were judged.
    pub enclosed: Vec<BoundFile>,
}

impl Toolbox {
    /// The tools that the helper runs.
    #[must_use]
    pub fn builtin() -> Self {
        let mut toolbox = Self::default();
        let tools: [Arc<dyn Tool>; 12] = [
            Arc::new(shell::Shell::new()),
            Arc::new(files::ReadFile::new()),
            Arc::new(files::WriteFile::new()),
            Arc::new(files::EditFile::new()),
            Arc::new(files::ListDir::new()),
            Arc::new(files::SearchFiles::new()),
            Arc::new(files::Glob::new()),
            Arc::new(files::Grep::new()),
            Arc::new(files::MoveFile::new()),
            Arc::new(http::HttpRequest::new()),
            Arc::new(http::WebFetch::new()),
            Arc::new(git::Git::new()),
        ];
        for tool in tools {
            toolbox.register(tool, Runner::Helper);
        }
        toolbox
    }

    /// Adds a tool. One of the same name is replaced.
    pub fn register(&mut self, tool: Arc<dyn Tool>, runner: Runner) {
        self.tools.insert(tool.spec().name.clone(), (tool, runner));
    }

    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Option<&dyn Tool> {
        self.tools.get(name).map(|(tool, _)| &**tool)
    }

    /// The tool as a handle of its own, to be moved to a thread that may block.
    #[must_use]
    pub fn shared(&self, name: &ToolName) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).map(|(tool, _)| Arc::clone(tool))
    }

    #[must_use]
    pub fn runner(&self, name: &ToolName) -> Option<&Runner> {
        self.tools.get(name).map(|(_, runner)| runner)
    }

    /// All tools whose calls run, by name: those that a step may use.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|(tool, _)| tool.spec())
    }

    /// All tools that an agent may be shown, by name: those whose calls run, and those that its session performs.
    #[must_use]
    pub fn declarations(&self, overrides: &[RiskOverride]) -> Vec<Declaration> {
        let specs = self.specs().chain(interactive::specs());
        let mut all: Vec<Declaration> = specs.map(|spec| Declaration::of(spec, overrides)).collect();
        all.sort_by(|left, right| left.spec.name.cmp(&right.spec.name));
        all
    }
}

/// A tool as an agent has it.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub spec: ToolSpec,
    /// The class by which its calls are asked about: its own, or the one that the person gave it.
    pub asked_as: Risk,
    /// Its calls may run beside others: it has no side effect, and the person did not say otherwise.
    pub parallel: bool,
}

impl Declaration {
    fn of(spec: &ToolSpec, overrides: &[RiskOverride]) -> Self {
        let asked_as = overridden_risk(&spec.name, overrides).unwrap_or(spec.risk);
        // A class that was lowered says who is asked, not what the tool does.
        let parallel = spec.risk.max(asked_as) == Risk::Read;
        Self { spec: spec.clone(), asked_as, parallel }
    }
}
