//! [`Error`]: the reasons for which a statement cannot be planned.

use std::fmt;

/// The reason for which a statement cannot be planned, or a part does not belong to it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The statement, an option or a plan is wrong; the message has the remedy.
    Usage(String),
    /// The database or the connection failed.
    Rows(onecopy_rows::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(message) => f.write_str(message),
            Error::Rows(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<onecopy_rows::Error> for Error {
    fn from(error: onecopy_rows::Error) -> Error {
        Error::Rows(error)
    }
}
