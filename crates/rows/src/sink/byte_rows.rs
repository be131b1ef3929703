//! `ByteRows`: a row sink that writes rows to a chunk in any `RowFormat`.

use std::time::{Duration, Instant};

use onecopy_text::ByteSink;
use onecopy_wire::WriteError;

use super::format::RowFormat;
use crate::cell::{Cell, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;
use crate::source::RowSink;

/// The largest number of rows that are written between two reads of the clock. Reading the clock
/// takes about 25 ns; writing a row from SQLite takes about 1 µs.
const MOST_ROWS_UNSEEN: u32 = 16;

/// If more than this time passed between two reads of the clock, rows arrive slowly, and the clock
/// is read after each row.
const SLOW: Duration = Duration::from_millis(1);

/// The error of a value that cannot be written, and the column of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkError {
    /// The reason why the value cannot be written.
    pub error: WriteError,
    /// The column (from 0) of the value that could not be written. `None` if the sink was full
    /// between two values, for example when a separator was written.
    pub column: Option<usize>,
}

impl SinkError {
    /// Converts the error to an [`Error`] with the row (from 0) and the name of the column.
    #[must_use]
    pub fn into_error(self, schema: &Schema, row: u64) -> Error {
        let kind = match self.error {
            WriteError::Malformed(_) => ErrorKind::Malformed,
            WriteError::SinkFull(_) => ErrorKind::Operational,
            WriteError::NotADecimal
            | WriteError::NotADate
            | WriteError::NotJson
            | WriteError::NotAnArray
            | WriteError::YearOutOfRange(_) => {
                let column = self.column.unwrap_or_default();
                return schema.invalid_value(&self.error.to_string(), column, row);
            }
            _ => ErrorKind::Data,
        };
        let mut error = Error::new(kind, self.error.to_string()).at_row(row);
        error.is_transient = matches!(self.error, WriteError::SinkFull(_));
        if matches!(self.error, WriteError::SinkFull(_) | WriteError::TooLong(_)) {
            // The cause may be a driver that returned a value of unlimited length, so the error
            // names the driver.
            error = error.of_driver(schema.driver());
        }
        match self.column {
            Some(index) => error.at_column(index, &schema.columns[index].name),
            None => error,
        }
    }
}

/// The two limits that determine when a chunk is passed to the consumer: the size of the chunk, and
/// a deadline.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The size in bytes at which the chunk counts as full.
    pub enough_bytes: usize,
    /// The time at which the chunk is passed to the consumer, even if it contains few bytes; `None`
    /// for no limit.
    pub deadline: Option<Instant>,
}

/// The progress of a row stream. The stream keeps it while no chunk is being filled.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinkProgress {
    /// The number of complete rows since the beginning of the stream.
    pub n_rows: u64,
    /// The size in bytes of the longest row so far. A chunk should have capacity for another row of
    /// this size.
    pub longest_row_bytes: usize,
    /// The size in bytes of the longest part of a long value so far in this stream.
    pub longest_part_bytes: usize,
    /// The size in bytes of the row that was written last.
    pub last_row_bytes: usize,
    /// `true` between the beginning and the end of a long value.
    pub in_long: bool,
    /// `true` within a row that must stay in one chunk ([`RowFormat::WHOLE_ROWS`]).
    pub in_whole_row: bool,
}

/// A row sink that writes rows in the format `F` into the chunk `S`.
#[derive(Debug)]
pub struct ByteRows<'a, F, S> {
    format: &'a mut F,
    out: &'a mut S,
    progress: &'a mut SinkProgress,
    turn: Turn,
    /// The offset in the chunk at which the current row began. Within a long value, the offset at
    /// which the current part of the value began.
    start: usize,
    rows_to_look: u32,
    rows_unseen: u32,
    last_look: Option<Instant>,
    late: bool,
}

impl<'a, F: RowFormat, S: ByteSink> ByteRows<'a, F, S> {
    /// Creates a sink that fills one chunk.
    pub fn new(
        format: &'a mut F,
        out: &'a mut S,
        progress: &'a mut SinkProgress,
        turn: Turn,
    ) -> ByteRows<'a, F, S> {
        let start = out.committed().len();
        ByteRows {
            format,
            out,
            progress,
            turn,
            start,
            rows_to_look: 1,
            rows_unseen: 1,
            last_look: None,
            late: false,
        }
    }

    /// Returns `true` if another row, or another part of the current long value, may not fit in the
    /// chunk.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        let next = if self.progress.in_long {
            self.progress.longest_part_bytes
        } else {
            // The expected row size is limited, so that one very long row does not make all
            // following chunks small.
            let most = self.turn.enough_bytes / 4;
            let usual = self.progress.longest_row_bytes.min(most);
            // If a row that must stay in one chunk does not fit, the chunk grows, and all of its
            // bytes may be moved.
            match F::WHOLE_ROWS {
                true => usual.max(self.progress.last_row_bytes),
                false => usual,
            }
        };
        self.len() + next + self.format.cell_room_bytes() > self.turn.enough_bytes
    }

    /// Returns `true` if the chunk ends within a row that must stay in one chunk. The chunk must
    /// then not be passed to the consumer yet.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        F::WHOLE_ROWS && self.progress.in_whole_row
    }

    /// Returns `true` if the deadline of the chunk has passed.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// Removes the bytes after the last complete row, or after the last complete part of a long
    /// value.
    pub fn take_back(&mut self) {
        self.out.cut(self.start);
    }

    /// Removes the deadline of the chunk. It is called when the next rows can be read without
    /// waiting.
    pub fn forget_deadline(&mut self) {
        self.turn.deadline = None;
        self.late = false;
        self.rows_to_look = u32::MAX;
    }

    /// Returns the number of bytes in the chunk.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.committed().len()
    }

    /// Returns `true` if the chunk is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of complete rows since the beginning of the stream.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.progress.n_rows
    }

    /// Reads the clock to detect that the deadline has passed. This is done after each row if rows
    /// arrive slowly, and otherwise after every 16th row.
    #[inline]
    fn look(&mut self) {
        self.rows_to_look -= 1;
        if self.rows_to_look == 0 {
            self.look_now();
        }
    }

    fn look_now(&mut self) {
        let Some(deadline) = self.turn.deadline else {
            self.rows_to_look = u32::MAX;
            return;
        };
        let now = Instant::now();
        self.late |= now >= deadline;
        let is_slow = self
            .last_look
            .is_some_and(|last| now.duration_since(last) > SLOW);
        self.rows_unseen = if is_slow {
            1
        } else {
            (self.rows_unseen * 2).min(MOST_ROWS_UNSEEN)
        };
        self.rows_to_look = self.rows_unseen;
        self.last_look = Some(now);
    }

    /// Returns the number of bytes that were written to the chunk since the last call.
    #[inline]
    fn take_size(&mut self) -> usize {
        let len = self.len();
        let size = len - self.start;
        self.start = len;
        size
    }
}

/// Converts an error that occurred between two cells, which can only be a full sink, to a
/// `SinkError` without a column.
fn between(error: WriteError) -> SinkError {
    SinkError {
        error,
        column: None,
    }
}

/// Adds the column to the error of a cell in that column.
#[cold]
fn at(column: usize) -> impl FnOnce(WriteError) -> SinkError {
    move |error| SinkError {
        error,
        column: Some(column),
    }
}

impl<F: RowFormat, S: ByteSink> RowSink for ByteRows<'_, F, S> {
    type Error = SinkError;

    #[inline]
    fn begin_row(&mut self) -> Result<(), SinkError> {
        let is_first = self.progress.n_rows == 0;
        self.progress.in_whole_row = F::WHOLE_ROWS;
        self.format.begin_row(is_first, self.out).map_err(between)
    }

    #[inline]
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), SinkError> {
        self.format
            .cell(column, cell, self.out)
            .map_err(|error| at(column)(error))
    }

    fn long_begin(&mut self, column: usize, kind: LongKind) -> Result<(), SinkError> {
        self.progress.in_long = true;
        self.format
            .long_begin(column, kind, self.out)
            .map_err(|error| at(column)(error))
    }

    fn long_part(&mut self, column: usize, part: Cell<'_>) -> Result<(), SinkError> {
        self.format
            .long_part(part, self.out)
            .map_err(|error| at(column)(error))?;
        if !F::WHOLE_ROWS {
            let size = self.take_size();
            self.progress.longest_part_bytes = self.progress.longest_part_bytes.max(size);
        }
        self.look();
        Ok(())
    }

    fn long_end(&mut self, column: usize) -> Result<(), SinkError> {
        self.progress.in_long = false;
        self.format
            .long_end(self.out)
            .map_err(|error| at(column)(error))
    }

    #[inline]
    fn end_row(&mut self) -> Result<bool, SinkError> {
        self.format.end_row(self.out).map_err(between)?;
        self.progress.n_rows += 1;
        self.progress.in_whole_row = false;
        let size = self.take_size();
        self.progress.last_row_bytes = size;
        self.progress.longest_row_bytes = self.progress.longest_row_bytes.max(size);
        self.look();
        Ok(!self.late && !self.is_full())
    }
}
