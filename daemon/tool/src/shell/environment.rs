use std::env;
use std::ffi::OsString;

use crate::world::SANE_PATH;

const ALLOWED: &[&str] = &["PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR"];

/// What of this process's environment a program may see: nothing in which a key could stand.
pub(crate) fn allowed() -> Vec<(OsString, OsString)> {
    let mut variables: Vec<_> = env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_")))
        .collect();
    if variables.iter().all(|(name, value)| name != "PATH" || value.is_empty()) {
        variables.retain(|(name, _)| name != "PATH");
        variables.push(("PATH".into(), SANE_PATH.into()));
    }
    variables
}
