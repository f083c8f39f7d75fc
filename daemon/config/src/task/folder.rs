use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ow_model::{TaskName, TaskSpec, Trigger};
use ow_schedule::{AfterEdge, circle};

use super::{TaskDefaults, ToolChecker, parse_task};
use crate::FileFault;

/// How large a task file may be, in bytes.
pub const TASK_FILE_LIMIT: usize = 256 * 1024;

/// One file of `tasks.d` and what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskFile {
    pub path: PathBuf,
    /// The file's stem; none where that is no name for a task.
    pub name: Option<TaskName>,
    pub task: Result<TaskSpec, Vec<FileFault>>,
}

/// Reads every `*.toml` of a folder, in the order of the names; a folder that does not exist has none.
///
/// Hidden files and what editors leave behind (`.x.toml.swp`, `x.toml~`, `#x.toml#`, `x.toml.bak`) are no task
/// files. A broken file is one faulty entry and changes no other. Of files whose tasks follow each other in a circle
/// the one that closes it is faulty.
///
/// # Errors
///
/// Where the folder itself cannot be read: then nothing is known about any task.
pub fn load_tasks(
    folder: &Path,
    defaults: &TaskDefaults,
    tools: &dyn ToolChecker,
    now: Timestamp,
) -> Result<Vec<TaskFile>, Box<FileFault>> {
    let listed = match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => Err(error),
    };
    let listed = listed.map_err(|error| {
        whole_file(folder, format!("cannot be read: {error}"), "let the account that owd runs under read the folder")
    })?;
    let mut paths: Vec<PathBuf> =
        listed.into_iter().map(|entry| entry.path()).filter(|path| is_task_file(path)).collect();
    paths.sort();
    let mut files: Vec<TaskFile> = paths.into_iter().map(|path| load(path, defaults, tools, now)).collect();
    refuse_circles(&mut files);
    Ok(files)
}

fn refuse_circles(files: &mut [TaskFile]) {
    let mut edges: Vec<AfterEdge> = vec![];
    for file in files {
        let Ok(spec) = &file.task else { continue };
        let before = edges.len();
        edges.extend(spec.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::After { task, .. } => Some(AfterEdge { task: spec.name.clone(), after: task.clone() }),
            _ => None,
        }));
        let Some(names) = circle(&edges) else { continue };
        edges.truncate(before);
        let names: Vec<&str> = names.iter().map(TaskName::as_str).collect();
        let message = format!("`after` would run in a circle: {}", names.join(" after "));
        file.task = Err(vec![*whole_file(&file.path, message, "take one of these `after` triggers out")]);
    }
}

fn load(path: PathBuf, defaults: &TaskDefaults, tools: &dyn ToolChecker, now: Timestamp) -> TaskFile {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name: TaskName = match stem.parse() {
        Ok(name) => name,
        Err(error) => {
            let error: ow_model::NameError = error;
            let task = Err(vec![*whole_file(&path, error.to_string(), "rename the file: its name is the task's name")]);
            return TaskFile { path, name: None, task };
        }
    };
    let task = match read_task_file(&path) {
        Ok(text) => parse_task(&name, &text, Some(&path), defaults, tools, now),
        Err(fault) => Err(vec![*fault]),
    };
    TaskFile { path, name: Some(name), task }
}

/// Whether a file of `tasks.d` is one, by its name: not hidden, and nothing that an editor left behind.
#[must_use]
pub fn is_task_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    path.extension() == Some(OsStr::new("toml")) && !name.starts_with(b".") && !name.starts_with(b"#")
}

/// Reads the text of a task file.
///
/// # Errors
///
/// Where it is no regular file, larger than [`TASK_FILE_LIMIT`], not UTF-8 or cannot be read.
pub fn read_task_file(path: &Path) -> Result<String, Box<FileFault>> {
    let unreadable = |error: &std::io::Error| {
        whole_file(path, format!("cannot be read: {error}"), "let the account that owd runs under read it")
    };
    // Looked at before it is opened: to open a pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        return Err(whole_file(path, "not a regular file".into(), "replace it with a file, or rename it"));
    }
    let too_large = || {
        let message = format!("more than {TASK_FILE_LIMIT} bytes");
        whole_file(path, message, "split the task, or move long texts into files of their own")
    };
    let mut bytes = vec![];
    let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
    file.take(TASK_FILE_LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() > TASK_FILE_LIMIT {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.split(|byte| *byte == b'\n').count();
        let fault = whole_file(path, "not UTF-8".into(), "save it as UTF-8");
        Box::new(FileFault { line, column: 1, ..*fault })
    })
}

fn whole_file(path: &Path, message: String, remedy: &str) -> Box<FileFault> {
    Box::new(FileFault {
        file: Some(path.into()),
        line: 0,
        column: 0,
        key: String::new(),
        value: None,
        message,
        remedy: remedy.into(),
    })
}
