//! Where items are told of: the named inboxes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Time;
use ow_model::{InboxName, Span, ZoneName};
use serde::Serialize;
use toml::Spanned;
use toml::de::DeValue;

use super::Inboxes;
use crate::document::{Document, Found, Place, Section};
use crate::suggest::nearest;
use crate::task::zone;

const SECOND: Span = Span::from_secs(1);
const DAY: Span = Span::from_secs(86_400);
const TEN_YEARS: Span = Span::from_secs(520 * 7 * 86_400);

/// An inbox: where its items are told of, and when. Without any binding they show in `owctl inbox` alone.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NamedInboxConfig {
    /// Addresses, in lower case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mail: Vec<String>,
    /// Channels, or users for direct messages, by their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slack: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub desktop: bool,
    /// A topic's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntfy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The name of the secret that calls of the webhook are signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_secret: Option<String>,
    /// In which `quiet` counts; none: owd's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<ZoneName>,
    /// When nothing is told; it comes at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietHours>,
    /// Notices of this long come as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate: Option<Escalation>,
}

/// Hours of each day, from the first until the second; over midnight if that is the earlier. Never empty.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuietHours {
    pub from: Time,
    pub until: Time,
}

impl Serialize for QuietHours {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { from, until } = self;
        serializer.collect_str(&format_args!("{}-{}", from.strftime("%H:%M"), until.strftime("%H:%M")))
    }
}

/// What is unanswered for this long comes to another inbox too.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Escalation {
    pub after: Span,
    pub to: InboxName,
}

/// What to write instead of the name of an inbox that there is not.
pub fn unknown_inbox(text: &str, known: &BTreeSet<InboxName>) -> String {
    if let Some(meant) = nearest(text, known.iter().map(InboxName::as_str)) {
        return format!("did you mean \"{meant}\"?");
    }
    let known: Vec<String> = known.iter().map(|inbox| format!("`{inbox}`")).collect();
    format!("use one of {}, or add a section `[inboxes.NAME]` to owd.toml", known.join(", "))
}

/// The inboxes that there are: those with a section, and `default`.
pub(super) fn inbox_names(root: &Section<'_, '_>) -> BTreeSet<InboxName> {
    let sections = match root.value("inboxes").map(Spanned::get_ref) {
        Some(DeValue::Table(table)) => table.iter().filter_map(|(key, _)| key.get_ref().parse().ok()).collect(),
        _ => vec![],
    };
    sections.into_iter().chain([InboxName::default()]).collect()
}

/// What a person may answer.
pub(super) fn of_person(person: &Section<'_, '_>, known: &BTreeSet<InboxName>) -> Inboxes {
    let Some(names) = person.texts("inboxes") else { return Inboxes::All };
    if names.iter().any(|name| name.value == "*") {
        return Inboxes::All;
    }
    Inboxes::Named(names.iter().filter_map(|name| known_inbox(person.document(), name, known)).collect())
}

fn known_inbox(document: &Document<'_>, name: &Found<String>, known: &BTreeSet<InboxName>) -> Option<InboxName> {
    let found = known.iter().find(|inbox| inbox.as_str() == name.value);
    if found.is_none() {
        document.fault(&name.place, "unknown inbox", unknown_inbox(&name.value, known));
    }
    found.cloned()
}

pub(super) fn inboxes(section: &Section<'_, '_>, known: &BTreeSet<InboxName>) -> BTreeMap<InboxName, NamedInboxConfig> {
    let mut inboxes = BTreeMap::new();
    let mut places = vec![];
    for (name, value) in section.entries() {
        let place = section.place_of(name, value);
        let parsed = match name.parse::<InboxName>() {
            Ok(name) => name,
            Err(error) => {
                section.document().fault_without_value(&place, error.to_string(), "give it another name");
                continue;
            }
        };
        let Some(inbox) = section.section_in(name, value) else { continue };
        let made = NamedInboxConfig {
            mail: addresses(&inbox),
            slack: slack_ids(&inbox),
            desktop: inbox.flag("desktop").is_some_and(|found| found.value),
            ntfy: url(&inbox, "ntfy", "write the topic's address, as `https://ntfy.sh/my-topic`"),
            webhook: url(&inbox, "webhook", "write the address to call, as `https://example.org/owd`"),
            webhook_secret: inbox.text("webhook-secret").map(|found| found.value),
            timezone: zone(&inbox),
            quiet: quiet(&inbox),
            digest: inbox.span_in("digest", SECOND..=DAY),
            escalate: inbox.section("escalate").and_then(|escalate| escalation(&escalate, known)),
        };
        inbox.finish();
        if made.webhook_secret.is_some() && made.webhook.is_none() {
            let remedy = "name the address that is called, or remove it";
            inbox.document().fault_without_value(inbox.place(), "`webhook-secret` without `webhook`", remedy);
        }
        places.push((parsed.clone(), place));
        inboxes.insert(parsed, made);
    }
    refuse_circles(section.document(), &inboxes, &places);
    inboxes
}

/// The addresses that are told.
fn addresses(inbox: &Section<'_, '_>) -> Vec<String> {
    let found = inbox.texts("mail").unwrap_or_default();
    found.into_iter().filter_map(|found| super::read::mail_address(inbox, &found)).collect()
}

fn slack_ids(inbox: &Section<'_, '_>) -> Vec<String> {
    let mut ids = vec![];
    for Found { value, place } in inbox.texts("slack").unwrap_or_default() {
        let is_id = value.len() > 1
            && value.starts_with(['C', 'D', 'G', 'U', 'W'])
            && value.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if is_id {
            ids.push(value);
        } else {
            let remedy = "write the id of a channel (`C…`) or of a user (`U…`), as Slack shows it under the name";
            inbox.document().fault(&place, "not an id of Slack's", remedy);
        }
    }
    ids
}

fn url(inbox: &Section<'_, '_>, key: &'static str, remedy: &str) -> Option<String> {
    let found = inbox.read(key, remedy, |text| {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        let plain = text.chars().all(|letter| letter.is_ascii_graphic() && !matches!(letter, '"' | '<' | '>' | '\\'));
        if host.is_empty() || !plain {
            return Err("not an address that begins with https:// or http://");
        }
        if host.contains('@') {
            return Err("an address with a password in it");
        }
        Ok(text.to_owned())
    });
    found.map(|found| found.value)
}

fn quiet(inbox: &Section<'_, '_>) -> Option<QuietHours> {
    let remedy = "write two times of day, as `22:00-07:00`";
    let found = inbox.read("quiet", remedy, |text| {
        let (from, until) = text.split_once('-').ok_or("not a range of hours")?;
        let (from, until) = (time_of_day(from)?, time_of_day(until)?);
        if from == until { Err("begins when it ends") } else { Ok(QuietHours { from, until }) }
    });
    found.map(|found| found.value)
}

fn time_of_day(text: &str) -> Result<Time, &'static str> {
    let bad = "not a range of hours";
    let (hour, minute) = text.trim().split_once(':').ok_or(bad)?;
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        let plain = digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain { text.parse::<i8>().map_err(|_| bad) } else { Err(bad) }
    };
    Time::new(number(hour, 1..=2)?, number(minute, 2..=2)?, 0, 0).map_err(|_| "not a time of day")
}

fn escalation(section: &Section<'_, '_>, known: &BTreeSet<InboxName>) -> Option<Escalation> {
    let after = section.span_in("after", SECOND..=TEN_YEARS);
    let to = section.text("to").map(|name| known_inbox(section.document(), &name, known));
    section.finish();
    for (key, is_there) in [("after", section.value("after").is_some()), ("to", to.is_some())] {
        if !is_there {
            let remedy = "write both, as `escalate = { after = \"4h\", to = \"ops\" }`";
            section.document().fault_without_value(section.place(), format!("no `{key}`"), remedy);
        }
    }
    Some(Escalation { after: after?, to: to?? })
}

/// What is handed on must not come back.
fn refuse_circles(
    document: &Document<'_>,
    inboxes: &BTreeMap<InboxName, NamedInboxConfig>,
    places: &[(InboxName, Place)],
) {
    let next = |inbox: &InboxName| inboxes.get(inbox)?.escalate.as_ref().map(|escalate| &escalate.to);
    let mut told: BTreeSet<&InboxName> = BTreeSet::new();
    for (start, place) in places {
        let mut way = vec![start];
        while let Some(to) = way.last().and_then(|last| next(last)) {
            if to == start && !told.contains(start) {
                told.extend(way.iter().copied());
                let names: Vec<&str> = way.iter().chain([&start]).map(|inbox| inbox.as_str()).collect();
                let message = format!("escalates in a circle: {}", names.join(" → "));
                document.fault_without_value(place, message, "let one of them escalate no further");
            }
            if way.contains(&to) {
                break;
            }
            way.push(to);
        }
    }
}
