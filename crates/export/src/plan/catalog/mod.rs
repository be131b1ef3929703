//! The columns, indexes and size of a table, from the catalog of its database.

mod mariadb;
mod postgres;
mod sqlite;
mod table;

use onecopy_rows::Dialect;
use onecopy_rows::connect::Connection;

use crate::error::Error;

pub(crate) use table::{RowAddress, Sampling, Table};
#[cfg(test)]
pub(crate) use table::{TableColumn, TableIndex};

/// Returns the description of a table. Returns `None` if the catalog of the database does not list
/// the table, or if this crate cannot read catalogs of this kind of database. `name` is the table's
/// name as written in SQL. `names` are the parts of this name (such as schema and table), unquoted.
///
/// # Errors
/// The error of the database.
pub(crate) fn table(
    connection: &Connection,
    name: &str,
    names: &[String],
) -> Result<Option<Table>, Error> {
    match connection.dialect() {
        Dialect::Postgres => postgres::table(connection, name),
        Dialect::Sqlite => sqlite::table(connection, name, names),
        Dialect::MySql => mariadb::table(connection, names),
        _ => Ok(None),
    }
}
