use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

/// A text in a file of its own while a person edits it. The file goes when the draft is dropped, unless kept.
pub(crate) struct Draft {
    path: PathBuf,
    fate: Fate,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Fate {
    Remove,
    Keep,
}

impl Draft {
    /// `suffix` tells the editor the language: `.toml`, `.json`.
    pub(crate) fn new(text: &str, suffix: &str) -> Result<Self, Failure> {
        let folder = std::env::temp_dir();
        let mut tries = 0;
        let (path, mut file) = loop {
            let path = folder.join(format!("owctl-{}-{tries}{suffix}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => break (path, file),
                Err(why) if why.kind() == std::io::ErrorKind::AlreadyExists && tries < 1000 => tries += 1,
                Err(why) => return Err(Failure::io(format!("cannot write {}", path.display()), &why)),
            }
        };
        let draft = Self { path, fate: Fate::Remove };
        file.write_all(text.as_bytes()).map_err(|why| Failure::io("cannot write the text to edit", &why))?;
        Ok(draft)
    }

    /// Opens the editor and returns the text when it is closed.
    pub(crate) fn edit(&self) -> Result<String, Failure> {
        open(&self.path)?;
        fs::read_to_string(&self.path).map_err(|why| Failure::io(format!("cannot read {}", self.path.display()), &why))
    }

    /// Leaves the file where it is, so that no work is lost; returns where that is.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.fate = Fate::Keep;
        self.path.clone()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.fate == Fate::Remove {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Opens a file in the person's editor and waits until it is closed.
pub(crate) fn open(path: &Path) -> Result<(), Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| OsString::from("vi"));
    // The variable may hold options (`code --wait`), which only a shell splits as people expect.
    let mut script = editor.clone();
    script.push(" \"$1\"");
    let ended = Command::new("/bin/sh").arg("-c").arg(script).arg("owctl").arg(path).status();
    let named = editor.display();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(Failure::failed("editor", format!("the editor `{named}` ended with {status}; nothing was changed"))
                .hint("set EDITOR to the editor that you use, for instance EDITOR=nano"))
        }
        Err(why) => Err(Failure::io(format!("cannot start the editor `{named}`"), &why)
            .hint("set EDITOR to the editor that you use, for instance EDITOR=nano")),
    }
}
