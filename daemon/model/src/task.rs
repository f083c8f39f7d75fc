use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{InboxName, LoopLimits, Span, TaskName, ToolName, WebhookName, ZoneName};

/// The store's number for a task. A name may be used again after a deletion; a number never is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct TaskId(pub i64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What to do, when, with what rights and limits: one revision of a task, checked.
///
/// Made by `ow-config` from TOML; paths are absolute with `~` expanded, the zone is known, every
/// trigger can fire, every template parses.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TaskSpec {
    pub name: TaskName,
    pub title: Option<String>,
    pub timezone: ZoneName,
    pub triggers: Vec<Trigger>,
    /// Empty for an agent's task.
    pub steps: Vec<Step>,
    /// None for a task made of steps.
    #[serde(default)]
    pub agent: Option<AgentSpec>,
    pub mode: Mode,
    /// Folders that file tools may work in. Absolute. Empty: none.
    pub roots: Vec<PathBuf>,
    pub catch_up: CatchUp,
    pub overlap: Overlap,
    pub while_parked: WhileParked,
    pub events: EventDelivery,
    /// A slot that is claimed or begun later than this after its instant is missed.
    pub start_deadline: Option<Span>,
    /// Each slot is delayed by a span below this, fixed for the task.
    pub jitter: Span,
    /// Running time of one run; time parked and time down do not count.
    pub timeout: Span,
    /// Running time of one call.
    pub call_timeout: Span,
    pub retry: Retry,
    /// The task pauses itself after this many failures in a row; 0: never.
    pub auto_pause_after: u32,
    /// At most one run at a time among the tasks that name the same group.
    pub concurrency: Option<String>,
    pub needs: Vec<Need>,
    /// An unanswered item of this task expires after this.
    pub item_expiry: Span,
    /// The first reminder of an unanswered item; each later one comes after twice the time.
    pub item_reminder: Span,
    /// Hosts that `http_request` may reach without asking: `host`, `host:port`, `*.domain`.
    pub http_allow: Vec<String>,
    /// Where its questions and notices go.
    #[serde(default)]
    pub inbox: InboxName,
}

/// What an agent works toward, with which model and limits.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgentSpec {
    /// What it is to reach; a template like a step's arguments. None: a chat, whose goals come as messages.
    pub goal: Option<String>,
    /// `provider:model`; none: the configured default.
    pub model: Option<String>,
    /// Tried in this order when the model cannot be had.
    pub failover: Vec<String>,
    /// Added to the system prompt.
    pub instructions: Option<String>,
    /// The tools it may see; none: all.
    pub tools: Option<Vec<ToolName>>,
    /// Model calls of one turn; none: 50.
    pub max_iterations: Option<u32>,
    pub budget: Budget,
    /// Goes before what the configuration says for all agents.
    #[serde(default, skip_serializing_if = "LoopLimits::is_empty")]
    pub loops: LoopLimits,
}

/// What one run, or one turn of a chat, may use; reaching a limit asks a person. None: no limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Budget {
    pub tokens: Option<u64>,
    /// In millionths of the price table's currency.
    pub cost_micros: Option<u64>,
    pub calls: Option<u32>,
    pub time: Option<Span>,
}

/// An occasion on which a task runs. Running by hand is always possible and needs no trigger.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// A cron expression of 5 or 6 fields, or an `@daily`-like name, in the task's zone.
    Cron(String),
    /// Fires at `anchor + k * period` for whole `k >= 1`. Without an anchor the task's creation is it.
    Every {
        period: Span,
        anchor: Option<Timestamp>,
    },
    /// Fires once.
    At(Timestamp),
    Watch {
        path: PathBuf,
        glob: Option<String>,
        settle: Span,
        on: Vec<WatchKind>,
    },
    After {
        task: TaskName,
        on: AfterEnd,
    },
    /// Fires at each start of owd.
    Startup,
    /// Fires for each delivery at this webhook for which `when`, an expression over `event`, holds; none: for all.
    Webhook {
        hook: WebhookName,
        when: Option<String>,
    },
    /// Fires for each message that a person writes in this Slack channel, if it is `from` one of these members (none: of
    /// any) and `when` holds.
    Slack {
        channel: String,
        from: Vec<String>,
        when: Option<String>,
    },
    /// Fires for each mail that comes in, names no item, and passes the filter.
    Mail(MailFilter),
}

/// Which mail fires a trigger: what is named must hold, and all of it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct MailFilter {
    /// Addresses, or domains as `@example.org`, one of which is proven to have sent it; empty: anybody, proven or not.
    pub from: Vec<String>,
    /// A pattern of the whole subject, in which `*` stands for anything; in any case.
    pub subject: Option<String>,
    /// The id of the list that it came over.
    pub list: Option<String>,
    /// The folder of the account that it lies in; none: the mailbox that is read, and what is handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchKind {
    Create,
    Change,
    Move,
}

/// Which ends of another task's run fire an `after` trigger.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterEnd {
    #[default]
    Success,
    Failure,
    Any,
}

/// One tool call of a steps task, with templates in its arguments.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    pub tool: ToolName,
    /// An object; every string in it is a template.
    pub args: Value,
    /// Later steps read this step's result as `steps.<save-as>`.
    pub save_as: Option<String>,
    /// A template expression; the step is passed over when it is false.
    #[serde(rename = "if")]
    pub condition: Option<String>,
    pub on_error: OnError,
}

/// What a step's failure does to its run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// The run fails with this step's error.
    #[default]
    Stop,
    /// The next step runs; the error is readable as `steps.<save-as>.error`.
    Continue,
}

/// How far a task may go without a person.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing with side effects runs.
    Plan,
    #[default]
    Ask,
    /// Writes inside the roots pass.
    Edit,
    /// Only what rules deny, and risk external, asks.
    Auto,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatchUp {
    /// All missed slots become one run.
    #[default]
    Once,
    None,
    /// One run a missed slot, the newest `max` of them.
    All {
        max: u32,
    },
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overlap {
    #[default]
    Skip,
    /// One slot waits for the running run.
    Queue,
    CancelPrevious,
    Allow {
        max: u32,
    },
}

/// What a run that is parked on its own question does to the task's next slots.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhileParked {
    /// It counts as running.
    #[default]
    Hold,
    /// New runs go on beside it.
    Release,
    /// A newer run withdraws its question; it ends cancelled.
    Supersede,
}

/// How waiting events become runs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventDelivery {
    /// The next run gets all that wait, at most `max`.
    Batch { max: u32 },
    /// One run an event; at most `max` wait.
    Each { max: u32 },
}

impl Default for EventDelivery {
    fn default() -> Self {
        Self::Batch { max: 1000 }
    }
}

/// A failed run is tried again only when it had no side effect.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Retry {
    /// Attempts after the first; 0: none.
    pub attempts: u32,
    /// Before the first retry; doubled before each later one.
    pub backoff: Span,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    Network,
}

/// Where a task's definition is kept.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskSource {
    /// `tasks.d/<name>.toml`; only the file changes it.
    File,
    /// The store, by `owctl task add` or `import`.
    Store,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    Active,
    Paused {
        reason: PauseReason,
        since: Timestamp,
    },
    /// Records outlive the task.
    Deleted {
        at: Timestamp,
    },
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseReason {
    /// A person paused it.
    Person,
    /// Its task file vanished.
    FileGone,
    /// It failed this many times in a row.
    Failures(u32),
}
