//! Messages of ours, as they were told and as they stand now.

use ow_model::{Item, Occasion};
use ow_store::{Store, StoreError};
use serde_json::json;

use crate::event::Place;
use crate::notice;
use crate::{Client, Fault};

/// Slack's limit for the text of a message that is changed.
const UPDATED: usize = 4_000;

/// What a message is called in the outbox.
pub(crate) fn reference(place: &Place) -> String {
    format!("{}/{}", place.channel, place.ts)
}

/// The place of a message that is called so.
pub(crate) fn place(reference: &str) -> Option<Place> {
    let (channel, ts) = reference.split_once('/')?;
    Some(Place { channel: channel.into(), ts: ts.into() })
}

/// The items that our message at this place speaks of, as they stand now.
pub(crate) async fn shown_at(store: &dyn Store, at: &Place) -> Result<Vec<Item>, StoreError> {
    let mut items = vec![];
    for id in store.items_told_as(&reference(at)).await? {
        items.extend(store.item(id).await?);
    }
    Ok(items)
}

/// Makes a message show these items as they stand now.
pub(crate) async fn show(client: &Client, at: &Place, items: &[Item]) -> Result<(), Fault> {
    let post = match items {
        [] => return Ok(()),
        [one] => notice::notice(one, Occasion::Asked),
        several => notice::digest(&several.iter().collect::<Vec<_>>()),
    };
    let text: String = post.text.chars().take(UPDATED).collect();
    let args = json!({ "channel": at.channel, "ts": at.ts, "text": text, "blocks": post.blocks });
    match client.call("chat.update", &args).await {
        Ok(_) => Ok(()),
        // Somebody has deleted it.
        Err(fault) if fault.error().is_some_and(|error| error.starts_with("message_not_found")) => Ok(()),
        Err(fault) => Err(fault),
    }
}
