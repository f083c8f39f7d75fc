use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::{Redactor, Sealed, SecretName, SecretNameError, SecretValue};

/// Where secrets are looked for. Where two sources know the same name, the one that stands first here wins.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A folder with one file a secret, as systemd makes for `LoadCredential=`.
    pub credentials: Option<PathBuf>,
    /// Variables named `OWD_SECRET_<NAME>`; others are passed over.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables with other names that hold a secret each: the secret has the variable's name.
    pub named: Vec<String>,
    /// A file like the next, sealed; it need not exist.
    pub sealed: Option<Sealed>,
    /// A TOML file of `name = "value"` lines that only its owner may read. It need not exist.
    pub file: Option<PathBuf>,
}

/// All secrets that are known, by name.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeMap<SecretName, SecretValue>,
    origins: BTreeMap<SecretName, Origin>,
}

/// Where a secret's value comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// This variable of owd's environment.
    Environment(String),
    /// A credential that systemd handed over.
    Credential(PathBuf),
    File(PathBuf),
    Sealed(PathBuf),
    /// At hand: from a test or a helper's job.
    Given,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "environment: {variable}"),
            Self::Credential(path) => write!(f, "credential: {}", path.display()),
            Self::File(path) => write!(f, "file: {}", path.display()),
            Self::Sealed(path) => write!(f, "sealed: {}", path.display()),
            Self::Given => f.write_str("given"),
        }
    }
}

/// Why secrets could not be read. Says names and places, never a value.
#[derive(Debug, Error)]
pub enum SecretError {
    #[error("cannot read secrets from `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write secrets to `{}`", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("sealed secrets, `{}`: {why}", path.display())]
    Sealed { path: PathBuf, why: String },
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
/// A shorter value of a vendor's variable is no key.
const LEAST_KEY: usize = 12;
const FILE_LIMIT: u64 = 1024 * 1024;
const VARIABLE_PREFIX: &str = "OWD_SECRET_";

impl Sources {
    /// The process's own sources: its credential folder and its environment, and the file at `file`.
    #[must_use]
    pub fn of_process(file: PathBuf) -> Self {
        Self {
            credentials: env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
            environment: env::vars_os().collect(),
            named: vec![],
            sealed: None,
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
        if let Some(sealed) = &sources.sealed {
            let text = sealed.read()?;
            secrets.read_text(&sealed.file, &text, &Origin::Sealed(sealed.file.clone()))?;
        }
        for (variable, value) in &sources.environment {
            let Some(variable) = variable.to_str() else { continue };
            // A vendor's variable may hold a stand-in (`none`), which must not be taken out of every text.
            let is_named = sources.named.iter().any(|named| named == variable) && value.len() >= LEAST_KEY;
            let Some(name) = variable.strip_prefix(VARIABLE_PREFIX).or(is_named.then_some(variable)) else { continue };
            let place = format!("${variable}");
            let name: SecretName = name.parse().map_err(|source| SecretError::Name { place: place.clone(), source })?;
            let Some(value) = value.to_str() else { return Err(SecretError::Text { name, place }) };
            let value = if is_named { value.trim() } else { value };
            secrets.insert(name, value, place, Origin::Environment(variable.into()))?;
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
            secrets.insert(name, value, place, Origin::Given)?;
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

    /// Where each secret comes from, by name.
    pub fn origins(&self) -> impl Iterator<Item = (&SecretName, &Origin)> {
        self.origins.iter()
    }

    fn insert(&mut self, name: SecretName, value: &str, place: String, origin: Origin) -> Result<(), SecretError> {
        let value = Self::checked(name.clone(), value, place)?;
        self.values.insert(name.clone(), value);
        self.origins.insert(name, origin);
        Ok(())
    }

    pub(crate) fn checked(name: SecretName, value: &str, place: String) -> Result<SecretValue, SecretError> {
        // `echo value > file` ends in a newline that nobody means.
        let value = value.strip_suffix('\n').unwrap_or(value);
        if value.len() < SHORTEST {
            return Err(SecretError::Short { name, place });
        }
        Ok(SecretValue::new(value.into()))
    }

    fn read_file(&mut self, path: &Path) -> Result<(), SecretError> {
        let text = match read_private(path, Privacy::OwnerOnly) {
            Ok(text) => text,
            Err(SecretError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        self.read_text(path, &text, &Origin::File(path.into()))
    }

    fn read_text(&mut self, path: &Path, text: &[u8], origin: &Origin) -> Result<(), SecretError> {
        // The parser's own message quotes the line at fault, and that line may hold a value.
        let syntax = |at: usize| syntax(path, text, at);
        let plain = std::str::from_utf8(text).map_err(|error| syntax(error.valid_up_to()))?;
        let table: toml::Table =
            toml::from_str(plain).map_err(|error| syntax(error.span().map_or(0, |span| span.start)))?;
        for (name, value) in table {
            let place = format!("`{}`", path.display());
            let toml::Value::String(value) = value else {
                return Err(SecretError::Type { path: path.into(), name });
            };
            let value = Zeroizing::new(value);
            let name = name.parse().map_err(|source| SecretError::Name { place: place.clone(), source })?;
            self.insert(name, &value, place, origin.clone())?;
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
            self.insert(name, value, place, Origin::Credential(path))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.values.iter().map(|(name, value)| (name.as_str(), value))).finish()
    }
}

pub(crate) fn syntax(path: &Path, text: &[u8], at: usize) -> SecretError {
    let line = text[..at.min(text.len())].split(|byte| *byte == b'\n').count();
    SecretError::Syntax { path: path.into(), line }
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Privacy {
    OwnerOnly,
    /// The folder around it keeps others out; systemd gives the files in it mode 0440.
    Folder,
}

/// Reads a file after its mode was judged on the open handle, so that no swap fits in between.
pub(crate) fn read_private(path: &Path, privacy: Privacy) -> Result<Zeroizing<Vec<u8>>, SecretError> {
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
