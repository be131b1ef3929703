//! Inserts rows of values into a table by a binary COPY, which costs the server less than an INSERT
//! for each row.

use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::batch::run_batch;
use super::copy::CopyIn;
use super::copy_values::{HEADER, TRAILER, encode_rows};
use super::execute::{begin, prepare};
use super::execute_many::{execute_many, in_transaction};
use super::parameters::{check, translate};
use super::shared::Shared;
use super::socket::lost;
use super::wire::Wire;
use crate::error::Error;
use crate::sql::insert::TableInsert;
use crate::task::TimeSlice;
use crate::value::{Batches, Value};

/// The smallest size in bytes of a CopyData message. The last message of a COPY may be smaller.
const MESSAGE_BYTES: usize = 64 << 10;

/// The state of the insertion of rows into a table by COPY. A COPY is started for rows whose values
/// all have a binary encoding. The COPY is ended before rows that contain any other value, which
/// are inserted by INSERT.
struct TableCopy<'a> {
    shared: &'a Arc<Shared>,
    insert: &'a TableInsert,
    /// The object identifiers of the types of the table's columns. `None` if rows must be written
    /// with INSERT, because COPY would have another effect on this table.
    types: Option<Vec<u32>>,
    open: Option<CopyIn>,
    /// The number of rows that were inserted before the current COPY began.
    n_before: u64,
}

/// Inserts rows into a table by COPY; returns the number of inserted rows. If a value of a row has
/// no binary encoding, the whole batch that contains the row is inserted by INSERT instead.
///
/// # Errors
/// The error of the server, with the index of the row; the first error of `rows`.
pub(super) fn insert_rows(
    shared: &Arc<Shared>,
    insert: &TableInsert,
    rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
) -> Result<Option<u64>, Error> {
    // The iterator may run the caller's code, so it is called while the session is not locked.
    let mut batches = Batches::new(rows);
    let first = batches.next().unwrap_or_default();
    let Some(second) = batches.next() else {
        let rows = first.into_iter().map(Ok);
        let mut rows = rows.chain(batches.end().err().map(Err));
        return execute_many(shared, &insert.sql(), &mut rows);
    };
    in_transaction(shared, || {
        let mut copy = TableCopy::new(shared, insert)?;
        let (mut n_rows, mut slice) = (0, TimeSlice::begin());
        for values in [first, second].into_iter().chain(&mut batches) {
            match copy.put(&values, n_rows) {
                Ok(true) => n_rows += values.len() as u64,
                // The server has reported an error, which is returned at the end.
                Ok(false) => break,
                Err(error) => return Err(copy.abort(error)),
            }
            slice.check().map_err(|e| copy.abort(lost(&e)))?;
        }
        // The COPY is completed also if `rows` has returned an error: an aborted COPY would abort a
        // transaction of the caller.
        copy.finish()?;
        batches.end().map(|()| Some(n_rows))
    })
}

/// Returns a query that checks whether COPY into the table has the same effect as INSERT. The
/// effect can differ for a view, for a table with rules or row-level security, and for a table with
/// INSERT triggers other than BEFORE ROW triggers, in the table or in one of its partitions. In all
/// other cases, the result of the query has a row. (`tgtype` is a sum of 1 for ROW, 2 for BEFORE
/// and 4 for INSERT.)
fn accepts_copy(table: &str) -> String {
    let literal = table.replace('\'', "''");
    format!(
        "with recursive parts (id) as (select pg_catalog.to_regclass('{literal}')::pg_catalog.oid \
         union select inhrelid from pg_catalog.pg_inherits join parts on inhparent = id) \
         select 1 from pg_catalog.pg_class where oid = pg_catalog.to_regclass('{literal}') \
         and relkind in ('r', 'p') and not relrowsecurity and not relhasrules and not exists \
         (select from pg_catalog.pg_trigger join parts on tgrelid = id \
         where not tgisinternal and tgtype & 4 = 4 and tgtype & 3 <> 3)"
    )
}

impl<'a> TableCopy<'a> {
    /// Creates the state of a COPY, which is started later. To read the types of the columns,
    /// prepares the INSERT statement; the server then also checks that the table and its columns
    /// exist.
    fn new(shared: &'a Arc<Shared>, insert: &'a TableInsert) -> Result<TableCopy<'a>, Error> {
        let sql = insert.sql();
        let types = shared.call(|wire| {
            // The server may wait for a lock of the table.
            let id = shared.activity.begin();
            let types = TableCopy::types(shared, insert, &sql, wire);
            shared.activity.finish();
            types.map_err(|error| shared.error_of(id, error))
        })?;
        Ok(TableCopy {
            shared,
            insert,
            types,
            open: None,
            n_before: 0,
        })
    }

    /// Returns the object identifiers of the types of the table's columns. Returns `None` if rows
    /// must be written with INSERT, because COPY would have another effect on this table.
    fn types(
        shared: &Arc<Shared>,
        insert: &TableInsert,
        sql: &str,
        wire: &mut Wire,
    ) -> Result<Option<Vec<u32>>, Error> {
        let preamble = begin(shared, wire, sql)?;
        let translated = translate(sql);
        let prepared = prepare(wire, &translated.sql, String::new(), &[], preamble)?;
        frontend::sync(&mut wire.out);
        wire.send()?;
        wire.read_to_ready(sql)?;
        // In the query's string literal, a backslash could be an escape. A table with a backslash
        // in its name is therefore not filled by COPY.
        let accepts =
            !insert.table.contains('\\') && wire.value(&accepts_copy(&insert.table))?.is_some();
        Ok(accepts.then_some(prepared.parameters))
    }

    /// Inserts `rows` by COPY, or by INSERT if a value has no binary encoding. `first_row` is the
    /// index (from 0) of the first of these rows among all rows. Returns `false` if the server has
    /// reported an error; it then discards further data.
    fn put(&mut self, rows: &[Vec<Value>], first_row: u64) -> Result<bool, Error> {
        let mut data = BytesMut::with_capacity(MESSAGE_BYTES * 2);
        if !self.encode(rows, first_row, &mut data)? {
            self.finish()?;
            let sql = self.insert.sql();
            return self.shared.call(|wire| {
                let id = self.shared.activity.begin();
                let done = run_batch(self.shared, wire, &sql, rows, first_row);
                self.shared.activity.finish();
                done.map(|_| true)
                    .map_err(|error| self.shared.error_of(id, error))
            });
        }
        if self.open.is_none() {
            let TableInsert { table, columns, .. } = self.insert;
            let sql = format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)");
            self.n_before = first_row;
            self.open
                .insert(CopyIn::begin(self.shared, &sql)?)
                .send(HEADER)?;
        }
        match &self.open {
            Some(open) => open.send(&data),
            None => Ok(true),
        }
    }

    /// Encodes `rows` in the binary COPY format, and appends them to `data`. Returns `false` if a
    /// value has no binary encoding for the type of its column.
    fn encode(
        &self,
        rows: &[Vec<Value>],
        first_row: u64,
        data: &mut BytesMut,
    ) -> Result<bool, Error> {
        let Some(types) = &self.types else {
            return Ok(false);
        };
        for (i, values) in rows.iter().enumerate() {
            check(types.len(), values).map_err(|e| e.at_row(first_row + i as u64))?;
        }
        Ok(encode_rows(rows, types, data))
    }

    /// Ends the current COPY, if one is in progress, and waits for its result.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let sent = open.send(&TRAILER.to_be_bytes());
        let n_before = self.n_before;
        open.finish(sent.err())
            .map(drop)
            .map_err(|error| at_line(error, n_before))
    }

    /// Aborts the COPY because of `error`, and returns the error to report: `error` itself, or, if
    /// the connection was lost, the error that the server sent before the loss.
    fn abort(&mut self, error: Error) -> Error {
        let Some(open) = self.open.take() else {
            return error;
        };
        match open.finish(Some(error.clone())) {
            Err(error) => at_line(error, self.n_before),
            Ok(_) => error,
        }
    }
}

/// Adds the index of the failed row (from 0) to an error of a COPY. The index is computed from the
/// line number in the error's context (`COPY t, line 7, column a`), which counts the rows of this
/// COPY from 1, and from `n_before`, the number of rows that were inserted before this COPY.
fn at_line(error: Error, n_before: u64) -> Error {
    let context = error.details.iter().find(|(name, _)| *name == "context");
    let line = context.and_then(|(_, text)| text.split(", line ").nth(1));
    let digits = line.map(|line| {
        let end = line.find(|c: char| !c.is_ascii_digit());
        &line[..end.unwrap_or(line.len())]
    });
    match digits.and_then(|digits| digits.parse::<u64>().ok()) {
        Some(line) if line > 0 => error.at_row(n_before + line - 1),
        _ => error,
    }
}
