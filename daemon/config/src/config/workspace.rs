//! `.owd/workspace.toml`: what a workspace brings for those who work in it.
//!
//! Whoever can write the workspace wrote it. It may forbid, and offer hooks that a person must trust before they run; it
//! allows nothing.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{ConfigError, HOOKS_FOLDER, HookConfig, read};
use crate::FileFault;
use crate::document::Document;

/// The folder of a workspace that holds what it brings.
pub const WORKSPACE_FOLDER: &str = ".owd";
const FILE: &str = "workspace.toml";
const FILE_LIMIT: u64 = 64 * 1024;
const PROGRAM_LIMIT: u64 = 1024 * 1024;

/// What would allow something, and so is passed over; `[policy]` and others are known from owd.toml.
const GRANTS: [&str; 12] = [
    "allow",
    "http-allow",
    "safe-commands",
    "trusted",
    "policy",
    "tool-risk",
    "mode",
    "agent",
    "provider",
    "people",
    "secrets",
    "server",
];

/// What a workspace brings.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Workspace {
    /// Text patterns of commands that never run, as in `[policy]`; they hold untrusted.
    pub deny: Vec<String>,
    /// In the order in which they are asked. Their programs lie in `.owd/hooks`.
    pub hook: Vec<HookConfig>,
    /// Keys that would allow something: they have no effect, trusted or not.
    pub ignored: Vec<String>,
}

impl Workspace {
    /// Reads what the workspace in this folder brings, if it brings anything.
    ///
    /// # Errors
    ///
    /// All that is wrong with it. What it would forbid is then not known.
    pub fn load(root: &Path) -> Result<Option<Self>, ConfigError> {
        let file = root.join(WORKSPACE_FOLDER).join(FILE);
        match within(root, &file, FILE_LIMIT) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).map_err(|_| unusable(&file, "it is not UTF-8".into()))?;
                Self::parse(&text, &file).map(Some)
            }
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(unusable(&file, error.to_string())),
        }
    }

    /// Reads a text; `file` is where it stands.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let document = Document::new(Some(file), text);
        let Some(table) = document.parse() else { return Err(ConfigError { faults: document.into_faults() }) };
        let root = document.root(&table);
        let deny = read::entries(&root, "deny");
        let hook = super::hook::hooks(&root, Some(file));
        let ignored = GRANTS.into_iter().filter(|key| root.value(key).is_some()).map(str::to_owned).collect();
        root.finish();
        if document.has_faults() {
            return Err(ConfigError { faults: document.into_faults() });
        }
        Ok(Self { deny, hook, ignored })
    }
}

impl HookConfig {
    /// The bytes of this hook's program, where it is one of the workspace in `root`.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub fn program_of_workspace(&self, root: &Path) -> Result<Vec<u8>, String> {
        let path = root.join(WORKSPACE_FOLDER).join(HOOKS_FOLDER).join(&self.command);
        within(root, &path, PROGRAM_LIMIT).map_err(|error| {
            if is_absent(&error) { format!("there is no file {}", path.display()) } else { error.to_string() }
        })
    }
}

/// The bytes of a regular file that lies in the workspace's own folder, links followed.
fn within(root: &Path, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let own = root.canonicalize()?.join(WORKSPACE_FOLDER);
    let real = path.canonicalize()?;
    if !real.starts_with(&own) {
        return Err(refused(format!("{} leads out of {}", path.display(), own.display())));
    }
    // Never opened before it is known to be a file: a pipe would not be left again.
    if !real.symlink_metadata()?.is_file() {
        return Err(refused(format!("{} is not a regular file", path.display())));
    }
    let mut bytes = vec![];
    fs::File::open(&real)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(refused(format!("{} is larger than {} KiB", path.display(), limit / 1024)));
    }
    Ok(bytes)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unusable(file: &Path, message: String) -> ConfigError {
    ConfigError {
        faults: vec![FileFault {
            file: Some(PathBuf::from(file)),
            line: 0,
            column: 0,
            key: String::new(),
            value: None,
            message,
            remedy: "mend or remove it".into(),
        }],
    }
}

impl ConfigError {
    /// The first fault in one line, without any text of the file: nobody answers for what stands there.
    #[must_use]
    pub fn without_text(&self) -> String {
        let bare = |fault: &FileFault| FileFault {
            key: String::new(),
            value: None,
            remedy: "mend or remove it".into(),
            ..fault.clone()
        };
        self.faults.first().map(|fault| bare(fault).to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let own = dir.path().join(WORKSPACE_FOLDER);
        fs::create_dir_all(own.join(HOOKS_FOLDER)).expect("a folder");
        fs::write(own.join(FILE), text).expect("a file");
        (dir, own)
    }

    #[test]
    fn a_workspace_denies_and_offers_hooks_and_what_would_allow_is_passed_over() {
        let (dir, own) = workspace(
            "deny = [\"git push*\"]\nallow = [\"rm\"]\n[policy]\nallow = [\"*\"]\n\
             [[hook]]\nevent = \"pre-tool-use\"\ncommand = \"./check\"\n",
        );
        let brought = Workspace::load(dir.path()).expect("right").expect("there");
        assert_eq!(
            (brought.deny, brought.ignored),
            (vec!["git push*".to_owned()], vec!["allow".into(), "policy".into()])
        );
        assert!(brought.hook[0].program_of_workspace(dir.path()).expect_err("none").starts_with("there is no file"));
        fs::write(own.join("hooks/check"), "exit 0").expect("a file");
        assert_eq!(brought.hook[0].program_of_workspace(dir.path()), Ok(b"exit 0".to_vec()));
        assert_eq!(Workspace::load(&own), Ok(None));
    }

    #[test]
    fn what_is_wrong_with_a_workspace_is_said_without_its_text() {
        let (dir, _) = workspace("denny = [\"git push\"]\nthis is no TOML\n");
        let error = Workspace::load(dir.path()).expect_err("faulty").without_text();
        assert!(error.contains("workspace.toml:2"), "{error}");
        let (dir, _) = workspace("denny = [\"git push\"]\n");
        let error = Workspace::load(dir.path()).expect_err("faulty").without_text();
        assert!(error.contains("workspace.toml:1:1: unknown key") && !error.contains("denn"), "{error}");
    }

    #[test]
    fn a_link_out_of_the_workspace_and_what_is_no_file_are_not_read() {
        let (dir, own) = workspace("");
        let outside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("key"), "-----BEGIN KEY-----").expect("a file");
        fs::remove_file(own.join(FILE)).expect("removed");
        std::os::unix::fs::symlink(outside.path().join("key"), own.join(FILE)).expect("a link");
        let error = Workspace::load(dir.path()).expect_err("refused").without_text();
        assert!(error.contains("leads out of") && !error.contains("BEGIN"), "{error}");
        fs::remove_file(own.join(FILE)).expect("removed");
        fs::create_dir(own.join(FILE)).expect("a folder");
        let error = Workspace::load(dir.path()).expect_err("refused").without_text();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
