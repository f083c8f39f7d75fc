use std::collections::BTreeMap;
use std::fs;

use ow_test_support::Scratch;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// What the store and the outside world hold, read without owd.
pub(crate) struct Records {
    pub(crate) tasks: Vec<TaskRecord>,
    pub(crate) slots: Vec<SlotRow>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) runs: BTreeMap<String, RunRow>,
    pub(crate) items: BTreeMap<String, ItemRow>,
    /// Lines of the counter, by run and label.
    pub(crate) effects: BTreeMap<(String, String), u64>,
    /// What SQLite says of the file itself.
    pub(crate) integrity: String,
}

pub(crate) struct TaskRecord {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Microseconds, as all instants here.
    pub(crate) created_at: i64,
    pub(crate) accounted_until: i64,
}

pub(crate) struct SlotRow {
    pub(crate) task: String,
    /// 0 instant, 1 range, 2 event, 3 manual, 4 voided.
    pub(crate) kind: i64,
    pub(crate) starts: i64,
    pub(crate) ends: i64,
    pub(crate) key: Option<String>,
    pub(crate) count: i64,
    /// The run that it fired.
    pub(crate) fired: Option<String>,
}

pub(crate) struct EventRow {
    pub(crate) task: String,
    pub(crate) key: String,
    pub(crate) payload: Value,
    /// The runs that it was given to.
    pub(crate) runs: Vec<String>,
}

pub(crate) struct RunRow {
    pub(crate) task: String,
    pub(crate) state: String,
    pub(crate) outcome: Value,
    pub(crate) next_seq: i64,
    pub(crate) ended_at: Option<i64>,
    pub(crate) journal: Vec<(i64, Value)>,
}

pub(crate) struct ItemRow {
    pub(crate) state: String,
    pub(crate) resolution: Value,
    pub(crate) category: String,
    /// The call's arguments.
    pub(crate) args: Value,
    pub(crate) run: Option<String>,
}

impl Records {
    /// Reads the store of an owd that has ended.
    pub(crate) fn read(scratch: &Scratch) -> Self {
        let file = scratch.path().join("data/owd.db");
        let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("a store");
        db.execute_batch("PRAGMA query_only = ON").expect("a mode");
        let mut journals = journals(&db);
        let runs = rows(&db, "SELECT ord, id, task_name, state, outcome, next_seq, ended_at FROM runs", |row| {
            let journal = journals.remove(&row.get::<_, i64>(0)?).unwrap_or_default();
            let outcome = row.get::<_, Option<String>>(4)?.map_or(Value::Null, |text| parse(&text));
            let (state, next_seq, ended_at) = (row.get(3)?, row.get(5)?, row.get(6)?);
            let run = RunRow { task: row.get(2)?, state, outcome, next_seq, ended_at, journal };
            Ok((row.get(1)?, run))
        });
        let items = rows(&db, "SELECT id, state, state_json, kind, run_id FROM items", |row| {
            let kind = parse(&row.get::<_, String>(3)?);
            let item = ItemRow {
                state: row.get(1)?,
                resolution: parse(&row.get::<_, String>(2)?),
                category: kind["category"].as_str().unwrap_or_default().into(),
                args: kind["call"]["args"].clone(),
                run: row.get(4)?,
            };
            Ok((row.get(0)?, item))
        });
        Self {
            tasks: tasks(&db),
            slots: slots(&db),
            events: events(&db),
            runs: runs.into_iter().collect(),
            items: items.into_iter().collect(),
            effects: effects(scratch),
            integrity: db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer"),
        }
    }
}

fn tasks(db: &Connection) -> Vec<TaskRecord> {
    let sql = "SELECT name, text, created_at, accounted_until FROM tasks
               JOIN revisions ON task = tasks.id AND revisions.revision = tasks.revision WHERE state <> 'deleted'";
    rows(db, sql, |row| {
        let [name, text] = [row.get(0)?, row.get(1)?];
        Ok(TaskRecord { name, text, created_at: row.get(2)?, accounted_until: row.get(3)? })
    })
}

fn slots(db: &Connection) -> Vec<SlotRow> {
    let sql = "SELECT name, kind, starts, ends, key, count, disposition FROM slots
               JOIN tasks ON tasks.id = task ORDER BY starts, ends";
    rows(db, sql, |row| {
        let disposition = parse(&row.get::<_, String>(6)?);
        let fired = (disposition["what"] == "fired").then(|| disposition["run"].as_str().expect("a run").to_owned());
        let [starts, ends] = [row.get(2)?, row.get(3)?];
        Ok(SlotRow { task: row.get(0)?, kind: row.get(1)?, starts, ends, key: row.get(4)?, count: row.get(5)?, fired })
    })
}

fn events(db: &Connection) -> Vec<EventRow> {
    let sql = "SELECT name, key, payload,
                      (SELECT json_group_array(runs.id) FROM run_events JOIN runs ON ord = run WHERE event = events.id)
               FROM events JOIN tasks ON tasks.id = task";
    rows(db, sql, |row| {
        let runs = parse(&row.get::<_, String>(3)?);
        let runs = runs.as_array().expect("an array").iter().map(|run| run.as_str().expect("an id").to_owned());
        let payload = parse(&row.get::<_, String>(2)?);
        Ok(EventRow { task: row.get(0)?, key: row.get(1)?, payload, runs: runs.collect() })
    })
}

fn journals(db: &Connection) -> BTreeMap<i64, Vec<(i64, Value)>> {
    let mut journals: BTreeMap<i64, Vec<(i64, Value)>> = BTreeMap::new();
    let facts = rows(db, "SELECT run, seq, fact FROM journal ORDER BY run, seq", |row| {
        Ok((row.get(0)?, row.get(1)?, parse(&row.get::<_, String>(2)?)))
    });
    for (run, seq, fact) in facts {
        journals.entry(run).or_default().push((seq, fact));
    }
    journals
}

fn effects(scratch: &Scratch) -> BTreeMap<(String, String), u64> {
    let mut effects = BTreeMap::new();
    for line in fs::read_to_string(scratch.work().join("effects")).unwrap_or_default().lines() {
        let (run, label) = line.split_once(' ').expect("two words");
        *effects.entry((run.to_owned(), label.to_owned())).or_default() += 1;
    }
    effects
}

fn rows<T>(db: &Connection, sql: &str, read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>) -> Vec<T> {
    let mut statement = db.prepare(sql).expect("a statement");
    let rows = statement.query_map([], read).expect("rows");
    rows.collect::<Result<_, _>>().expect("a row")
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
