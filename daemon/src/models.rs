//! The models that agents speak to, as configured.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use ow_clock::Clock;
use ow_config::{Config, Paths, WireFormat};
use ow_engine::{Agents, ModelDefaults};
use ow_provider::{Keys, ModelTable, PRESETS, ProviderOverride, Router, RouterConfig, Wire};
use ow_secret::{SecretName, SecretValue, Secrets};
use serde_json::json;

use crate::args::{Places, host};

/// Extends and changes the shipped table of models, beside the configuration.
const TABLE: &str = "models.toml";

pub(crate) fn agents(config: &Config, paths: &Paths, secrets: &Arc<Secrets>, clock: &Clock) -> anyhow::Result<Agents> {
    let router = router(config, paths, secrets, clock)?;
    let defaults = ModelDefaults {
        model: config.agent.model.clone(),
        failover: config.agent.failover.clone(),
        max_iterations: config.agent.max_iterations,
        compaction_cap: config.agent.compaction_cap.map(u64::from),
        loops: config.agent.loops.clone(),
    };
    Ok(Agents { router, defaults })
}

pub(crate) fn router(config: &Config, paths: &Paths, secrets: &Arc<Secrets>, clock: &Clock) -> anyhow::Result<Router> {
    let mut models = ModelTable::shipped();
    let file = paths.config_dir.join(TABLE);
    match std::fs::read_to_string(&file) {
        Ok(text) => models.extend(&text, &file.display().to_string())?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
    let overrides = config.provider.iter().map(|(name, provider)| ProviderOverride {
        name: name.clone(),
        base_url: provider.base_url.clone(),
        wire: provider.wire.map(|wire| match wire {
            WireFormat::Openai => Wire::OpenAi,
            WireFormat::Anthropic => Wire::Anthropic,
        }),
        key: provider.key.clone(),
        silence: provider.silence.map(|silence| std::time::Duration::from_millis(silence.millis())),
    });
    let defaults = RouterConfig::default();
    let made = RouterConfig {
        default_provider: config.agent.default_provider.clone().unwrap_or(defaults.default_provider),
        providers: overrides.collect(),
        models,
        retry: defaults.retry,
    };
    let secrets = Arc::clone(secrets);
    Ok(Router::new(made, Keys::new(move |name| key(name, &secrets)), clock.clone())?)
}

/// The names of all keys that models may need: variables of these names are secrets.
pub(crate) fn key_names(config: &Config) -> Vec<String> {
    let presets = PRESETS.iter().filter_map(|preset| preset.key.map(str::to_owned));
    presets.chain(config.provider.values().filter_map(|provider| provider.key.clone())).collect()
}

/// A provider's key: from the environment, else a named secret.
fn key(name: &str, secrets: &Secrets) -> Option<SecretValue> {
    if let Some(value) = std::env::var(name).ok().filter(|value| !value.trim().is_empty()) {
        return Some(SecretValue::new(value.trim().to_owned()));
    }
    secrets.value(&name.parse::<SecretName>().ok()?).cloned()
}

/// What `owctl model` and `owctl config check` are told of a model, in JSON.
fn described(router: &Router, goal: &str) -> serde_json::Value {
    let resolved = router.resolve(goal);
    let settings = router.providers().into_iter().find(|settings| settings.name == resolved.provider);
    let capabilities = &resolved.capabilities;
    json!({
        "name": resolved.name(),
        "asked": goal,
        "provider": resolved.provider,
        "model": resolved.model,
        "known": capabilities.is_known,
        "window": capabilities.window,
        "output": capabilities.output,
        "tools": capabilities.tools,
        "vision": capabilities.vision,
        "pdf": capabilities.pdf,
        "verified": capabilities.verified,
        "price": capabilities.price.map(|price| {
            json!({ "input": dollars(price.input), "cached": dollars(price.cached), "output": dollars(price.output) })
        }),
        "base_url": settings.as_ref().map(|settings| settings.base_url.clone()),
        "key": settings.as_ref().and_then(|settings| settings.key.clone()),
        "needs_key": settings.as_ref().is_some_and(|settings| settings.needs_key),
        "has_key": router.has_key(&resolved.provider),
        "warnings": resolved.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// Dollars for a million tokens.
fn dollars(micros: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52 millionths of a dollar")]
    let micros = micros as f64;
    micros / 1e6
}

/// The table of models, or what is to be known of the named ones; for `owctl model`. Speaks to no provider.
pub(crate) fn describe(places: &Places, names: &[String]) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let config = Config::load_if_present(&paths.config_file, &host())?;
    let secrets = crate::settings::load_secrets(&config, &paths)?;
    let router = router(&config, &paths, &secrets, &Clock::system())?;
    let models: Vec<serde_json::Value> = if names.is_empty() {
        router
            .models()
            .entries()
            .map(|entry| {
                let mut described = described(&router, &entry.name);
                described["title"] = entry.title.clone().into();
                described
            })
            .collect()
    } else {
        names.iter().map(|name| described(&router, name)).collect()
    };
    println!("{}", json!({ "default": config.agent.model, "failover": config.agent.failover, "models": models }));
    Ok(ExitCode::SUCCESS)
}
