use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ow_config::Account;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::failure::{Exit, Failure};

/// Finds a program on a search path as a shell would; a name with a slash is a path already.
pub(crate) fn find(name: &str, search_path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    std::env::split_paths(search_path).map(|folder| folder.join(name)).find(|path| is_program(path))
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Where owd is: beside this program, else on the search path.
pub(crate) fn owd() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("owd")).filter(|path| is_program(path));
    beside.or_else(|| find("owd", &std::env::var_os("PATH")?))
}

/// Runs a command of owd itself, for the same places, to its end.
pub(crate) fn run_owd<'a>(context: &Context, args: impl IntoIterator<Item = &'a OsStr>) -> Result<Output, Failure> {
    let mut command = owd_command(context)?;
    command.args(args).output().map_err(|why| Failure::io("cannot run owd", &why))
}

/// Runs a command of owd itself that answers in JSON. What it refuses is an error of use.
pub(crate) fn ask_owd<'a, T: DeserializeOwned>(
    context: &Context,
    args: impl IntoIterator<Item = &'a OsStr>,
) -> Result<T, Failure> {
    let done = run_owd(context, args)?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr).trim().trim_start_matches("owd: ").to_owned();
        return Err(Failure::new(Exit::Usage, "invalid", message).hint("see `owctl config check`"));
    }
    serde_json::from_slice(&done.stdout)
        .map_err(|_| Failure::failed("owd", "owd answered something else").hint("are owd and owctl of one version?"))
}

/// owd, for the same places, without a command yet.
pub(crate) fn owd_command(context: &Context) -> Result<Command, Failure> {
    let owd = owd().ok_or_else(|| {
        Failure::failed("no_owd", "the program `owd` is neither beside owctl nor on the search path")
            .hint("install owd, or add its folder to PATH")
    })?;
    let mut command = Command::new(&owd);
    if let Some(home) = &context.flags.home {
        command.arg("--home").arg(home);
    }
    if context.account == Account::System {
        command.arg("--system");
    }
    Ok(command)
}
