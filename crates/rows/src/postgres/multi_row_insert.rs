//! Executes an INSERT for many rows of parameters by COPY, or as an INSERT of several rows (`VALUES
//! (…), (…)`). Both cost the server less than a statement for each row, and COPY costs the least.

use std::cell::OnceCell;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;

use super::batch::{prepare_many, read_completions, run_batch};
use super::copy_values::{HEADER, TRAILER, encode_rows, put_data};
use super::delivery::Completion;
use super::execute::{begin, prepare, write_execution};
use super::message::violation;
use super::parameters::{UniformRows, check, own, translate};
use super::preamble::Preamble;
use super::server::{ServerState, TransactionStatus};
use super::shared::Shared;
use super::type_table::oid;
use super::wire::{Event, Wire};
use crate::error::Error;
use crate::sql::insert::RowInsert;
use crate::value::Value;

/// The largest number of rows of one INSERT: an INSERT of more rows takes more time per row.
const MOST_ROWS: usize = 32;

/// The largest number of parameters of one INSERT of several rows.
const MOST_PARAMETERS: usize = 512;

/// The smallest number of rows of parameters for which an INSERT of several rows is faster than
/// INSERTs of one row, although it requires an extra query that examines the table.
const LEAST_ROWS: usize = 128;

/// The statement that removes the savepoint, which [`set_savepoint`] has set.
const RELEASE: &str = "RELEASE SAVEPOINT onecopy_rows";

/// The largest absolute value up to which each integer is exact as a 64-bit float.
const EXACT_FLOAT: u64 = 1 << 53;

/// An INSERT of several rows that was derived from the caller's INSERT of one row, and a COPY with
/// the same effect.
#[derive(Debug)]
pub(super) struct RepeatedInsert {
    sql: String,
    /// The number of parameters of one row.
    n_parameters: usize,
    n_rows: usize,
    /// The `COPY … FROM STDIN` into the same columns; `None` if it could have another effect than
    /// the INSERT.
    copy: Option<String>,
    /// The object identifiers of the types that the server infers for the parameters: those of the
    /// columns. Empty if the server cannot infer them. Determined when rows first need them.
    column_types: OnceCell<Vec<u32>>,
}

/// Returns a query that checks whether an INSERT of several rows into the table has the same effect
/// as several INSERTs of one row. Its result has a row if the table is not a view, and neither the
/// table nor one of its partitions has rules or triggers. (An AFTER ROW trigger is executed after
/// the last row of the INSERT, so it sees all rows.) The internal triggers of foreign keys are
/// permitted, unless a foreign key references the table itself or a table of which it is a
/// partition.
///
/// The value of the row is the names of the first `n_columns` columns, separated by commas. It is
/// empty if a COPY into the table could have another effect than an INSERT. COPY is an error with
/// row-level security, and accepts values for `GENERATED ALWAYS AS IDENTITY`. It does not check
/// the domains of columns without values. A function in a CHECK constraint does not find the
/// previous rows of the COPY.
fn columns_of_plain_table(table: &str, n_columns: usize) -> String {
    let literal = table.replace('\'', "''");
    format!(
        "with recursive parts (id) as (select pg_catalog.to_regclass('{literal}')::pg_catalog.oid \
         union select inhrelid from pg_catalog.pg_inherits join parts on inhparent = id) \
         select case when relrowsecurity or exists (select from pg_catalog.pg_attribute \
         join pg_catalog.pg_type on pg_type.oid = atttypid where attrelid = pg_class.oid \
         and attnum > 0 and not attisdropped and (attidentity = 'a' or typtype = 'd')) \
         or exists (select from pg_catalog.pg_constraint join parts on conrelid = id \
         join pg_catalog.pg_depend on objid = pg_constraint.oid where contype = 'c' \
         and classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass and refclassid in \
         ('pg_catalog.pg_proc'::pg_catalog.regclass, \
         'pg_catalog.pg_operator'::pg_catalog.regclass)) then '' else \
         (select pg_catalog.string_agg(pg_catalog.quote_ident(attname), ', ' order by attnum) from \
         (select attname, attnum from pg_catalog.pg_attribute where attrelid = pg_class.oid \
         and attnum > 0 and not attisdropped order by attnum limit {n_columns}) as firsts) end \
         from pg_catalog.pg_class where oid = pg_catalog.to_regclass('{literal}') \
         and relkind in ('r', 'p') and not relhasrules \
         and not (relispartition and relhastriggers) and not exists \
         (select from pg_catalog.pg_trigger join parts on tgrelid = id \
         where not tgisinternal or tgconstrrelid in (select id from parts))"
    )
}

/// Returns `true` if the server has the catalog columns that [`columns_of_plain_table`] reads:
/// PostgreSQL from version 10. On other servers an error could abort the caller's transaction.
fn has_these_catalogs(server: &ServerState) -> bool {
    let version = server.parameter("server_version").unwrap_or_default();
    let major = version.split(|c: char| !c.is_ascii_digit()).next();
    major.and_then(|major| major.parse().ok()).unwrap_or(0) >= 10
}

impl RepeatedInsert {
    /// Converts `sql`, an INSERT of one row, to an INSERT of several rows. `n_rows` is the number
    /// of rows of parameters. Returns `None` if each row must be inserted by a separate statement.
    ///
    /// # Errors
    /// The connection was lost.
    pub(super) fn new(
        shared: &Arc<Shared>,
        sql: &str,
        n_rows: usize,
    ) -> Result<Option<RepeatedInsert>, Error> {
        let Some(insert) = RowInsert::read(sql).filter(|_| n_rows >= LEAST_ROWS) else {
            return Ok(None);
        };
        let n_parameters = translate(sql).n_parameters;
        let n_rows = MOST_ROWS.min(MOST_PARAMETERS / n_parameters.max(1));
        // In the query's string literal, a backslash could be an escape, and a comment is an error.
        let refused = ["\\", "/*", "--"];
        let is_refused = refused.iter().any(|piece| insert.table.contains(piece));
        if n_parameters == 0 || n_rows < 2 || is_refused {
            return Ok(None);
        }
        let found = shared.call(|wire| match wire.server.status() {
            TransactionStatus::Failed => Ok(None),
            _ if !has_these_catalogs(&wire.server) => Ok(None),
            _ => wire.value(&columns_of_plain_table(insert.table, n_parameters)),
        })?;
        Ok(found.map(|firsts| {
            let columns = insert.columns.unwrap_or(&firsts);
            let is_copied = insert.has_only_parameters && !firsts.is_empty();
            let table = insert.table;
            RepeatedInsert {
                sql: insert.of_rows(n_rows),
                n_parameters,
                n_rows,
                copy: is_copied
                    .then(|| format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)")),
                column_types: OnceCell::new(),
            }
        }))
    }

    /// Inserts `rows`, whose first row has the index `first_row` (from 0) among all rows; `single`
    /// is the INSERT of one row, and `id` the number of the call (`Activity::begin`). If a row
    /// fails, all rows are inserted again one by one, so that the error contains the index of the
    /// failed row.
    ///
    /// # Errors
    /// The errors of [`run_batch`].
    pub(super) fn run(
        &self,
        shared: &Shared,
        wire: &mut Wire,
        single: &str,
        rows: &[Vec<Value>],
        first_row: u64,
        id: u64,
    ) -> Result<Option<u64>, Error> {
        if let Some(copied) = self.run_copy(shared, wire, single, rows)? {
            // The server's `statement_timeout` may be too short for one COPY. In a read-only
            // transaction, the error must name the INSERT.
            let is_of_the_copy = |error: &Error| match error.sqlstate.as_str() {
                "57014" => !shared.activity.was_cancelled(id),
                sqlstate => sqlstate == "25006",
            };
            return match copied {
                Err(error) if is_of_a_row(&error) || is_of_the_copy(&error) => {
                    wire.command("ROLLBACK TO SAVEPOINT onecopy_rows")?;
                    run_batch(shared, wire, single, rows, first_row)
                }
                done => done,
            };
        }
        let n_whole = rows.len() - rows.len() % self.n_rows;
        let (whole, rest) = rows.split_at(n_whole);
        let mut types = self.types_of(rows, &[]).filter(|_| !whole.is_empty());
        if types.is_none() && !whole.is_empty() {
            let column_types = self.column_types(shared, wire, single)?;
            types = self.types_of(rows, &common_types(column_types));
        }
        let Some(types) = types else {
            return run_batch(shared, wire, single, rows, first_row);
        };
        set_savepoint(shared, wire, single)?;
        match self.run_whole(shared, wire, whole, &types) {
            Ok(changed) => {
                wire.command(RELEASE)?;
                if rest.is_empty() {
                    return Ok(changed);
                }
                let first_row = first_row + n_whole as u64;
                let more = run_batch(shared, wire, single, rest, first_row)?;
                Ok(changed.zip(more).map(|(sum, n)| sum + n))
            }
            Err(error) if wire.is_lost || !is_of_a_row(&error) => Err(error),
            Err(_) => {
                wire.command("ROLLBACK TO SAVEPOINT onecopy_rows")?;
                run_batch(shared, wire, single, rows, first_row)
            }
        }
    }

    /// Inserts `rows` by COPY. Returns `None` if they must be inserted by INSERT, because a value
    /// has no binary encoding for its column, or has a declared type. If the server refuses a row,
    /// the inner error is returned. The caller must then roll back to the savepoint.
    ///
    /// # Errors
    /// The connection was lost, or the savepoint could not be set.
    fn run_copy(
        &self,
        shared: &Shared,
        wire: &mut Wire,
        single: &str,
        rows: &[Vec<Value>],
    ) -> Result<Option<Result<Option<u64>, Error>>, Error> {
        let Some(copy) = self.copy.as_deref().filter(|_| rows.len() >= LEAST_ROWS) else {
            return Ok(None);
        };
        let is_copied = |row: &Vec<Value>| {
            let has_types = row.iter().any(|v| matches!(v, Value::Declared(..)));
            !has_types && check(self.n_parameters, row).is_ok()
        };
        if !rows.iter().all(is_copied) {
            return Ok(None);
        }
        let types = self.column_types(shared, wire, single)?;
        let mut data = BytesMut::from(HEADER);
        if !encode_rows(rows, types, &mut data) {
            return Ok(None);
        }
        data.put_i16(TRAILER);
        set_savepoint(shared, wire, single)?;
        let message = |e: std::io::Error| violation(e.to_string());
        frontend::query(copy, &mut wire.out).map_err(message)?;
        wire.send()?;
        if let Err(error) = begin_copy(wire, copy)? {
            return Ok(Some(Err(error)));
        }
        put_data(&data, &mut wire.out)?;
        frontend::copy_done(&mut wire.out);
        frontend::query(RELEASE, &mut wire.out).map_err(message)?;
        wire.send()?;
        let (copied, released) = (read_copy(wire, copy)?, read_copy(wire, RELEASE)?);
        Ok(Some(copied.and_then(|completion| {
            released.map(|_| completion.n_changed)
        })))
    }

    /// Returns the field `column_types`; determines it at the first call.
    fn column_types(
        &self,
        shared: &Shared,
        wire: &mut Wire,
        single: &str,
    ) -> Result<&[u32], Error> {
        if let Some(types) = self.column_types.get() {
            return Ok(types);
        }
        let found = column_types(shared, wire, single)?;
        Ok(self.column_types.get_or_init(|| found))
    }

    /// Returns the types (object identifiers) of the parameters. Returns `None` if a value cannot
    /// be sent, or if a parameter has different types in different rows. There are two exceptions:
    /// 32-bit and 64-bit integers together have the 64-bit type, and integers may be mixed with
    /// values of the type that `common_types` contains for the parameter.
    fn types_of(&self, rows: &[Vec<Value>], common_types: &[u32]) -> Option<Vec<u32>> {
        if rows
            .iter()
            .any(|row| check(self.n_parameters, row).is_err())
        {
            return None;
        }
        // Integers of both types are cast to the type of the column with the same result, because
        // each value of the INSERT is a parameter or a constant.
        let merge = |i: usize, a, b| {
            let is_integer = |of| matches!(of, oid::INT4 | oid::INT8);
            if is_integer(a) && is_integer(b) {
                return Some(oid::INT8);
            }
            let common = common_types.get(i).copied().filter(|common| *common != 0)?;
            let is_number = |of| is_integer(of) || of == common;
            (is_number(a) && is_number(b)).then_some(common)
        };
        let uniform = UniformRows::first(rows, merge);
        // The server would convert an integer to the nearest float. An integer that a float
        // represents exactly is converted before it is sent.
        let is_same = |value: &Value, of: u32| match own(value) {
            Value::I64(n) => of != oid::FLOAT8 || n.unsigned_abs() <= EXACT_FLOAT,
            _ => true,
        };
        let is_same = |row: &Vec<Value>| {
            let mut values = row.iter().zip(&uniform.types);
            values.all(|(value, of)| is_same(value, *of))
        };
        let is_sent = uniform.rows.len() == rows.len()
            && (common_types.is_empty() || rows.iter().all(is_same));
        is_sent.then_some(uniform.types)
    }

    /// Inserts `rows`, whose number must be a multiple of the number of rows that this statement
    /// inserts. `types` has the type of each parameter of one row.
    fn run_whole(
        &self,
        shared: &Shared,
        wire: &mut Wire,
        rows: &[Vec<Value>],
        types: &[u32],
    ) -> Result<Option<u64>, Error> {
        let declared = types.repeat(self.n_rows);
        let prepared = prepare_many(shared, wire, &self.sql, &declared)?;
        for rows in rows.chunks_exact(self.n_rows) {
            write_execution(wire, &prepared, rows.iter().flatten(), &[])?;
        }
        frontend::sync(&mut wire.out);
        wire.send()?;
        let n = rows.len() / self.n_rows;
        let (ended, changed) = read_completions(wire, &self.sql, n, 0)?;
        ended.map(|()| changed).map_err(|mut error| {
            error.row = None;
            error
        })
    }
}

/// Waits until the server requests the data of a COPY. Returns the error with which the server
/// refuses the COPY.
///
/// # Errors
/// The connection was lost, or the server violated the protocol.
fn begin_copy(wire: &mut Wire, sql: &str) -> Result<Result<(), Error>, Error> {
    let mut failure = None;
    loop {
        match wire.event()? {
            Event::CopyIn => return Ok(Ok(())),
            Event::Failed(fields) => _ = failure.get_or_insert_with(|| fields.to_error(sql)),
            Event::Ready => {
                return match failure {
                    Some(error) => Ok(Err(error)),
                    None => wire.completed(None).map(|_| Ok(())),
                };
            }
            Event::Row => wire.skip()?,
            _ => {}
        }
    }
}

/// Reads the response to a COPY whose data was already sent, or to another statement. Returns the
/// result of the statement.
///
/// # Errors
/// The connection was lost, or the server violated the protocol.
fn read_copy(wire: &mut Wire, sql: &str) -> Result<Result<Completion, Error>, Error> {
    let (mut completion, mut failure) = (None, None);
    loop {
        match wire.event()? {
            Event::Completed(completed) => completion = Some(completed),
            Event::Failed(fields) => _ = failure.get_or_insert_with(|| fields.to_error(sql)),
            Event::Ready => {
                return match failure {
                    Some(error) => Ok(Err(error)),
                    None => wire.completed(completion).map(Ok),
                };
            }
            Event::Row => wire.skip()?,
            _ => {}
        }
    }
}

/// Returns, for each column type, a type in which integers and all other numbers can be sent:
/// `float8` for floats, `numeric` for decimals, otherwise 0 (no type). The type does not affect the
/// stored values.
fn common_types(column_types: &[u32]) -> Vec<u32> {
    let common = |of: &u32| match *of {
        oid::FLOAT4 | oid::FLOAT8 => oid::FLOAT8,
        oid::NUMERIC => oid::NUMERIC,
        _ => 0,
    };
    column_types.iter().map(common).collect()
}

/// Returns the types that the server infers for the parameters of the INSERT `sql`. The result is
/// empty if it cannot infer them.
fn column_types(shared: &Shared, wire: &mut Wire, sql: &str) -> Result<Vec<u32>, Error> {
    set_savepoint(shared, wire, sql)?;
    let translated = translate(sql).sql;
    let prepared = prepare(wire, &translated, String::new(), &[], Preamble::default());
    if prepared.is_ok() {
        frontend::sync(&mut wire.out);
        wire.send()?;
        wire.read_to_ready(sql)?;
        wire.command(RELEASE)?;
    } else {
        wire.command("ROLLBACK TO SAVEPOINT onecopy_rows")?;
    }
    Ok(prepared.map_or(Vec::new(), |prepared| prepared.parameters))
}

/// Sets the savepoint `onecopy_rows`. If the statement `sql` requires a transaction and none is
/// open, first begins one.
fn set_savepoint(shared: &Shared, wire: &mut Wire, sql: &str) -> Result<(), Error> {
    let preamble = begin(shared, wire, sql)?;
    wire.send()?;
    wire.read_preamble(preamble)?;
    wire.command("SAVEPOINT onecopy_rows").map(drop)
}

/// Returns `true` if the error may have been caused by the values of a row, for example because
/// they violate a constraint or a limit, or because a trigger rejected them.
fn is_of_a_row(error: &Error) -> bool {
    let classes = ["0A", "22", "23", "27", "42", "44", "54", "P0"];
    classes
        .iter()
        .any(|class| error.sqlstate.starts_with(class))
}
