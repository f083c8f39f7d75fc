use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use ow_clock::Clock;
use ow_model::{RunId, SessionId, Span, TaskSpec};
use ow_policy::Settings;
use ow_secret::Secrets;
use ow_store::{Store, TakenRun};
use ow_tool::{Helpers, Limits, Place, Toolbox};
use tracing::{Instrument, error, info_span};

use crate::agent::{AgentCourse, Agents, Kits};
use crate::course::Course;
use crate::{Command, Commands, Hooks, Live, Stop, Trust};

/// What the engine is made of.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub toolbox: Arc<Toolbox>,
    pub helpers: Arc<Helpers>,
    pub settings: Settings,
    pub secrets: Arc<Secrets>,
    pub hooks: Hooks,
    /// Of hooks that workspaces bring.
    pub trust: Arc<Trust>,
    pub home: PathBuf,
    /// Each run's own folder is made below this one.
    pub runs_dir: PathBuf,
    /// How long a call that is told to stop may take to end by itself.
    pub grace: Span,
    /// What one call may use; its time is the task's.
    pub limits: Limits,
    /// None: agents' tasks fail, saying why.
    pub agents: Option<Agents>,
}

/// Performs the effects of turns and journals them.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) helpers: Arc<Helpers>,
    pub(crate) home: PathBuf,
    pub(crate) runs_dir: PathBuf,
    pub(crate) grace: Span,
    pub(crate) limits: Limits,
    pub(crate) live: Arc<Live>,
    pub(crate) commands: Arc<Commands>,
    /// Replaced as a whole by a reload; a call is judged by the one that stands when it is admitted.
    standing: RwLock<Arc<Standing>>,
    hooks: RwLock<Arc<Hooks>>,
    pub(crate) trust: Arc<Trust>,
}

/// What a reload may replace.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) settings: Settings,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) agents: Option<Agents>,
    pub(crate) kits: Arc<Kits>,
}

impl Engine {
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts {
            store,
            clock,
            toolbox,
            helpers,
            settings,
            secrets,
            hooks,
            trust,
            home,
            runs_dir,
            grace,
            limits,
            agents,
        } = parts;
        let hooks = RwLock::new(Arc::new(hooks));
        let standing = RwLock::new(Arc::new(Standing { settings, secrets, agents, kits: Arc::default() }));
        let (live, commands) = (Live::new(), Commands::new());
        Arc::new(Self {
            store,
            clock,
            toolbox,
            helpers,
            home,
            runs_dir,
            grace,
            limits,
            live,
            commands,
            standing,
            hooks,
            trust,
        })
    }

    /// Replaces the policy's settings and the secrets for every call that is admitted from now on, and the models
    /// for every session that a worker takes from now on.
    pub fn reload(&self, settings: Settings, secrets: Arc<Secrets>, agents: Option<Agents>) {
        *self.standing.write().expect("no holder panics") =
            Arc::new(Standing { settings, secrets, agents, kits: Arc::default() });
    }

    /// Replaces the hooks for every call and session from now on.
    pub fn reload_hooks(&self, hooks: Hooks) {
        *self.hooks.write().expect("no holder panics") = Arc::new(hooks);
    }

    /// What is trusted of workspaces.
    #[must_use]
    pub fn trust(&self) -> Arc<Trust> {
        Arc::clone(&self.trust)
    }

    /// The secrets that calls are given from now on.
    #[must_use]
    pub fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&self.standing().secrets)
    }

    /// Has a helper process ready for a call that is about to come.
    pub fn expect_call(&self) {
        self.helpers.warm();
    }

    /// What happens in sessions right now.
    #[must_use]
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    /// Hands a command to the worker that has the session, and waits until it is durable. False: none has it, or the
    /// one that had it left it, and nothing was done.
    ///
    /// # Cancel safety
    ///
    /// The worker may take the command after this was dropped.
    pub async fn command(&self, session: SessionId, command: Command) -> bool {
        self.commands.send(session, command).await
    }

    pub(crate) fn commands(&self) -> Arc<Commands> {
        Arc::clone(&self.commands)
    }

    /// What is to be known of a model before it is asked for.
    #[must_use]
    pub fn model_warnings(&self, model: &str) -> Vec<String> {
        let resolved = self.agents().map(|agents| agents.router.resolve(model));
        resolved.iter().flat_map(|resolved| &resolved.warnings).map(ToString::to_string).collect()
    }

    pub(crate) fn agents(&self) -> Option<Agents> {
        self.standing().agents.clone()
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    pub(crate) fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.standing.read().expect("no holder panics"))
    }

    pub(crate) fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.hooks.read().expect("no holder panics"))
    }

    /// The folder that belongs to one run.
    #[must_use]
    pub fn run_folder(&self, run: RunId) -> PathBuf {
        self.runs_dir.join(run.to_string())
    }

    /// Where a run's calls happen: in the task's first root that is there, else in the run's own folder.
    pub(crate) fn place(&self, spec: &TaskSpec, run_folder: PathBuf) -> Place {
        let cwd = spec.roots.iter().find(|root| root.is_dir()).unwrap_or(&run_folder).clone();
        Place { cwd, roots: spec.roots.clone(), home: self.home.clone(), run_folder, outside: false }
    }

    /// Runs a taken run until it has ended, is parked, or was told to stop; all of it is durable then.
    ///
    /// Store errors are waited out: what took effect is journaled late rather than forgotten. Where the run is to be left
    /// and the store fails even that, it stays as it is, and the next start finds it.
    pub async fn perform(self: &Arc<Self>, taken: TakenRun, stop: &Stop) {
        let span = info_span!("run", run = %taken.run.id, task = %taken.run.task_name);
        async {
            let run = taken.run.id;
            let followed = if taken.spec.agent.is_some() {
                Box::pin(AgentCourse::new(Arc::clone(self), taken).follow(stop)).await
            } else {
                Box::pin(Course::new(Arc::clone(self), taken).follow(stop)).await
            };
            if let Err(error) = followed {
                error!(%run, error = &error as &dyn std::error::Error, "run left as it stands");
            }
        }
        .instrument(span)
        .await;
    }
}
