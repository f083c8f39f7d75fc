use std::path::{Path, PathBuf};

use super::script::Script;
use super::unwrap::{WRAPPING_LIMIT, levels};
use crate::CommandForm;

/// A program by the name that a command calls it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Started {
    /// A name for the search path, or a path.
    pub name: String,
    /// The folder at which a relative path begins.
    pub cwd: PathBuf,
}

/// The programs that a command's text names besides the one that owd itself starts: of each part of a line, of
/// its substitutions, and behind `env`, `timeout`, `sh -c` and the like. Each once, in order.
///
/// What only the running command knows (`$X`, a script's own lines) is not among them.
#[must_use]
pub fn started(form: &CommandForm, cwd: &Path, home: &Path) -> Vec<Started> {
    let mut found = vec![];
    match form {
        CommandForm::Argv(argv) => {
            let (commands, scripts) = levels(argv, home, Some(cwd));
            for command in &commands[1..] {
                add(command.first(), cwd, &mut found);
            }
            for script in &scripts {
                collect(script, cwd, home, 0, &mut found);
            }
        }
        CommandForm::Line(line) => collect(&Script::read(line, home, Some(cwd)), cwd, home, 0, &mut found),
    }
    found
}

fn collect(script: &Script, cwd: &Path, home: &Path, depth: usize, found: &mut Vec<Started>) {
    if depth > WRAPPING_LIMIT {
        return;
    }
    for part in script.parts() {
        let at = part.cwd.as_deref().unwrap_or(cwd);
        // A word that the shell makes up has no text to look for.
        let known = part.words.iter().take_while(|word| word.literal).count();
        let (commands, scripts) = levels(&part.texts(), home, Some(at));
        for command in commands.iter().filter(|_| known > 0) {
            add(command.first(), at, found);
        }
        for script in &scripts {
            collect(script, at, home, depth + 1, found);
        }
    }
}

fn add(name: Option<&String>, cwd: &Path, found: &mut Vec<Started>) {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return };
    let started = Started { name: name.clone(), cwd: cwd.to_owned() };
    if !found.contains(&started) {
        found.push(started);
    }
}
