//! The bearer key of the TCP listener, in a file of its own.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use ow_model::RunId;
use ow_server::Key;

/// Reads the key; a file that does not exist is made, with a random key that only its owner may read.
pub(crate) fn load_or_create(file: &Path) -> anyhow::Result<Key> {
    let text = match fs::read_to_string(file) {
        Ok(text) => {
            let mode =
                fs::metadata(file).with_context(|| format!("cannot look at {}", file.display()))?.permissions().mode();
            if mode & 0o077 != 0 {
                bail!(
                    "the key file {} has mode {:03o}, so that others may read it; run: chmod 600 {}",
                    file.display(),
                    mode & 0o777,
                    file.display()
                );
            }
            text
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(file).with_context(|| format!("cannot make the key file {}", file.display()))?
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read the key file {}", file.display())),
    };
    Key::new(text.trim()).with_context(|| format!("the key in {} is of no use", file.display()))
}

fn create(file: &Path) -> io::Result<String> {
    // 160 random bits, in letters and digits.
    let text = format!("{}{}", RunId::random(), RunId::random());
    let mut created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(created, "{text}")?;
    created.sync_all()?;
    Ok(text)
}
