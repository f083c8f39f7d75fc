//! Walks through a tree from handle to handle, bounded, and past what is not to be looked into.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ow_policy::path::{is_owds, secret_name};
use rustix::fs::FileType;
use serde_json::Value;

use super::folder::Folder;
use crate::helper::work::Work;
use crate::world;

const ENTRIES: usize = 500_000;
const FOLDER_ENTRIES: usize = 100_000;
const DEPTH: usize = 64;
const FILE_BYTES: u64 = 16 * 1024 * 1024;
const ALL_BYTES: u64 = 512 * 1024 * 1024;

/// Folders of version control, of what others wrote and of what builds made: large, and seldom what is meant.
pub(super) const BUILD_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "bower_components",
    "target",
    "dist",
    "build",
    ".venv",
    "venv",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".gradle",
    ".next",
    ".nuxt",
    ".terraform",
    ".direnv",
    ".cache",
];

/// A walk, with what it left out.
pub(super) struct Walk<'a> {
    work: &'a Work,
    /// Names of folders that are passed over.
    skips: &'static [&'static str],
    seen: usize,
    bytes: u64,
    /// There is more than was looked at.
    pub(super) cut: bool,
    links: u64,
    secrets: u64,
    unread: u64,
    skipped: u64,
}

/// What a walk meets.
pub(super) enum Met<'f> {
    /// A regular file, in the folder that holds it.
    File(&'f Folder, &'f OsStr),
    Folder,
    /// Where it leads is not looked at.
    Link,
}

/// A file's content as a search reads it.
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    /// It is outside content.
    pub(super) outside: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(work: &'a Work, skips: &'static [&'static str]) -> Self {
        Self { work, skips, seen: 0, bytes: 0, cut: false, links: 0, secrets: 0, unread: 0, skipped: 0 }
    }

    /// Shows `meet` all below `folder`, by name; it breaks off when it has enough.
    pub(super) fn through(
        &mut self,
        folder: &Folder,
        path: &Path,
        meet: &mut dyn FnMut(&mut Self, &Path, Met<'_>) -> ControlFlow<()>,
    ) {
        if self.folder(folder, path, 0, meet).is_break() {
            self.cut = true;
        }
    }

    fn folder(
        &mut self,
        folder: &Folder,
        path: &Path,
        depth: usize,
        meet: &mut dyn FnMut(&mut Self, &Path, Met<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Ok((mut entries, more)) = folder.entries(FOLDER_ENTRIES) else {
            self.unread += 1;
            return ControlFlow::Continue(());
        };
        self.cut |= more;
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        for entry in entries {
            self.seen += 1;
            if self.seen > ENTRIES || self.work.stop.token.is_cancelled() {
                return ControlFlow::Break(());
            }
            let at = path.join(&entry.name);
            if is_owds(&at, &self.work.protected, Some(&self.work.place.run_folder)) {
                self.secrets += 1;
                continue;
            }
            match entry.kind() {
                FileType::Directory if entry.name.to_str().is_some_and(|name| self.skips.contains(&name)) => {
                    self.skipped += 1;
                }
                FileType::Directory => {
                    meet(self, &at, Met::Folder)?;
                    if depth >= DEPTH {
                        self.cut = true;
                        continue;
                    }
                    match folder.folder(&entry.name) {
                        Ok(below) => self.folder(&below, &at, depth + 1, meet)?,
                        Err(_) => self.unread += 1,
                    }
                }
                FileType::RegularFile => meet(self, &at, Met::File(folder, &entry.name))?,
                FileType::Symlink => meet(self, &at, Met::Link)?,
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    /// A link whose goal was not read.
    pub(super) fn pass_link(&mut self) {
        self.links += 1;
    }

    /// What a file in the tree holds; none for a secret, for one that cannot be read, and for one that is no text.
    pub(super) fn text_of(&mut self, folder: &Folder, name: &OsStr, at: &Path) -> Option<Content> {
        if secret_name(at).is_some() {
            self.secrets += 1;
            return None;
        }
        let Ok(file) = folder.file(name) else {
            self.unread += 1;
            return None;
        };
        self.content(file)
    }

    /// What an open file holds, within the walk's bounds.
    pub(super) fn content(&mut self, file: File) -> Option<Content> {
        let metadata = file.metadata().ok()?;
        if metadata.len() > FILE_BYTES || self.bytes + metadata.len() > ALL_BYTES {
            self.unread += 1;
            return None;
        }
        let outside = world::is_outside(&file, &metadata);
        let mut bytes = Vec::new();
        if file.take(FILE_BYTES).read_to_end(&mut bytes).is_err() {
            self.unread += 1;
            return None;
        }
        self.bytes += bytes.len() as u64;
        if is_binary(&bytes) { None } else { Some(Content { bytes, outside }) }
    }

    /// Says in a result what was left out.
    pub(super) fn report(&self, output: &mut Value) {
        let counts = [
            ("links", self.links),
            ("secrets", self.secrets),
            ("unread", self.unread),
            ("build-folders", self.skipped),
        ];
        for (name, count) in counts {
            if count > 0 {
                output["left-out"][name] = count.into();
            }
        }
        if self.cut {
            output["cut"] = true.into();
        }
    }
}

/// A zero byte near the beginning is what tells a binary file.
pub(super) fn is_binary(content: &[u8]) -> bool {
    content.iter().take(8192).any(|byte| *byte == 0)
}

/// Whether a name pattern (`*.txt`) or, with a slash in it, a pattern of paths below the beginning fits.
pub(super) fn fits(pattern: &str, below: &Path) -> bool {
    let subject = if pattern.contains('/') { below } else { Path::new(below.file_name().unwrap_or_default()) };
    glob_match::glob_match(pattern, &subject.to_string_lossy())
}

/// A path as it is from where a walk began.
pub(super) fn below(at: &Path, root: &Path) -> PathBuf {
    at.strip_prefix(root).unwrap_or(at).to_owned()
}
