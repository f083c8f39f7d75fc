//! `[listener]` and `[webhook.NAME]`: where other people's machines may knock, and who they prove to be.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use ow_model::WebhookName;
use ow_webhook::{Profile, Scheme, ToldApart};
use serde::Serialize;
use toml::de::DeValue;

use crate::document::{Found, Section, Wanted};

/// The largest body in MiB that a hook may be given.
const BODY_LIMIT: u32 = 16;
/// Secrets of one hook at most: the one in use, the next, and some that senders were slow to give up.
const SECRETS_LIMIT: usize = 8;
const RATE_LIMIT: u32 = 1_000_000;

/// The listener for senders outside. It takes signed deliveries and nothing else.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ListenerConfig {
    /// None: there is no such listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// What senders reach it by, without a slash at the end. None: the address itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A hook: who may deliver at `/hooks/NAME`, and how much.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WebhookConfig {
    pub profile: Profile,
    /// The names of its secrets; any of them proves a sender.
    pub secret: Vec<String>,
    /// The largest body in MiB.
    pub body_limit: u32,
    /// Deliveries that are taken in a minute.
    pub per_minute: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_header: Option<String>,
    /// Of the profile `github` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_apart: Option<ToldApart>,
}

impl ListenerConfig {
    /// Whether other machines reach it by its own address.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        self.address.is_some_and(|address| !address.ip().is_loopback())
    }
}

impl WebhookConfig {
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        let usual = Scheme::of(self.profile);
        Scheme {
            signature_header: self.signature_header.clone().unwrap_or(usual.signature_header),
            timestamp_header: self.timestamp_header.clone().unwrap_or(usual.timestamp_header),
            id_header: self.id_header.clone(),
            event_header: self.event_header.clone(),
            told_apart: self.told_apart.unwrap_or_default(),
            profile: self.profile,
        }
    }
}

pub(super) fn listener(section: &Section<'_, '_>) -> ListenerConfig {
    let remedy = "write an address and a port, as `127.0.0.1:8787`";
    let address = section.read("address", remedy, |text| text.parse().map_err(|_| "not an address with a port"));
    let remedy = "write what senders reach it by, as `https://hooks.example.org` or `https://example.org/owd`";
    let url = section.read("url", remedy, |text| base(text).ok_or("not an http or https address without a query"));
    ListenerConfig { address: address.map(|found| found.value), url: url.map(|found| found.value) }
}

/// A base that paths can be put behind.
fn base(text: &str) -> Option<String> {
    let base = text.trim_end_matches('/');
    let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://"))?;
    let is_plain =
        |letter: char| letter.is_ascii_graphic() && !matches!(letter, '?' | '#' | '@' | '"' | '<' | '>' | '\\');
    (!rest.is_empty() && !rest.starts_with(['/', ':']) && rest.chars().all(is_plain)).then(|| base.to_owned())
}

pub(super) fn webhooks(section: &Section<'_, '_>) -> BTreeMap<WebhookName, WebhookConfig> {
    let profiles = Profile::ALL.map(|profile| (profile.word(), profile));
    let mut webhooks = BTreeMap::new();
    for (key, value) in section.entries() {
        let name: Option<WebhookName> = match key.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                let place = section.place_of(key, value);
                section.document().fault_without_value(
                    &place,
                    error.to_string(),
                    "choose such a name, as `[webhook.ci]`",
                );
                None
            }
        };
        let Some(hook) = section.section_in(key, value) else { continue };
        let document = hook.document();
        let profile = hook.choice("profile", &profiles);
        if hook.value("profile").is_none() {
            let words: Vec<&str> = Profile::ALL.into_iter().map(Profile::word).collect();
            let remedy = format!("say how its senders sign: {}", words.join(", "));
            document.fault_without_value(hook.place(), "no `profile`", remedy);
        }
        let secret = secrets(&hook);
        let body_limit = hook.count("body-limit", 1..=BODY_LIMIT).unwrap_or(1);
        let per_minute = hook.count("per-minute", 1..=RATE_LIMIT).unwrap_or(600);
        let header = |name: &'static str, of: &[Profile]| {
            let remedy = "write a header's name, as `X-Signature`";
            let found = hook
                .read(name, remedy, |text| if is_header(text) { Ok(text.to_owned()) } else { Err("not a header") })?;
            if profile.is_some_and(|profile| !of.contains(&profile)) {
                let words: Vec<String> = of.iter().map(|profile| format!("`{profile}`")).collect();
                document.fault(
                    &found.place,
                    "a header that this profile does not choose",
                    format!("remove it; it is for the profile {}", words.join(" or ")),
                );
            }
            Some(found.value)
        };
        let signature_header = header("signature-header", &[Profile::Generic]);
        let timestamp_header = header("timestamp-header", &[Profile::Generic]);
        let id_header = header("id-header", &[Profile::Generic, Profile::Bearer]);
        let event_header = header("event-header", &[Profile::Generic, Profile::Bearer]);
        let told_apart = told_apart(&hook, profile);
        hook.finish();
        if let (Some(name), Some(profile)) = (name, profile) {
            let at = hook.place().clone();
            let made = WebhookConfig {
                profile,
                secret,
                body_limit,
                per_minute,
                signature_header,
                timestamp_header,
                id_header,
                event_header,
                told_apart,
            };
            if let Some(header) = header_twice(&made.scheme()) {
                let remedy = "name another header for one of them: a header holds one thing";
                document.fault_without_value(&at, format!("`{header}` would hold two things"), remedy);
            }
            webhooks.insert(name, made);
        }
    }
    webhooks
}

/// A header that is to hold two things. No sender can sign such a delivery.
fn header_twice(scheme: &Scheme) -> Option<&str> {
    let Scheme { profile, signature_header, timestamp_header, id_header, event_header, told_apart: _ } = scheme;
    let signed = *profile == Profile::Generic;
    let names = [
        signed.then_some(signature_header),
        signed.then_some(timestamp_header),
        id_header.as_ref(),
        event_header.as_ref(),
    ];
    let names: Vec<&String> = names.into_iter().flatten().collect();
    let twice = |(at, name): (usize, &&String)| names[..at].iter().any(|known| known.eq_ignore_ascii_case(name));
    names.iter().enumerate().find(|one| twice(*one)).map(|(_, name)| name.as_str())
}

/// By what deliveries are told apart, where the profile leaves a choice.
fn told_apart(hook: &Section<'_, '_>, profile: Option<Profile>) -> Option<ToldApart> {
    let remedy = "write \"by-id\", or \"by-body\" where two events that say the same may count as one";
    let found = hook.read("told-apart", remedy, |text| match text {
        "by-id" => Ok(ToldApart::ById),
        "by-body" => Ok(ToldApart::ByBody),
        _ => Err("not a way to tell deliveries apart"),
    })?;
    if profile.is_some_and(|profile| profile != Profile::Github) {
        let remedy = "remove it; it is for the profile `github`";
        hook.document().fault(&found.place, "nothing to choose for this profile", remedy);
    }
    Some(found.value)
}

/// The name of a secret, or a list of them while one is replaced by the next.
fn secrets(hook: &Section<'_, '_>) -> Vec<String> {
    let remedy = "keep one with `owctl secret set NAME` and name it: `secret = \"NAME\"`";
    let found = match hook.value("secret") {
        None => {
            hook.document().fault_without_value(hook.place(), "no `secret`: anybody could deliver", remedy);
            return vec![];
        }
        Some(value) if matches!(value.get_ref(), DeValue::String(_)) => hook.text("secret").into_iter().collect(),
        Some(value) if matches!(value.get_ref(), DeValue::Array(_)) => {
            let found = hook.texts("secret").unwrap_or_default();
            if found.is_empty() || found.len() > SECRETS_LIMIT {
                let place = hook.place_of("secret", value);
                let message = format!("{} secrets", found.len());
                hook.document().fault(&place, message, format!("name one to {SECRETS_LIMIT}"));
            }
            found
        }
        Some(value) => {
            let place = hook.place_of("secret", value);
            hook.wrong_type(&place, value.get_ref(), &Wanted("a secret's name, or a list of them", remedy));
            return vec![];
        }
    };
    let read = |Found { value, place }: Found<String>| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if (1..=64).contains(&value.len()) && value.chars().all(plain) {
            return Some(value);
        }
        // It may be the secret itself.
        hook.document().fault_redacted(&place, "not the name of a secret", remedy);
        None
    };
    found.into_iter().filter_map(read).collect()
}

fn is_header(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}
