//! What the parts are told of the configuration: made at the start and again at each reload.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ow_config::{Config, HOOKS_FOLDER, Host, Paths, SafeCommands, TaskDefaults};
use ow_engine::Hooks;
use ow_mail::MailSettings;
use ow_model::Span;
use ow_secret::{REDACTED, Redactor, Sealed, Secrets, Sources};
use ow_store::{Retention, SqliteStore};
use serde_json::Value;

use crate::people::mail_settings;

/// Events for watchers that are kept.
const STREAM_LENGTH: u64 = 20_000;
/// Rows that retention removes in one step.
const RETENTION_STEP: usize = 200;
const EVENT_KEYS: Span = Span::from_secs(90 * 86_400);

/// What a reload replaces.
pub(crate) struct Standing {
    pub(crate) config: Config,
    pub(crate) defaults: TaskDefaults,
    /// Whose answers count and how they are read: made once, for each mail and message is read by it.
    pub(crate) answers: MailSettings,
}

impl Standing {
    pub(crate) fn new(config: Config, defaults: TaskDefaults) -> Self {
        Self { answers: mail_settings(&config), config, defaults }
    }
}

pub(crate) fn load_secrets(config: &Config, paths: &Paths) -> anyhow::Result<Arc<Secrets>> {
    let file = config.secrets.file.clone().unwrap_or_else(|| paths.secrets_file.clone());
    let named = crate::models::key_names(config).into_iter().chain(crate::slack::token_names(config)).collect();
    let sealed = sealed(config);
    Ok(Arc::new(Secrets::load(&Sources { named, sealed, ..Sources::of_process(file) })?))
}

pub(crate) fn sealed(config: &Config) -> Option<Sealed> {
    let (file, key_file) = (config.secrets.sealed.clone()?, config.secrets.seal_key.clone()?);
    Some(Sealed { file, key_file })
}

/// Has the audit keep calls' arguments, or not.
pub(crate) fn show_arguments(store: &SqliteStore, config: &Config, secrets: &Arc<Secrets>) {
    let redactor = secrets.redactor();
    let show = move |args: &Value| redacted(args, &redactor);
    store.show_arguments(config.audit.arguments.then(|| Arc::new(show) as Arc<ow_store::ShowArguments>));
}

/// Without secrets that are known, and without what looks like one.
fn redacted(value: &Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) if ow_config::looks_like_secret(text) => Value::String(REDACTED.into()),
        Value::String(text) => Value::String(redactor.redact(text).into_owned()),
        Value::Array(list) => Value::Array(list.iter().map(|value| redacted(value, redactor)).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), redacted(value, redactor))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

pub(crate) fn hooks(config: &Config, paths: &Paths) -> Hooks {
    Hooks::new(config.hook.clone(), &paths.config_file.with_file_name(HOOKS_FOLDER))
}

pub(crate) fn policy_settings(
    config: &Config,
    paths: &Paths,
    host: &Host,
    own_addresses: &[SocketAddr],
) -> ow_policy::Settings {
    let own: [&Path; 3] = [&paths.config_dir, &paths.data_dir, &paths.socket];
    let files = [
        &config.server.key_file,
        &config.secrets.file,
        &config.secrets.sealed,
        &config.secrets.seal_key,
        &config.log.file,
    ];
    let protected: Vec<PathBuf> =
        own.into_iter().chain(files.into_iter().flatten().map(PathBuf::as_path)).map(Path::to_owned).collect();
    ow_policy::Settings {
        allow: config.policy.allow.clone(),
        deny: config.policy.deny.clone(),
        safe_commands: config.policy.safe_commands == SafeCommands::On,
        http_allow: config.policy.http_allow.clone(),
        protected,
        own_addresses: own_addresses.to_vec(),
        trusted: config.policy.trusted.clone(),
        tool_risk: config
            .tool_risk
            .iter()
            .map(|(pattern, risk)| ow_policy::RiskOverride { pattern: pattern.clone(), risk: *risk })
            .collect(),
        home: host.home.clone(),
    }
}

pub(crate) fn retention(config: &Config) -> Retention {
    Retention {
        runs: config.retention.runs,
        items: config.retention.items,
        slots: config.retention.slots,
        event_keys: EVENT_KEYS,
        stream: STREAM_LENGTH,
        step: RETENTION_STEP,
    }
}
