use std::path::{Path, PathBuf};

use ow_protocol::BackupRequest;

use crate::command::status::bytes;
use crate::context::Context;
use crate::escape;
use crate::failure::Failure;

/// Back the running store up into a new folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  owctl backup ~/backups/owd-2026-03-08

The backup holds the store and its files, and the names of secrets only. Put it back with `owctl restore`.")]
pub(crate) struct Backup {
    /// A folder that does not exist yet; owd writes it
    #[arg(value_name = "DIR")]
    into: PathBuf,
}

impl Backup {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let request = BackupRequest { into: absolute(&self.into)? };
        let backup = context.with_daemon(async |owd| Ok(owd.backup(&request).await?))?;
        context.out.give(&backup, |backup| {
            format!(
                "Backed up into {}: {}, {} files beside the store.",
                escape::line(&backup.into),
                bytes(backup.bytes),
                backup.blobs
            )
        });
        Ok(())
    }
}

/// As owd must be told it: its working directory is another.
pub(crate) fn absolute(path: &Path) -> Result<String, Failure> {
    let whole =
        std::path::absolute(path).map_err(|why| Failure::io(format!("no such place: {}", path.display()), &why))?;
    whole
        .into_os_string()
        .into_string()
        .map_err(|_| Failure::usage("the path is not UTF-8").hint("choose another folder"))
}
