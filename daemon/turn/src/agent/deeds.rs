use std::collections::{BTreeSet, VecDeque};

use ow_model::{Artifact, CallResult, Risk};
use serde::Serialize;
use serde_json::Value;

use super::batch::OpenCall;

const FILES: usize = 20;
const COMMANDS: usize = 10;

/// What a session has done, as code saw it: no summary can lose it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Deeds {
    /// Written files, the newest last, each once.
    pub(super) files: VecDeque<String>,
    /// The last commands with how they ended.
    pub(super) commands: VecDeque<(String, String)>,
    /// Names of the tools used.
    pub(super) tools: BTreeSet<String>,
}

impl Deeds {
    pub(super) fn note(&mut self, open: &OpenCall, result: &CallResult) {
        let Some(call) = &open.call else { return };
        self.tools.insert(open.name.clone());
        if result.error.is_none() {
            let files = result.artifacts.iter().filter_map(|artifact| match artifact {
                Artifact::File { path, .. } => Some(path.to_string_lossy().into_owned()),
                Artifact::Message { .. } => None,
            });
            let mut files: Vec<String> = files.collect();
            if files.is_empty() && open.risk == Risk::WriteLocal {
                files.extend(["path", "to"].iter().filter_map(|key| call.args.get(*key)?.as_str()).map(str::to_owned));
            }
            for file in files {
                self.files.retain(|known| *known != file);
                self.files.push_back(file);
                if self.files.len() > FILES {
                    self.files.pop_front();
                }
            }
        }
        if let Some(command) = command(&call.args).filter(|_| open.risk == Risk::Exec) {
            let end = match (result.output.get("status"), &result.error) {
                (Some(status), _) if !status.is_null() => format!("status {}", status.to_string().trim_matches('"')),
                (_, Some(error)) => error.message.clone(),
                (_, None) => "done".into(),
            };
            self.commands.push_back((command, end));
            if self.commands.len() > COMMANDS {
                self.commands.pop_front();
            }
        }
    }
}

/// The command line of a call that has one.
pub(super) fn command(args: &Value) -> Option<String> {
    let argv = || {
        let argv = args.get("argv")?.as_array()?;
        Some(argv.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
    };
    args.get("command").and_then(Value::as_str).map(str::to_owned).or_else(argv)
}
