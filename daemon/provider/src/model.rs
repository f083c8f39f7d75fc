use std::collections::BTreeMap;
use std::sync::LazyLock;

use ow_model::Usage;
use serde::Deserialize;
use thiserror::Error;

use crate::{PRESETS, Preset};

const SHIPPED: &str = include_str!("../../../config/models.toml");
/// Of a model whose window nobody told.
const WINDOW: u64 = 128_000;
/// The limit on output for models that would go further: no answer needs more at once.
const OUTPUT: u32 = 32_000;

/// What is known of models: the shipped table, and the user's on top of it.
#[derive(Clone, Debug, Default)]
pub struct ModelTable {
    own: BTreeMap<String, ModelEntry>,
    on_shipped: bool,
}

/// Read when a model is first looked up: an owd that asks none starts without it.
static SHIPPED_ENTRIES: LazyLock<BTreeMap<String, ModelEntry>> = LazyLock::new(|| {
    let mut table = ModelTable::default();
    table.extend(SHIPPED, "models.toml").expect("a test parses the shipped table");
    table.own
});

/// A model of the table.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of the table, and any mix of them occurs")]
pub struct ModelEntry {
    /// `provider:model`.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub title: String,
    /// Tokens that a request with its answer may have; none: not known.
    pub window: Option<u64>,
    /// Tokens that an answer may have.
    pub output: Option<u32>,
    #[serde(default = "yes")]
    pub tools: bool,
    #[serde(default)]
    pub vision: bool,
    #[serde(default)]
    pub pdf: bool,
    #[serde(default)]
    pub thinking: Thinking,
    pub price: Option<Price>,
    /// Calling tools was seen to work with it.
    #[serde(default)]
    pub verified: bool,
}

/// How a model of Anthropic's is told to think.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Thinking {
    #[default]
    None,
    /// By a number of tokens.
    Budget,
    /// By a word.
    Adaptive,
}

/// Of a million tokens, in millionths of a US dollar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Price {
    pub input: u64,
    /// Of tokens that the provider had read before.
    pub cached: u64,
    pub output: u64,
}

/// What a model can do, as far as it is known.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a line of the table, and any mix of them occurs")]
pub struct Capabilities {
    /// Where it is not known, the 128 000 that are common.
    pub window: u64,
    pub output: Option<u32>,
    pub tools: bool,
    pub vision: bool,
    pub pdf: bool,
    pub thinking: Thinking,
    pub price: Option<Price>,
    pub verified: bool,
    /// It stands in the table. One that does not runs at the user's own risk.
    pub is_known: bool,
}

/// What is wrong with a table of models.
#[derive(Debug, Error)]
pub enum ModelTableError {
    #[error("{place}: not a table of models: {message}")]
    Syntax { place: String, message: String },
    #[error("{place}: `{name}` names no provider; write it as `provider:model`")]
    Name { place: String, name: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    model: Vec<ModelEntry>,
}

impl ModelTable {
    /// The table that comes with owd: `config/models.toml`.
    #[must_use]
    pub fn shipped() -> Self {
        Self { own: BTreeMap::new(), on_shipped: true }
    }

    /// Adds a user's table; an entry replaces one of the same name whole. `place` names it in errors.
    pub fn extend(&mut self, text: &str, place: &str) -> Result<(), ModelTableError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            ModelTableError::Syntax { place: format!("{place}:{line}"), message: error.message().into() }
        })?;
        for entry in file.model {
            let Some((provider, model)) = entry.name.split_once(':').filter(|(_, model)| !model.is_empty()) else {
                return Err(ModelTableError::Name { place: place.into(), name: entry.name });
            };
            self.own.insert(key(provider, model), entry);
        }
        Ok(())
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.on_shipped == other.on_shipped && self.own == other.own
    }

    fn get(&self, key: &str) -> Option<&ModelEntry> {
        self.own.get(key).or_else(|| self.on_shipped.then(|| SHIPPED_ENTRIES.get(key)).flatten())
    }

    /// By name, in the order of the alphabet.
    pub fn entries(&self) -> impl Iterator<Item = &ModelEntry> {
        let shipped = self.on_shipped.then(|| SHIPPED_ENTRIES.iter()).into_iter().flatten();
        let all: BTreeMap<&str, &ModelEntry> =
            shipped.chain(&self.own).map(|(key, entry)| (key.as_str(), entry)).collect();
        all.into_values()
    }

    /// The entry of a model, also under a dated or variant name (`claude-haiku-4-5-20251001`, `…:free`).
    #[must_use]
    pub fn entry(&self, provider: &str, model: &str) -> Option<&ModelEntry> {
        let exact = self.get(&key(provider, model));
        exact
            .or_else(|| self.get(&key(provider, plain(model))))
            .or_else(|| self.get(&key(provider, plain(plain(model)))))
    }

    /// What the model can do; for one that is not in the table, what its family can.
    #[must_use]
    pub fn capabilities(&self, provider: &str, model: &str) -> Capabilities {
        let family = family(provider, model);
        let Some(entry) = self.entry(provider, model) else { return family };
        Capabilities {
            window: entry.window.unwrap_or(family.window),
            output: entry.output.or(family.output),
            tools: entry.tools,
            vision: entry.vision,
            pdf: entry.pdf,
            thinking: if entry.thinking == Thinking::None { family.thinking } else { entry.thinking },
            price: entry.price,
            verified: entry.verified,
            is_known: true,
        }
    }
}

impl Capabilities {
    /// The limit on output where the request sets none; none where a limit could be more than the model has.
    pub(crate) fn default_output(&self) -> Option<u32> {
        self.output.map(|output| output.min(OUTPUT)).or(self.is_known.then_some(OUTPUT))
    }
}

impl Price {
    /// In millionths of a US dollar, rounded up.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> u64 {
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let fresh = usage.input.saturating_sub(usage.cached);
        let sum = of(fresh, self.input) + of(usage.cached, self.cached) + of(usage.output, self.output);
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// In dollars, as price lists print them.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Dollars {
            input: f64,
            cached: Option<f64>,
            output: f64,
        }
        let Dollars { input, cached, output } = Dollars::deserialize(deserializer)?;
        let micros = |dollars: f64| {
            if !(0.0..=1e6).contains(&dollars) {
                return Err(serde::de::Error::custom("a price lies between 0 and 1000000 dollars a million tokens"));
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it lies between 0 and 1e12")]
            Ok((dollars * 1e6).round() as u64)
        };
        Ok(Self { input: micros(input)?, cached: micros(cached.unwrap_or(input))?, output: micros(output)? })
    }
}

const fn yes() -> bool {
    true
}

/// Aliases of a provider are one provider.
fn key(provider: &str, model: &str) -> String {
    let provider = Preset::named(provider).map_or(provider, |preset| preset.name);
    format!("{provider}:{}", model.to_ascii_lowercase())
}

/// The name without what marks a variant of the same model.
fn plain(model: &str) -> &str {
    for ending in [":free", ":nitro", ":floor", ":exacto", "-latest"] {
        if let Some(plain) = model.strip_suffix(ending) {
            return plain;
        }
    }
    let digits = model.len() - model.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    if digits == 8
        && let Some(plain) = model[..model.len() - digits].strip_suffix('-')
    {
        return plain;
    }
    let dated =
        model.rsplitn(4, '-').take(3).map(|part| part.bytes().all(|byte| byte.is_ascii_digit()).then_some(part.len()));
    if dated.eq([Some(2), Some(2), Some(4)]) {
        return &model[..model.len() - "-2025-01-01".len()];
    }
    model
}

fn family(provider: &str, model: &str) -> Capabilities {
    let preset = Preset::named(provider);
    let provider = preset.map_or(provider, |preset| preset.name);
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    let mut found = Capabilities {
        window: WINDOW,
        output: None,
        tools: true,
        vision: false,
        pdf: false,
        thinking: Thinking::None,
        price: None,
        verified: false,
        is_known: false,
    };
    if begins(&["claude"]) {
        (found.window, found.vision) = (200_000, true);
        found.pdf = provider == "anthropic";
        found.thinking = match provider {
            "anthropic" if is_adaptive(&name) => Thinking::Adaptive,
            "anthropic" if !begins(&["claude-3-5", "claude-3-haiku", "claude-3-opus"]) => Thinking::Budget,
            _ => Thinking::None,
        };
    } else if begins(&["gemini"]) {
        (found.window, found.vision) = (1_048_576, true);
    } else if begins(&["gpt-5"]) {
        (found.window, found.vision, found.pdf) = (400_000, true, provider == "openai");
    } else if begins(&["gpt-4", "chatgpt-4"]) {
        (found.vision, found.pdf) = (true, provider == "openai");
    } else if begins(&["o1", "o3", "o4"]) {
        found.window = 200_000;
    } else if begins(&["kimi", "qwen3", "grok"])
        && PRESETS.iter().any(|preset| preset.name == provider && !preset.is_local)
    {
        found.window = 256_000;
    }
    found
}

/// Models from 4.6 on think by a word and refuse a number.
fn is_adaptive(name: &str) -> bool {
    let numbers: Vec<u32> = name.split('-').filter_map(|part| part.parse().ok()).filter(|part| *part < 100).collect();
    match numbers.as_slice() {
        [4, minor, ..] => *minor >= 6,
        [major, ..] => *major >= 5,
        [] => false,
    }
}

#[cfg(test)]
mod tests;
