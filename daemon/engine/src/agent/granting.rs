//! Folders that a person opens to a session while it runs.

use std::path::{Path, PathBuf};

use ow_model::{CallErrorKind, CallResult, Fact, ItemKind, Position};
use ow_policy::ResolvedPath;
use serde_json::json;

use super::{AgentCourse, Onward};
use crate::session::blocking;

impl AgentCourse {
    /// Where the folder that a question asks for leads; other questions are as they came.
    ///
    /// # Errors
    ///
    /// Why nobody may be asked.
    pub(super) async fn with_folder(&self, kind: ItemKind) -> Result<ItemKind, String> {
        let ItemKind::Directory { path, writable, reason } = kind else { return Ok(kind) };
        let path = self.grantable(path).await?;
        Ok(ItemKind::Directory { path, writable, reason })
    }

    /// Opens a folder to the session. What it leads to is looked at again: the answer may have come days later, or name
    /// another folder.
    pub(super) async fn grant(&mut self, position: Position, path: String, writable: bool, by: String) -> Onward {
        let result = match self.grantable(path.into()).await {
            Ok(path) => {
                let how = if writable { "read and write" } else { "read" };
                let text = format!("{by} granted {}, to {how}", path.display());
                self.record(Fact::RootGranted { path, writable });
                CallResult::ok(json!({ "text": text }))
            }
            Err(why) => CallResult::failed(CallErrorKind::Refused, why),
        };
        self.session.untried(position, result);
        Onward::Continue
    }

    async fn grantable(&self, path: PathBuf) -> Result<PathBuf, String> {
        let home = self.engine().home.clone();
        let protected = self.engine().standing().settings.protected.clone();
        blocking(move || {
            let home = resolve(Path::new("~"), &home)?.resolved;
            let folder = resolve(&path, &home)?;
            ow_policy::path::grantable(&folder, &home, &protected)?;
            if folder.resolved.is_dir() {
                Ok(folder.resolved)
            } else {
                Err(format!("there is no folder `{}`", folder.resolved.display()))
            }
        })
        .await
    }
}

fn resolve(path: &Path, home: &Path) -> Result<ResolvedPath, String> {
    ow_tool::leads_to(path, home).map_err(|refusal| refusal.to_string())
}
