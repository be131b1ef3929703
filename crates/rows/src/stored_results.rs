//! `StoredResults`: the results of one statement that was executed for many rows of parameters,
//! stored in memory.

use std::collections::{TryReserveError, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use onecopy_text::{Policy, Units};
use onecopy_wire::CancelHandle;

use crate::cell::{ArrayText, BoundType, Cell, ElementType, LongKind, RangeText, Time};
use crate::database::{DatabaseConnection, DatabaseStatement};
use crate::error::{Error, ErrorKind, Message};
use crate::schema::Schema;
use crate::source::{
    Block, BlockPosition, Budget, Emitted, Fetched, LongValues, PumpError, Pumped, RowSink, Source,
};
use crate::value::Value;

/// The results of one statement that was executed for many rows of parameters, in order.
#[derive(Debug)]
pub struct StoredResults {
    schema: Schema,
    row_count: Option<u64>,
    /// The rows of the results after the current result.
    waiting: VecDeque<StoredRows>,
    current: StoredRows,
    is_fetched: bool,
    messages: Vec<Message>,
    /// The number of bytes of text that were copied into the stored rows since the last call of
    /// `take_moved_bytes`, which reports them.
    moved: usize,
    policy: Policy,
    is_cancelled: Arc<AtomicBool>,
}

impl StoredResults {
    /// Executes `sql` for each row of parameters and stores all results in memory. If the execution
    /// for one row fails, no results are returned. The changes of the earlier executions remain in
    /// the transaction.
    pub(crate) fn execute<C: DatabaseConnection>(
        connection: &C,
        sql: &str,
        rows: &mut dyn Iterator<Item = Result<Vec<Value>, Error>>,
    ) -> Result<StoredResults, Error> {
        let mut stored = StoredResults {
            schema: Schema::default(),
            row_count: Some(0),
            waiting: VecDeque::new(),
            current: StoredRows::default(),
            is_fetched: false,
            messages: Vec::new(),
            moved: 0,
            policy: Policy::Strict,
            is_cancelled: Arc::default(),
        };
        for (at, row) in rows.enumerate() {
            stored
                .add(connection, sql, &row?)
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
        let mut rows = StoredRows {
            n_columns: statement.schema().n_columns(),
            ..StoredRows::default()
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
        // If a database does not count changed rows, the rows that it returned are counted instead.
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

impl DatabaseStatement for StoredResults {
    /// Returns the total number of rows that all executions changed; `None` if the database does
    /// not report it.
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

impl Source for StoredResults {
    type Block = StoredRows;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, _budget: Budget) -> Result<Fetched, Error> {
        if self.is_cancelled.load(SeqCst) {
            let message = "the statement was cancelled";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        if self.is_fetched || self.current.n_rows == 0 {
            self.current = StoredRows::default();
            return Ok(Fetched::End);
        }
        self.is_fetched = true;
        Ok(Fetched::Rows(self.current.n_rows))
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn block(&self) -> &StoredRows {
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

/// A stored value; its text or bytes are in the buffers of `StoredRows`.
#[derive(Debug)]
enum StoredCell {
    /// A value that contains no text and no binary data, such as an integer.
    Fixed(Cell<'static>),
    Decimal(Range<usize>),
    Utf8(Range<usize>),
    Json(Range<usize>),
    Array(Range<usize>, ElementType, bool),
    Range(Range<usize>, BoundType, bool),
    Utf16(Range<usize>),
    Bytes(Range<usize>),
    Interval(i32, i64, Range<usize>),
    TimeTz(Time, i32, Range<usize>),
}

/// The stored rows of one result.
#[derive(Debug, Default)]
pub struct StoredRows {
    n_columns: usize,
    n_rows: usize,
    cells: Vec<StoredCell>,
    bytes: Vec<u8>,
    /// The UTF-16 text of all rows. A [`StoredCell`] with UTF-16 text contains the range of its
    /// code units in this buffer.
    units: Vec<u16>,
}

impl StoredRows {
    /// Appends the bytes of a value to `self.bytes`. Returns the range in `self.bytes` that they
    /// occupy.
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
            StoredCell::Json(at) => Cell::Json(Units::Utf8(&self.bytes[at.clone()])),
            StoredCell::Array(at, element, far_dates_as_text) => Cell::Array(ArrayText {
                text: &self.bytes[at.clone()],
                element: *element,
                far_dates_as_text: *far_dates_as_text,
            }),
            StoredCell::Range(at, bound, is_multi) => Cell::Range(RangeText {
                text: &self.bytes[at.clone()],
                bound: *bound,
                is_multi: *is_multi,
            }),
            StoredCell::Utf16(at) => Cell::Text(Units::Utf16(&self.units[at.clone()])),
            StoredCell::Bytes(at) => Cell::Bytes(&self.bytes[at.clone()]),
            StoredCell::Interval(days, microseconds, at) => Cell::Interval {
                days: *days,
                microseconds: *microseconds,
                text: &self.bytes[at.clone()],
            },
            StoredCell::TimeTz(time, offset_seconds, at) => Cell::TimeTz {
                time: *time,
                offset_seconds: *offset_seconds,
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

/// Creates the error for a cell that no database emits to this sink: text in an encoding other than
/// UTF-8 and UTF-16, or a value in parts although [`LongValues::Whole`] was set.
#[cold]
fn unexpected() -> Error {
    let message = "a database gives a value in a form that it has not: this is a fault of onecopy";
    Error::new(ErrorKind::Internal, message)
}

impl RowSink for StoredRows {
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
            Cell::Json(Units::Utf8(text)) => StoredCell::Json(self.keep(text)?),
            Cell::Array(array) => StoredCell::Array(
                self.keep(array.text)?,
                array.element,
                array.far_dates_as_text,
            ),
            Cell::Range(range) => {
                StoredCell::Range(self.keep(range.text)?, range.bound, range.is_multi)
            }
            Cell::Text(_) | Cell::Json(_) => return Err(unexpected()),
            Cell::Decimal(digits) => StoredCell::Decimal(self.keep(digits)?),
            Cell::Bytes(bytes) => StoredCell::Bytes(self.keep(bytes)?),
            Cell::Interval {
                days,
                microseconds,
                text,
            } => StoredCell::Interval(days, microseconds, self.keep(text)?),
            Cell::TimeTz {
                time,
                offset_seconds,
                text,
            } => StoredCell::TimeTz(time, offset_seconds, self.keep(text)?),
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

impl Block for StoredRows {
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
