//! Which hooks of workspaces a person trusts: each by a hash of what it says and of its program's bytes.
//!
//! What is trusted is kept beside owd's data with a copy of each program, and the copies are what runs: between the look at
//! a workspace and the run of its hook nobody can put another program in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use jiff::Timestamp;
use ow_config::{ConfigError, HookConfig, Workspace};
use ow_model::BlobHash;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tracing::warn;

const FILE: &str = "trust.json";
/// The copies of programs.
const PROGRAMS: &str = "trusted-hooks";

/// The trust that persons have given to workspaces. Its file is the whole of it, and only its owner may read that.
#[derive(Debug)]
pub struct Trust {
    folder: PathBuf,
    given: Mutex<Given>,
    /// What persons were told in this life of owd.
    told: Mutex<BTreeSet<String>>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Given {
    workspaces: BTreeMap<PathBuf, Trusted>,
}

/// What is trusted of one workspace.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Trusted {
    pub by: String,
    pub at: Timestamp,
    pub hooks: Vec<BlobHash>,
}

/// A hook of a workspace, as it stands now.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedHook {
    pub hook: HookConfig,
    /// Of what it says and of its program; or why there is no program.
    pub hash: Result<BlobHash, String>,
    pub trusted: bool,
}

/// A workspace as it stands now, and what is trusted of it.
#[derive(Debug)]
pub struct Offer {
    /// Links followed, where the folder is there.
    pub path: PathBuf,
    pub trusted: Option<Trusted>,
    /// None: it brings nothing.
    pub brings: Result<Option<Workspace>, ConfigError>,
    pub hooks: Vec<OfferedHook>,
}

/// Why a workspace was not trusted.
#[derive(Debug, Error)]
pub enum TrustError {
    #[error("there is no folder {}", path.display())]
    NoFolder { path: PathBuf },
    #[error("{} brings no hooks; there is nothing to trust", path.display())]
    NoHooks { path: PathBuf },
    #[error("{0}")]
    Faulty(ConfigError),
    #[error("hook {}: {why}", command.display())]
    NoProgram { command: PathBuf, why: String },
    #[error("the hooks of {} have changed since they were shown", path.display())]
    Changed { path: PathBuf },
    #[error("what is trusted cannot be kept in {}: {source}", folder.display())]
    Write { folder: PathBuf, source: io::Error },
}

impl Trust {
    /// Reads what is trusted. A file that cannot be read trusts nothing.
    #[must_use]
    pub fn open(folder: PathBuf) -> Self {
        let file = folder.join(FILE);
        let given = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                warn!(file = %file.display(), %error, "damaged: no workspace is trusted; trust them again");
                Given::default()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Given::default(),
            Err(error) => {
                warn!(file = %file.display(), %error, "cannot be read: no workspace is trusted");
                Given::default()
            }
        };
        Self { folder, given: Mutex::new(given), told: Mutex::default() }
    }

    /// Looks at a workspace. Reads files.
    #[must_use]
    pub fn look(&self, path: &Path) -> Offer {
        let path = place(path);
        let trusted = self.given().workspaces.get(&path).cloned();
        let brings = Workspace::load(&path);
        let hooks = brings.iter().flatten().flat_map(|workspace| &workspace.hook);
        let hooks = hooks.map(|hook| {
            let hash = hook.program_of_workspace(&path).map(|program| hash_of(hook, &program));
            let trusted =
                trusted.as_ref().zip(hash.as_ref().ok()).is_some_and(|(given, hash)| given.hooks.contains(hash));
            OfferedHook { hook: hook.clone(), hash, trusted }
        });
        let hooks = hooks.collect();
        Offer { path, trusted, brings, hooks }
    }

    /// Trusts the hooks of a workspace as they are; `shown`: the hashes of those that the person saw.
    ///
    /// # Errors
    ///
    /// Why none is trusted that was not before.
    pub fn give(&self, path: &Path, shown: &[BlobHash], by: &str, at: Timestamp) -> Result<Offer, TrustError> {
        let path = place(path);
        if !path.is_dir() {
            return Err(TrustError::NoFolder { path });
        }
        let hook = Workspace::load(&path).map_err(TrustError::Faulty)?.unwrap_or_default().hook;
        if hook.is_empty() {
            return Err(TrustError::NoHooks { path });
        }
        let failed = |source| TrustError::Write { folder: self.folder.clone(), source };
        let mut hooks = vec![];
        for hook in hook {
            let program = hook
                .program_of_workspace(&path)
                .map_err(|why| TrustError::NoProgram { command: hook.command.clone(), why })?;
            let hash = hash_of(&hook, &program);
            if !shown.contains(&hash) {
                return Err(TrustError::Changed { path });
            }
            self.keep(&program, &hash).map_err(failed)?;
            hooks.push(hash);
        }
        let mut given = self.given();
        let mut new = given.clone();
        new.workspaces.insert(path.clone(), Trusted { by: by.to_owned(), at, hooks });
        self.write(&new).map_err(failed)?;
        *given = new;
        drop(given);
        Ok(self.look(&path))
    }

    /// Takes trust back; false: there was none. The folder need not be there any more.
    ///
    /// # Errors
    ///
    /// Why it could not be taken back.
    pub fn take(&self, path: &Path) -> Result<bool, TrustError> {
        let failed = |source| TrustError::Write { folder: self.folder.clone(), source };
        let mut given = self.given();
        let mut new = given.clone();
        let before = new.workspaces.len();
        for name in [place(path), lexical(path)] {
            new.workspaces.remove(&name);
        }
        if new.workspaces.len() == before {
            return Ok(false);
        }
        self.write(&new).map_err(failed)?;
        *given = new;
        Ok(true)
    }

    /// All workspaces of which something is trusted, as they stand now. Reads files.
    #[must_use]
    pub fn all(&self) -> Vec<Offer> {
        let paths: Vec<PathBuf> = self.given().workspaces.keys().cloned().collect();
        paths.iter().map(|path| self.look(path)).collect()
    }

    /// The copy of a trusted hook's program.
    #[must_use]
    pub fn program(&self, hash: &BlobHash) -> PathBuf {
        self.folder.join(PROGRAMS).join(hash.to_string())
    }

    /// Whether this is said for the first time in this life of owd.
    pub(crate) fn is_news(&self, key: &str) -> bool {
        self.told.lock().expect("no holder panics").insert(key.to_owned())
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().expect("no holder panics")
    }

    fn keep(&self, program: &[u8], hash: &BlobHash) -> io::Result<()> {
        let folder = self.folder.join(PROGRAMS);
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        replace(&folder.join(hash.to_string()), program, 0o700)
    }

    fn write(&self, given: &Given) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(given)?;
        replace(&self.folder.join(FILE), &text, 0o600)
    }
}

/// By the program's own bytes, and by when, for what and how long it runs.
fn hash_of(hook: &HookConfig, program: &[u8]) -> BlobHash {
    let said = serde_json::to_string(hook).unwrap_or_default();
    BlobHash::of(&[said.as_bytes(), b"\0", program].concat())
}

/// The one name of a folder: links followed where it is there.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| lexical(path))
}

fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => drop(clean.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// Puts a whole file in place of the old one, or leaves that.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests;
