use jiff::Timestamp;
use ow_model::{EventType, ItemKind, RefusedAddress};
use serde_json::json;

use super::items;
use super::life::set_meta;
use super::runs::{RunRow, tell_run};
use super::tasks;
use super::view::View;
use super::writer::Tx;
use crate::{NewItem, StoreError};

/// How many addresses were refused since the store was made; the records themselves are facts of their runs.
const COUNT: &str = "addresses_refused";

pub(crate) fn count(view: &View<'_>) -> Result<u64, StoreError> {
    Ok(view.meta(COUNT)?.and_then(|count| count.parse().ok()).unwrap_or(0))
}

/// Counts an address that the URL guard refused, and tells the person of the run's first.
pub(crate) fn note(tx: &mut Tx<'_>, row: &RunRow, address: &RefusedAddress, now: Timestamp) -> Result<(), StoreError> {
    let count = count(tx)? + 1;
    set_meta(tx, COUNT, &count.to_string())?;
    let (run, task) = (row.run.id, &row.run.task_name);
    let payload = json!({ "task": task, "url": address.url, "hop": address.hop, "why": address.why });
    tell_run(tx, EventType::AddressRefused, run, &payload, now)?;
    let item = NewItem {
        task: Some(task.clone()),
        run: Some(run),
        title: format!("{task} was refused an address"),
        kind: ItemKind::Notification {
            text: format!("{address}. Further ones of this run are on its record only: `owctl run show {run}`"),
        },
        expires_in: None,
        remind_after: None,
        inbox: tasks::inbox_of(tx, row.run.task, row.run.revision)?,
    };
    items::notify(tx, &item, &format!("guard:{run}"), now)?;
    Ok(())
}
