//! What the workspaces of a session bring: commands they forbid, and hooks that a person trusts.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use ow_config::{HOOKS_FOLDER, WORKSPACE_FOLDER};
use ow_model::{BlobHash, Call, Fact, ItemKind};
use ow_store::NewItem;
use tracing::warn;

use super::{Session, Turn, blocking};
use crate::engine::Standing;
use crate::hooks::Hooks;
use crate::trust::{Offer, Trust};

/// What all workspaces of a session bring together, as they stand now.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    deny: Vec<String>,
    /// Their own folders: nothing a call does may change what is forbidden.
    own: Vec<PathBuf>,
    pub(super) hooks: Hooks,
    /// Why it is not known what one of them forbids.
    pub(super) fault: Option<String>,
    untold: Vec<Untold>,
}

/// What a person is to be told of a workspace, once for each key.
#[derive(Debug)]
struct Untold {
    key: String,
    title: &'static str,
    text: String,
}

impl Brought {
    /// Reads files.
    pub(crate) fn of(roots: &[PathBuf], trust: &Trust) -> Self {
        let (mut brought, mut trusted) = (Self::default(), vec![]);
        let mut seen = BTreeSet::new();
        for root in roots.iter().filter(|root| root.join(WORKSPACE_FOLDER).is_dir()) {
            let offer = trust.look(root);
            if !seen.insert(offer.path.clone()) {
                continue;
            }
            brought.own.push(offer.path.join(WORKSPACE_FOLDER));
            match &offer.brings {
                Ok(Some(workspace)) => brought.deny.extend(workspace.deny.iter().cloned()),
                Ok(None) => continue,
                Err(error) => {
                    brought.fault.get_or_insert_with(|| error.without_text());
                    continue;
                }
            }
            let runs = offer.hooks.iter().filter(|offered| offered.trusted).filter_map(|offered| {
                let mut hook = offered.hook.clone();
                hook.command =
                    offer.path.join(WORKSPACE_FOLDER).join(HOOKS_FOLDER).join(hook.command.components().as_path());
                let program = trust.program(offered.hash.as_ref().ok()?);
                Some((hook, program))
            });
            trusted.extend(runs);
            brought.untold.extend(untold(&offer));
        }
        brought.hooks = Hooks::trusted(trusted);
        brought
    }

    /// The configuration with what they forbid.
    pub(crate) fn judged_by(&self, standing: Arc<Standing>) -> Arc<Standing> {
        if self.own.is_empty() {
            return standing;
        }
        let mut standing = Standing::clone(&standing);
        standing.settings.deny.extend(self.deny.iter().cloned());
        standing.settings.protected.extend(self.own.iter().cloned());
        Arc::new(standing)
    }
}

/// What a person is told of hooks that do not run, and of keys without effect.
fn untold(offer: &Offer) -> Vec<Untold> {
    let path = offer.path.display();
    let key = |what: &str| BlobHash::of(format!("{path}\n{what}").as_bytes()).to_string();
    let mut untold = vec![];
    let idle: Vec<_> = offer.hooks.iter().filter(|offered| !offered.trusted).collect();
    if !idle.is_empty() {
        let names: Vec<String> = idle.iter().map(|offered| offered.hook.command.display().to_string()).collect();
        let why = match offer.trusted {
            Some(_) => "are not as they were when you trusted them",
            None => "are not trusted",
        };
        let text = format!(
            "Hooks that {path} brings {why}, and do not run: {}. Look at them and trust them with `owctl trust {path}`.",
            names.join(", ")
        );
        // Once more when they have changed again.
        let states: Vec<String> =
            idle.iter().map(|offered| offered.hash.as_ref().map_or_else(Clone::clone, ToString::to_string)).collect();
        let title = "A workspace brings hooks that do not run";
        untold.push(Untold { key: key(&format!("{why}\n{}", states.join("\n"))), title, text });
    }
    let ignored = offer.brings.iter().flatten().flat_map(|workspace| &workspace.ignored);
    let ignored: Vec<String> = ignored.map(|key| format!("`{key}`")).collect();
    if !ignored.is_empty() {
        let ignored = ignored.join(", ");
        let text = format!("A workspace allows nothing: what {path} says of {ignored} has no effect.");
        untold.push(Untold { key: key(&ignored), title: "A workspace would allow something", text });
    }
    untold
}

impl<T: Turn> Session<T> {
    /// What the session's workspaces bring, looked at anew: trust and what it is given to may change at any time.
    pub(super) async fn workspaces(&self) -> Brought {
        let (roots, trust) = (self.place.roots.clone(), Arc::clone(&self.engine.trust));
        if roots.is_empty() { Brought::default() } else { blocking(move || Brought::of(&roots, &trust)).await }
    }

    pub(super) fn only_reads(&self, call: &Call) -> bool {
        self.engine.toolbox.tool(&call.tool).is_some_and(|tool| tool.spec().risk.is_repeatable())
    }

    /// Tells the person once, in the Inbox and in the session, of hooks that do not run.
    pub(super) async fn tell_of_untrusted(&mut self, brought: &Brought) {
        for Untold { key, title, text } in &brought.untold {
            if !self.engine.trust.is_news(key) {
                continue;
            }
            let kind = ItemKind::Notification { text: text.clone() };
            let item = NewItem { expires_in: None, remind_after: None, ..self.item((*title).into(), kind) };
            match self.engine.store.notify(&item, key, self.engine.now()).await {
                Ok(_) => self.record(Fact::Noticed { text: text.clone() }),
                Err(error) => warn!(%error, "a person could not be told of a workspace's hooks"),
            }
        }
    }
}
