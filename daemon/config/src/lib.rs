//! Where owd's files are, what they say, and what is wrong with them.
//!
//! Four subjects: the places of files ([`Paths`]), the configuration file ([`Config`]), task files
//! ([`parse_task`]) and the templates in them ([`template`]). Everything a person writes is parsed here
//! once, into types that need no second check; all that is wrong is reported together, each fault with
//! file, line, key, value and remedy ([`FileFault`]).
//!
//! Reads files, and nothing else of the outside: no clock, no socket, and no environment but through the
//! function that [`Paths::for_user`] and [`Host::new`] are given.
//!
//! ```
//! use ow_config::template;
//! use serde_json::json;
//!
//! let args = json!({ "path": "/srv/{{ slot.date }}.md", "content": "{{ steps.disks.stdout }}" });
//! let context = json!({ "slot": { "date": "2026-11-30" }, "steps": { "disks": { "stdout": "ok" } } });
//! let rendered = template::render_args(&args, &context)?;
//! assert_eq!(rendered.args, json!({ "path": "/srv/2026-11-30.md", "content": "ok" }));
//! assert_eq!(rendered.holes[0].name, "steps.disks.stdout");
//! # Ok::<(), template::TemplateError>(())
//! ```

mod config;
mod document;
mod fault;
mod paths;
mod secret;
mod suggest;
mod task;
pub mod template;

pub use config::{
    AgentConfig, AuditConfig, Config, ConfigError, Escalation, HOOKS_FOLDER, HookConfig, HookFault, Host, InboxConfig,
    Inboxes, ListenerConfig, LogConfig, LogFormat, LogLevel, LogTarget, MailConfig, MailInConfig, MailLogin,
    MailOutConfig, MailSecurity, MailServer, MailWay, Matcher, NamedInboxConfig, OnFailure, PersonConfig, PolicyConfig,
    ProviderConfig, QuietHours, RetentionConfig, SafeCommands, SchedulerConfig, SecretsConfig, ServerConfig,
    SlackConfig, WebhookConfig, WireFormat, unknown_inbox,
};
pub use config::{WORKSPACE_FOLDER, Workspace};
pub use fault::FileFault;
pub use paths::{Account, PathFlags, Paths, PathsError};
pub use secret::looks_like_secret;
pub use suggest::nearest;
pub use task::{
    TASK_FILE_LIMIT, TaskDefaults, TaskFile, ToolChecker, is_task_file, load_tasks, parse_edited_task, parse_task,
    read_task_file, step_text, to_toml,
};
