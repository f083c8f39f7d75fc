use std::time::Duration;

use ow_model::Reply;
use thiserror::Error;
use url::{Host, Url};

use crate::wire::LimitField;
use crate::{Preset, Wire};

/// A provider as it is called.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of one vendor, and any mix of them occurs")]
pub struct ProviderSettings {
    /// What stands before the colon in `provider:model`.
    pub name: String,
    /// With the version and without a slash at the end: `https://api.openai.com/v1`.
    pub base_url: String,
    pub wire: Wire,
    /// The name of the secret that is its key.
    pub key: Option<String>,
    /// Without a key it is not even asked.
    pub needs_key: bool,
    pub limits: StreamLimits,
    pub echo: Echo,
    /// Ids of calls must have nine letters or digits.
    pub(crate) short_ids: bool,
    pub(crate) limit_field: LimitField,
    pub(crate) stream_options: bool,
    /// The models are not known by their names: anybody's may run here.
    pub(crate) is_local: bool,
}

/// Bounds of one completion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamLimits {
    /// Nothing may be heard for this long.
    pub silence: Duration,
    pub whole: Duration,
    /// Text, thoughts and arguments together.
    pub bytes: usize,
    /// More than a turn runs, so that a model that sends too many is told; what sends even more is at fault itself.
    pub calls: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            silence: Duration::from_mins(2),
            whole: Duration::from_hours(1),
            bytes: 10 * 1000 * 1000,
            calls: 10 * Reply::MOST_CALLS,
        }
    }
}

/// How a provider wants its model's thoughts back, besides those that it marks itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Echo {
    #[default]
    Nothing,
    /// In the field `reasoning_content` of messages with calls.
    ReasoningContent,
    /// In the text, between `<think>` tags.
    ThinkTags,
}

/// What the configuration says of a provider: a change to a preset, or one of its own.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProviderOverride {
    pub name: String,
    /// Must be given where no preset has this name.
    pub base_url: Option<String>,
    /// None: the preset's, or OpenAI's.
    pub wire: Option<Wire>,
    /// The name of the secret that is its key.
    pub key: Option<String>,
    pub silence: Option<Duration>,
}

/// Why a provider cannot be set up so.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SettingsError {
    #[error("provider `{name}`: a name has 1 to 32 lower-case letters, digits, `-`, `_` and `.`")]
    Name { name: String },
    #[error("provider `{name}` needs a `base-url`, as in `http://127.0.0.1:8000/v1`: it is none of the known ones")]
    Unplaced { name: String },
    #[error("provider `{name}`: `{url}` is not a URL of http or https without user, query and fragment")]
    Url { name: String, url: String },
    #[error(
        "provider `{name}`: `{key}` is the key of `{owner}` and goes to no other host than `{host}`; store the key \
             for `{url}` under a name of its own: owctl secret set {name}_key"
    )]
    ForeignKey { name: String, key: String, owner: String, host: String, url: String },
}

impl ProviderSettings {
    /// A provider of the user's own that speaks `wire` at `base_url`.
    pub fn custom(name: &str, base_url: &str, wire: Wire, key: Option<&str>) -> Result<Self, SettingsError> {
        let change = ProviderOverride {
            name: name.into(),
            base_url: Some(base_url.into()),
            wire: Some(wire),
            key: key.map(str::to_owned),
            silence: None,
        };
        change.settings()
    }

    /// Where completions are asked for.
    pub(crate) fn endpoint(&self) -> String {
        match self.wire {
            Wire::OpenAi => format!("{}/chat/completions", self.base_url),
            Wire::Anthropic => format!("{}/messages", self.base_url),
        }
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.base_url.starts_with("https:")
    }
}

impl ProviderOverride {
    /// The provider with what this says and, for the rest, what the preset of the same name says.
    ///
    /// A preset's key goes to the preset's own host only.
    pub fn settings(&self) -> Result<ProviderSettings, SettingsError> {
        let Self { name, base_url, wire, key, silence } = self;
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_.".contains(letter);
        if name.is_empty() || name.len() > 32 || !name.chars().all(is_plain) {
            return Err(SettingsError::Name { name: name.clone() });
        }
        let preset = Preset::named(name);
        let mut settings = match preset {
            Some(preset) => ProviderSettings { name: name.clone(), ..preset.settings() },
            None => plain(name),
        };
        if let Some(wire) = wire {
            settings.wire = *wire;
        }
        if let Some(silence) = silence {
            settings.limits.silence = *silence;
        }
        if let Some(url) = base_url {
            let url = checked(name, url)?;
            if preset.is_none_or(|preset| !same_host(&url, preset.base_url)) {
                // Another house: neither its key nor its ways are the preset's.
                settings.key = None;
                settings.needs_key = false;
            }
            settings.base_url = url;
        } else if preset.is_none() {
            return Err(SettingsError::Unplaced { name: name.clone() });
        }
        if let Some(key) = key {
            settings.key = Some(key.clone());
            settings.needs_key = true;
        }
        settings.check_key()?;
        Ok(settings)
    }
}

impl ProviderSettings {
    /// A vendor's key is for that vendor: OpenAI's is never handed to a compatible service.
    pub(crate) fn check_key(&self) -> Result<(), SettingsError> {
        let Some(key) = &self.key else { return Ok(()) };
        let named = |known: &str| known.eq_ignore_ascii_case(&key.replace('-', "_"));
        let owners = || crate::PRESETS.iter().filter(|preset| preset.key.is_some_and(named));
        let Some(owner) = owners().next() else { return Ok(()) };
        if owner.is_local || owners().any(|owner| same_host(&self.base_url, owner.base_url)) {
            return Ok(());
        }
        Err(SettingsError::ForeignKey {
            name: self.name.clone(),
            key: key.clone(),
            owner: owner.name.into(),
            host: host(owner.base_url),
            url: self.base_url.clone(),
        })
    }
}

fn plain(name: &str) -> ProviderSettings {
    ProviderSettings {
        name: name.to_owned(),
        base_url: String::new(),
        wire: Wire::OpenAi,
        key: None,
        needs_key: false,
        limits: StreamLimits::default(),
        echo: Echo::Nothing,
        short_ids: false,
        limit_field: LimitField::MaxTokens,
        stream_options: true,
        is_local: true,
    }
}

fn checked(name: &str, text: &str) -> Result<String, SettingsError> {
    let wrong =
        || SettingsError::Url { name: name.into(), url: text.split(['@', '?', '#']).next().unwrap_or("").into() };
    let url = Url::parse(text.trim()).map_err(|_| wrong())?;
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.has_host();
    if !is_plain || !matches!(url.scheme(), "http" | "https") {
        return Err(wrong());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Scheme, host and port: what a key is bound to.
fn same_host(one: &str, other: &str) -> bool {
    let place = |text: &str| {
        let url = Url::parse(text).ok()?;
        Some((
            url.scheme().to_owned(),
            url.host().map(|host: Host<&str>| host.to_owned())?,
            url.port_or_known_default(),
        ))
    };
    place(one).is_some_and(|one| Some(one) == place(other))
}

fn host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
