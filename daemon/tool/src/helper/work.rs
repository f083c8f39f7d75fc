//! One job inside the helper: what was judged, and which tool does it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ow_model::{BlobHash, Call, CallError, CallResult};
use ow_policy::{Action, CommandForm, Facts};
use ow_secret::Secrets;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::wire::{Told, WireJob};
use crate::capture::{Finished, redact};
use crate::world::failed;
use crate::{Limits, Net, Place, files, git, http, shell};

/// What policy judged, which is what runs: nothing is looked up a second time.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Judged {
    Plain,
    Command {
        #[serde(with = "Form")]
        form: CommandForm,
        cwd: PathBuf,
        program: Option<PathBuf>,
    },
    /// Absolute, links followed; in the order in which the tool names them.
    Paths {
        paths: Vec<PathBuf>,
        base: Option<(PathBuf, Option<BlobHash>)>,
    },
    Url,
}

#[derive(Deserialize, Serialize)]
#[serde(remote = "CommandForm")]
enum Form {
    Argv(Vec<String>),
    Line(String),
}

impl Judged {
    pub(crate) fn of(facts: &Facts) -> Self {
        match &facts.action {
            Action::Plain | Action::Enclosed { .. } => Self::Plain,
            Action::Command { form, cwd, program, .. } => Self::Command {
                form: form.clone(),
                cwd: cwd.clone(),
                program: program.as_ref().map(|file| file.path.clone()),
            },
            Action::Paths { paths, base, .. } => {
                Self::Paths { paths: paths.iter().map(|path| path.resolved.clone()).collect(), base: base.clone() }
            }
            Action::Url { .. } => Self::Url,
        }
    }
}

/// A job as the tools in the helper see it.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) call: Call,
    pub(crate) place: Place,
    pub(crate) limits: Limits,
    pub(crate) judged: Judged,
    pub(crate) net: Net,
    /// owd's own files and folders, which no search looks into.
    pub(crate) protected: Vec<PathBuf>,
    pub(crate) secrets: Secrets,
    pub(crate) stop: Stop,
    pub(crate) live: Live,
}

/// Where what is printed goes while the call runs.
#[derive(Clone, Debug)]
pub(crate) enum Live {
    /// Into the result alone.
    Nothing,
    /// Into the result, and its newest to owd from when somebody watches on.
    Latest { printed: mpsc::Sender<Vec<u8>>, watched: CancellationToken },
    /// To owd, all of it; it is no part of the result.
    All(mpsc::Sender<Vec<u8>>),
}

/// owd's wish that the call ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    pub(crate) token: CancellationToken,
    grace: Arc<OnceLock<Duration>>,
}

impl Stop {
    pub(crate) fn ask(&self, grace: Duration) {
        // The first wish counts.
        let _first = self.grace.set(grace);
        self.token.cancel();
    }

    pub(crate) fn grace(&self) -> Duration {
        self.grace.get().copied().unwrap_or_default()
    }
}

impl Work {
    /// `watched` is cancelled once somebody watches what the call prints.
    pub(crate) fn new(
        job: WireJob,
        stop: Stop,
        printed: mpsc::Sender<Vec<u8>>,
        watched: CancellationToken,
    ) -> Result<Self, CallError> {
        let WireJob { call, place, limits, judged, net, protected, secrets, live } = job;
        let secrets = known(&secrets)?;
        let live = match live {
            Told::Nothing => Live::Nothing,
            Told::Latest { is_watched } => {
                if is_watched {
                    watched.cancel();
                }
                Live::Latest { printed, watched }
            }
            Told::All => Live::All(printed),
        };
        Ok(Self { call, place, limits, judged, net, protected, secrets, stop, live })
    }

    /// The one path of a call that names one.
    pub(crate) fn path(&self) -> Result<&PathBuf, CallError> {
        match &self.judged {
            Judged::Paths { paths, .. } if paths.len() == 1 => Ok(&paths[0]),
            _ => Err(failed("the path was not judged as one")),
        }
    }
}

fn known(secrets: &BTreeMap<String, String>) -> Result<Secrets, CallError> {
    let pairs = secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Secrets::from_pairs(pairs).map_err(|error| failed(error.to_string()))
}

/// Does the job. The result holds no secret.
pub(crate) async fn run(work: Work) -> Finished {
    let redactor = work.secrets.redactor();
    let outcome = match work.call.tool.as_str() {
        "shell" => shell::run(&work).await,
        "http_request" => http::run(&work).await,
        "web_fetch" => http::fetch(&work).await,
        "git" => git::run(&work).await,
        "read_file" => blocking(work, files::read).await,
        "write_file" => blocking(work, files::write).await,
        "edit_file" => blocking(work, files::edit).await,
        "list_dir" => blocking(work, files::list).await,
        "glob" => blocking(work, files::glob).await,
        "grep" => blocking(work, files::grep).await,
        "search_files" => blocking(work, files::search).await,
        "move_file" => blocking(work, files::move_file).await,
        other => Err(failed(format!("the helper knows no tool `{other}`"))),
    };
    let mut finished = outcome.unwrap_or_else(|error| CallResult::failed(error.kind, error.message).into());
    redact(&mut finished, &redactor);
    finished
}

/// On a thread of its own, so that the pipe from owd is heard while a slow disk works.
async fn blocking(work: Work, tool: fn(&Work) -> Result<Finished, CallError>) -> Result<Finished, CallError> {
    match tokio::task::spawn_blocking(move || tool(&work)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(failed("the tool failed by a fault of its own")),
    }
}
