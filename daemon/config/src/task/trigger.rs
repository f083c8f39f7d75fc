//! `[[trigger]]`: exactly one occasion each.

use std::fmt::Write;
use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, Zoned};
use ow_model::{AfterEnd, MailFilter, Span, TaskName, TaskSpec, Trigger, WatchKind, WebhookName};
use ow_schedule::{Cron, CronError};
use toml::de::DeValue;

use super::absolute_path;
use super::args::check_when;
use crate::document::{Found, Section, Wanted};
use crate::suggest::nearest;

const KINDS: &str = "`cron`, `every`, `at`, `watch`, `webhook`, `slack`, `mail`, `after` or `startup`";
const SETTLE: Span = Span::from_secs(2);
const TEN_YEARS: Span = Span::from_secs(520 * 7 * 86_400);

/// What triggers are read with.
pub(super) struct Setting<'s> {
    pub(super) task: &'s TaskName,
    pub(super) home: &'s Path,
    pub(super) zone: &'s TimeZone,
    pub(super) now: Timestamp,
    /// The webhooks that there are.
    pub(super) webhooks: &'s [WebhookName],
    /// The folders that are read beside the mailbox.
    pub(super) mail_folders: &'s [String],
    /// The task as it is, if it exists.
    pub(super) before: Option<&'s TaskSpec>,
}

/// Reads all triggers; a faulty one is noted and left out.
pub(super) fn triggers(root: &Section<'_, '_>, setting: &Setting<'_>) -> Vec<Trigger> {
    let mut triggers: Vec<Trigger> = vec![];
    for section in root.sections("trigger") {
        let read = trigger(&section, setting);
        section.finish();
        let Some(trigger) = read else { continue };
        if triggers.contains(&trigger) {
            section.document().fault_without_value(section.place(), "the same trigger again", "remove one of them");
        }
        triggers.push(trigger);
    }
    triggers
}

fn trigger(section: &Section<'_, '_>, setting: &Setting<'_>) -> Option<Trigger> {
    let present: Vec<&str> = ["cron", "every", "at", "watch", "webhook", "slack", "mail", "after", "startup"]
        .into_iter()
        .filter(|kind| section.value(kind).is_some())
        .collect();
    let anchored = section.value("anchor").map(|anchor| section.place_of("anchor", anchor));
    let kind = match present.as_slice() {
        [kind] => *kind,
        [] => {
            section.document().fault_without_value(
                section.place(),
                "a trigger without an occasion",
                format!("give it one of {KINDS}"),
            );
            return None;
        }
        several => {
            let mut message = String::from("several occasions in one trigger: ");
            for (index, kind) in several.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(message, "{comma}`{kind}`").expect("a string takes all text");
            }
            section.document().fault_without_value(section.place(), message, "write a `[[trigger]]` for each");
            return None;
        }
    };
    if let Some(place) = anchored.filter(|_| kind != "every") {
        section.document().fault(&place, format!("`anchor` beside `{kind}`"), "remove it; only `every` has an anchor");
    }
    match kind {
        "cron" => cron(section),
        "every" => every(section, setting),
        "at" => at(section, setting),
        "watch" => watch(section, setting),
        "webhook" => webhook(section, setting),
        "slack" => slack(section),
        "mail" => mail(section, setting),
        "after" => after(section, setting),
        _ => startup(section),
    }
}

fn cron(section: &Section<'_, '_>) -> Option<Trigger> {
    let Found { value, place } = section.text("cron")?;
    match Cron::parse(&value) {
        Ok(_) => Some(Trigger::Cron(value)),
        Err(error) => {
            let text = error.to_string();
            let (message, remedy) = text.split_once("; ").unwrap_or((&text, cron_remedy(&error)));
            section.document().fault(&place, message, remedy);
            None
        }
    }
}

/// For errors that do not say themselves what to do.
const fn cron_remedy(error: &CronError) -> &'static str {
    match error {
        CronError::Never { .. } => "choose a day that the month has",
        _ => "write minute, hour, day-of-month, month and day-of-week, as `0 9 * * mon-fri`",
    }
}

fn every(section: &Section<'_, '_>, setting: &Setting<'_>) -> Option<Trigger> {
    let period = section.span_in("every", Span::from_secs(1)..=TEN_YEARS);
    let anchor = match section.value("anchor") {
        None => None,
        Some(_) => Some(instant(section, "anchor", setting.zone)?.value),
    };
    Some(Trigger::Every { period: period?, anchor })
}

fn at(section: &Section<'_, '_>, setting: &Setting<'_>) -> Option<Trigger> {
    let Found { value, place } = instant(section, "at", setting.zone)?;
    let at = Trigger::At(value);
    let kept = setting.before.is_some_and(|before| before.triggers.contains(&at));
    if value <= setting.now && !kept {
        let message = format!("in the past: it is {} now", local(setting.now, setting.zone));
        section.document().fault(&place, message, "choose a later time, or run the task by hand with `owctl task run`");
        return None;
    }
    Some(at)
}

fn local(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

fn watch(section: &Section<'_, '_>, setting: &Setting<'_>) -> Option<Trigger> {
    let watch = section.section("watch")?;
    let document = watch.document();
    if watch.value("path").is_none() {
        document.fault_without_value(watch.place(), "no `path`", "name the folder, as `path = \"~/inbox\"`");
    }
    let path =
        watch.text("path").and_then(|Found { value, place }| absolute_path(document, &place, &value, setting.home));
    let glob = watch.text("glob").and_then(|Found { value, place }| match glob_fault(&value) {
        None => Some(value),
        Some((message, remedy)) => {
            document.fault(&place, message, remedy);
            None
        }
    });
    let settle = watch.span_in("settle", Span::from_millis(0)..=Span::from_secs(3600)).unwrap_or(SETTLE);
    let on = match watch.texts("on") {
        None => vec![WatchKind::Create, WatchKind::Change, WatchKind::Move],
        Some(kinds) => {
            let mut on = vec![];
            if kinds.is_empty() {
                document.fault_without_value(watch.place(), "`on` names nothing", "leave it out to mean everything");
            }
            for Found { value, place } in kinds {
                match value.as_str() {
                    "create" => on.push(WatchKind::Create),
                    "change" => on.push(WatchKind::Change),
                    "move" => on.push(WatchKind::Move),
                    _ => document.fault(
                        &place,
                        "not one of the known values",
                        "write \"create\", \"change\" or \"move\"",
                    ),
                }
            }
            on
        }
    };
    watch.finish();
    Some(Trigger::Watch { path: path?, glob, settle, on })
}

/// What keeps a glob from matching anything.
fn glob_fault(glob: &str) -> Option<(&'static str, &'static str)> {
    if glob.is_empty() {
        return Some(("an empty pattern", "write one, as `*.txt`, or leave it out to mean every file"));
    }
    if glob.starts_with('/') || glob.starts_with('~') {
        return Some(("a pattern with a whole path", "put the folder into `path`; the pattern is tried below it"));
    }
    let mut open: Vec<char> = vec![];
    let mut letters = glob.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            // Within brackets every other letter stands for itself.
            _ if open.last() == Some(&'[') && letter != ']' => {}
            '[' | '{' => open.push(letter),
            ']' if open.last() == Some(&'[') => drop(open.pop()),
            '}' if open.last() == Some(&'{') => drop(open.pop()),
            _ => {}
        }
    }
    match open.last() {
        Some('[') => Some(("a `[` that is never closed", "close it with `]`, or write `\\[` for the letter")),
        Some(_) => Some(("a `{` that is never closed", "close it with `}`, or write `\\{` for the letter")),
        None => None,
    }
}

/// `slack = "C0123456789"`, or a table with who writes and what must hold of a message.
fn slack(section: &Section<'_, '_>) -> Option<Trigger> {
    let value = section.value("slack")?;
    if !matches!(value.get_ref(), DeValue::Table(_)) {
        let channel = slack_id(section, section.text("slack")?, &['C', 'G', 'D'])?;
        return Some(Trigger::Slack { channel, from: vec![], when: None });
    }
    let slack = section.section("slack")?;
    let document = slack.document();
    if slack.value("channel").is_none() {
        let remedy = "name the channel, as `channel = \"C0123456789\"`";
        document.fault_without_value(slack.place(), "no `channel`", remedy);
    }
    let channel = slack.text("channel").and_then(|found| slack_id(&slack, found, &['C', 'G', 'D']));
    let from: Vec<Option<String>> =
        slack.texts("from").unwrap_or_default().into_iter().map(|found| slack_id(&slack, found, &['U', 'W'])).collect();
    let when = match slack.text("when") {
        None => Some(None),
        Some(found) => check_when(document, &found.place, &found.value).map(|()| Some(found.value)),
    };
    slack.finish();
    Some(Trigger::Slack { channel: channel?, from: from.into_iter().collect::<Option<_>>()?, when: when? })
}

/// An id of Slack's that begins with one of these letters; a name may be another's tomorrow.
fn slack_id(section: &Section<'_, '_>, found: Found<String>, kinds: &[char]) -> Option<String> {
    let Found { value, place } = found;
    let is_id = value.starts_with(kinds)
        && value.len() > 1
        && value.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit());
    if is_id {
        return Some(value);
    }
    let remedy = if kinds.contains(&'U') {
        "write the member id, as `U024BE7LH`: in Slack, open the profile and choose “Copy member ID”"
    } else {
        "write the channel's id, as `C0123456789`: at the end of its details in Slack"
    };
    section.document().fault(&place, "not an id of Slack's", remedy);
    None
}

/// `webhook = "ci"`, or a table with what must hold of a delivery.
fn webhook(section: &Section<'_, '_>, setting: &Setting<'_>) -> Option<Trigger> {
    let value = section.value("webhook")?;
    if !matches!(value.get_ref(), DeValue::Table(_)) {
        return Some(Trigger::Webhook { hook: hook_name(section, "webhook", setting)?, when: None });
    }
    let webhook = section.section("webhook")?;
    let document = webhook.document();
    if webhook.value("hook").is_none() {
        document.fault_without_value(webhook.place(), "no `hook`", "name the webhook, as `hook = \"ci\"`");
    }
    let hook = hook_name(&webhook, "hook", setting);
    let when = match webhook.text("when") {
        None => Some(None),
        Some(Found { value, place }) => check_when(document, &place, &value).map(|()| Some(value)),
    };
    webhook.finish();
    Some(Trigger::Webhook { hook: hook?, when: when? })
}

fn hook_name(section: &Section<'_, '_>, key: &'static str, setting: &Setting<'_>) -> Option<WebhookName> {
    let remedy = "write the name of a webhook, as `owctl webhook list` shows it";
    let Found { value: hook, place } = section.read(key, remedy, str::parse::<WebhookName>)?;
    if setting.webhooks.contains(&hook) {
        return Some(hook);
    }
    let remedy = match nearest(hook.as_str(), setting.webhooks.iter().map(WebhookName::as_str)) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("add `[webhook.{hook}]` to owd.toml, then `owctl reload`"),
    };
    section.document().fault(&place, "no such webhook", remedy);
    None
}

/// `mail = { from = ["bob@example.org"], subject = "invoice*", list = "team.example.org", folder = "Invoices" }`, each of which
/// may be left out.
fn mail(section: &Section<'_, '_>, setting: &Setting<'_>) -> Option<Trigger> {
    let mail = section.section("mail")?;
    let document = mail.document();
    let remedy = "write bare addresses, as `bob@example.org`, or domains, as `@example.org`";
    let mut from = vec![];
    for Found { value, place } in mail.texts("from").unwrap_or_default() {
        // A domain is one that somebody could have an address at.
        let whole = if value.starts_with('@') { format!("anybody{value}") } else { value.clone() };
        match ow_reply::sender(&[&whole], "") {
            Some(sender) if sender.address.eq_ignore_ascii_case(&whole) => from.push(value.to_ascii_lowercase()),
            _ => document.fault(&place, "neither a mail address nor a domain", remedy),
        }
    }
    let subject = mail.text("subject").map(|found| found.value);
    let list = mail.read("list", "write the id in its List-Id, as `team.example.org`", |text| {
        let plain = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '<' | '>');
        if text.is_empty() || !text.chars().all(plain) { Err("not the id of a list") } else { Ok(text.to_owned()) }
    });
    let mut folder = None;
    if let Some(Found { value, place }) = mail.text("folder") {
        if setting.mail_folders.contains(&value) {
            folder = Some(value);
        } else {
            let remedy = match nearest(&value, setting.mail_folders.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => "have it read: add it to `folders` in [mail.in] of owd.toml, then `owctl reload`".into(),
            };
            document.fault(&place, "not a folder that is read", remedy);
        }
    }
    mail.finish();
    Some(Trigger::Mail(MailFilter { from, subject, list: list.map(|found| found.value), folder }))
}

fn after(section: &Section<'_, '_>, setting: &Setting<'_>) -> Option<Trigger> {
    let value = section.value("after")?;
    let (name, on) = if let DeValue::Table(_) = value.get_ref() {
        let after = section.section("after")?;
        let ends = [("success", AfterEnd::Success), ("failure", AfterEnd::Failure), ("any", AfterEnd::Any)];
        let on = after.value("on").map_or(Some(AfterEnd::default()), |_| after.choice("on", &ends));
        if after.value("task").is_none() {
            after.document().fault_without_value(after.place(), "no `task`", "name the task that it follows");
        }
        let name = task_name(&after, "task");
        after.finish();
        (name, on)
    } else {
        (task_name(section, "after"), Some(AfterEnd::default()))
    };
    let (Found { value: task, place }, on) = (name?, on?);
    if task == *setting.task {
        section.document().fault(&place, "follows itself", "name another task, or use `every`");
        return None;
    }
    Some(Trigger::After { task, on })
}

fn task_name(section: &Section<'_, '_>, key: &'static str) -> Option<Found<TaskName>> {
    section.read(key, "write the name of a task, as `owctl task list` shows it", str::parse)
}

fn startup(section: &Section<'_, '_>) -> Option<Trigger> {
    let Found { value, place } = section.flag("startup")?;
    if !value {
        section.document().fault(&place, "never fires", "remove the trigger, or write `startup = true`");
        return None;
    }
    Some(Trigger::Startup)
}

/// An instant: with an offset or zone, or a local time in the task's zone.
fn instant(section: &Section<'_, '_>, key: &'static str, zone: &TimeZone) -> Option<Found<Timestamp>> {
    let value = section.value(key)?;
    let place = section.place_of(key, value);
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Datetime(datetime) => datetime.to_string(),
        other => {
            section.wrong_type(&place, other, &Wanted("a date and time", "write it as `2026-12-24T18:00:00`"));
            return None;
        }
    };
    let at = read_instant(&text, zone);
    if at.is_none() {
        let remedy = "write `2026-12-24T18:00:00` (in the task's zone) or `2026-12-24T18:00:00+01:00`";
        section.document().fault(&place, "not a date and time", remedy);
    }
    at.map(|value| Found { value, place })
}

/// A local time that a clock change skips is the first instant after the gap; one that comes twice is the first.
fn read_instant(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Some(zoned.timestamp());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    // A date alone would mean midnight, which nobody said.
    if !text.contains(':') {
        return None;
    }
    let local: DateTime = text.parse().ok()?;
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => {
            let before = ambiguous.earlier().ok()?;
            zone.following(before).next().map(|change| change.timestamp())
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_local_unless_it_says_where() {
        let zone = TimeZone::get("America/New_York").expect("it is in the database");
        for (text, expected) in [
            ("2026-12-24T18:00:00", Some("2026-12-24T23:00:00Z")),
            ("2026-12-24 18:00", Some("2026-12-24T23:00:00Z")),
            ("2026-12-24T18:00:00+01:00", Some("2026-12-24T17:00:00Z")),
            ("2026-12-24T18:00:00Z", Some("2026-12-24T18:00:00Z")),
            ("2026-12-24T18:00:00[Europe/Paris]", Some("2026-12-24T17:00:00Z")),
            ("2026-03-08T02:30:00", Some("2026-03-08T07:00:00Z")),
            ("2026-11-01T01:30:00", Some("2026-11-01T05:30:00Z")),
            ("2026-12-24", None),
            ("tomorrow", None),
            ("", None),
        ] {
            let at = read_instant(text, &zone).map(|at| at.to_string());
            assert_eq!(at.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_glob_is_closed_and_relative() {
        for good in ["*.txt", "**/*.{md,txt}", "[a-z]*", "a\\[b", "[{]x"] {
            assert_eq!(glob_fault(good), None, "{good}");
        }
        for bad in ["", "/tmp/*", "~/x", "[a", "{a,b", "x{[a]"] {
            assert!(glob_fault(bad).is_some(), "{bad}");
        }
    }
}
