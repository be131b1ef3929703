//! Results that are kept in memory: those of one statement that was executed for many rows of parameters.

use std::collections::{TryReserveError, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use onecopy_text::{Policy, Units};
use onecopy_wire::CancelHandle;

use crate::cell::{Cell, LongKind};
use crate::database::{DatabaseConnection, DatabaseStatement};
use crate::error::{Error, ErrorKind, Message};
use crate::schema::Schema;
use crate::source::{
    Block, BlockPosition, Budget, Emitted, Fetched, LongValues, PumpError, Pumped, RowSink, Source,
};
use crate::value::Value;

/// The results of one statement for many rows of parameters, each with its rows, in their order.
#[derive(Debug)]
pub struct Statement {
    schema: Schema,
    row_count: Option<u64>,
    /// Rows of the results after this one.
    waiting: VecDeque<Rows>,
    current: Rows,
    is_fetched: bool,
    messages: Vec<Message>,
    /// Bytes of text copied into these rows that were not reported yet.
    moved: usize,
    policy: Policy,
    is_cancelled: Arc<AtomicBool>,
}

impl Statement {
    /// Runs `sql` for each of `rows` and keeps what it returns: memory grows with the results. Those before an error are in
    /// the transaction and are not returned.
    pub(crate) fn execute<C: DatabaseConnection>(
        connection: &C,
        sql: &str,
        rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<Statement, Error> {
        let mut stored = Statement {
            schema: Schema::default(),
            row_count: Some(0),
            waiting: VecDeque::new(),
            current: Rows::default(),
            is_fetched: false,
            messages: Vec::new(),
            moved: 0,
            policy: Policy::Strict,
            is_cancelled: Arc::default(),
        };
        for (at, row) in rows.enumerate() {
            stored
                .add(connection, sql, &row)
                .map_err(|error| error.at_row(at as u64))?;
        }
        stored.current = stored.waiting.pop_front().unwrap_or_default();
        Ok(stored)
    }

    fn add<C: DatabaseConnection>(
        &mut self,
        connection: &C,
        sql: &str,
        row: &[Value],
    ) -> Result<(), Error> {
        let mut statement = connection.execute(sql, row)?;
        statement.set_long_values(LongValues::Whole);
        let mut rows = Rows {
            n_columns: statement.schema().n_columns(),
            ..Rows::default()
        };
        let mut position = BlockPosition::default();
        while rows.n_columns > 0 {
            match statement.pump(&mut position, Budget::default(), &mut rows) {
                Ok(Pumped::More) => {}
                Ok(Pumped::End) => break,
                Err(PumpError::Source(error) | PumpError::Sink(error)) => return Err(error),
            }
        }
        self.messages.append(&mut statement.take_messages());
        self.moved += rows.bytes.len() + 2 * rows.units.len();
        // A database that does not count them returns one row for each that changed.
        let changed = statement
            .row_count()
            .or((rows.n_columns > 0).then_some(rows.n_rows as u64));
        self.row_count = self.row_count.zip(changed).map(|(sum, n)| sum + n);
        self.schema = statement.schema().clone();
        self.policy = statement.text_policy();
        self.waiting.push_back(rows);
        Ok(())
    }
}

impl DatabaseStatement for Statement {
    /// Of all rows of parameters together.
    fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    fn next_set(&mut self) -> Result<bool, Error> {
        let Some(next) = self.waiting.pop_front() else {
            return Ok(false);
        };
        self.current = next;
        self.is_fetched = false;
        Ok(true)
    }

    fn has_further(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }
}

impl Source for Statement {
    type Block = Rows;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, _budget: Budget) -> Result<Fetched, Error> {
        if self.is_cancelled.load(SeqCst) {
            let message = "the statement was cancelled";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        if self.is_fetched || self.current.n_rows == 0 {
            self.current = Rows::default();
            return Ok(Fetched::End);
        }
        self.is_fetched = true;
        Ok(Fetched::Rows(self.current.n_rows))
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn block(&self) -> &Rows {
        &self.current
    }

    fn cancel_handle(&self) -> CancelHandle {
        let is_cancelled = self.is_cancelled.clone();
        CancelHandle::new(move || is_cancelled.store(true, SeqCst))
    }

    fn take_moved_bytes(&mut self) -> usize {
        std::mem::take(&mut self.moved)
    }

    fn text_policy(&self) -> Policy {
        self.policy
    }
}

/// A value, with its text or bytes in the buffers of its rows.
#[derive(Debug)]
enum StoredCell {
    /// A value without any.
    Fixed(Cell<'static>),
    Decimal(Range<usize>),
    Utf8(Range<usize>),
    Utf16(Range<usize>),
    Bytes(Range<usize>),
    Interval(i64, Range<usize>),
}

/// The rows of one result.
#[derive(Debug, Default)]
pub struct Rows {
    n_columns: usize,
    n_rows: usize,
    cells: Vec<StoredCell>,
    bytes: Vec<u8>,
    /// Text in UTF-16.
    units: Vec<u16>,
}

impl Rows {
    /// Copies bytes; where they are.
    fn keep(&mut self, bytes: &[u8]) -> Result<Range<usize>, Error> {
        let start = self.bytes.len();
        self.bytes.try_reserve(bytes.len()).map_err(no_memory)?;
        self.bytes.extend_from_slice(bytes);
        Ok(start..self.bytes.len())
    }

    fn emit_cell(&self, row: usize, column: usize) -> Cell<'_> {
        match &self.cells[row * self.n_columns + column] {
            StoredCell::Fixed(cell) => *cell,
            StoredCell::Decimal(at) => Cell::Decimal(&self.bytes[at.clone()]),
            StoredCell::Utf8(at) => Cell::Text(Units::Utf8(&self.bytes[at.clone()])),
            StoredCell::Utf16(at) => Cell::Text(Units::Utf16(&self.units[at.clone()])),
            StoredCell::Bytes(at) => Cell::Bytes(&self.bytes[at.clone()]),
            StoredCell::Interval(microseconds, at) => Cell::Interval {
                microseconds: *microseconds,
                text: &self.bytes[at.clone()],
            },
        }
    }
}

#[cold]
fn no_memory(_: TryReserveError) -> Error {
    Error::new(
        ErrorKind::Operational,
        "out of memory for the rows of the results",
    )
}

/// Databases give text as UTF-8 or UTF-16, and values whole where that was asked of them.
#[cold]
fn unexpected() -> Error {
    let message = "a database gives a value in a form that it has not: this is a fault of onecopy";
    Error::new(ErrorKind::Internal, message)
}

impl RowSink for Rows {
    type Error = Error;

    fn begin_row(&mut self) -> Result<(), Error> {
        self.cells.try_reserve(self.n_columns).map_err(no_memory)
    }

    fn cell(&mut self, _column: usize, cell: Cell<'_>) -> Result<(), Error> {
        let cell = match cell {
            Cell::Text(Units::Utf16(units)) => {
                let start = self.units.len();
                self.units.try_reserve(units.len()).map_err(no_memory)?;
                self.units.extend_from_slice(units);
                StoredCell::Utf16(start..self.units.len())
            }
            Cell::Text(Units::Utf8(text)) => StoredCell::Utf8(self.keep(text)?),
            Cell::Text(_) => return Err(unexpected()),
            Cell::Decimal(digits) => StoredCell::Decimal(self.keep(digits)?),
            Cell::Bytes(bytes) => StoredCell::Bytes(self.keep(bytes)?),
            Cell::Interval { microseconds, text } => {
                StoredCell::Interval(microseconds, self.keep(text)?)
            }
            Cell::Null => StoredCell::Fixed(Cell::Null),
            Cell::Bool(b) => StoredCell::Fixed(Cell::Bool(b)),
            Cell::I64(n) => StoredCell::Fixed(Cell::I64(n)),
            Cell::U64(n) => StoredCell::Fixed(Cell::U64(n)),
            Cell::F32(f) => StoredCell::Fixed(Cell::F32(f)),
            Cell::F64(f) => StoredCell::Fixed(Cell::F64(f)),
            Cell::Date(date) => StoredCell::Fixed(Cell::Date(date)),
            Cell::Time(time, digits) => StoredCell::Fixed(Cell::Time(time, digits)),
            Cell::Timestamp(t, digits) => StoredCell::Fixed(Cell::Timestamp(t, digits)),
            Cell::Uuid(uuid) => StoredCell::Fixed(Cell::Uuid(uuid)),
        };
        self.cells.push(cell);
        Ok(())
    }

    fn long_begin(&mut self, _column: usize, _kind: LongKind) -> Result<(), Error> {
        Err(unexpected())
    }

    fn long_part(&mut self, _column: usize, _part: Cell<'_>) -> Result<(), Error> {
        Err(unexpected())
    }

    fn long_end(&mut self, _column: usize) -> Result<(), Error> {
        Err(unexpected())
    }

    fn end_row(&mut self) -> Result<bool, Error> {
        self.n_rows += 1;
        Ok(true)
    }
}

impl Block for Rows {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error> {
        for row in first_row..self.n_rows {
            sink.begin_row()?;
            for column in 0..self.n_columns {
                sink.cell(column, self.emit_cell(row, column))?;
            }
            if !sink.end_row()? && row + 1 < self.n_rows {
                return Ok(Emitted::Paused { next_row: row + 1 });
            }
        }
        Ok(Emitted::All)
    }

    fn emit_columns<S: RowSink>(
        &self,
        first_row: usize,
        n_rows: usize,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        sink.begin_columns(n_rows)?;
        for column in 0..self.n_columns {
            for row in 0..n_rows {
                sink.column_cell(row, column, self.emit_cell(first_row + row, column))?;
            }
        }
        sink.end_columns()
    }
}
