use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What owd is doing.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct StatusView {
    /// owd's version, as `0.1.0`.
    pub version: String,
    pub protocol: u32,
    pub pid: u32,
    pub started_at: String,
    pub now: String,
    pub time_zone: String,
    /// `running` or `stopping`.
    pub state: String,
    pub config_dir: String,
    pub data_dir: String,
    pub socket: String,
    pub tcp: Option<String>,
    /// The address at which senders outside deliver.
    #[serde(default)]
    pub listener: Option<String>,
    /// How the connection to Slack stands; none: owd has nothing to do with Slack.
    #[serde(default)]
    pub slack: Option<SlackView>,
    /// Where the log goes: a path, `stderr` or `journald`.
    pub log: String,
    /// Who paused everything, if someone did.
    pub paused_all: Option<String>,
    pub tasks: u64,
    pub tasks_paused: u64,
    pub runs_running: u64,
    pub runs_queued: u64,
    pub runs_parked: u64,
    /// Stopped by owd's end or by the kill switch; they go on by themselves.
    #[serde(default)]
    pub runs_interrupted: u64,
    /// Chats that were not removed.
    #[serde(default)]
    pub sessions: u64,
    pub items_pending: u64,
    /// Notices on their way to where their inbox is bound.
    #[serde(default)]
    pub deliveries_waiting: u64,
    /// Notices that were given up.
    #[serde(default)]
    pub deliveries_failed: u64,
    pub events_waiting: u64,
    /// How many addresses the URL guard has refused to tasks; each is on the record of its run.
    #[serde(default)]
    pub addresses_refused: u64,
    pub workers: u32,
    /// The earliest instant at which something is due.
    pub next_wake: Option<String>,
    pub store_bytes: u64,
    pub store_format: u32,
    pub epoch: u64,
    /// What a person should know: broken task files, polling watchers, damaged records.
    pub warnings: Vec<WarningView>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SlackView {
    /// `connected`; `connecting`; `posting`, when Slack posts to the listener instead; `sending`, when nothing comes in; or
    /// `unusable`, as it is configured.
    pub state: String,
    /// The workspace's name, once it is known.
    pub team: Option<String>,
    /// Since when its socket is open.
    pub connected_since: Option<String>,
    /// What went wrong last; mended if it is connected since.
    pub last_error: Option<String>,
    pub last_error_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct WarningView {
    /// `task_file`, `watch`, `damage`, `config`, `restart`, `mail`, `slack`.
    pub kind: String,
    /// The file, task or record it is about.
    pub about: String,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct DamageView {
    pub table: String,
    pub key: String,
    pub why: String,
    pub found_at: String,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PauseRequest {}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// An absolute path of a folder that must not exist yet.
    pub into: String,
}

#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct BackupView {
    pub into: String,
    pub bytes: u64,
    pub blobs: u64,
}
