//! Doors for the fuzz targets: what a user writes, taken apart, with no driver loaded and nothing connected.

use std::fmt;

use super::connection_string;
use super::quirks;
use super::url::DatabaseUrl;
use crate::cell::Cell;
use crate::error::Error;
use crate::interval;
pub use crate::odbc::block::fuzzing::AnsweredRows;
use crate::sql::dialect::Dialect;
use crate::sql::statements;

/// A connection string taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionString(connection_string::ConnectionString);

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ConnectionString {
    /// Takes `text` apart.
    #[must_use]
    pub fn parse(text: &str) -> ConnectionString {
        ConnectionString(connection_string::ConnectionString::parse(text))
    }

    /// The value of a keyword.
    #[must_use]
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.0.get(keyword)
    }

    /// What the driver is given.
    #[must_use]
    pub fn to_driver(&self) -> String {
        self.0.to_driver()
    }

    /// What people are shown.
    #[must_use]
    pub fn redacted(&self) -> String {
        self.0.redacted()
    }
}

/// The connection string that a URL stands for, with the driver of this name.
///
/// # Errors
/// A malformed URL.
///
/// # Panics
/// For a driver that is not in the table of quirks.
pub fn database_url(url: &str, driver: &str) -> Result<ConnectionString, Error> {
    let quirks = quirks::known(driver).expect("a driver of the table");
    let url = DatabaseUrl::parse(url)?;
    Ok(ConnectionString(url.connection_string(driver, quirks)))
}

/// Whether a second statement stands behind the first.
#[must_use]
pub fn has_second(sql: &str, dialect: Dialect) -> bool {
    statements::has_second(sql, dialect)
}

/// The microseconds of a span of time, where it is one that is exact.
#[must_use]
pub fn span(text: &str) -> Option<i64> {
    match interval::cell(text.as_bytes()) {
        Cell::Interval { microseconds, .. } => Some(microseconds),
        _ => None,
    }
}
