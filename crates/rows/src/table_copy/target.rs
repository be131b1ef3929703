//! [`TargetTable`]: a table into which the rows of Arrow batches are copied.

use std::path::PathBuf;

use onecopy_text::Tally;

use super::storage::{ColumnStorage, Refusal};
use crate::arrow::{Batch, BatchRows, DataType};
use crate::arrow_c::Batches;
use crate::connect::Connection;
use crate::error::{Error, ErrorKind};
use crate::schema::{Column, ColumnType, Schema};
use crate::sql::dialect::Dialect;
use crate::sql::insert::TableInsert;
use crate::value::Value;

/// The error of a copy of rows to a table. The variant says if the source of the rows or the target
/// table has caused the error.
#[derive(Debug)]
pub enum CopyError {
    /// The rows cannot be read.
    Source(Error),
    /// The columns of the rows do not match the table, a value cannot be stored in its column
    /// unchanged, or the database refused a row.
    Target(Error),
}

/// A table of a connected database, with its columns.
#[derive(Debug)]
pub struct TargetTable<'c> {
    connection: &'c Connection,
    name: String,
    columns: Vec<(Column, ColumnStorage)>,
}

/// Returns Arrow types with which the values of a result are copied to another table unchanged:
/// text for columns of decimals and arrays. Each item is a column name and its type. The types in
/// `given` have precedence. A column that is not in the list has its usual type.
#[must_use]
pub fn exact_types(schema: &Schema, given: &[(String, DataType)]) -> Vec<(String, DataType)> {
    let open = schema.columns.iter().filter(|column| {
        let is_text = matches!(
            column.column_type,
            ColumnType::Decimal { .. } | ColumnType::Array(_)
        );
        is_text && !given.iter().any(|(name, _)| *name == column.name)
    });
    let exact = open.map(|column| (column.name.clone(), DataType::Utf8));
    given.iter().cloned().chain(exact).collect()
}

impl<'c> TargetTable<'c> {
    /// Reads the names and types of the columns of a table. A dot in `name` separates the schema
    /// from the table. Both names are quoted in the SQL string.
    ///
    /// # Errors
    /// The error of the database, with a remedy if the table does not exist.
    pub fn open(connection: &'c Connection, name: &str) -> Result<TargetTable<'c>, Error> {
        let dialect = connection.dialect();
        let table = TableInsert::new(name, &[], dialect).table;
        let sql = format!("select * from {table} where 1 = 0");
        let statement = connection.execute(&sql, &[]).map_err(|mut error| {
            if error.kind == ErrorKind::Programming {
                error
                    .message
                    .push_str("\ncreate the table before the copy, or correct its name");
                if dialect == Dialect::Postgres {
                    error.message.push_str(", also its upper and lower case");
                }
            }
            error
        })?;
        let names = connection.names();
        let columns = statement.schema().columns.iter();
        let columns = columns
            .map(|column| {
                let storage = ColumnStorage::new(column, dialect, &names);
                (column.clone(), storage)
            })
            .collect();
        Ok(TargetTable {
            connection,
            name: name.to_owned(),
            columns,
        })
    }

    /// Returns `true` if this table is in the same SQLite file as the database of `source`. The
    /// caller refuses such a copy, because it would lock this file twice: to read and to write.
    ///
    /// # Errors
    /// [`ErrorKind::Interface`] if one of the two connections is closed.
    pub fn is_in_file_of(&self, source: &Connection) -> Result<bool, Error> {
        let (Ok(source), Ok(target)) = (source.sqlite(), self.connection.sqlite()) else {
            return Ok(false);
        };
        let files = source.file()?.zip(target.file()?);
        let is_same = |(a, b): (PathBuf, PathBuf)| match (a.canonicalize(), b.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        };
        Ok(files.is_some_and(is_same))
    }

    /// Returns, for each column name of a result, the column of the table with the same name. The
    /// case of ASCII letters is ignored, except for the dialects `Postgres` and `Generic`.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if a name occurs twice in the result or is not in the table.
    /// Unless `allow_defaults` is `true`, also if the result does not have a column of the table.
    /// The message contains the name of the column.
    pub fn match_columns(
        &self,
        names: &[&str],
        allow_defaults: bool,
    ) -> Result<MatchedColumns<'_>, Error> {
        let ignores_case = !matches!(
            self.connection.dialect(),
            Dialect::Postgres | Dialect::Generic
        );
        let is_same = |a: &str, b: &str| match ignores_case {
            true => a.eq_ignore_ascii_case(b),
            false => a == b,
        };
        let table = &self.name;
        let failed = |message: String| Err(Error::new(ErrorKind::Programming, message));
        for (i, name) in names.iter().enumerate() {
            if names[..i].iter().any(|other| is_same(other, name)) {
                return failed(format!(
                    "the query has the column `{name}` twice\nrename one with `as`"
                ));
            }
            if self
                .columns
                .iter()
                .any(|(column, _)| is_same(&column.name, name))
            {
                continue;
            }
            let similar = self.columns.iter().map(|(column, _)| &column.name);
            let mut similar = similar.filter(|other| other.eq_ignore_ascii_case(name));
            return failed(match similar.next() {
                Some(other) => format!(
                    "the table `{table}` has no column `{name}`, but `{other}`\n\
                     rename it in the query: `{name} as \"{other}\"`"
                ),
                None => format!(
                    "the table `{table}` has no column `{name}`\n\
                     leave it out of the query, or rename it there with `as`"
                ),
            });
        }
        let missing = self.columns.iter().map(|(column, _)| &column.name);
        let mut missing = missing.filter(|column| !names.iter().any(|name| is_same(column, name)));
        if let (Some(name), false) = (missing.next(), allow_defaults) {
            return failed(format!(
                "the query has no column `{name}`, which the table `{table}` has\n\
                 add it to the query, or permit its default value (`--allow-defaults`)"
            ));
        }
        let columns = names.iter().filter_map(|name| {
            let mut columns = self.columns.iter();
            columns.find(|(column, _)| is_same(&column.name, name))
        });
        Ok(MatchedColumns {
            table: self,
            columns: columns.collect(),
        })
    }
}

/// The target columns of an insert: for each column of the inserted rows, in the order of the rows,
/// the column of the table with the same name.
#[derive(Debug)]
pub struct MatchedColumns<'t> {
    table: &'t TargetTable<'t>,
    columns: Vec<&'t (Column, ColumnStorage)>,
}

impl MatchedColumns<'_> {
    /// Inserts the rows of all batches into the table, and returns the number of rows. The caller
    /// must commit the transaction, or roll it back after an error. `observe` is called with each
    /// batch before its rows are inserted. If `observe` returns an error, the copy ends.
    ///
    /// # Errors
    /// [`CopyError::Source`] if `batches` or `observe` fails. [`CopyError::Target`] if a column
    /// cannot store a value unchanged, or if the database returns an error. The error contains the
    /// index (from 0) of the row.
    pub fn insert(
        &self,
        batches: &mut impl Batches,
        mut observe: impl FnMut(&Batch) -> Result<(), Error>,
    ) -> Result<u64, CopyError> {
        let names: Vec<&str> = self.columns.iter().map(|(c, _)| c.name.as_str()).collect();
        let connection = self.table.connection;
        let insert = TableInsert::new(&self.table.name, &names, connection.dialect());
        let next_batch = || {
            let batch = batches.next_batch()?;
            batch.as_ref().map_or(Ok(()), &mut observe)?;
            Ok(batch)
        };
        let owned = names.iter().map(|&name| name.to_owned()).collect();
        let mut rows = ExactRows {
            rows: BatchRows::new(owned, next_batch),
            columns: &self.columns,
            n_rows: 0,
            failure: None,
        };
        let inserted = connection.insert_rows(&insert, &mut rows);
        match (rows.failure, inserted) {
            (Some(failure), _) => Err(failure),
            (None, Err(error)) => Err(CopyError::Target(error)),
            (None, Ok(_)) => Ok(rows.n_rows),
        }
    }
}

/// An iterator over the rows to insert. It converts each value to the type of its target column.
/// The iteration ends after the first error.
struct ExactRows<'t, F> {
    rows: BatchRows<F>,
    columns: &'t [&'t (Column, ColumnStorage)],
    n_rows: u64,
    /// The error that ended the iteration.
    failure: Option<CopyError>,
}

impl<F: FnMut() -> Result<Option<Batch>, Error>> Iterator for ExactRows<'_, F> {
    type Item = Result<Vec<Value>, Error>;

    fn next(&mut self) -> Option<Result<Vec<Value>, Error>> {
        if self.failure.is_some() {
            return None;
        }
        let mut values = match self.rows.next()? {
            Ok(values) => values,
            Err(error) => {
                self.failure = Some(CopyError::Source(error.clone()));
                return Some(Err(error));
            }
        };
        // The counts of copied text are not reported.
        self.rows.tally = Tally::default();
        for (i, (value, (column, storage))) in values.iter_mut().zip(self.columns).enumerate() {
            let given = std::mem::replace(value, Value::Null);
            let kind = kind_of(&given);
            match storage.convert(given) {
                Ok(converted) => *value = converted,
                Err(refusal) => {
                    let error = refused(refusal, kind, column);
                    let error = error.at_column(i, &column.name).at_row(self.n_rows);
                    self.failure = Some(CopyError::Target(error.clone()));
                    return Some(Err(error));
                }
            }
        }
        self.n_rows += 1;
        Some(Ok(values))
    }
}

/// Returns a phrase that names the type of `value` in an error message, such as `an integer`.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "a boolean",
        Value::I64(_) => "an integer",
        Value::F64(f) if !f.is_finite() => "a float that is not finite",
        Value::F64(_) => "a float",
        Value::Decimal(_) => "a decimal",
        Value::Bytes(_) => "a binary value",
        Value::Date(_) => "a date",
        Value::Time(_) => "a time",
        Value::Timestamp(stamp) if stamp.offset_minutes.is_some() => "a timestamp with an offset",
        Value::Timestamp(_) => "a timestamp",
        Value::Uuid(_) => "a UUID",
        _ => "text",
    }
}

fn refused(refusal: Refusal, kind: &str, column: &Column) -> Error {
    let type_name = match column.type_name.as_str() {
        "" => "a column without a type".to_owned(),
        name => format!("a column of the type `{name}`"),
    };
    let message = match refusal {
        Refusal::Kind => format!(
            "{kind} of this form does not go into {type_name}\n\
             convert it in the query, or change the type of the column"
        ),
        Refusal::Change => format!(
            "{kind} would change in {type_name}\n\
             convert it in the query, or change the type of the column"
        ),
        Refusal::Nul => "text with a NUL character, which PostgreSQL cannot store\n\
             remove it in the query"
            .to_owned(),
        Refusal::Offset => format!(
            "{kind} does not go into {type_name}: one of them has an offset from UTC\n\
             convert it in the query, as by `at time zone 'UTC'`"
        ),
    };
    Error::new(ErrorKind::Data, message)
}
