use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use ow_model::{InboxName, LoopLimits, Risk, Span, WebhookName, ZoneName};
use serde::Serialize;
use thiserror::Error;

use crate::{FileFault, TaskDefaults};

mod hook;
mod inboxes;
mod listener;
mod loops;
mod mail;
mod read;
mod workspace;

pub use hook::{HOOKS_FOLDER, HookConfig, HookFault, Matcher, OnFailure};
pub use inboxes::{Escalation, NamedInboxConfig, QuietHours, unknown_inbox};
pub use listener::{ListenerConfig, WebhookConfig};
pub(crate) use loops::limits as loop_limits;
pub use mail::{MailConfig, MailInConfig, MailLogin, MailOutConfig, MailSecurity, MailServer, MailWay};
pub use workspace::{WORKSPACE_FOLDER, Workspace};

/// The configuration in effect: what `owd.toml` says, with a default for all that it does not.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// For tasks that name no zone, and for showing times. An IANA name that is known here.
    pub timezone: ZoneName,
    pub scheduler: SchedulerConfig,
    pub policy: PolicyConfig,
    /// Classes of risk by a tool's name or a pattern of names: what a person says, against what the tool declares.
    pub tool_risk: BTreeMap<String, Risk>,
    pub inbox: InboxConfig,
    /// Where items are told of, by inbox; `default` is that of tasks that name none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inboxes: BTreeMap<InboxName, NamedInboxConfig>,
    pub mail: MailConfig,
    /// None: owd has nothing to do with Slack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<SlackConfig>,
    pub server: ServerConfig,
    pub listener: ListenerConfig,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webhook: BTreeMap<WebhookName, WebhookConfig>,
    pub log: LogConfig,
    pub retention: RetentionConfig,
    pub secrets: SecretsConfig,
    pub audit: AuditConfig,
    pub agent: AgentConfig,
    /// Model services by name, besides the built-in ones or changing them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub provider: BTreeMap<String, ProviderConfig>,
    /// In the order in which they are asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hook: Vec<HookConfig>,
    /// By name. Empty: the account that owd runs under is the one person.
    pub people: BTreeMap<String, PersonConfig>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SchedulerConfig {
    /// How many runs work at the same time.
    pub workers: u32,
    /// How many chats work at the same time, beside these.
    pub chat_workers: u32,
    /// For tasks that set no `call-timeout`.
    pub call_timeout: Span,
    /// For tasks that set no `timeout`.
    pub run_timeout: Span,
    /// How long running calls may go on after a request to stop.
    pub grace: Span,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PolicyConfig {
    /// argv prefixes that run without asking.
    pub allow: Vec<String>,
    /// Text patterns that never run.
    pub deny: Vec<String>,
    pub safe_commands: SafeCommands,
    /// Hosts that `http_request` may reach without asking: `host`, `host:port`, `*.domain`.
    pub http_allow: Vec<String>,
    /// Workspaces whose builds and tests run without asking, as far as `safe_commands` does.
    pub trusted: Vec<PathBuf>,
}

/// Whether the built-in list of read-only programs counts as configured allow.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SafeCommands {
    #[default]
    On,
    Off,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InboxConfig {
    /// For tasks that set no `expiry`.
    pub expiry: Span,
    /// For tasks that set no `reminder`.
    pub reminder: Span,
    /// Phrases by which a reply approves, besides the built-in ones.
    pub approve_words: Vec<String>,
    /// Likewise by which it denies.
    pub deny_words: Vec<String>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServerConfig {
    /// A loopback address; none: the Unix socket only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<SocketAddr>,
    /// None: `key` in the data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_file: Option<PathBuf>,
    /// Origins besides owd's own, each whole: `https://host[:port]`.
    pub allowed_origins: Vec<String>,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogConfig {
    pub level: LogLevel,
    pub format: LogFormat,
    pub target: LogTarget,
    /// For target `file`; none: the customary place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// As in the file, and as the log's filters write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogTarget {
    #[default]
    Stderr,
    File,
    Journald,
}

/// How long what is over is kept.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RetentionConfig {
    /// Ended runs with their journals and outputs.
    pub runs: Span,
    /// Resolved items; id, decision, who and when are kept beyond.
    pub items: Span,
    /// Records of what became of slots.
    pub slots: Span,
}

#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretsConfig {
    /// None: `secrets.toml` beside the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// A sealed file, in which secrets are kept from then on; none: they are kept in `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed: Option<PathBuf>,
    /// The sealed file's key; it must not lie beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal_key: Option<PathBuf>,
}

/// The record of decisions and effects.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AuditConfig {
    /// Whether calls' arguments are kept in it, redacted.
    pub arguments: bool,
}

/// For agents that do not say otherwise.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgentConfig {
    /// `provider:model`; none: each task and chat names its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Models to go on with when that one cannot be had.
    pub failover: Vec<String>,
    /// Where a model's name goes that names no provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_provider: Option<String>,
    /// Model calls of one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// Tokens at which a history is shortened even where the model's window is larger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction_cap: Option<u32>,
    /// With how many calls the loop detectors bear.
    #[serde(skip_serializing_if = "LoopLimits::is_empty")]
    pub loops: LoopLimits,
}

/// A model service.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProviderConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireFormat>,
    /// The name of the secret that is its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How long it may be silent in the middle of a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence: Option<Span>,
}

/// What a model service speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireFormat {
    /// Chat completions, as OpenAI has them.
    Openai,
    /// Messages, as Anthropic has them.
    Anthropic,
}

/// An app of a Slack workspace; its tokens are kept as secrets under these names.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SlackConfig {
    /// The bot's token, `xoxb-…`.
    pub bot_token: String,
    /// The app's token, `xapp-…`, for Socket Mode. None: nothing comes in by a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_token: Option<String>,
    /// With what Slack signs what it posts to `[listener]`. None: it posts nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_secret: Option<String>,
    /// Whether a reaction to a notice answers it.
    pub reactions: bool,
    /// Another address of Slack's Web API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
}

/// Somebody who may answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PersonConfig {
    /// Peers of the Unix socket with these user ids are this person.
    pub uids: Vec<u32>,
    /// Likewise by account name.
    pub users: Vec<String>,
    /// Addresses from which this person answers by mail, in lower case.
    pub mail: Vec<String>,
    /// User ids from which this person answers in Slack.
    pub slack: Vec<String>,
    /// Whether this person may start work from there.
    pub start_work: bool,
    /// What this person may answer.
    pub inboxes: Inboxes,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Inboxes {
    #[default]
    All,
    Named(Vec<InboxName>),
}

impl Inboxes {
    #[must_use]
    pub fn contains(&self, inbox: &InboxName) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(inbox),
        }
    }
}

impl Serialize for Inboxes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => ["*"].serialize(serializer),
            Self::Named(names) => names.serialize(serializer),
        }
    }
}

/// What the machine supplies where a file is silent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    /// What `~` stands for. Absolute.
    pub home: PathBuf,
    pub timezone: ZoneName,
}

impl Host {
    /// The home of the account and the system's time zone by name; UTC if it has none.
    #[must_use]
    pub fn new(environment: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Self {
        let home = environment("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let named = environment("TZ").and_then(|zone| zone.into_string().ok());
        let timezone = match named.as_deref().map(|zone| zone.trim_start_matches(':')) {
            Some(zone) => zone_by_file(zone).or_else(|| known_zone(&TimeZone::get(zone).ok()?)),
            None => None,
        };
        let timezone = timezone
            .or_else(|| zone_by_file(std::fs::read_link(LOCAL_TIME).ok()?.to_str()?.split_once("/zoneinfo/")?.1))
            .or_else(|| known_zone(&TimeZone::try_system().ok()?))
            .unwrap_or_else(|| ZoneName("UTC".into()));
        Self { home: home.unwrap_or_else(|| PathBuf::from("/")), timezone }
    }
}

const ZONES: &str = "/usr/share/zoneinfo";
const LOCAL_TIME: &str = "/etc/localtime";

fn known_zone(zone: &TimeZone) -> Option<ZoneName> {
    zone.iana_name().map(|name| ZoneName(name.into()))
}

/// A zone that is in the system's database under this very name: looked at as a file, since to open the database is to
/// walk all of its folders, which most starts need not wait for.
fn zone_by_file(name: &str) -> Option<ZoneName> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte));
    if !is_plain || name.is_empty() || ["/", "posix", "right"].iter().any(|other| name.starts_with(other)) {
        return None;
    }
    let mut magic = [0; 4];
    let mut file = std::fs::File::open(Path::new(ZONES).join(name)).ok()?;
    std::io::Read::read_exact(&mut file, &mut magic).ok()?;
    (magic == *b"TZif").then(|| ZoneName(name.into()))
}

/// Why there is no configuration.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{}", lines(.faults))]
pub struct ConfigError {
    /// All that is wrong, in the order of the text; at least one.
    pub faults: Vec<FileFault>,
}

fn lines(faults: &[FileFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Config {
    /// What is in effect where no file says anything.
    #[must_use]
    pub fn new(host: &Host) -> Self {
        Self {
            timezone: host.timezone.clone(),
            scheduler: SchedulerConfig {
                workers: 8,
                chat_workers: 8,
                call_timeout: Span::from_secs(600),
                run_timeout: Span::from_secs(3600),
                grace: Span::from_secs(5),
            },
            policy: PolicyConfig {
                allow: vec![],
                deny: vec![],
                safe_commands: SafeCommands::On,
                http_allow: vec![],
                trusted: vec![],
            },
            tool_risk: BTreeMap::new(),
            inbox: InboxConfig { expiry: days(14), reminder: days(1), approve_words: vec![], deny_words: vec![] },
            inboxes: BTreeMap::new(),
            mail: MailConfig::new(),
            slack: None,
            server: ServerConfig { tcp: None, key_file: None, allowed_origins: vec![] },
            listener: ListenerConfig::default(),
            webhook: BTreeMap::new(),
            log: LogConfig { level: LogLevel::Info, format: LogFormat::Text, target: LogTarget::Stderr, file: None },
            retention: RetentionConfig { runs: days(90), items: days(90), slots: days(365) },
            secrets: SecretsConfig::default(),
            audit: AuditConfig::default(),
            agent: AgentConfig::default(),
            provider: BTreeMap::new(),
            hook: vec![],
            people: BTreeMap::new(),
        }
    }

    /// Reads a file that must exist.
    pub fn load(path: &Path, host: &Host) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        Self::parse(&text, Some(path), host)
    }

    /// Reads a file; where there is none, the defaults are in effect.
    pub fn load_if_present(path: &Path, host: &Host) -> Result<Self, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, Some(path), host),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::new(host)),
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    /// Reads a text; `file` is for the faults.
    pub fn parse(text: &str, file: Option<&Path>, host: &Host) -> Result<Self, ConfigError> {
        read::config(text, file, host).map_err(|faults| ConfigError { faults })
    }

    /// What is in effect, as a file that says all of it.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "the types hold nothing that TOML does not know")]
    pub fn show(&self) -> String {
        toml::to_string_pretty(self).expect("text keys, and values that TOML knows")
    }

    /// What tasks have that do not say otherwise.
    #[must_use]
    pub fn task_defaults(&self, host: &Host) -> TaskDefaults {
        TaskDefaults {
            timezone: self.timezone.clone(),
            home: host.home.clone(),
            timeout: self.scheduler.run_timeout,
            call_timeout: self.scheduler.call_timeout,
            expiry: self.inbox.expiry,
            reminder: self.inbox.reminder,
            inboxes: self.inbox_names(),
            webhooks: self.webhook.keys().cloned().collect(),
            mail_folders: self.mail.incoming.as_ref().map_or(vec![], |incoming| incoming.folders.clone()),
        }
    }

    /// The inboxes that there are: those that are configured, and `default`.
    #[must_use]
    pub fn inbox_names(&self) -> BTreeSet<InboxName> {
        self.inboxes.keys().cloned().chain([InboxName::default()]).collect()
    }

    /// The inbox itself, or `default` for one that was taken out of the configuration since: its items go on there.
    #[must_use]
    pub fn present_inbox<'i>(&self, inbox: &'i InboxName) -> Cow<'i, InboxName> {
        if self.inboxes.contains_key(inbox) { Cow::Borrowed(inbox) } else { Cow::Owned(InboxName::default()) }
    }

    /// The person that a peer of the Unix socket is.
    #[must_use]
    pub fn person_of(&self, uid: u32, user: Option<&str>) -> Option<(&str, &PersonConfig)> {
        let is = |person: &PersonConfig| {
            person.uids.contains(&uid) || user.is_some_and(|user| person.users.iter().any(|known| known == user))
        };
        self.people.iter().find(|(_, person)| is(person)).map(|(name, person)| (name.as_str(), person))
    }
}

const fn days(days: u64) -> Span {
    Span::from_secs(days * 86_400)
}

fn unreadable(path: &Path, error: &std::io::Error) -> ConfigError {
    let remedy = match error.kind() {
        std::io::ErrorKind::NotFound => "check the path, or leave it out: every setting has a default",
        std::io::ErrorKind::PermissionDenied => "let the account that owd runs under read it",
        std::io::ErrorKind::InvalidData => "save it as UTF-8",
        _ => "check that it is a readable file",
    };
    let fault = FileFault {
        file: Some(path.into()),
        line: 0,
        column: 0,
        key: String::new(),
        value: None,
        message: format!("cannot be read: {error}"),
        remedy: remedy.into(),
    };
    ConfigError { faults: vec![fault] }
}

#[cfg(test)]
mod tests;
