//! `owd start --detach` and `owd stop`, for systems without a service manager.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::args::Places;
use crate::life;

/// Set for the owd that runs detached: it makes its own session, logs to a file, and says on standard output when
/// it is ready.
pub(crate) const DETACHED: &str = "OWD_DETACHED";

/// The line by which a detached owd says that it is ready.
pub(crate) const READY_LINE: &str = "ready";

pub(crate) fn start(places: &Places, detach: bool) -> anyhow::Result<ExitCode> {
    if !detach {
        return life::run(places);
    }
    let paths = places.paths()?;
    let this = std::env::current_exe().context("cannot tell where owd is")?;
    let mut child = Command::new(this)
        .args(places.to_args())
        .arg("run")
        .env(DETACHED, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start owd")?;
    let mut said = String::new();
    let stdout = child.stdout.take().context("owd has a standard output")?;
    BufReader::new(stdout).read_line(&mut said).context("cannot hear from owd")?;
    if said.trim() == READY_LINE {
        say!("owd is running, pid {}.", child.id());
        say!("Its log is {}.", paths.log_file.display());
        say!("See `owctl status`; stop it with `owd stop`.");
        return Ok(ExitCode::SUCCESS);
    }
    let status = child.wait().context("cannot wait for owd")?;
    let mut why = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_string(&mut why).context("cannot hear why owd ended")?;
    }
    eprint!("{why}");
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code.max(1)))
}

pub(crate) fn stop(places: &Places) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let Some(pid) = ow_store::holder(&paths.data_dir)? else {
        bail!("owd is not running on {}", paths.data_dir.display());
    };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw).context("the lock names no process")?;
    kill_process(process, Signal::TERM).with_context(|| format!("cannot stop owd, pid {pid}"))?;
    say!("owd, pid {pid}, is asked to stop.");
    wait_for_end(&paths.data_dir, process)?;
    say!("It has ended.");
    Ok(ExitCode::SUCCESS)
}

/// Waits until the process is gone or no longer holds the lock.
fn wait_for_end(data_dir: &Path, process: Pid) -> anyhow::Result<()> {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
    while test_kill_process(process).is_ok() && ow_store::holder(data_dir)?.is_some() {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
