//! `Delivery`: the object through which a connection passes received rows and the end of a result
//! to the statement that reads them.

use std::sync::{Mutex, MutexGuard};

use onecopy_wire::lock::lock;

use super::row_queue::RowQueue;
use crate::error::Error;

/// The server's report that a SQL command was completed (CommandComplete).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// The number of inserted, changed or deleted rows; `None` if the command does not count rows.
    pub(super) n_changed: Option<u64>,
}

impl Completion {
    pub(super) fn of_tag(tag: &str) -> Completion {
        let changes = ["INSERT ", "UPDATE ", "DELETE ", "MERGE ", "COPY "];
        let number = tag.rsplit(' ').next().and_then(|n| n.parse().ok());
        Completion {
            n_changed: number.filter(|_| changes.iter().any(|c| tag.starts_with(c))),
        }
    }
}

/// The end of a result: the completion of its command, or the error.
pub(super) type ResultEnd = Result<Completion, Error>;

/// The rows and the end of a result that the connection has received, but the statement has not
/// read yet.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    state: Mutex<Delivered>,
    /// The SQL text of the statement, to show the position of an error.
    pub(super) sql: String,
}

#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// Rows that were received before their statement requested them, because another statement had
    /// to be executed on the connection.
    pub(super) rows: RowQueue,
    pub(super) end: Option<ResultEnd>,
}

impl Delivery {
    pub(super) fn new(sql: &str) -> Delivery {
        Delivery {
            sql: sql.to_owned(),
            ..Delivery::default()
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Delivered> {
        lock(&self.state)
    }
}
