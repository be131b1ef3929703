//! Snapshots of PostgreSQL: several connections read the same state of the database.

use onecopy_rows::Dialect;
use onecopy_rows::connect::Connection;

use super::fetch::{rows, text};
use crate::error::Error;

/// Begins a PostgreSQL transaction and exports its snapshot, so that other connections can read it.
/// Returns the name of the snapshot. The snapshot exists until the transaction ends.
///
/// # Errors
/// [`Error::Usage`] for another kind of database, and for a connection in autocommit mode; the
/// error of the database.
pub(crate) fn export(connection: &Connection) -> Result<String, Error> {
    if connection.dialect() != Dialect::Postgres {
        return Err(Error::Usage(format!(
            "{}\nplan without `--hold`",
            sentence(connection.dialect(), None)
        )));
    }
    begin(connection)?;
    // The transaction is idle while the parts are read, and must not be ended by a time limit.
    connection.execute("set local idle_in_transaction_session_timeout = 0", &[])?;
    let (_, found) = rows(connection, "select pg_export_snapshot()", &[])?;
    Ok(text(found.first().and_then(|row| row.first())))
}

/// Begins a transaction that reads the snapshot with the name `snapshot`, to execute a part in it.
/// The connection must have no open transaction.
///
/// # Errors
/// [`Error::Usage`] for a connection in autocommit mode. The error of the database if the snapshot
/// no longer exists.
pub(crate) fn begin_part(connection: &Connection, snapshot: &str) -> Result<(), Error> {
    if !snapshot
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    {
        return Err(Error::Usage(format!(
            "`{snapshot}` is not the name of a snapshot"
        )));
    }
    begin(connection)?;
    let set = connection.execute(&format!("set transaction snapshot '{snapshot}'"), &[]);
    set.map(drop).map_err(|mut error| {
        error.message.push_str(
            "\nthe snapshot ended with the transaction that exported it: keep `onecopy plan --hold` \
             running until all parts are read, or begin again with `--overwrite`; an export with \
             `--no-snapshot` can be resumed",
        );
        Error::Rows(error)
    })
}

fn begin(connection: &Connection) -> Result<(), Error> {
    if connection.autocommit() {
        return Err(Error::Usage(
            "a snapshot needs a transaction: turn autocommit off".to_owned(),
        ));
    }
    connection.execute(
        "set transaction isolation level repeatable read, read only",
        &[],
    )?;
    Ok(())
}

/// Returns a human-readable sentence that states whether all parts read the same state of the
/// database.
pub(crate) fn sentence(dialect: Dialect, snapshot: Option<&str>) -> String {
    const DIFFERENT: &str = "each part reads the state at its own start, so do not change the tables \
                             until all parts are read";
    match (dialect, snapshot) {
        (_, Some(snapshot)) => format!(
            "all parts read the snapshot `{snapshot}`, which exists as long as the planner's \
             transaction is open"
        ),
        (Dialect::Postgres, None) => format!("no snapshot is held (`--hold`): {DIFFERENT}"),
        (Dialect::Sqlite, None) => {
            format!("SQLite has no snapshot for several connections: {DIFFERENT}")
        }
        (Dialect::MySql, None) => {
            format!("MariaDB and MySQL have no snapshot for several connections: {DIFFERENT}")
        }
        (Dialect::SqlServer, None) => format!(
            "SQL Server begins a snapshot for each connection, and has none for several \
             connections: {DIFFERENT}"
        ),
        (_, None) => format!("no snapshot for several connections is known: {DIFFERENT}"),
    }
}
