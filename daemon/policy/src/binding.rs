use ow_model::{Binding, BoundFile};

use crate::{Action, Facts};

/// What an answer to this call is bound to.
#[must_use]
pub fn binding_of(facts: &Facts) -> Binding {
    match &facts.action {
        Action::Command { cwd, program, parts, files, .. } => Binding {
            working_directory: Some(cwd.clone()),
            files: program.iter().chain(parts).chain(files).cloned().collect(),
            base: None,
            unbound: Some("files that the program or its arguments read in turn".into()),
        },
        Action::Enclosed { files, .. } => Binding { files: files.clone(), ..Binding::default() },
        Action::Paths { base, .. } => Binding { base: base.clone(), ..Binding::default() },
        Action::Plain | Action::Url { .. } => Binding::default(),
    }
}

/// Checks that what an answer was bound to is still what would run.
///
/// # Errors
///
/// What changed, in words for a person.
pub fn check_binding(bound: &Binding, now: &Binding) -> Result<(), String> {
    if bound.working_directory != now.working_directory {
        return Err(match (&bound.working_directory, &now.working_directory) {
            (Some(then), Some(now)) => format!("the working directory is {}, was {}", now.display(), then.display()),
            _ => "the working directory".into(),
        });
    }
    for file in &bound.files {
        match now.files.iter().find(|other| other.path == file.path) {
            None => return Err(format!("{} is gone or no longer what runs", file.path.display())),
            Some(other) => same_file(file, other)?,
        }
    }
    if let Some(new) = now.files.iter().find(|file| bound.files.iter().all(|other| other.path != file.path)) {
        return Err(format!("{} was not there", new.path.display()));
    }
    match (&bound.base, &now.base) {
        (then, now) if then == now => Ok(()),
        (Some((path, _)), _) | (None, Some((path, _))) => {
            Err(format!("{} is not what the difference was shown against", path.display()))
        }
        (None, None) => Ok(()),
    }
}

fn same_file(then: &BoundFile, now: &BoundFile) -> Result<(), String> {
    let path = then.path.display();
    if then.hash != now.hash {
        return Err(format!("the content of {path}"));
    }
    if (then.device, then.inode) != (now.device, now.inode) {
        return Err(format!("{path} was replaced by another file"));
    }
    Ok(())
}
