//! `Error` and `ErrorKind`: the error type of this crate. The language bindings map the kind to
//! exception classes, HTTP statuses and exit codes; they never parse the message.

use std::fmt;
use std::sync::Arc;

use onecopy_wire::{ChunkError, ChunkErrorKind};

/// The kind of an error. It decides the exception class of PEP 249, the HTTP status and the exit
/// code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection was made: wrong connection string, unknown driver, unreachable server, refused
    /// login. In Python: `OperationalError`; exit code 3.
    Connect,
    /// The database cannot serve this connection: the connection was lost, the server shut down, or
    /// resources are exhausted. In Python: `OperationalError`.
    Operational,
    /// The statement is wrong: syntax, unknown table, wrong number of parameters. In Python:
    /// `ProgrammingError`.
    Programming,
    /// A value is invalid or out of range: overflow, division by zero, invalid date. In Python:
    /// `DataError`.
    Data,
    /// A constraint was violated. In Python: `IntegrityError`.
    Integrity,
    /// The state of the driver, or of this library, is inconsistent. In Python: `InternalError`.
    Internal,
    /// The driver or the database does not support the call. In Python: `NotSupportedError`.
    NotSupported,
    /// The library was used incorrectly: through a closed cursor, or in a process or thread that
    /// must not use the object. In Python: `InterfaceError` (`ProgrammingError` where PEP 249
    /// requires it).
    Interface,
    /// Text in a cell or parameter is malformed. In Python: `DataError`.
    Malformed,
    /// The call was cancelled. In Python: `OperationalError`.
    Cancelled,
    /// A time limit expired. In Python: `OperationalError`.
    Timeout,
    /// A write was refused because the connection, its transaction or the database is read-only
    /// (SQLSTATE 25006, `SQLITE_READONLY`). In Python: `OperationalError`.
    ReadOnly,
}

impl ErrorKind {
    /// All variants of this enum. Tables with one row per kind are built from this array, and tests
    /// use it to check that such a table is complete.
    pub const ALL: [ErrorKind; 12] = [
        ErrorKind::Connect,
        ErrorKind::Operational,
        ErrorKind::Programming,
        ErrorKind::Data,
        ErrorKind::Integrity,
        ErrorKind::Internal,
        ErrorKind::NotSupported,
        ErrorKind::Interface,
        ErrorKind::Malformed,
        ErrorKind::Cancelled,
        ErrorKind::Timeout,
        ErrorKind::ReadOnly,
    ];
}

/// The kind of an error that a database reports by a code (an SQLSTATE or a database's own code),
/// and whether a retry may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The kind of an error that has this code.
    pub(crate) kind: ErrorKind,
    /// `true` if a retry may succeed, as in [`Error::is_transient`].
    pub(crate) is_transient: bool,
}

impl Meaning {
    /// Returns the meaning of an error code of a permanent error, after which a retry would fail in
    /// the same way.
    pub(crate) const fn permanent(kind: ErrorKind) -> Meaning {
        Meaning {
            kind,
            is_transient: false,
        }
    }

    /// Returns the meaning of an error code of a transient error, after which a retry may succeed.
    pub(crate) const fn transient(kind: ErrorKind) -> Meaning {
        Meaning {
            kind,
            is_transient: true,
        }
    }
}

/// An error of a database or its driver, or an error caused by incorrect use of this library.
///
/// It never contains a password: code that adds a connection string must redact it.
#[derive(Clone, Debug)]
pub struct Error {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// `true` if the same call can succeed later without a change of the statement or the
    /// configuration. Examples are a server that is down or starting, a lock that is held, an
    /// exhausted resource, and a transaction that was aborted to resolve a deadlock. `false` if
    /// this is not known. The HTTP server responds to a transient error with status 503.
    pub is_transient: bool,
    /// The whole message: the driver's text, if the driver reported the error, otherwise this
    /// library's text. If a remedy is known, it follows on a separate line.
    pub message: String,
    /// The SQLSTATE (five characters), if the driver or this library set one; otherwise empty.
    /// SQLite sets none.
    pub sqlstate: String,
    /// The error code of the database: the native error of ODBC, the extended result code of
    /// SQLite; 0 if the database reported none.
    pub native: i32,
    /// The index (from 0) and the name of the column whose value caused the error; `None` if the
    /// error is not about a value.
    pub column: Option<Box<(usize, String)>>,
    /// The index (from 0) of the row that caused the error; `None` if it is unknown. It is a row of
    /// the result, or a row of parameters if a statement was executed for many rows of parameters.
    pub row: Option<u64>,
    /// The name and the version of the ODBC driver, if the driver returned invalid data.
    pub driver: Option<Arc<str>>,
    /// The fields of the database's error report, by name: `detail`, `hint`, `position`,
    /// `constraint`, …; empty if there are none.
    pub details: Vec<(&'static str, String)>,
}

impl Error {
    /// Creates the error for a statement with `n_wanted` parameters that was executed with
    /// `n_given` values.
    pub(crate) fn wrong_count(n_wanted: usize, n_given: usize) -> Error {
        let message = format!("the statement has {n_wanted} parameters, {n_given} were given");
        Error {
            sqlstate: "07002".to_owned(),
            ..Error::new(ErrorKind::Programming, message)
        }
    }

    /// Creates a permanent error without an SQLSTATE and without a native code.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            is_transient: false,
            message: message.into(),
            sqlstate: String::new(),
            native: 0,
            column: None,
            row: None,
            driver: None,
            details: Vec::new(),
        }
    }

    /// Marks the error as transient: a retry of the same call may succeed.
    #[must_use]
    pub fn transient(mut self) -> Error {
        self.is_transient = true;
        self
    }

    /// Copies the fields `kind` and `is_transient` from `meaning`, the meaning of the error code
    /// that the database has reported.
    pub(crate) fn set_meaning(&mut self, meaning: Meaning) {
        self.kind = meaning.kind;
        self.is_transient = meaning.is_transient;
    }

    /// Creates the error for a failed allocation whose size came from a driver, a file or another
    /// library.
    pub(crate) fn no_memory(n_bytes: usize) -> Error {
        Error::new(
            ErrorKind::Operational,
            format!("out of memory: {n_bytes} bytes were requested"),
        )
    }

    /// Adds the index (from 0) and the name of the column whose value caused the error, unless the
    /// error already has a column.
    #[must_use]
    pub fn at_column(mut self, index: usize, name: &str) -> Error {
        self.column
            .get_or_insert_with(|| Box::new((index, name.to_owned())));
        self
    }

    /// Adds to the error the name of the driver that returned invalid data, unless the error
    /// already contains the name of a driver.
    #[must_use]
    pub(crate) fn of_driver(mut self, driver: Option<&Arc<str>>) -> Error {
        self.driver = self.driver.or_else(|| driver.cloned());
        self
    }

    /// Adds the index (from 0) of the row that caused the error, unless the error already has a
    /// row. It is a row of a result or a row of parameters.
    #[must_use]
    pub fn at_row(mut self, row: u64) -> Error {
        self.row.get_or_insert(row);
        self
    }
}

/// A message from the database that is not an error: a warning, a notice, or text that a procedure
/// printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The text of the message.
    pub text: String,
    /// The SQLSTATE (five characters), usually of class 01 (warning).
    pub sqlstate: String,
    /// The database's own code of the message; 0 if it has none.
    pub native: i32,
}

impl Error {
    /// Appends a second remedy, `way`, to the message of an error about malformed text in a column.
    /// `way` describes how the policy `replace` is set in the interface that the user uses (Python,
    /// the command or the gateway). An error of any other kind is returned unchanged.
    #[must_use]
    pub fn or_else_replace(mut self, way: &str) -> Error {
        if self.kind == ErrorKind::Malformed && self.column.is_some() {
            self.message.push_str(", or ");
            self.message.push_str(way);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Column, row and driver are appended to the first line; the following lines contain the
        // remedy.
        let (what, remedy) = match self.message.split_once('\n') {
            Some((what, remedy)) => (what, Some(remedy)),
            None => (self.message.as_str(), None),
        };
        f.write_str(what)?;
        let mut separator = " (";
        if let Some((i, name)) = self.column.as_deref() {
            write!(f, "{separator}column {i} `{name}`")?;
            separator = ", ";
        }
        if let Some(row) = self.row {
            write!(f, "{separator}row {row}")?;
            separator = ", ";
        }
        if let Some(driver) = &self.driver {
            write!(f, "{separator}driver `{driver}`")?;
            separator = ", ";
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        remedy.map_or(Ok(()), |remedy| write!(f, "\n{remedy}"))
    }
}

impl std::error::Error for Error {}

/// Converts an error to a [`ChunkError`]. The kind of the [`ChunkError`] decides the HTTP status of
/// the server and the exit code of the command. A data error that names a column becomes
/// `ChunkErrorKind::Value`, because a value of the result has caused it. A data error without a
/// column becomes `ChunkErrorKind::Source`, because the statement has caused it, for example by an
/// overflow in its arithmetic.
impl From<Error> for ChunkError {
    fn from(error: Error) -> ChunkError {
        let kind = match error.kind {
            ErrorKind::Cancelled => ChunkErrorKind::Cancelled,
            ErrorKind::Timeout => ChunkErrorKind::Limit,
            ErrorKind::Malformed => ChunkErrorKind::Value,
            ErrorKind::Data if error.column.is_some() => ChunkErrorKind::Value,
            _ => ChunkErrorKind::Source,
        };
        ChunkError {
            kind,
            source: Box::new(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_in_all() {
        for (i, kind) in ErrorKind::ALL.into_iter().enumerate() {
            // If a kind is added to the enum, this match does not compile until the kind is added
            // here.
            let last = match kind {
                ErrorKind::Connect
                | ErrorKind::Operational
                | ErrorKind::Programming
                | ErrorKind::Data
                | ErrorKind::Integrity
                | ErrorKind::Internal
                | ErrorKind::NotSupported
                | ErrorKind::Interface
                | ErrorKind::Malformed
                | ErrorKind::Cancelled
                | ErrorKind::Timeout => ErrorKind::ReadOnly,
                ErrorKind::ReadOnly => kind,
            };
            assert_eq!(kind as usize, i);
            assert_eq!(ErrorKind::ALL.len(), last as usize + 1);
        }
    }
}
