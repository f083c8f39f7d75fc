//! What people are told once something is decided: a message that changes, a note to one of them, a modal.

use std::time::Duration;

use ow_model::ItemId;
use ow_store::StoreError;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::warn;

use super::Desk;
use crate::Fault;
use crate::event::Place;
use crate::notice::{self, Post};
use crate::shown::{show, shown_at};

/// A note to one person is tried so often; the item itself is decided before.
const ATTEMPTS: u32 = 4;
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// What is still to be told once an event is decided.
#[derive(Debug)]
pub(super) enum Told {
    Nothing,
    /// To this person alone.
    Note {
        user: String,
        at: Place,
        thread: Option<String>,
        text: String,
        blocks: Value,
    },
    View {
        trigger: String,
        view: Value,
        otherwise: Box<Told>,
    },
    /// To all: the notice at this place shows what became of its item, before anything else that is told.
    Outcome {
        at: Place,
        item: ItemId,
        then: Box<Told>,
    },
}

impl Desk {
    pub(super) async fn tell(&self, mut told: Told) {
        while let Told::Outcome { at, item, then } = told {
            self.show(&at, item).await;
            told = *then;
        }
        let told = match told {
            Told::Nothing | Told::Outcome { .. } => return,
            Told::Note { .. } => told,
            Told::View { trigger, view, otherwise } => {
                let args = json!({ "trigger_id": trigger, "view": view });
                match self.client.call("views.open", &args).await {
                    Ok(_) => return,
                    Err(fault) => {
                        warn!(%fault, "a modal was not opened");
                        *otherwise
                    }
                }
            }
        };
        let Told::Note { user, at, thread, text, blocks } = told else { return };
        // In the conversation with that person alone, every message is to them alone.
        let direct = at.channel.starts_with('D');
        let method = if direct { "chat.postMessage" } else { "chat.postEphemeral" };
        let mut args = json!({
            "channel": at.channel, "text": text, "thread_ts": thread, "blocks": blocks,
            "parse": "none", "unfurl_links": false, "unfurl_media": false,
        });
        if !direct {
            args["user"] = json!(user);
        }
        let mut wait = Duration::from_secs(1);
        for _ in 0..ATTEMPTS {
            match self.client.call(method, &args).await {
                Ok(_) => return,
                Err(Fault::Later { after, why }) => {
                    warn!(why, "a note to one person waits");
                    sleep(after.unwrap_or(wait).min(LONGEST_WAIT)).await;
                    wait *= 2;
                }
                Err(Fault::Lost { why }) => {
                    warn!(why, "a note to one person waits");
                    sleep(wait).await;
                    wait *= 2;
                }
                Err(fault @ Fault::Never { .. }) => {
                    warn!(%fault, "a note to one person was not taken");
                    return;
                }
            }
        }
    }

    /// Shows at once what the outbox will show; also in a message of which the outbox does not know that it arrived.
    async fn show(&self, at: &Place, item: ItemId) {
        let shown = async {
            let told = shown_at(&*self.store, at).await?;
            Ok::<_, StoreError>(if told.is_empty() { self.store.item(item).await?.into_iter().collect() } else { told })
        };
        let items = match shown.await {
            Ok(items) => items,
            Err(error) => {
                warn!(%error, "an outcome is not shown yet");
                return;
            }
        };
        if let Err(fault) = show(&self.client, at, &items).await {
            warn!(%fault, "an outcome is not shown yet");
        }
    }
}

pub(super) fn outcome(at: Place, item: ItemId, then: Told) -> Told {
    Told::Outcome { at, item, then: Box::new(then) }
}

pub(super) fn note_to(user: &str, at: &Place, thread: Option<String>, text: &str) -> Told {
    let Post { text, blocks } = notice::line(text);
    Told::Note { user: user.to_owned(), at: at.clone(), thread, text, blocks }
}
