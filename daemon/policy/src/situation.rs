use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ow_model::{BlobHash, CallHash, Mode, Rule, TaskName, ToolName};

use crate::RiskOverride;

/// Who runs a call, where and with what rights.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub task: Option<&'a TaskName>,
    pub mode: Mode,
    /// Folders that file tools may work in: absolute, links followed.
    pub roots: &'a [PathBuf],
    /// The run's own folder: a root, and writable even in a tainted session.
    pub run_folder: Option<&'a Path>,
    /// Standing rules; those that do not apply are passed over.
    pub rules: &'a [Rule],
    /// The step that the call was rendered from; none for an agent's call.
    pub step: Option<&'a StepFacts>,
    /// The session holds text from outside.
    pub tainted: bool,
    /// Calls that were denied in this run: refused without a second question.
    pub denied: &'a [CallHash],
    /// Calls whose outcome is unknown: they always ask.
    pub uncertain: &'a [CallHash],
    /// Hosts that the task itself names.
    pub task_http: &'a [String],
    /// Hosts that a person or the task's own text mentions, from [`url::named_hosts`](crate::url::named_hosts):
    /// they may be fetched from, but nothing is sent there.
    pub named_hosts: &'a [String],
    /// Tools of which a person said "always" in this session.
    pub always_tools: &'a [ToolName],
    /// Commands of which a person said "always" in this session: each its exact argv.
    pub always_commands: &'a [Vec<String>],
    pub settings: &'a Settings,
    pub now: Timestamp,
}

/// The part of the configuration that policy reads.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Argv prefixes, written as a shell would split them.
    pub allow: Vec<String>,
    /// Text patterns; `*` stands for anything.
    pub deny: Vec<String>,
    /// Programs that only read run without asking.
    pub safe_commands: bool,
    /// `host[:port]` or `*.domain`; the only way to a private address, and then with its port.
    pub http_allow: Vec<String>,
    /// owd's own configuration, data, task files, hooks, keys and socket: nothing touches them.
    pub protected: Vec<PathBuf>,
    /// Addresses on which owd itself listens, as `host:port`: no call reaches them.
    pub own_addresses: Vec<std::net::SocketAddr>,
    /// Folders whose builds and tests the person trusts.
    pub trusted: Vec<PathBuf>,
    /// Classes of tools that the person raised or lowered.
    pub tool_risk: Vec<RiskOverride>,
    pub home: PathBuf,
}

/// The step that a call was rendered from.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFacts {
    /// Counted from 0, as in the task.
    pub step: u32,
    /// The hash of the step's unrendered text.
    pub text: BlobHash,
    /// Where values of untrusted origin (an event, an earlier result) stand in the rendered arguments.
    pub holes: Vec<Hole>,
}

/// One value of untrusted origin in a rendered call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hole {
    /// `event.path`, `steps.disks.stdout`.
    pub name: String,
    pub at: HolePlace,
}

/// Where in the arguments a hole was filled.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HolePlace {
    /// An element of `argv`, counted from 0.
    Argv(usize),
    /// The value of an environment variable.
    Env(String),
    Stdin,
    Content,
    Path,
    Url,
    /// Part of shell text.
    CommandLine,
    /// Elsewhere: its JSON pointer.
    Other(String),
}

impl HolePlace {
    /// Tells the place from a JSON pointer into the arguments, such as `/argv/2` or `/content`.
    #[must_use]
    pub fn of_pointer(pointer: &str) -> Self {
        let mut parts = pointer.trim_start_matches('/').split('/');
        let (key, rest) = (parts.next().unwrap_or_default(), parts.next());
        match (key, rest) {
            ("argv", Some(index)) => index.parse().map_or_else(|_| Self::Other(pointer.into()), Self::Argv),
            ("env", Some(name)) => Self::Env(name.into()),
            ("stdin", _) => Self::Stdin,
            ("content" | "body" | "text" | "old" | "new" | "title", _) => Self::Content,
            ("path" | "from" | "to" | "glob", _) => Self::Path,
            ("url", _) => Self::Url,
            ("line" | "command" | "script", _) => Self::CommandLine,
            _ => Self::Other(pointer.into()),
        }
    }
}
