use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::{ResolveError, SessionError, StoreError, TaskError};

/// An SQLite error as the store's own. Which file it was is filled in where the store is known: `Located`.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        located(&error, Path::new(""))
    }
}

impl From<rusqlite::Error> for TaskError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<rusqlite::Error> for ResolveError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<rusqlite::Error> for SessionError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

pub(crate) fn located(error: &rusqlite::Error, file: &Path) -> StoreError {
    // Statements are fixed: one that does not fit, or that cannot be planned, means that the schema is not what was made.
    let misfits = matches!(error, rusqlite::Error::SqlInputError { .. })
        || error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_ERROR);
    if misfits {
        return StoreError::Damaged { file: file.into(), why: error.to_string() };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { file: file.into() },
        // SQLite says so too where a sync, or the index beside the log, finds no room.
        Some(ErrorCode::SystemIoFailure) => StoreError::Disk { file: file.into(), what: error.to_string() },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { file: file.into(), why: error.to_string() }
        }
        _ => StoreError::Failed { what: error.to_string() },
    }
}

/// Why a whole group of facts was not committed: told to each of them.
#[derive(Clone, Debug)]
pub(crate) enum Lost {
    Full,
    Disk(String),
    Damaged(String),
    Failed(String),
}

impl Lost {
    pub(crate) fn of(error: &StoreError) -> Option<Self> {
        match error {
            StoreError::Full { .. } => Some(Self::Full),
            StoreError::Disk { what, .. } => Some(Self::Disk(what.clone())),
            StoreError::Damaged { why, .. } => Some(Self::Damaged(why.clone())),
            StoreError::Failed { what } => Some(Self::Failed(what.clone())),
            _ => None,
        }
    }

    pub(crate) fn error(&self, file: &Path) -> StoreError {
        match self {
            Self::Full => StoreError::Full { file: file.into() },
            Self::Disk(what) => StoreError::Disk { file: file.into(), what: what.clone() },
            Self::Damaged(why) => StoreError::Damaged { file: file.into(), why: why.clone() },
            Self::Failed(what) => StoreError::Failed { what: what.clone() },
        }
    }
}

/// The error of one of the store's methods: carries a [`StoreError`] and can be told which file it was.
pub(crate) trait Located: From<StoreError> + Send + 'static {
    fn store_error(&self) -> Option<&StoreError>;
    fn locate(self, file: &Path) -> Self;
}

impl Located for StoreError {
    fn store_error(&self) -> Option<&StoreError> {
        Some(self)
    }

    fn locate(self, place: &Path) -> Self {
        let fill = |file: PathBuf| if file.as_os_str().is_empty() { place.into() } else { file };
        match self {
            Self::Full { file } => Self::Full { file: fill(file) },
            Self::Disk { file, what } => Self::Disk { file: fill(file), what },
            Self::Damaged { file, why } => Self::Damaged { file: fill(file), why },
            other => other,
        }
    }
}

impl Located for TaskError {
    fn store_error(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }

    fn locate(self, file: &Path) -> Self {
        match self {
            Self::Store(error) => Self::Store(error.locate(file)),
            other => other,
        }
    }
}

impl Located for ResolveError {
    fn store_error(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }

    fn locate(self, file: &Path) -> Self {
        match self {
            Self::Store(error) => Self::Store(error.locate(file)),
            other => other,
        }
    }
}

impl Located for SessionError {
    fn store_error(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }

    fn locate(self, file: &Path) -> Self {
        match self {
            Self::Store(error) => Self::Store(error.locate(file)),
            other => other,
        }
    }
}
