use std::fs;
use std::io::Read;
use std::path::Path;

use ow_model::TaskName;
use ow_protocol::SavedTask;

use crate::escape;
use crate::failure::Failure;
use crate::time::Clock;

/// A task's definition as it was given: TOML, read by owd.
#[derive(Debug)]
pub(crate) struct Definition {
    /// From the file's name; none for standard input.
    pub(crate) name: Option<TaskName>,
    pub(crate) text: String,
}

impl Definition {
    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .map_err(|why| Failure::io("cannot read the definition from standard input", &why))?;
            return Ok(Self { name: None, text });
        }
        let text = fs::read_to_string(path).map_err(|why| {
            Failure::usage(format!("cannot read {}: {why}", path.display()))
                .hint("name a task file, or `-` to read the definition from standard input")
        })?;
        Ok(Self { name: path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()), text })
    }

    /// The name to save it under: the one that was given, else the file's.
    pub(crate) fn named(&self, given: Option<&TaskName>) -> Result<TaskName, Failure> {
        given.or(self.name.as_ref()).cloned().ok_or_else(|| {
            Failure::usage("the task has no name")
                .hint("give one with --name: lower-case letters, digits, `-`, `_`, `.`")
        })
    }
}

/// What saving did, in words.
pub(crate) fn saved_in_words(saved: &SavedTask, clock: &Clock) -> String {
    let SavedTask { name, revision, change, next_due } = saved;
    let name = escape::line(name);
    let next = clock.when_or(next_due.as_deref(), "nothing is scheduled");
    match change.as_str() {
        "unchanged" => format!("{name} is as it was (revision {revision}); next: {next}"),
        "created" => format!(
            "{name} is created; next: {next}\nSee what it would do: owctl task run --plan {name}\n\
             Let its steps run without asking: owctl task allow {name}"
        ),
        other => format!(
            "{name} is {} (revision {revision}); next: {next}\nSteps that changed ask again: owctl task allow {name}",
            escape::line(other)
        ),
    }
}
