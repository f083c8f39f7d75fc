//! What came with a mail, as files in the folder of the run that it started.

use std::path::Path;

use ow_model::{BlobHash, EventPayload};
use ow_store::{Store, StoreError};
use serde_json::Value;
use tracing::warn;

use crate::session::blocking;

/// The kind of event that brings files.
const MAIL: &str = "mail";

/// Their folder, in the run's.
const FOLDER: &str = "attachments";

/// Bytes that one run gets, of however many mails.
const MOST: usize = 256 * 1024 * 1024;

/// Lays what the events' mails brought into the run's folder, and enters each file's `path` beside its name. Doing it again
/// changes nothing.
///
/// What cannot be had is left without a path; the run tells of it if it needs it.
pub(crate) async fn lay_out(
    store: &dyn Store,
    events: &mut [EventPayload],
    run_folder: &Path,
) -> Result<(), StoreError> {
    let mut left = MOST;
    let mails = events.iter_mut().filter(|event| event.kind == MAIL).enumerate();
    for (number, event) in mails {
        // Of several mails each has a folder of its own: their files may be called the same.
        let folder = if number == 0 { FOLDER.to_owned() } else { format!("{FOLDER}-{}", number + 1) };
        let folder = run_folder.join(folder);
        let attachments = event.data.get_mut("attachments").and_then(Value::as_array_mut);
        for attachment in attachments.into_iter().flatten() {
            let hash = attachment["hash"].as_str().and_then(|hash| hash.parse::<BlobHash>().ok());
            let Some((hash, name)) = hash.zip(attachment["file"].as_str().map(str::to_owned)) else { continue };
            let Some(bytes) = store.blob(hash).await? else {
                warn!(%hash, "an attachment is no longer there");
                continue;
            };
            if bytes.len() > left {
                warn!("a run gets no more attachments than fit");
                continue;
            }
            left -= bytes.len();
            let folder = folder.clone();
            match blocking(move || ow_tool::keep_outside(&folder, &name, &bytes)).await {
                Ok(path) => attachment["path"] = path.to_string_lossy().into(),
                Err(error) => warn!(%error, "an attachment could not be laid into the run's folder"),
            }
        }
    }
    Ok(())
}
