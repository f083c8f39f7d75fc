use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ow_model::{InboxName, Risk, Span};
use ow_reply::{PhraseError, Phrases};

use super::inboxes::{inbox_names, inboxes, of_person};
use super::{
    AgentConfig, AuditConfig, Config, Host, InboxConfig, LogConfig, LogFormat, LogLevel, LogTarget, PersonConfig,
    PolicyConfig, ProviderConfig, RetentionConfig, SafeCommands, SchedulerConfig, SecretsConfig, ServerConfig,
    SlackConfig, WireFormat,
};
use crate::FileFault;
use crate::document::{Document, Found, Section};
use crate::task::{absolute_path, folders, http_hosts, model_name, model_names, zone};

const SECOND: Span = Span::from_secs(1);
const DAY: Span = Span::from_secs(86_400);
/// Beyond any use; keeps sums with timestamps within range.
const TEN_YEARS: Span = Span::from_secs(520 * 7 * 86_400);

pub(super) fn config(text: &str, file: Option<&Path>, host: &Host) -> Result<Config, Vec<FileFault>> {
    let document = Document::new(file, text);
    let Some(table) = document.parse() else { return Err(document.into_faults()) };
    let root = document.root(&table);
    let defaults = Config::new(host);
    let known = inbox_names(&root);
    let config = Config {
        timezone: zone(&root).unwrap_or(defaults.timezone),
        scheduler: part(&root, "scheduler", defaults.scheduler, scheduler),
        policy: part(&root, "policy", defaults.policy, |section, defaults| policy(section, defaults, &host.home)),
        tool_risk: part(&root, "tool-risk", defaults.tool_risk, |section, _| tool_risk(section)),
        inbox: part(&root, "inbox", defaults.inbox, inbox),
        inboxes: part(&root, "inboxes", defaults.inboxes, |section, _| inboxes(section, &known)),
        mail: part(&root, "mail", defaults.mail, |section, _| super::mail::mail(section, &host.home)),
        slack: part(&root, "slack", defaults.slack, |section, _| slack(section)),
        server: part(&root, "server", defaults.server, |section, _| server(section, &host.home)),
        listener: part(&root, "listener", defaults.listener, |section, _| super::listener::listener(section)),
        webhook: part(&root, "webhook", defaults.webhook, |section, _| super::listener::webhooks(section)),
        log: part(&root, "log", defaults.log, |section, defaults| log(section, defaults, &host.home)),
        retention: part(&root, "retention", defaults.retention, retention),
        secrets: part(&root, "secrets", defaults.secrets, |section, _| secrets(section, &host.home)),
        audit: part(&root, "audit", defaults.audit, |section, defaults| AuditConfig {
            arguments: section.flag("arguments").map_or(defaults.arguments, |found| found.value),
        }),
        agent: part(&root, "agent", defaults.agent, |section, _| agent(section)),
        provider: part(&root, "provider", defaults.provider, |section, _| providers(section)),
        hook: super::hook::hooks(&root, file),
        people: part(&root, "people", defaults.people, |section, _| people(section, &known)),
    };
    root.finish();
    if document.has_faults() { Err(document.into_faults()) } else { Ok(config) }
}

fn part<T>(root: &Section<'_, '_>, key: &'static str, defaults: T, read: impl FnOnce(&Section<'_, '_>, &T) -> T) -> T {
    let Some(section) = root.section(key) else { return defaults };
    let part = read(&section, &defaults);
    // There the keys are names.
    if !matches!(key, "inboxes" | "people" | "provider" | "tool-risk" | "webhook") {
        section.finish();
    }
    part
}

fn scheduler(section: &Section<'_, '_>, defaults: &SchedulerConfig) -> SchedulerConfig {
    SchedulerConfig {
        workers: section.count("workers", 1..=1024).unwrap_or(defaults.workers),
        chat_workers: section.count("chat-workers", 1..=65_536).unwrap_or(defaults.chat_workers),
        call_timeout: section.span_in("call-timeout", SECOND..=TEN_YEARS).unwrap_or(defaults.call_timeout),
        run_timeout: section.span_in("run-timeout", SECOND..=TEN_YEARS).unwrap_or(defaults.run_timeout),
        grace: section.span_in("grace", Span::from_millis(0)..=Span::from_secs(600)).unwrap_or(defaults.grace),
    }
}

fn policy(section: &Section<'_, '_>, defaults: &PolicyConfig, home: &Path) -> PolicyConfig {
    PolicyConfig {
        allow: entries(section, "allow"),
        deny: entries(section, "deny"),
        safe_commands: section
            .choice("safe-commands", &[("on", SafeCommands::On), ("off", SafeCommands::Off)])
            .unwrap_or(defaults.safe_commands),
        http_allow: http_hosts(section, "http-allow"),
        trusted: folders(section, "trusted", "name the workspaces that you trust", home),
    }
}

pub(super) fn entries(section: &Section<'_, '_>, key: &'static str) -> Vec<String> {
    let mut entries = vec![];
    for Found { value, place } in section.texts(key).unwrap_or_default() {
        let bare = value.trim();
        if bare.is_empty() {
            section.document().fault(&place, "an empty entry", "write a command, or remove the entry");
        } else if key == "allow" && bare.trim_end_matches('*').trim().is_empty() {
            section.document().fault(
                &place,
                "allows every command",
                "name the programs that may run; for one task choose `mode = \"auto\"` there",
            );
        } else {
            entries.push(value);
        }
    }
    entries
}

fn tool_risk(section: &Section<'_, '_>) -> BTreeMap<String, Risk> {
    const CLASSES: [(&str, Risk); 4] =
        [("read", Risk::Read), ("write-local", Risk::WriteLocal), ("exec", Risk::Exec), ("external", Risk::External)];
    let mut given = BTreeMap::new();
    for (pattern, value) in section.entries() {
        let is_name = |letter: char| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '_' | '.' | '*')
        };
        if pattern.is_empty() || !pattern.chars().all(is_name) {
            section.document().fault_without_value(
                &section.place_of(pattern, value),
                "not the name of a tool",
                "write a name as `owctl tool list` shows it, or a pattern such as \"mail.*\"",
            );
            continue;
        }
        if let Some(risk) = section.choice_in(pattern, value, &CLASSES) {
            given.insert(pattern.to_owned(), risk);
        }
    }
    given
}

fn inbox(section: &Section<'_, '_>, defaults: &InboxConfig) -> InboxConfig {
    let approve_words = phrases(section, "approve-words", |one| {
        Phrases::with(&[one], &[]).map_err(|error| match error {
            PhraseError::Both { .. } => OPPOSITE,
            PhraseError::NotWords { .. } => NO_WORDS,
            PhraseError::Unclear { .. } => UNCLEAR,
        })
    });
    // What is wrong with those is told already.
    let right: Vec<String> =
        approve_words.iter().filter(|one| Phrases::with(std::slice::from_ref(*one), &[]).is_ok()).cloned().collect();
    let deny_words = phrases(section, "deny-words", |one| {
        Phrases::with(&[], std::slice::from_ref(&one))
            .and_then(|_| Phrases::with(&right, std::slice::from_ref(&one)))
            .map_err(|error| match error {
                PhraseError::Both { .. } if Phrases::with(&[], &[one]).is_ok() => {
                    ("a phrase that `approve-words` has too", "take it out of one of them, for it cannot mean both")
                }
                PhraseError::Both { .. } => OPPOSITE,
                PhraseError::NotWords { .. } => NO_WORDS,
                PhraseError::Unclear { .. } => UNCLEAR,
            })
    });
    InboxConfig {
        expiry: section.span_in("expiry", SECOND..=TEN_YEARS).unwrap_or(defaults.expiry),
        reminder: section.span_in("reminder", SECOND..=TEN_YEARS).unwrap_or(defaults.reminder),
        approve_words,
        deny_words,
    }
}

/// What is wrong with a phrase, and what to do.
type Wrong = (&'static str, &'static str);

const NO_WORDS: Wrong = ("not words alone", "write a phrase of words, without marks, that owd does not know yet");
const OPPOSITE: Wrong =
    ("a phrase that means the opposite already", "write a phrase of words, without marks, that owd does not know yet");
const UNCLEAR: Wrong =
    ("a phrase that puts a yes in doubt, greets or thanks", "write a phrase that says yes or no and nothing else");

/// Phrases that a reply may use; `add` says what is wrong with one.
fn phrases(
    section: &Section<'_, '_>,
    key: &'static str,
    add: impl Fn(String) -> Result<Phrases, Wrong>,
) -> Vec<String> {
    let found = section.texts(key).unwrap_or_default();
    for phrase in &found {
        if let Err((what, remedy)) = add(phrase.value.clone()) {
            section.document().fault(&phrase.place, what, remedy);
        }
    }
    found.into_iter().map(|phrase| phrase.value).collect()
}

fn slack(section: &Section<'_, '_>) -> Option<SlackConfig> {
    let remedy = "write the name of a secret, as `slack-bot-token`, and store the token with: owctl secret set NAME";
    let secret = |key: &'static str| {
        let Found { value, place } = section.text(key)?;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if ["xoxb-", "xoxp-", "xapp-", "xoxe"].iter().any(|begin| value.starts_with(begin)) {
            let what = "a token itself, where others may read it";
            section.document().fault_without_value(&place, what, remedy);
        } else if value.is_empty() || !value.chars().all(plain) {
            section.document().fault(&place, "not the name of a secret", remedy);
        }
        Some(value)
    };
    let remedy = "leave it out for Slack's own; another is `https://…`, or `http://` with an address of this machine";
    let api_url = section.read("api-url", remedy, |text| {
        let host = text.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
        let bare = host.map(|host| host.rsplit_once(':').map_or(host, |(host, _)| host));
        // The tokens go there.
        if text.starts_with("https://") || matches!(bare, Some("127.0.0.1" | "[::1]" | "localhost")) {
            Ok(text.to_owned())
        } else {
            Err("an address that anybody on the way can read")
        }
    });
    let (app_token, signing_secret) = (secret("app-token"), secret("signing-secret"));
    let reactions = section.flag("reactions").is_some_and(|found| found.value);
    let Some(bot_token) = secret("bot-token") else {
        let remedy = "write the name of the secret that is the bot's token, as `bot-token = \"slack-bot-token\"`";
        section.document().fault_without_value(section.place(), "`bot-token` is missing", remedy);
        return None;
    };
    let api_url = api_url.map(|found| found.value);
    Some(SlackConfig { bot_token, app_token, signing_secret, reactions, api_url })
}

fn server(section: &Section<'_, '_>, home: &Path) -> ServerConfig {
    let remedy = "write an address and a port of this machine, as `127.0.0.1:7700`";
    let tcp = section.read("tcp", remedy, |text| {
        let address: SocketAddr = text.parse().map_err(|_| "not an address with a port")?;
        if !address.ip().is_loopback() {
            return Err("not an address of this machine alone: the key would cross the network unencrypted");
        }
        Ok(address)
    });
    let mut allowed_origins = vec![];
    for Found { value, place } in section.texts("allowed-origins").unwrap_or_default() {
        if is_origin(&value) {
            allowed_origins.push(value);
        } else {
            section.document().fault(
                &place,
                "not an origin",
                "write scheme and host, and the port if it is not the scheme's own, without a path: `https://host:8443`",
            );
        }
    }
    ServerConfig { tcp: tcp.map(|found| found.value), key_file: path(section, "key-file", home), allowed_origins }
}

fn is_origin(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else { return false };
    !rest.is_empty()
        && rest.chars().all(|letter| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '.' | '-' | ':' | '[' | ']')
        })
}

fn log(section: &Section<'_, '_>, defaults: &LogConfig, home: &Path) -> LogConfig {
    let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];
    let levels = levels.map(|level| (level.word(), level));
    let targets = [("stderr", LogTarget::Stderr), ("file", LogTarget::File), ("journald", LogTarget::Journald)];
    LogConfig {
        level: section.choice("level", &levels).unwrap_or(defaults.level),
        format: section
            .choice("format", &[("text", LogFormat::Text), ("json", LogFormat::Json)])
            .unwrap_or(defaults.format),
        target: section.choice("target", &targets).unwrap_or(defaults.target),
        file: path(section, "file", home),
    }
}

fn retention(section: &Section<'_, '_>, defaults: &RetentionConfig) -> RetentionConfig {
    RetentionConfig {
        runs: section.span_in("runs", DAY..=TEN_YEARS).unwrap_or(defaults.runs),
        items: section.span_in("items", DAY..=TEN_YEARS).unwrap_or(defaults.items),
        slots: section.span_in("slots", DAY..=TEN_YEARS).unwrap_or(defaults.slots),
    }
}

fn secrets(section: &Section<'_, '_>, home: &Path) -> SecretsConfig {
    let secrets = SecretsConfig {
        file: path(section, "file", home),
        sealed: path(section, "sealed", home),
        seal_key: path(section, "seal-key", home),
    };
    let place = section.place();
    match (&secrets.sealed, &secrets.seal_key) {
        (Some(_), None) => {
            let remedy =
                "name its key's file, in a folder that is not copied with it: `seal-key = \"/etc/owd-seal.key\"`";
            section.document().fault_without_value(place, "`sealed` without `seal-key`", remedy);
        }
        (None, Some(_)) => {
            section.document().fault_without_value(
                place,
                "`seal-key` without `sealed`",
                "name the sealed file, or remove it",
            );
        }
        (Some(sealed), Some(key)) if sealed.parent() == key.parent() => {
            let remedy = "keep the key in another folder: whoever copies this one would have both";
            section.document().fault_without_value(place, "the sealed file and its key lie side by side", remedy);
        }
        _ => {}
    }
    secrets
}

fn agent(section: &Section<'_, '_>) -> AgentConfig {
    AgentConfig {
        model: model_name(section, "model"),
        failover: model_names(section, "failover"),
        default_provider: section.text("default-provider").map(|found| found.value),
        max_iterations: section.count("max-iterations", 1..=10_000),
        compaction_cap: section.count("compaction-cap", 10_000..=2_000_000),
        loops: super::loops::limits(section, "agent.loops"),
    }
}

fn providers(section: &Section<'_, '_>) -> BTreeMap<String, ProviderConfig> {
    let mut providers = BTreeMap::new();
    for (name, value) in section.entries() {
        let Some(provider) = section.section_in(name, value) else { continue };
        let made = ProviderConfig {
            base_url: provider.text("base-url").map(|found| found.value),
            wire: provider.choice("wire", &[("openai", WireFormat::Openai), ("anthropic", WireFormat::Anthropic)]),
            key: provider.text("key").map(|found| found.value),
            silence: provider.span_in("silence", SECOND..=DAY),
        };
        provider.finish();
        providers.insert(name.to_owned(), made);
    }
    providers
}

fn people(section: &Section<'_, '_>, known: &BTreeSet<InboxName>) -> BTreeMap<String, PersonConfig> {
    let mut people: BTreeMap<String, PersonConfig> = BTreeMap::new();
    for (name, value) in section.entries() {
        let Some(person) = section.section_in(name, value) else { continue };
        let uids = person.counts("uids").unwrap_or_default();
        let users: Vec<String> = person.texts("users").unwrap_or_default().into_iter().map(|user| user.value).collect();
        let mail = addresses(&person);
        let slack = slack_users(&person);
        let start_work = person.flag("start-work").is_some_and(|found| found.value);
        let inboxes = of_person(&person, known);
        person.finish();
        if uids.is_empty() && users.is_empty() && mail.is_empty() && slack.is_empty() {
            let remedy = "give `uids = [1000]` or `users = [\"ada\"]`";
            person.document().fault_without_value(person.place(), "nobody: it has neither `uids` nor `users`", remedy);
        }
        for (other, known) in &people {
            let shared = known.uids.iter().find(|uid| uids.contains(uid)).map(ToString::to_string);
            let shared = shared.or_else(|| known.users.iter().find(|user| users.contains(user)).cloned());
            let address = known.mail.iter().find(|address| mail.contains(address));
            if let Some(address) = address {
                let message = format!("address `{address}` is already `people.{other}`");
                person.document().fault_without_value(person.place(), message, "give each address to one person");
            }
            if let Some(user) = known.slack.iter().find(|user| slack.contains(user)) {
                let message = format!("Slack user `{user}` is already `people.{other}`");
                person.document().fault_without_value(person.place(), message, "give each user id to one person");
            }
            if let Some(shared) = shared {
                let message = format!("account `{shared}` is already `people.{other}`");
                person.document().fault_without_value(person.place(), message, "give each account to one person");
            }
        }
        people.insert(name.to_owned(), PersonConfig { uids, users, mail, slack, start_work, inboxes });
    }
    people
}

/// The addresses of a person, as a sender's is compared.
fn addresses(person: &Section<'_, '_>) -> Vec<String> {
    let found = person.texts("mail").unwrap_or_default();
    found.into_iter().filter_map(|found| mail_address(person, &found)).collect()
}

pub(super) fn mail_address(section: &Section<'_, '_>, found: &Found<String>) -> Option<String> {
    if found.value.contains('*') {
        let remedy = "write each bare address, as `ada@example.org`";
        section.document().fault(&found.place, "a pattern, and anybody could write from a fitting address", remedy);
        return None;
    }
    match ow_reply::sender(&[&found.value], "") {
        Some(sender) if sender.address.eq_ignore_ascii_case(&found.value) => Some(sender.address),
        _ => {
            let remedy = "write the bare address, as `ada@example.org`";
            section.document().fault(&found.place, "not a mail address", remedy);
            None
        }
    }
}

/// The ids of a person's Slack users.
fn slack_users(person: &Section<'_, '_>) -> Vec<String> {
    let read = |found: Found<String>| {
        let plain = |rest: &str| {
            rest.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit()) && rest.len() > 1
        };
        // A name may be another's tomorrow.
        if found.value.strip_prefix(['U', 'W']).is_some_and(plain) {
            return Some(found.value);
        }
        let remedy = "write the member id, as `U024BE7LH`: in Slack, open the profile and choose “Copy member ID”";
        person.document().fault(&found.place, "not a Slack member id", remedy);
        None
    };
    person.texts("slack").unwrap_or_default().into_iter().filter_map(read).collect()
}

pub(super) fn path(section: &Section<'_, '_>, key: &'static str, home: &Path) -> Option<PathBuf> {
    let Found { value, place } = section.text(key)?;
    absolute_path(section.document(), &place, &value, home)
}
