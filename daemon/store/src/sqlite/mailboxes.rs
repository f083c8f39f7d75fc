//! How far each mailbox was read.

use rusqlite::params;

use super::view::{Source, View, json, micros};
use super::writer::Tx;
use crate::{MailboxMark, StoreError};

const MAILBOXES: Source = Source { table: "mailboxes", key: 0 };

pub(crate) fn mark(view: &View<'_>, name: &str) -> Result<Option<MailboxMark>, StoreError> {
    view.row(MAILBOXES, "SELECT name, validity, seen, at, again FROM mailboxes WHERE name = ?1", [name], |record| {
        Ok(MailboxMark {
            validity: record.number(1)?,
            seen: record.number(2)?,
            at: record.time(3)?,
            again: record.json(4)?,
        })
    })
}

pub(crate) fn note(tx: &Tx<'_>, name: &str, mark: &MailboxMark) -> Result<(), StoreError> {
    let MailboxMark { validity, seen, at, again } = mark;
    tx.change(
        "INSERT OR REPLACE INTO mailboxes (name, validity, seen, at, again) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![name, validity, seen, micros(*at), json(again)],
    )?;
    Ok(())
}
