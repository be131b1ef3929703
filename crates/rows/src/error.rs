//! The one error type of this room. It crosses language borders as a kind, never as text to parse.

use std::fmt;
use std::sync::Arc;

use onecopy_wire::{ChunkError, ChunkErrorKind};

/// What kind of error: decides the PEP 249 class, the HTTP status and the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection could be made: wrong string, unknown driver, server away, login refused. PEP 249
    /// `OperationalError`; exit code 3.
    Connect,
    /// The database stopped working for us: connection lost, shut down, out of resources. PEP 249 `OperationalError`.
    Operational,
    /// The statement is wrong: syntax, unknown table, wrong number of parameters. PEP 249 `ProgrammingError`.
    Programming,
    /// A value does not fit: overflow, division by zero, invalid date. PEP 249 `DataError`.
    Data,
    /// A constraint was broken. PEP 249 `IntegrityError`.
    Integrity,
    /// The driver's state broke, or that of this library. PEP 249 `InternalError`.
    Internal,
    /// The driver or the database cannot do this. PEP 249 `NotSupportedError`.
    NotSupported,
    /// The library was used wrongly: closed cursor, other process, other thread. PEP 249 `InterfaceError`
    /// (`ProgrammingError` where PEP 249 says so).
    Interface,
    /// Text in a cell or parameter is malformed. PEP 249 `DataError`.
    Malformed,
    /// It was cancelled. PEP 249 `OperationalError`.
    Cancelled,
    /// A time limit ran out. PEP 249 `OperationalError`.
    Timeout,
    /// A write was refused, since the connection, its transaction or the database is for reading alone (SQLSTATE 25006,
    /// `SQLITE_READONLY`). The database itself works. PEP 249 `OperationalError`.
    ReadOnly,
}

impl ErrorKind {
    /// Every kind: for tables that must know them all, and the tests that they do.
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

/// The meaning of a code of a database or of ODBC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The kind of error.
    pub(crate) kind: ErrorKind,
    /// As [`Error::is_transient`].
    pub(crate) is_transient: bool,
}

impl Meaning {
    /// A code of this kind that a retry cannot clear.
    pub(crate) const fn permanent(kind: ErrorKind) -> Meaning {
        Meaning {
            kind,
            is_transient: false,
        }
    }

    /// A code of this kind that a retry can clear.
    pub(crate) const fn transient(kind: ErrorKind) -> Meaning {
        Meaning {
            kind,
            is_transient: true,
        }
    }
}

/// An error of a database, its driver, or of the use made of them.
///
/// Passwords never stand in it: whoever adds a connection string adds its redacted form.
#[derive(Clone, Debug)]
pub struct Error {
    /// What kind.
    pub kind: ErrorKind,
    /// The same call can succeed later, with neither statement nor configuration changed: the
    /// server is away or starts, a lock is held, a resource is used up, a transaction was chosen to
    /// end a deadlock. False where that is not known. Over HTTP a transient error is 503.
    pub is_transient: bool,
    /// The whole message: the driver's own words where it spoke, a remedy on a line of its own where we know one.
    pub message: String,
    /// SQLSTATE (five characters) where the driver gave one or it is ours; else empty, as mostly for SQLite.
    pub sqlstate: String,
    /// The database's own code: native error of ODBC, extended result code of SQLite. 0 where there is none.
    pub native: i32,
    /// Column index (from 0) and name, where a value is at fault.
    pub column: Option<(usize, String)>,
    /// Row of the result (from 0), where a value is at fault and it is known.
    pub row: Option<u64>,
    /// Name and version of the ODBC driver, where its answer is at fault.
    pub driver: Option<Arc<str>>,
}

impl Error {
    /// A statement was given fewer or more values than it has parameters.
    pub(crate) fn wrong_count(n_wanted: usize, n_given: usize) -> Error {
        let message = format!("the statement has {n_wanted} parameters, {n_given} were given");
        Error {
            sqlstate: "07002".to_owned(),
            ..Error::new(ErrorKind::Programming, message)
        }
    }

    /// A permanent error with neither SQLSTATE nor native code.
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
        }
    }

    /// The error as one that a retry can clear.
    #[must_use]
    pub fn transient(mut self) -> Error {
        self.is_transient = true;
        self
    }

    /// Takes kind and transience from the meaning of the error's code.
    pub(crate) fn set_meaning(&mut self, meaning: Meaning) {
        self.kind = meaning.kind;
        self.is_transient = meaning.is_transient;
    }

    /// The system has no memory for so many bytes, whose number came from a driver, a file or
    /// another library.
    pub(crate) fn no_memory(n_bytes: usize) -> Error {
        Error::new(
            ErrorKind::Operational,
            format!("out of memory: {n_bytes} bytes were requested"),
        )
    }

    /// Adds the column at fault.
    #[must_use]
    pub fn at_column(mut self, index: usize, name: &str) -> Error {
        self.column.get_or_insert_with(|| (index, name.to_owned()));
        self
    }

    /// Adds the driver whose answer is at fault.
    #[must_use]
    pub(crate) fn of_driver(mut self, driver: Option<&Arc<str>>) -> Error {
        self.driver = self.driver.or_else(|| driver.cloned());
        self
    }

    /// Adds the row at fault.
    #[must_use]
    pub fn at_row(mut self, row: u64) -> Error {
        self.row.get_or_insert(row);
        self
    }
}

/// What a database said beside the result: a warning, a notice, what a procedure printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The words.
    pub text: String,
    /// SQLSTATE (five characters), mostly of class 01.
    pub sqlstate: String,
    /// The database's own code; 0 where there is none.
    pub native: i32,
}

impl Error {
    /// The error with another way out of malformed text, in the words of the front that shows it: each names the policy
    /// `replace` in its own way. Errors of other kinds, and of text that came from no database, stay as they are.
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
        // Column, row and driver end the first line: those below it say what to do.
        let (what, remedy) = match self.message.split_once('\n') {
            Some((what, remedy)) => (what, Some(remedy)),
            None => (self.message.as_str(), None),
        };
        f.write_str(what)?;
        let mut separator = " (";
        if let Some((i, name)) = &self.column {
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

/// The kind of stream error that a server or a command chooses its status by: the one mapping for
/// every row stream. An error of the data that names its column came from a value of the result;
/// one without came from the statement, as an overflow in its arithmetic does, and is the source's.
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
            // A new kind goes behind the last one here, and the compiler asks for it in this match first.
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
