use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// The longest path that a Unix socket may have: `sun_path` less its closing zero.
const SOCKET_PATH_LIMIT: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Where owd's files are. All absolute; none needs to exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Paths {
    pub config_dir: PathBuf,
    /// `owd.toml`.
    pub config_file: PathBuf,
    /// `tasks.d`, one task a file.
    pub tasks_dir: PathBuf,
    /// The store, its files and its lock.
    pub data_dir: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    pub log_file: PathBuf,
    /// The named secrets, unless the configuration names another file.
    pub secrets_file: PathBuf,
    /// The key of the TCP listener, unless the configuration names another file.
    pub key_file: PathBuf,
}

/// Whose owd it is, when nothing says where its files are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Account {
    /// A person's: the XDG folders.
    Person,
    /// The machine's, run by root or by a unit of its own: `/etc/owd`, `/var/lib/owd`, `/run/owd`.
    System,
}

/// What the command line says of places; it wins over everything.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PathFlags {
    /// Puts everything below one folder, as `OWD_HOME` does.
    pub home: Option<PathBuf>,
    pub config_file: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub socket: Option<PathBuf>,
    pub log_file: Option<PathBuf>,
}

/// Why the places of files cannot be told.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PathsError {
    #[error("HOME is not set; set it, or name one folder for everything with OWD_HOME")]
    NoHome,
    #[error(
        "the socket path `{path}` is {length} bytes long, and a Unix socket may have {limit}; \
         choose a shorter one with --socket, or a shorter OWD_HOME",
        path = path.display(), limit = SOCKET_PATH_LIMIT
    )]
    SocketPath { path: PathBuf, length: usize },
    #[error("{name} is `{path}`, which is relative and cannot be made absolute; write the whole path", path = path.display())]
    Relative { name: &'static str, path: PathBuf },
}

/// Looks up a variable of the environment.
type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

impl Paths {
    /// Finds the places of a person's owd, or of the system's.
    ///
    /// In this order: flags; `OWD_HOME`; the folders that systemd gives a unit (`STATE_DIRECTORY` and its
    /// like); for a person `XDG_CONFIG_HOME`, `XDG_STATE_HOME` (else `XDG_DATA_HOME`, if set) and
    /// `XDG_RUNTIME_DIR`, each with `owd` below, and their customary defaults.
    ///
    /// # Errors
    ///
    /// Where no home is known, or the socket's path is longer than the system allows.
    pub fn for_user(account: Account, environment: Environment<'_>, flags: &PathFlags) -> Result<Self, PathsError> {
        let home = match &flags.home {
            Some(home) => Some(absolute("--home", home)?),
            None => match set(environment, "OWD_HOME") {
                Some(home) => Some(absolute("OWD_HOME", &home)?),
                None => None,
            },
        };
        let mut paths = match (home, account) {
            (Some(home), _) => Self::below(&home),
            (None, Account::System) => Self::system().with_systemd(environment),
            (None, Account::Person) => Self::person(environment)?.with_systemd(environment),
        };
        paths.apply(flags)?;
        paths.check()
    }

    /// Everything below one folder.
    #[must_use]
    pub fn below(home: &Path) -> Self {
        Self::new(&home.join("config"), &home.join("data"), &home.join("owd.sock"), &home.join("log/owd.log"))
    }

    /// The customary places of a system service.
    #[must_use]
    pub fn system() -> Self {
        Self::new(
            Path::new("/etc/owd"),
            Path::new("/var/lib/owd"),
            Path::new("/run/owd/owd.sock"),
            Path::new("/var/log/owd/owd.log"),
        )
    }

    fn new(config_dir: &Path, data_dir: &Path, socket: &Path, log_file: &Path) -> Self {
        Self {
            config_dir: config_dir.into(),
            config_file: config_dir.join("owd.toml"),
            tasks_dir: config_dir.join("tasks.d"),
            data_dir: data_dir.into(),
            socket: socket.into(),
            log_file: log_file.into(),
            secrets_file: config_dir.join("secrets.toml"),
            key_file: data_dir.join("key"),
        }
    }

    fn person(environment: Environment<'_>) -> Result<Self, PathsError> {
        // The XDG specification has relative values ignored.
        let xdg = |name: &str| set(environment, name).filter(|path| path.is_absolute());
        let home = || set(environment, "HOME").filter(|path| path.is_absolute()).ok_or(PathsError::NoHome);
        let config_dir = match xdg("XDG_CONFIG_HOME") {
            Some(config) => config.join("owd"),
            None => home()?.join(".config/owd"),
        };
        let data_dir = match xdg("XDG_STATE_HOME").or_else(|| xdg("XDG_DATA_HOME")) {
            Some(state) => state.join("owd"),
            None => home()?.join(".local/state/owd"),
        };
        let socket = match xdg("XDG_RUNTIME_DIR") {
            Some(runtime) => runtime.join("owd/owd.sock"),
            None => data_dir.join("owd.sock"),
        };
        Ok(Self::new(&config_dir, &data_dir, &socket, &data_dir.join("log/owd.log")))
    }

    /// Takes over the folders that systemd made for this unit.
    fn with_systemd(self, environment: Environment<'_>) -> Self {
        let Self { mut config_dir, mut data_dir, mut socket, mut log_file, .. } = self;
        if let Some(state) = unit_folder(environment, "STATE_DIRECTORY") {
            if log_file.starts_with(&data_dir) {
                log_file = state.join("log/owd.log");
            }
            if socket.starts_with(&data_dir) {
                socket = state.join("owd.sock");
            }
            data_dir = state;
        }
        if let Some(config) = unit_folder(environment, "CONFIGURATION_DIRECTORY") {
            config_dir = config;
        }
        if let Some(runtime) = unit_folder(environment, "RUNTIME_DIRECTORY") {
            socket = runtime.join("owd.sock");
        }
        if let Some(logs) = unit_folder(environment, "LOGS_DIRECTORY") {
            log_file = logs.join("owd.log");
        }
        Self::new(&config_dir, &data_dir, &socket, &log_file)
    }

    fn apply(&mut self, flags: &PathFlags) -> Result<(), PathsError> {
        let PathFlags { home: _, config_file, data_dir, socket, log_file } = flags;
        if let Some(file) = config_file {
            let file = absolute("--config", file)?;
            if let Some(folder) = file.parent() {
                self.tasks_dir = folder.join("tasks.d");
                self.secrets_file = folder.join("secrets.toml");
                self.config_dir = folder.into();
            }
            self.config_file = file;
        }
        if let Some(folder) = data_dir {
            let folder = absolute("--data-dir", folder)?;
            for inside in [&mut self.socket, &mut self.log_file, &mut self.key_file] {
                if let Ok(rest) = inside.strip_prefix(&self.data_dir) {
                    *inside = folder.join(rest);
                }
            }
            self.data_dir = folder;
        }
        if let Some(socket) = socket {
            self.socket = absolute("--socket", socket)?;
        }
        if let Some(file) = log_file {
            self.log_file = absolute("--log-file", file)?;
        }
        Ok(())
    }

    fn check(self) -> Result<Self, PathsError> {
        let length = self.socket.as_os_str().len();
        if length > SOCKET_PATH_LIMIT {
            return Err(PathsError::SocketPath { path: self.socket, length });
        }
        Ok(self)
    }
}

fn set(environment: Environment<'_>, name: &str) -> Option<PathBuf> {
    environment(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The first of the folders in a variable such as `STATE_DIRECTORY`, if they are owd's.
///
/// A terminal inside another service inherits that service's variables; its folders are not ours.
fn unit_folder(environment: Environment<'_>, name: &str) -> Option<PathBuf> {
    let value = environment(name)?;
    let ours =
        |path: &PathBuf| path.is_absolute() && path.components().any(|part| part == Component::Normal("owd".as_ref()));
    std::env::split_paths(&value).find(ours)
}

fn absolute(name: &'static str, path: &Path) -> Result<PathBuf, PathsError> {
    std::path::absolute(path).map_err(|_| PathsError::Relative { name, path: path.into() })
}

#[cfg(test)]
mod tests;
