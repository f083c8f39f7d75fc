use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ow_config::{Account, PathFlags, Paths};

use crate::failure::{Exit, Failure};

pub(crate) fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Where the files of the owd are that is meant: what flags and variables say; else this person's, or the
/// system's if that is the only one with a socket.
pub(crate) fn paths(account: Account, flags: &PathFlags) -> Result<Paths, Failure> {
    let named = Paths::for_user(account, &environment, flags);
    if flags.socket.is_none() && flags.home.is_none() {
        let system = Paths::system();
        let is_other = named.as_ref().is_ok_and(|own| own.socket.exists() || !system.socket.exists());
        if !is_other && system.socket.exists() {
            return Ok(system);
        }
    }
    named.map_err(|error| unknown(&error))
}

fn unknown(error: &ow_config::PathsError) -> Failure {
    Failure::new(Exit::Usage, "paths", error.to_string())
        .hint("name the socket with --socket, or the folder with --home")
}

/// Where `service install` puts a person's unit.
pub(crate) fn user_unit() -> Option<PathBuf> {
    let set = |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("systemd/user/owd.service"))
}

pub(crate) const SYSTEM_UNIT: &str = "/etc/systemd/system/owd.service";

/// Whose service is installed here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Installed {
    ForUser,
    ForSystem,
    Not,
}

pub(crate) fn installed() -> Installed {
    if user_unit().is_some_and(|unit| unit.exists()) {
        Installed::ForUser
    } else if Path::new(SYSTEM_UNIT).exists() {
        Installed::ForSystem
    } else {
        Installed::Not
    }
}

pub(crate) fn how_to_start() -> &'static str {
    match installed() {
        Installed::ForUser => "start it with `systemctl --user start owd`",
        Installed::ForSystem => "start it with `sudo systemctl start owd`",
        Installed::Not => {
            "start it with `owd start --detach`, or for good, also after a reboot, with `owctl service install`"
        }
    }
}

pub(crate) fn how_to_restart() -> &'static str {
    match installed() {
        Installed::ForUser => "`systemctl --user restart owd`",
        Installed::ForSystem => "`sudo systemctl restart owd`",
        Installed::Not => "`owd stop`, then `owd start --detach`",
    }
}
