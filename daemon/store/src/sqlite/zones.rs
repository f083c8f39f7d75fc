//! The rules of the zones that tasks use, by which a changed tz database is noticed.

use jiff::Timestamp;
use ow_model::ZoneName;
use ow_schedule::zone_rules;
use rusqlite::params;

use super::life::set_meta;
use super::view::{Source, View, micros};
use super::writer::Tx;
use crate::StoreError;

/// That the zones of all tasks are noted. A store from before that was done says nothing.
const NOTED: &str = "zones";

fn key(zone: &ZoneName) -> String {
    format!("zone:{}", zone.0)
}

/// Notes the rules of a zone that a task begins to use. Rules that are known stay: they are compared later.
pub(crate) fn note(view: &View<'_>, zone: &ZoneName) -> Result<(), StoreError> {
    let key = key(zone);
    match zone_rules(zone) {
        Ok(rules) if view.meta(&key)?.is_none() => set_meta(view, &key, &rules),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Has all tasks looked at whose zone has other rules than when it was compared last; returns how many zones.
///
/// A zone that the database has lost changes nothing: its tasks keep their next look, and its rules are compared again
/// when it is back.
pub(crate) fn compare(tx: &mut Tx<'_>, now: Timestamp) -> Result<u64, StoreError> {
    if tx.meta(NOTED)?.is_none() {
        note_all(tx)?;
    }
    let source = Source { table: "meta", key: 0 };
    let noted: Vec<(ZoneName, String)> =
        tx.rows(source, "SELECT key, value FROM meta WHERE key > 'zone:' AND key < 'zone;'", [], |record| {
            Ok((ZoneName(record.text(0)?.trim_start_matches("zone:").into()), record.text(1)?))
        })?;
    let mut changed = 0;
    for (zone, before) in noted {
        let Some(rules) = zone_rules(&zone).ok().filter(|rules| *rules != before) else { continue };
        // Rare enough to go through all tasks; the planner names the next instant of each.
        tx.change(
            "UPDATE tasks SET wake_at = min(coalesce(wake_at, ?2), ?2)
             WHERE state = 'active' AND EXISTS (SELECT 1 FROM revisions r
                 WHERE r.task = tasks.id AND r.revision = tasks.revision
                     AND CASE WHEN json_valid(r.spec) THEN json_extract(r.spec, '$.timezone') END = ?1)",
            params![zone.0, micros(now)],
        )?;
        set_meta(tx, &key(&zone), &rules)?;
        changed += 1;
    }
    if changed > 0 {
        tx.memory.forget();
    }
    Ok(changed)
}

fn note_all(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let used: Vec<String> = tx.column(
        "SELECT DISTINCT json_extract(r.spec, '$.timezone') FROM tasks t
         JOIN revisions r ON r.task = t.id AND r.revision = t.revision
         WHERE t.state <> 'deleted' AND json_valid(r.spec) AND json_type(r.spec, '$.timezone') = 'text'",
        [],
    )?;
    for zone in used {
        // Nobody knows by which rules its tasks were planned.
        set_meta(tx, &key(&ZoneName(zone)), "")?;
    }
    set_meta(tx, NOTED, "noted")
}
