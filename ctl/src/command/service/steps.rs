use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use crate::escape;
use crate::failure::Failure;

/// What is to be done, in order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// What holds afterwards, in words.
    #[serde(skip)]
    pub(super) afterwards: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "step")]
pub(super) enum Step {
    Write { path: PathBuf, text: String },
    Remove { path: PathBuf },
    Run { argv: Vec<String>, if_it_fails: IfItFails },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum IfItFails {
    Stop,
    /// Stops, and makes the files that were written what they were before.
    TakeBack,
    /// Goes on, and tells this.
    Tell(&'static str),
    GoOn,
}

#[derive(Debug, Serialize)]
pub(super) struct Done {
    done: Vec<String>,
    notes: Vec<&'static str>,
}

/// How the service stands.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Standing {
    pub(super) installed: bool,
    pub(super) file: String,
    /// It starts by itself.
    pub(super) enabled: bool,
    /// It runs now.
    pub(super) active: bool,
    /// It goes on while the person is logged out; none where that does not apply.
    pub(super) lingering: Option<bool>,
}

impl Step {
    pub(super) fn run(argv: &[&str], if_it_fails: IfItFails) -> Self {
        Self::Run { argv: argv.iter().map(|word| (*word).to_owned()).collect(), if_it_fails }
    }
}

impl Plan {
    pub(super) fn in_words(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            match step {
                Step::Write { path, text: content } => {
                    put!(text, "# would write {}\n{content}\n", path.display());
                }
                Step::Remove { path } => put!(text, "# would remove {}\n", path.display()),
                Step::Run { argv, .. } => put!(text, "# would run: {}\n", argv.join(" ")),
            }
        }
        escape::block(&text).into_owned()
    }

    pub(super) fn perform(&self, mut tell: impl FnMut(&str)) -> Result<Done, Failure> {
        let mut done = Done { done: vec![], notes: vec![] };
        let mut before: Vec<(&Path, Option<String>)> = vec![];
        for step in &self.steps {
            let line = match step {
                Step::Write { path, text } => {
                    before.push((path, fs::read_to_string(path).ok()));
                    write(path, text)?;
                    format!("wrote {}", path.display())
                }
                Step::Remove { path } => {
                    remove(path)?;
                    format!("removed {}", path.display())
                }
                Step::Run { argv, if_it_fails } => match (run(argv), if_it_fails) {
                    (Ok(()), _) => format!("ran {}", argv.join(" ")),
                    (Err(failure), IfItFails::Stop) => return Err(failure),
                    (Err(failure), IfItFails::TakeBack) => {
                        for (path, text) in before.into_iter().rev() {
                            match text {
                                Some(text) => write(path, &text)?,
                                None => remove(path)?,
                            }
                            tell(&escape::block(&format!("took back {}", path.display())));
                        }
                        return Err(failure);
                    }
                    (Err(failure), IfItFails::Tell(note)) => {
                        done.notes.push(note);
                        failure.message
                    }
                    (Err(_), IfItFails::GoOn) => continue,
                },
            };
            tell(&escape::block(&line));
            done.done.push(line);
        }
        Ok(done)
    }
}

impl Done {
    pub(super) fn in_words(&self, plan: &Plan) -> String {
        let mut text = format!("{}\n", plan.afterwards);
        for note in &self.notes {
            put!(text, "{note}\n");
        }
        text
    }
}

impl Standing {
    pub(super) fn in_words(&self) -> String {
        if !self.installed {
            return "Not installed. Install it with `owctl service install`.".into();
        }
        let enabled = if self.enabled { "starts by itself" } else { "does not start by itself" };
        let active = if self.active { "running" } else { "not running" };
        let lingering = match self.lingering {
            Some(true) => "; it goes on while you are logged out",
            Some(false) => "; it stops when you log out (`loginctl enable-linger` changes that)",
            None => "",
        };
        format!("Installed ({}), {enabled}, {active}{lingering}.", escape::line(&self.file))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |why: std::io::Error| {
        let failure = Failure::io(format!("cannot write {}", path.display()), &why);
        if why.kind() == ErrorKind::PermissionDenied { failure.hint("run it with sudo") } else { failure }
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).map_err(failed)
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(why) if why.kind() == ErrorKind::PermissionDenied => {
            Err(Failure::io(format!("cannot remove {}", path.display()), &why).hint("run it with sudo"))
        }
        Err(why) if why.kind() != ErrorKind::NotFound => {
            Err(Failure::io(format!("cannot remove {}", path.display()), &why))
        }
        _ => Ok(()),
    }
}

fn run(argv: &[String]) -> Result<(), Failure> {
    let line = argv.join(" ");
    let [program, arguments @ ..] = argv else { unreachable!("every command names its program") };
    let ended = Command::new(program).args(arguments).output();
    let ended = ended.map_err(|why| match why.kind() {
        ErrorKind::NotFound => Failure::failed("no_service_manager", format!("there is no `{program}` here"))
            .hint("start owd without a service manager: `owd start --detach`"),
        _ => Failure::io(format!("cannot run `{line}`"), &why),
    })?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(Failure::failed("service_manager", format!("`{line}` failed: {}", said.trim()))
        .hint("without a service manager that works: `owd start --detach`"))
}

/// Whether a command ends well, for questions such as `systemctl is-active`.
pub(super) fn succeeds(argv: &[&str]) -> bool {
    let [program, words @ ..] = argv else { return false };
    Command::new(program).args(words).output().is_ok_and(|done| done.status.success())
}
