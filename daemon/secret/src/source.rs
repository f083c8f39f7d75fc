use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::{Redactor, SecretName, SecretNameError, SecretValue};

/// Where secrets are looked for. Where two sources know the same name, the one that stands first here wins.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A folder with one file a secret, as systemd makes for `LoadCredential=`.
    pub credentials: Option<PathBuf>,
    /// Variables named `OWD_SECRET_<NAME>`; others are passed over.
    pub environment: Vec<(OsString, OsString)>,
    /// A TOML file of `name = "value"` lines that only its owner may read. It need not exist.
    pub file: Option<PathBuf>,
}

/// All secrets that are known, by name.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeMap<SecretName, SecretValue>,
}

/// Why secrets could not be read. Says names and places, never a value.
#[derive(Debug, Error)]
pub enum SecretError {
    #[error("cannot read secrets from `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` can be read by others (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    Mode { path: PathBuf, mode: u32 },
    #[error("`{}` is not a regular file; secrets are read from nothing else", path.display())]
    Kind { path: PathBuf },
    #[error("`{}`, line {line}: expected `name = \"value\"` lines", path.display())]
    Syntax { path: PathBuf, line: usize },
    #[error("`{}`: the value of `{name}` must be a string in quotes", path.display())]
    Type { path: PathBuf, name: String },
    #[error("`{}` is {size} bytes long; at most {limit} are read as secrets", path.display())]
    Large { path: PathBuf, size: u64, limit: u64 },
    #[error("secret from {place}")]
    Name { place: String, source: SecretNameError },
    #[error("secret `{name}` from {place} is not text in UTF-8; store it as base64")]
    Text { name: SecretName, place: String },
    #[error("secret `{name}` from {place} is shorter than {SHORTEST} bytes: it could not be kept out of any text")]
    Short { name: SecretName, place: String },
}

/// A shorter value would be found in every text, so taking it out would spoil all output.
const SHORTEST: usize = 4;
const FILE_LIMIT: u64 = 1024 * 1024;
const VARIABLE_PREFIX: &str = "OWD_SECRET_";

impl Sources {
    /// The process's own sources: its credential folder and its environment, and the file at `file`.
    #[must_use]
    pub fn of_process(file: PathBuf) -> Self {
        Self {
            credentials: env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            environment: env::vars_os().collect(),
            file: Some(file),
        }
    }
}

impl Secrets {
    /// Reads all sources.
    ///
    /// A systemd credential whose file name is no secret's name is passed over: the folder may serve others.
    pub fn load(sources: &Sources) -> Result<Self, SecretError> {
        let mut secrets = Self::default();
        if let Some(path) = &sources.file {
            secrets.read_file(path)?;
        }
        for (variable, value) in &sources.environment {
            let Some(name) = variable.to_str().and_then(|name| name.strip_prefix(VARIABLE_PREFIX)) else { continue };
            let place = format!("${VARIABLE_PREFIX}{name}");
            let name: SecretName = name.parse().map_err(|source| SecretError::Name { place: place.clone(), source })?;
            let Some(value) = value.to_str() else { return Err(SecretError::Text { name, place }) };
            secrets.insert(name, value, place)?;
        }
        if let Some(folder) = &sources.credentials {
            secrets.read_credentials(folder)?;
        }
        Ok(secrets)
    }

    /// Makes secrets from names and values at hand.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, SecretError> {
        let mut secrets = Self::default();
        for (name, value) in pairs {
            let place = String::from("a pair");
            let name = name.parse().map_err(|source| SecretError::Name { place: place.clone(), source })?;
            secrets.insert(name, value, place)?;
        }
        Ok(secrets)
    }

    #[must_use]
    pub fn value(&self, name: &SecretName) -> Option<&SecretValue> {
        self.values.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &SecretName> {
        self.values.keys()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&SecretName, &SecretValue)> {
        self.values.iter()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What takes all of these values out of a text.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.values.values())
    }

    fn insert(&mut self, name: SecretName, value: &str, place: String) -> Result<(), SecretError> {
        // `echo value > file` ends in a newline that nobody means.
        let value = value.strip_suffix('\n').unwrap_or(value);
        if value.len() < SHORTEST {
            return Err(SecretError::Short { name, place });
        }
        self.values.insert(name, SecretValue::new(value.into()));
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<(), SecretError> {
        let text = match read_private(path, Privacy::OwnerOnly) {
            Ok(text) => text,
            Err(SecretError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        // The parser's own message quotes the line at fault, and that line may hold a value.
        let syntax = |at: usize| SecretError::Syntax {
            path: path.into(),
            line: text[..at.min(text.len())].split(|byte| *byte == b'\n').count(),
        };
        let plain = std::str::from_utf8(&text).map_err(|error| syntax(error.valid_up_to()))?;
        let table: toml::Table =
            toml::from_str(plain).map_err(|error| syntax(error.span().map_or(0, |span| span.start)))?;
        for (name, value) in table {
            let place = format!("`{}`", path.display());
            let toml::Value::String(value) = value else {
                return Err(SecretError::Type { path: path.into(), name });
            };
            let value = Zeroizing::new(value);
            let name = name.parse().map_err(|source| SecretError::Name { place: place.clone(), source })?;
            self.insert(name, &value, place)?;
        }
        Ok(())
    }

    fn read_credentials(&mut self, folder: &Path) -> Result<(), SecretError> {
        let failed = |source| SecretError::Read { path: folder.into(), source };
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(name) = entry.file_name().to_str().and_then(|name| name.parse::<SecretName>().ok()) else {
                continue;
            };
            let path = entry.path();
            let bytes = read_private(&path, Privacy::Folder)?;
            let place = format!("`{}`", path.display());
            let Ok(value) = std::str::from_utf8(&bytes) else { return Err(SecretError::Text { name, place }) };
            self.insert(name, value, place)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.values.iter().map(|(name, value)| (name.as_str(), value))).finish()
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Privacy {
    OwnerOnly,
    /// The folder around it keeps others out; systemd gives the files in it mode 0440.
    Folder,
}

/// Reads a file after its mode was judged on the open handle, so that no swap fits in between.
fn read_private(path: &Path, privacy: Privacy) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    let failed = |source| SecretError::Read { path: path.into(), source };
    // A named pipe would block the open, so the kind is looked at first and judged again on the handle.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(SecretError::Kind { path: path.into() });
    }
    let mut file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.mode() & 0o7777;
    if !metadata.is_file() {
        return Err(SecretError::Kind { path: path.into() });
    }
    if privacy == Privacy::OwnerOnly && mode & 0o077 != 0 {
        return Err(SecretError::Mode { path: path.into(), mode });
    }
    if metadata.len() > FILE_LIMIT {
        return Err(SecretError::Large { path: path.into(), size: metadata.len(), limit: FILE_LIMIT });
    }
    let mut bytes = Zeroizing::new(Vec::new());
    file.by_ref().take(FILE_LIMIT).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
