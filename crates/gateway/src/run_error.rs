//! [`RunError`]: the errors of a run (one execution of a query) that are not errors of the
//! database.

use std::fmt;
use std::time::Duration;

/// The reason why a run (one execution of a query) failed, if it is not an error of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The time limit was exceeded. Raise `time_limit_s` of the query, or make the query faster.
    TimeLimit {
        /// The time limit of the query.
        limit: Duration,
    },
    /// The client disconnected, or the server was stopped.
    Stopped,
    /// The statement returns no rows. Use a query.
    NoRows,
    /// The statement writes, but the gateway only reads. Use a SELECT.
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
            RunError::NoRows => f.write_str("the statement returns no rows"),
            RunError::Writes => f.write_str("the statement writes, and the gateway only reads"),
        }
    }
}

impl std::error::Error for RunError {}
