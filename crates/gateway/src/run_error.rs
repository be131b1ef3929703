//! Why a run ended without a fault of the database.

use std::fmt;
use std::time::Duration;

/// Why a run ended by no fault of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Its time was up. Raise `time_limit_s` of the query, or make the query faster.
    TimeLimit {
        /// The limit.
        limit: Duration,
    },
    /// The client left, or the server was stopped.
    Stopped,
    /// The statement gives no rows: it is no query.
    NoRows,
    /// The statement writes, and the gateway only reads: make it a SELECT.
    Writes,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::TimeLimit { limit } => {
                let seconds = limit.as_secs_f64();
                write!(f, "the query took longer than its limit of {seconds} s")
            }
            RunError::Stopped => f.write_str("the query was stopped"),
            RunError::NoRows => f.write_str("the statement gives no rows"),
            RunError::Writes => f.write_str("the statement writes, and the gateway reads alone"),
        }
    }
}

impl std::error::Error for RunError {}
