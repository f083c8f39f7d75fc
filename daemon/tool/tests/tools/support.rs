use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ow_model::{Answer, Call, CallError, CallErrorKind, CallResult, Mode, Position, Reconciled, RunId, Span};
use ow_policy::{Authorized, Facts, Settings, Situation, authorize_answered, binding_of};
use ow_secret::Secrets;
use ow_tool::{HelperEnd, Helpers, Job, Limits, Net, Place, Tool, Toolbox};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The run that all calls here are of.
pub(crate) const RUN: RunId = RunId::from_bytes([7; 10]);

/// A folder with a root, another folder beside it, and helpers.
pub(crate) struct Bench {
    folder: TempDir,
    pub(crate) toolbox: Toolbox,
    pub(crate) helpers: Helpers,
    pub(crate) secrets: Secrets,
    pub(crate) limits: Limits,
    pub(crate) net: Net,
    pub(crate) protected: Vec<PathBuf>,
    /// What calls write is drawn from outside.
    pub(crate) outside: bool,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["root", "out", "home", "run"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            toolbox: Toolbox::builtin(),
            helpers: Helpers::new(env!("CARGO_BIN_EXE_ow-tool-helper").into(), vec![]),
            secrets: Secrets::default(),
            limits: Limits { time: Span::from_secs(60), ..Limits::default() },
            net: Net::default(),
            protected: vec![],
            outside: false,
        }
    }

    pub(crate) fn base(&self) -> PathBuf {
        std::fs::canonicalize(self.folder.path()).unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base().join("root")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.base().join("out")
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            cwd: self.root(),
            roots: vec![self.root()],
            home: self.base().join("home"),
            run_folder: self.base().join("run"),
            outside: self.outside,
        }
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join(name)).unwrap()
    }

    pub(crate) fn tool(&self, name: &str) -> &dyn Tool {
        self.toolbox.tool(&name.parse().unwrap()).unwrap()
    }

    pub(crate) fn facts(&self, call: &Call) -> Result<Facts, CallError> {
        self.tool(call.tool.as_str()).facts(call, &self.place())
    }

    /// The call as a person would have allowed it.
    pub(crate) fn allowed(&self, call: &Call, facts: &Facts) -> Result<Authorized<Call>, String> {
        let settings = Settings {
            home: self.place().home,
            http_allow: self.net.allow.clone(),
            own_addresses: self.net.own.clone(),
            protected: self.protected.clone(),
            ..Settings::default()
        };
        let roots = [self.root()];
        let situation = Situation {
            task: None,
            mode: Mode::Ask,
            roots: &roots,
            run_folder: None,
            rules: &[],
            step: None,
            tainted: false,
            denied: &[],
            uncertain: &[],
            task_http: &[],
            named_hosts: &[],
            always_tools: &[],
            always_commands: &[],
            settings: &settings,
            now: Timestamp::UNIX_EPOCH,
        };
        authorize_answered(call.clone(), facts, &binding_of(facts), &Answer::Once, &situation)
            .map_err(|refusal| refusal.to_string())
    }

    pub(crate) fn job(&self, facts: Facts) -> Job {
        Job {
            run: RUN,
            place: self.place(),
            limits: self.limits,
            facts,
            secrets: Arc::new(self.secrets.clone()),
            net: self.net.clone(),
            protected: self.protected.clone(),
            audience: None,
        }
    }

    pub(crate) async fn end(&self, call: &Call, stop: CancellationToken, grace: Span) -> HelperEnd {
        let facts = self.facts(call).unwrap();
        let authorized = self.allowed(call, &facts).unwrap();
        let helper = self.helpers.ready().await.unwrap();
        helper.run(&authorized, self.job(facts), stop, grace).await
    }

    pub(crate) async fn whole(&self, tool: &str, args: Value) -> (CallResult, Vec<(String, Vec<u8>)>) {
        let end = self.end(&call(tool, args), CancellationToken::new(), Span::from_secs(1)).await;
        match end {
            HelperEnd::Done(result, kept) => (result, kept),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn run(&self, tool: &str, args: Value) -> CallResult {
        self.whole(tool, args).await.0
    }

    /// The output of a call that must succeed.
    pub(crate) async fn output(&self, tool: &str, args: Value) -> Value {
        let result = self.run(tool, args).await;
        assert_eq!(result.error, None, "{}", result.output);
        result.output
    }

    /// What is wrong with a call, wherever it is found: arguments, facts or execution.
    pub(crate) async fn error(&self, tool: &str, args: Value) -> CallError {
        let call = call(tool, args);
        if let Err(message) = self.tool(tool).check(&call.args) {
            return CallError { kind: CallErrorKind::BadArguments, message };
        }
        let facts = match self.facts(&call) {
            Ok(facts) => facts,
            Err(error) => return error,
        };
        if let Err(message) = self.allowed(&call, &facts) {
            return CallError { kind: CallErrorKind::Refused, message };
        }
        self.run(tool, call.args).await.error.expect("the call fails")
    }

    /// Notes, lets `happen` change the world, and asks what became of the call.
    pub(crate) fn reconciled(&self, tool: &str, args: Value, happen: impl FnOnce()) -> Reconciled {
        let call = call(tool, args);
        let note = self.tool(tool).note(&call, &self.place());
        happen();
        self.tool(tool).reconcile(&call, &note, &self.place())
    }
}

pub(crate) fn call(tool: &str, args: Value) -> Call {
    Call { position: Position(0), tool: tool.parse().unwrap(), args }
}

/// Waits for a condition, and fails when it does not come true.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not come true");
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
}

/// The pid that a command wrote into a file.
pub(crate) fn pid_in(path: &Path) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
