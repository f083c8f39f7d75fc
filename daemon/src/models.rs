//! The models that agents speak to, as configured.

use std::sync::Arc;

use anyhow::Context as _;
use ow_clock::Clock;
use ow_config::{Config, Paths, WireFormat};
use ow_engine::{Agents, ModelDefaults};
use ow_provider::{Keys, ModelTable, ProviderOverride, Router, RouterConfig, Wire};
use ow_secret::{SecretName, SecretValue, Secrets};

/// Extends and changes the shipped table of models, beside the configuration.
const TABLE: &str = "models.toml";

pub(crate) fn agents(config: &Config, paths: &Paths, secrets: &Arc<Secrets>, clock: &Clock) -> anyhow::Result<Agents> {
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
    let router = Router::new(made, Keys::new(move |name| key(name, &secrets)), clock.clone())?;
    let defaults = ModelDefaults {
        model: config.agent.model.clone(),
        failover: config.agent.failover.clone(),
        max_iterations: config.agent.max_iterations,
        compaction_cap: config.agent.compaction_cap.map(u64::from),
    };
    Ok(Agents { router, defaults })
}

/// A provider's key: from the environment, else a named secret.
fn key(name: &str, secrets: &Secrets) -> Option<SecretValue> {
    if let Some(value) = std::env::var(name).ok().filter(|value| !value.trim().is_empty()) {
        return Some(SecretValue::new(value.trim().to_owned()));
    }
    secrets.value(&name.parse::<SecretName>().ok()?).cloned()
}
