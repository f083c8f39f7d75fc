use std::cell::RefCell;
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, Params, Row};
use serde::de::DeserializeOwned;

use crate::StoreError;

/// A consistent view of the store: what a fact reads and writes through, and what readers look at.
///
/// Rows that cannot be read are left out and remembered, to be set aside.
pub(crate) struct View<'a> {
    pub(crate) db: &'a Connection,
    broken: RefCell<Vec<Broken>>,
}

/// A row that could not be read.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) table: &'static str,
    pub(crate) key: String,
    pub(crate) why: String,
    /// All columns that were read, as JSON text.
    pub(crate) record: String,
}

/// Which table a query's rows come from and which of its columns names the row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) table: &'static str,
    pub(crate) key: usize,
}

/// One row, being read.
pub(crate) struct Record<'r> {
    row: &'r Row<'r>,
    source: Source,
}

impl<'a> View<'a> {
    pub(crate) fn new(db: &'a Connection) -> Self {
        Self { db, broken: RefCell::default() }
    }

    /// Takes what was found broken so far.
    pub(crate) fn take_broken(&self) -> Vec<Broken> {
        self.broken.take()
    }

    pub(crate) fn note_broken(&self, broken: Broken) {
        self.broken.borrow_mut().push(broken);
    }

    /// Changes rows; returns how many.
    pub(crate) fn change(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }

    /// Inserts a row; returns its number.
    pub(crate) fn insert(&self, sql: &str, params: impl Params) -> Result<i64, StoreError> {
        self.db.prepare_cached(sql)?.execute(params)?;
        Ok(self.db.last_insert_rowid())
    }

    /// The readable rows of a query.
    pub(crate) fn rows<T>(
        &self,
        source: Source,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Record<'_>) -> Result<T, Broken>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = vec![];
        while let Some(row) = rows.next()? {
            match read(&Record { row, source }) {
                Ok(value) => found.push(value),
                Err(broken) => self.note_broken(broken),
            }
        }
        Ok(found)
    }

    /// The first readable row of a query.
    pub(crate) fn row<T>(
        &self,
        source: Source,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Record<'_>) -> Result<T, Broken>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.rows(source, sql, params, read)?.into_iter().next())
    }

    /// Rows as they are, damaged ones too.
    pub(crate) fn plain<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The first column of all rows.
    pub(crate) fn column<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<Vec<T>, StoreError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params, |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The first column of the first row; none: no row.
    pub(crate) fn value<T: FromSql>(&self, sql: &str, params: impl Params) -> Result<Option<T>, StoreError> {
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
    }

    pub(crate) fn exists(&self, sql: &str, params: impl Params) -> Result<bool, StoreError> {
        Ok(self.db.prepare_cached(sql)?.exists(params)?)
    }

    pub(crate) fn count(&self, sql: &str, params: impl Params) -> Result<u64, StoreError> {
        // An aggregate over no rows is a row with NULL.
        Ok(unsigned(self.value::<Option<i64>>(sql, params)?.flatten().unwrap_or(0)))
    }

    pub(crate) fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.value("SELECT value FROM meta WHERE key = ?1", [key])
    }
}

impl Record<'_> {
    pub(crate) fn text(&self, column: usize) -> Result<String, Broken> {
        self.plain(column)
    }

    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<String>, Broken> {
        self.plain(column)
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<Vec<u8>, Broken> {
        self.plain(column)
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, Broken> {
        self.plain(column)
    }

    pub(crate) fn maybe_int(&self, column: usize) -> Result<Option<i64>, Broken> {
        self.plain(column)
    }

    pub(crate) fn flag(&self, column: usize) -> Result<bool, Broken> {
        self.plain(column)
    }

    /// A count, which is never negative.
    pub(crate) fn number<N: TryFrom<i64>>(&self, column: usize) -> Result<N, Broken> {
        let value = self.int(column)?;
        N::try_from(value).map_err(|_| self.broken(column, &format!("{value} is out of range")))
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp, Broken> {
        let value = self.int(column)?;
        Timestamp::from_microsecond(value).map_err(|error| self.broken(column, &error.to_string()))
    }

    pub(crate) fn maybe_time(&self, column: usize) -> Result<Option<Timestamp>, Broken> {
        if self.maybe_int(column)?.is_none() { Ok(None) } else { self.time(column).map(Some) }
    }

    pub(crate) fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, column: usize) -> Result<T, Broken> {
        self.text(column)?.parse().map_err(|error: T::Err| self.broken(column, &error.to_string()))
    }

    pub(crate) fn maybe_parsed<T: FromStr<Err: std::fmt::Display>>(&self, column: usize) -> Result<Option<T>, Broken> {
        if self.maybe_text(column)?.is_none() { Ok(None) } else { self.parsed(column).map(Some) }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, column: usize) -> Result<T, Broken> {
        let read = self.row.get_ref(column).map_err(|error| self.broken(column, &error.to_string()))?;
        let text = read.as_str().map_err(|error| self.broken(column, &error.to_string()))?;
        serde_json::from_str(text).map_err(|error| self.broken(column, &error.to_string()))
    }

    pub(crate) fn broken(&self, column: usize, why: &str) -> Broken {
        let name = self.row.as_ref().column_name(column).unwrap_or("?").to_owned();
        let mut record = serde_json::Map::new();
        for (index, name) in self.row.as_ref().column_names().into_iter().enumerate() {
            let value = self.row.get_ref(index).map_or(serde_json::Value::Null, plain_json);
            record.insert(name.to_owned(), value);
        }
        let key = self.row.get_ref(self.source.key).map_or(serde_json::Value::Null, plain_json);
        let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        Broken {
            table: self.source.table,
            key,
            why: format!("`{name}`: {why}"),
            record: serde_json::Value::Object(record).to_string(),
        }
    }

    fn plain<T: FromSql>(&self, column: usize) -> Result<T, Broken> {
        self.row.get(column).map_err(|error| self.broken(column, &error.to_string()))
    }
}

fn plain_json(value: ValueRef<'_>) -> serde_json::Value {
    match value {
        ValueRef::Null => serde_json::Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
    }
}

/// An instant as the store keeps it.
pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

pub(crate) fn maybe_micros(at: Option<Timestamp>) -> Option<i64> {
    at.map(micros)
}

pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Our own types as JSON text: they always can be written.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the model's types have text keys only")
}
