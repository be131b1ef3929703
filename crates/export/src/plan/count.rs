//! [`count`]: counts the rows of a statement in the database.

use onecopy_rows::Value;
use onecopy_rows::connect::Connection;
use onecopy_rows::sql::query_shape::QueryShape;

use super::fetch::{int, rows};
use super::snapshot::begin_part;
use super::template::Template;
use crate::error::Error;

/// Counts the rows of a query by `count(*)`. If `snapshot` is given, the rows are counted in this
/// snapshot; the connection must then have no open transaction.
///
/// # Errors
/// [`Error::Usage`] if the statement is not one query. The error of the database, also for a query
/// that cannot be a derived table because two columns of its result have the same name.
pub fn count(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    snapshot: Option<&str>,
) -> Result<u64, Error> {
    let shape = QueryShape::of(sql, connection.dialect());
    let shape = shape.map_err(|error| Error::Usage(error.message))?;
    if let Some(snapshot) = snapshot {
        begin_part(connection, snapshot)?;
    }
    let (query, values) = Template::whole(sql, &shape, values);
    let counted = format!("select count(*) from (\n{query}\n) counted");
    let (_, found) = rows(connection, &counted, &values)?;
    let n = int(found.first().and_then(|row| row.first()));
    n.and_then(|n| u64::try_from(n).ok())
        .ok_or_else(|| Error::Format("the database did not return the number of rows".to_owned()))
}
