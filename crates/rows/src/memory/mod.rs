//! A database in memory for tests: the smallest implementation of [`crate::database`].
//!
//! It executes four statements: `values` returns one row with its parameters, `numbers N` the
//! integers from 0 to N - 1, `endless` an infinite number of rows. `fail N` fails after N rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use onecopy_text::Units;
use onecopy_wire::CancelHandle;

use crate::database::{
    ConnectCancel, ConnectOptions, DatabaseConnection, DatabaseStatement, Prepared,
};
use crate::error::ErrorKind::{Cancelled, Interface, Operational, Programming};
use crate::schema::{Column, ColumnType};
use crate::{Block, Budget, Cell, Emitted, Error, Fetched, RowSink, Schema, Source, Value};

/// The flags that a connection to the in-memory test database shares with its statements.
#[derive(Debug, Default)]
struct Flags {
    is_closed: AtomicBool,
    is_cancelled: AtomicBool,
}

/// A connection to the in-memory database for tests. Its connection string is `memory:`.
#[derive(Debug, Default)]
pub struct Connection(Arc<Flags>);

impl DatabaseConnection for Connection {
    type Statement = Statement;

    fn accepts(target: &str) -> bool {
        target.starts_with("memory:")
    }

    fn open(_: &str, _: &ConnectOptions, _: &ConnectCancel) -> Result<Connection, Error> {
        Ok(Connection::default())
    }

    fn execute(&self, sql: &str, parameters: &[Value]) -> Result<Statement, Error> {
        if self.is_closed() {
            return Err(Error::new(Interface, "the connection is closed"));
        }
        let (word, number) = sql.split_once(' ').unwrap_or((sql, "0"));
        let wrong = |_| Error::new(Programming, "the number of rows is not a number");
        let number = number.parse().map_err(wrong)?;
        let (row, n_left) = match word {
            "values" => (Some(parameters.to_vec()), 1),
            "numbers" | "fail" => (None, number),
            "endless" => (None, u64::MAX),
            _ => return Err(Error::new(Programming, "not a statement of this database")),
        };
        self.0.is_cancelled.store(false, SeqCst);
        let block = MemoryRows { row, next: 0, n: 0 };
        let column = |i| Column::new(format!("c{i}"), ColumnType::Any);
        Ok(Statement {
            flags: self.0.clone(),
            schema: Schema::new((0..block.n_columns()).map(column).collect()),
            word: word.to_owned(),
            n_left,
            block,
        })
    }

    fn prepare_check(&self, _: &str) -> Result<Prepared, Error> {
        Ok(Prepared::default())
    }

    fn cancel_handle(&self) -> CancelHandle {
        let flags = self.0.clone();
        CancelHandle::new(move || flags.is_cancelled.store(true, SeqCst))
    }

    fn commit(&self) -> Result<(), Error> {
        Ok(())
    }

    fn rollback(&self) -> Result<(), Error> {
        Ok(())
    }

    fn set_autocommit(&self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    fn autocommit(&self) -> bool {
        true
    }

    fn close(&self) -> Result<(), Error> {
        self.0.is_closed.store(true, SeqCst);
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed.load(SeqCst)
    }
}

/// A statement that a [`Connection`] to the in-memory database has executed.
#[derive(Debug)]
pub struct Statement {
    flags: Arc<Flags>,
    schema: Schema,
    word: String,
    n_left: u64,
    block: MemoryRows,
}

impl DatabaseStatement for Statement {}

impl Source for Statement {
    type Block = MemoryRows;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error> {
        if self.flags.is_closed.load(SeqCst) {
            return Err(Error::new(Interface, "the connection was closed"));
        }
        if self.flags.is_cancelled.load(SeqCst) {
            return Err(Error::new(Cancelled, "the statement was cancelled"));
        }
        self.block.next += self.block.n as u64;
        self.block.n =
            usize::try_from(self.n_left).map_or(budget.block_rows, |n| n.min(budget.block_rows));
        self.n_left -= self.block.n as u64;
        match self.block.n {
            0 if self.word == "fail" => Err(Error::new(Operational, "the statement failed")),
            0 => Ok(Fetched::End),
            n => Ok(Fetched::Rows(n)),
        }
    }

    fn block(&self) -> &MemoryRows {
        &self.block
    }

    fn cancel_handle(&self) -> CancelHandle {
        let flags = self.flags.clone();
        CancelHandle::new(move || flags.is_cancelled.store(true, SeqCst))
    }
}

/// The current block: the row of parameters, or `n` rows with the integers from `next` on.
#[derive(Debug)]
pub struct MemoryRows {
    row: Option<Vec<Value>>,
    next: u64,
    n: usize,
}

impl MemoryRows {
    fn n_columns(&self) -> usize {
        self.row.as_ref().map_or(1, Vec::len)
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match self.row.as_ref().map(|row| &row[column]) {
            None => Cell::U64(self.next + row as u64),
            Some(Value::I64(i)) => Cell::I64(*i),
            Some(Value::F64(f)) => Cell::F64(*f),
            Some(Value::Text(text)) => Cell::Text(Units::Utf8(text.as_bytes())),
            Some(_) => Cell::Null,
        }
    }
}

impl Block for MemoryRows {
    fn n_rows(&self) -> usize {
        self.n
    }

    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error> {
        for row in first_row..self.n {
            sink.begin_row()?;
            (0..self.n_columns()).try_for_each(|c| sink.cell(c, self.cell(row, c)))?;
            if !sink.end_row()? && row + 1 < self.n {
                return Ok(Emitted::Paused { next_row: row + 1 });
            }
        }
        Ok(Emitted::All)
    }

    fn emit_columns<S: RowSink>(
        &self,
        first: usize,
        n: usize,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        sink.begin_columns(n)?;
        for c in 0..self.n_columns() {
            (0..n).try_for_each(|row| sink.column_cell(row, c, self.cell(first + row, c)))?;
        }
        sink.end_columns()
    }
}
