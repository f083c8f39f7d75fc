//! The commands behind `owctl secret`: owd alone knows how its secrets are kept.

use std::io::Read;
use std::process::ExitCode;

use anyhow::Context;
use ow_config::Config;
use ow_secret::{SecretFile, SecretName, SecretValue};
use serde_json::json;
use zeroize::Zeroizing;

use crate::args::{Places, host};
use crate::settings::{load_secrets, sealed};

/// Says whether this can be a secret's name.
pub(crate) fn check(name: &str) -> anyhow::Result<ExitCode> {
    let name: SecretName = name.parse()?;
    println!("{}", json!({ "name": name.as_str() }));
    Ok(ExitCode::SUCCESS)
}

/// Keeps the value that comes in on standard input.
pub(crate) fn set(places: &Places, name: &str) -> anyhow::Result<ExitCode> {
    let name: SecretName = name.parse()?;
    let mut value = Zeroizing::new(String::new());
    std::io::stdin().lock().read_to_string(&mut value).context("cannot read the value")?;
    let file = file(places)?;
    file.set(&name, &SecretValue::new(value.as_str().to_owned()))?;
    println!("{}", json!({ "name": name.as_str(), "file": file.path() }));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn remove(places: &Places, name: &str) -> anyhow::Result<ExitCode> {
    let file = file(places)?;
    let removed = file.remove(&name.parse()?)?;
    println!("{}", json!({ "removed": removed, "file": file.path() }));
    Ok(ExitCode::SUCCESS)
}

/// What an owd that starts from here would find.
pub(crate) fn list(places: &Places) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let config = Config::load_if_present(&paths.config_file, &host())?;
    let secrets = load_secrets(&config, &paths)?;
    let rows: Vec<_> = secrets
        .origins()
        .map(|(name, origin)| json!({ "name": name.as_str(), "origin": origin.to_string() }))
        .collect();
    println!("{}", json!({ "rows": rows }));
    Ok(ExitCode::SUCCESS)
}

fn file(places: &Places) -> anyhow::Result<SecretFile> {
    let paths = places.paths()?;
    let config = Config::load_if_present(&paths.config_file, &host())?;
    let sealed = sealed(&config).map(SecretFile::Sealed);
    Ok(sealed.unwrap_or_else(|| SecretFile::Plain(config.secrets.file.unwrap_or(paths.secrets_file))))
}
