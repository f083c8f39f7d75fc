use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::args::Places;

/// Puts a backup in the place of the store and opens a new epoch.
pub(crate) fn run(places: &Places, from: &Path) -> anyhow::Result<ExitCode> {
    let paths = places.paths()?;
    let restored = ow_store::restore(from, &paths.data_dir)
        .with_context(|| format!("cannot restore {} into {}", from.display(), paths.data_dir.display()))?;
    println!("Restored {} into {}, epoch {}.", from.display(), paths.data_dir.display(), restored.epoch);
    if let Some(aside) = restored.kept {
        println!("The store that was there is kept as {}.", aside.display());
    }
    println!("Open runs are interrupted, open items will be asked again. Start owd, then see `owctl status`.");
    Ok(ExitCode::SUCCESS)
}
