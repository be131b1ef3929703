//! Entry points for fuzz targets: parsers of user input, which need no driver and no connection.

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

/// A parsed connection string.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionString(connection_string::ConnectionString);

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ConnectionString {
    /// Parses the text of a connection string; any text is accepted.
    #[must_use]
    pub fn parse(text: &str) -> ConnectionString {
        ConnectionString(connection_string::ConnectionString::parse(text))
    }

    /// Returns the value of `keyword`, if the string has it.
    #[must_use]
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.0.get(keyword)
    }

    /// Returns the connection string for the driver, including secrets.
    #[must_use]
    pub fn to_driver(&self) -> String {
        self.0.to_driver()
    }

    /// Returns the connection string for messages, without secrets.
    #[must_use]
    pub fn redacted(&self) -> String {
        self.0.redacted()
    }
}

/// Converts a URL to a connection string for the driver named `driver`.
///
/// # Errors
/// The URL is malformed.
///
/// # Panics
/// If the table of known drivers does not contain the driver.
pub fn database_url(url: &str, driver: &str) -> Result<ConnectionString, Error> {
    let quirks = quirks::known(driver).expect("a driver of the table");
    let url = DatabaseUrl::parse(url)?;
    Ok(ConnectionString(url.connection_string(driver, quirks)))
}

/// Returns `true` if the SQL string contains a second statement.
#[must_use]
pub fn has_second(sql: &str, dialect: Dialect) -> bool {
    statements::has_second(sql, dialect)
}

/// Parses a duration that consists of days and a time, and returns it in microseconds. Returns
/// `None` for any other text, for example a duration with months.
#[must_use]
pub fn span(text: &str) -> Option<i128> {
    match interval::cell(text.as_bytes()) {
        Cell::Interval {
            days, microseconds, ..
        } => Some(i128::from(days) * 86_400_000_000 + i128::from(microseconds)),
        _ => None,
    }
}
