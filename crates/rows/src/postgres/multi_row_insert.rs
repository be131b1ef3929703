//! Executes an INSERT for many rows of parameters as an INSERT of several rows (`VALUES (…), (…)`),
//! which costs the server less than a statement for each row.

use std::cell::OnceCell;
use std::sync::Arc;

use postgres_protocol::message::frontend;

use super::batch::{prepare_many, read_completions, run_batch};
use super::execute::{begin, prepare, write_execution};
use super::parameters::{UniformRows, check, own, translate};
use super::preamble::Preamble;
use super::server::TransactionStatus;
use super::shared::Shared;
use super::type_table::oid;
use super::wire::Wire;
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

/// The largest absolute value up to which each integer is exact as a 64-bit float.
const EXACT_FLOAT: u64 = 1 << 53;

/// An INSERT of several rows that was derived from the caller's INSERT of one row.
#[derive(Debug)]
pub(super) struct RepeatedInsert {
    sql: String,
    /// The number of parameters of one row.
    n_parameters: usize,
    n_rows: usize,
    /// For each parameter, the object identifier of a type in which all its numbers can be sent if
    /// they have different types; 0 if there is no such type. The type does not affect the stored
    /// values. Empty if the types of the columns are unknown. Determined when rows first need it.
    common_types: OnceCell<Vec<u32>>,
}

/// Returns a query that checks whether an INSERT of several rows into the table has the same effect
/// as several INSERTs of one row. Its result has a row if the table is not a view, and neither the
/// table nor one of its partitions has rules or triggers. (An AFTER ROW trigger is executed after
/// the last row of the INSERT, so it sees all rows.) The internal triggers of foreign keys are
/// permitted, unless a foreign key references the table itself.
fn is_plain_table(table: &str) -> String {
    let literal = table.replace('\'', "''");
    format!(
        "with recursive parts (id) as (select pg_catalog.to_regclass('{literal}')::pg_catalog.oid \
         union select inhrelid from pg_catalog.pg_inherits join parts on inhparent = id) \
         select 1 from pg_catalog.pg_class where oid = pg_catalog.to_regclass('{literal}') \
         and relkind in ('r', 'p') and not relhasrules and not exists \
         (select from pg_catalog.pg_trigger join parts on tgrelid = id \
         where not tgisinternal or tgconstrrelid in (select id from parts))"
    )
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
        // In the query's string literal, a backslash could be an escape. A table with a backslash
        // in its name is therefore excluded.
        if n_parameters == 0 || n_rows < 2 || insert.table.contains('\\') {
            return Ok(None);
        }
        let is_plain = shared.call(|wire| match wire.server.status() {
            TransactionStatus::Failed => Ok(false),
            _ => Ok(wire.value(&is_plain_table(insert.table))?.is_some()),
        })?;
        Ok(is_plain.then(|| RepeatedInsert {
            sql: insert.of_rows(n_rows),
            n_parameters,
            n_rows,
            common_types: OnceCell::new(),
        }))
    }

    /// Inserts `rows`, whose first row has the index `first_row` (from 0) among all rows; `single`
    /// is the INSERT of one row. If a row fails, all rows are inserted again one by one, so that
    /// the error contains the index of the failed row.
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
    ) -> Result<Option<u64>, Error> {
        let n_whole = rows.len() - rows.len() % self.n_rows;
        let (whole, rest) = rows.split_at(n_whole);
        let mut types = self.types_of(rows, &[]).filter(|_| !whole.is_empty());
        if types.is_none() && !whole.is_empty() {
            let common_types = match self.common_types.get() {
                Some(common_types) => common_types,
                None => {
                    let found = common_types(shared, wire, single)?;
                    self.common_types.get_or_init(|| found)
                }
            };
            types = self.types_of(rows, common_types);
        }
        let Some(types) = types else {
            return run_batch(shared, wire, single, rows, first_row);
        };
        set_savepoint(shared, wire, single)?;
        match self.run_whole(shared, wire, whole, &types) {
            Ok(changed) => {
                wire.command("RELEASE SAVEPOINT onecopy_rows")?;
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

/// Determines, for each parameter of the INSERT `sql`, a type in which integers and all other
/// numbers can be sent: `float8` if its column stores floats, `numeric` if its column stores
/// decimals, otherwise 0 (no type). The result is empty if the server cannot infer the types of the
/// parameters from the columns.
fn common_types(shared: &Shared, wire: &mut Wire, sql: &str) -> Result<Vec<u32>, Error> {
    set_savepoint(shared, wire, sql)?;
    let translated = translate(sql).sql;
    let prepared = prepare(wire, &translated, String::new(), &[], Preamble::default());
    if prepared.is_ok() {
        frontend::sync(&mut wire.out);
        wire.send()?;
        wire.read_to_ready(sql)?;
        wire.command("RELEASE SAVEPOINT onecopy_rows")?;
    } else {
        wire.command("ROLLBACK TO SAVEPOINT onecopy_rows")?;
    }
    let of_columns = prepared.map_or(Vec::new(), |prepared| prepared.parameters);
    let common = |of: u32| match of {
        oid::FLOAT4 | oid::FLOAT8 => oid::FLOAT8,
        oid::NUMERIC => oid::NUMERIC,
        _ => 0,
    };
    Ok(of_columns.into_iter().map(common).collect())
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
