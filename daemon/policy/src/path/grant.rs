//! Which folders a person may open to a session.

use std::path::{Path, PathBuf};

use super::scope::KERNEL;
use super::secret_name;
use crate::ResolvedPath;

/// Judges a folder that a session asks for. `home` and `protected` are absolute, links followed.
///
/// # Errors
///
/// Why nobody can open it: it is too much at once, or never a session's.
pub fn grantable(folder: &ResolvedPath, home: &Path, protected: &[PathBuf]) -> Result<(), String> {
    for at in [&folder.resolved, &folder.lexical] {
        let shown = at.display();
        let never = |why: &str| Err(format!("`{shown}` {why}"));
        if at.parent().is_none() {
            return never("is everything; ask for the one folder that is needed");
        }
        if home.starts_with(at) {
            return never("holds all of a person's files; ask for the one folder below it that is needed");
        }
        if KERNEL.iter().any(|kernel| at.starts_with(kernel)) {
            return never("is the kernel's");
        }
        if protected.iter().any(|own| at.starts_with(own)) {
            return never("is owd's own");
        }
        if let Some(name) = secret_name(at) {
            return Err(format!("`{shown}` is a place of secrets (`{name}`)"));
        }
    }
    Ok(())
}
