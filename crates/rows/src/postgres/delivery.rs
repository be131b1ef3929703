//! `Delivery`: the rows and the end of a result, which the connection has received, for the
//! statement that reads them.

use std::sync::{Mutex, MutexGuard};

use onecopy_wire::lock::lock;

use super::row_queue::RowQueue;
use crate::error::Error;

/// The server's report that a SQL command was completed (CommandComplete).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Completion {
    /// The number of inserted, changed or deleted rows; `None` if the command does not count rows.
    pub(super) n_changed: Option<u64>,
    /// The number of rows that a query returned or stored in a table, or by which a cursor was
    /// moved; `None` for other commands.
    n_selected: Option<u64>,
}

impl Completion {
    pub(super) fn of_tag(tag: &str) -> Completion {
        let number = tag.rsplit(' ').next().and_then(|n| n.parse().ok());
        let of = |commands: &[&str]| number.filter(|_| commands.iter().any(|c| tag.starts_with(c)));
        Completion {
            n_changed: of(&["INSERT ", "UPDATE ", "DELETE ", "MERGE ", "COPY "]),
            n_selected: of(&["SELECT ", "MOVE "]),
        }
    }

    /// Converts the completion of a command that has stored its rows in a table instead of
    /// returning them (`CREATE TABLE AS`). The stored rows are counted as changed rows.
    pub(super) fn without_rows(self) -> Completion {
        Completion {
            n_changed: self.n_changed.or(self.n_selected),
            ..self
        }
    }
}

/// How a result has ended: with the completion of its command, or with an error.
pub(super) type ResultEnd = Result<Completion, Error>;

/// The part of a result (rows, and the end of the result) that the connection has received, but the
/// statement has not read yet.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_count_changed_and_stored_rows() {
        for (tag, changed, of_command) in [
            ("INSERT 0 5", Some(5), Some(5)),
            ("MERGE 2", Some(2), Some(2)),
            ("SELECT 7", None, Some(7)),
            ("MOVE 3", None, Some(3)),
            ("CREATE TABLE", None, None),
            ("FETCH 4", None, None),
        ] {
            let completion = Completion::of_tag(tag);
            assert_eq!(completion.n_changed, changed, "{tag}");
            assert_eq!(completion.without_rows().n_changed, of_command, "{tag}");
        }
    }
}
