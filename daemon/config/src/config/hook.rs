//! `[[hook]]`: a person's own programs that are asked before a call and told after it.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use ow_model::{HookEvent, Span, ToolName};
use regex_lite::Regex;
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::document::{Found, Place, Section};

/// The folder beside the configuration in which every hook lies: no agent can write there.
pub const HOOKS_FOLDER: &str = "hooks";

const DEFAULT_TIMEOUT: Span = Span::from_secs(10);
const TIMEOUTS: std::ops::RangeInclusive<Span> = Span::from_millis(100)..=Span::from_secs(120);

/// One hook, as configured.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookConfig {
    #[serde(serialize_with = "as_word")]
    pub event: HookEvent,
    /// None: every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<Matcher>,
    /// `./name`, relative to the folder `hooks`; or absolute and below it.
    pub command: PathBuf,
    pub timeout: Span,
    pub on_failure: OnFailure,
}

/// What becomes of a call when its hook is missing, hangs, crashes or cannot start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    #[default]
    Deny,
    Warn,
}

/// A regular expression for the whole name of a tool.
#[derive(Clone)]
pub struct Matcher {
    text: String,
    whole: Regex,
}

/// Why a hook's program is not run.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum HookFault {
    #[error("there is no file {}", path.display())]
    Missing { path: PathBuf },
    #[error("{} lies outside {}; put the file itself there", path.display(), folder.display())]
    Outside { path: PathBuf, folder: PathBuf },
    #[error("{} is not a regular file", path.display())]
    Kind { path: PathBuf },
    #[error("{} is not executable; run: chmod u+x {}", path.display(), path.display())]
    NotExecutable { path: PathBuf },
    #[error("{} can be written by others (mode {mode:04o}); run: chmod go-w {}", path.display(), path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("{} belongs to another account (uid {uid})", path.display())]
    Owner { path: PathBuf, uid: u32 },
    #[error("{} cannot be looked at: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
}

impl HookConfig {
    #[must_use]
    pub fn matches(&self, tool: &ToolName) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher.is_match(tool.as_str()))
    }

    /// The program to run, after a look at the file: it lies in `folder`, links followed, is executable, and neither it
    /// nor a folder from the configuration's down to it can be written by others. `folder`: see [`HOOKS_FOLDER`].
    pub fn program(&self, folder: &Path) -> Result<PathBuf, HookFault> {
        let path = folder.join(&self.command);
        let real = real(&path)?;
        let folder = real_folder(folder, &path)?;
        if !real.starts_with(&folder) {
            return Err(HookFault::Outside { path, folder });
        }
        let metadata = real.metadata().map_err(|why| fault(&path, &why))?;
        if !metadata.is_file() {
            return Err(HookFault::Kind { path });
        }
        if metadata.mode() & 0o111 == 0 {
            return Err(HookFault::NotExecutable { path });
        }
        let configuration = folder.parent().unwrap_or(&folder);
        let owner = configuration.metadata().map_err(|why| fault(configuration, &why))?.uid();
        for part in real.ancestors().take_while(|part| part.starts_with(configuration)) {
            let metadata = part.metadata().map_err(|why| fault(part, &why))?;
            let (mode, uid) = (metadata.mode() & 0o7777, metadata.uid());
            if mode & 0o022 != 0 {
                return Err(HookFault::Writable { path: part.into(), mode });
            }
            if uid != owner && uid != 0 {
                return Err(HookFault::Owner { path: part.into(), uid });
            }
        }
        Ok(real)
    }
}

fn real(path: &Path) -> Result<PathBuf, HookFault> {
    path.canonicalize().map_err(|why| fault(path, &why))
}

fn real_folder(folder: &Path, path: &Path) -> Result<PathBuf, HookFault> {
    folder.canonicalize().map_err(|why| match why.kind() {
        // The hook is an absolute path to somewhere else.
        std::io::ErrorKind::NotFound => HookFault::Outside { path: path.into(), folder: folder.into() },
        _ => fault(folder, &why),
    })
}

fn fault(path: &Path, why: &std::io::Error) -> HookFault {
    match why.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => HookFault::Missing { path: path.into() },
        _ => HookFault::Unreadable { path: path.into(), why: why.to_string() },
    }
}

impl Matcher {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub fn new(text: &str) -> Result<Self, String> {
        // Alone first: `a)|(b` must not become right by what is put around it.
        let _alone = Regex::new(text).map_err(|error| error.to_string())?;
        let whole = Regex::new(&format!(r"\A(?:{text})\z")).map_err(|error| error.to_string())?;
        Ok(Self { text: text.into(), whole })
    }

    #[must_use]
    pub fn is_match(&self, name: &str) -> bool {
        self.whole.is_match(name)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Matcher {}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl Serialize for Matcher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn as_word<S: Serializer>(event: &HookEvent, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(event.word())
}

/// Reads all `[[hook]]`; `file` is the configuration's.
pub(super) fn hooks(root: &Section<'_, '_>, file: Option<&Path>) -> Vec<HookConfig> {
    let folder = file.map(|file| file.with_file_name(HOOKS_FOLDER));
    root.sections("hook").iter().filter_map(|section| hook(section, folder.as_deref())).collect()
}

fn hook(section: &Section<'_, '_>, folder: Option<&Path>) -> Option<HookConfig> {
    let document = section.document();
    let event = section.choice("event", &HookEvent::ALL.map(|event| (event.word(), event)));
    if section.value("event").is_none() {
        document.fault_without_value(section.place(), "no `event`", "say when it runs: `event = \"pre-tool-use\"`");
    }
    let matcher = section.text("matcher").filter(|found| !found.value.is_empty()).and_then(|Found { value, place }| {
        if event.is_some_and(|event| !event.is_about_a_call()) {
            document.fault(&place, "this event is about no tool", "remove the matcher");
            return None;
        }
        match Matcher::new(&value) {
            Ok(matcher) => Some(matcher),
            Err(why) => {
                let why = why.lines().last().unwrap_or_default().trim().to_owned();
                document.fault(&place, format!("not a regular expression: {why}"), "write one, as `shell|write_file`");
                None
            }
        }
    });
    let command = section.text("command");
    if section.value("command").is_none() {
        document.fault_without_value(section.place(), "no `command`", "name the program: `command = \"./guard\"`");
    }
    let command = command.and_then(|Found { value, place }| command_path(section, &place, &value, folder));
    let timeout = section.span_in("timeout", TIMEOUTS).unwrap_or(DEFAULT_TIMEOUT);
    let on_failure =
        section.choice("on-failure", &[("deny", OnFailure::Deny), ("warn", OnFailure::Warn)]).unwrap_or_default();
    section.finish();
    Some(HookConfig { event: event?, matcher, command: command?, timeout, on_failure })
}

/// `./guard`, `sub/guard` and `hooks/guard` are in the folder `hooks`; an absolute path must be.
fn command_path(section: &Section<'_, '_>, place: &Place, text: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let document = section.document();
    let path = Path::new(text);
    let shown =
        folder.map_or_else(|| "the configuration's folder `hooks`".into(), |folder| folder.display().to_string());
    if path.components().any(|part| part == Component::ParentDir) {
        document.fault(place, "a path with `..`", format!("put the program into {shown} and write `./name`"));
        return None;
    }
    if path.is_absolute() {
        let clean: PathBuf = path.components().collect();
        if folder.is_some_and(|folder| !clean.starts_with(folder)) {
            document.fault(
                place,
                "lies outside the folder of hooks",
                format!("copy it into {shown}, where no task can change it"),
            );
            return None;
        }
        return Some(clean);
    }
    if !text.contains('/') {
        document.fault(place, "a bare name", format!("write `./{text}` for a program in {shown}"));
        return None;
    }
    let parts: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let below = parts.strip_prefix(HOOKS_FOLDER).map(Path::to_path_buf).unwrap_or(parts);
    if below.as_os_str().is_empty() {
        document.fault(place, "names no program", format!("write `./name` for a program in {shown}"));
        return None;
    }
    // As it must be written, so that what is shown reads back.
    Some(Path::new(".").join(below))
}

#[cfg(test)]
mod tests;
