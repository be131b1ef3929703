//! Any format as a row sink over one chunk.

use std::time::{Duration, Instant};

use onecopy_text::ByteSink;
use onecopy_wire::WriteError;

use super::format::RowFormat;
use crate::cell::{Cell, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;
use crate::source::RowSink;

/// Rows between two looks at the clock, at most: a look costs some 25 ns, a row from SQLite about a microsecond.
const MOST_ROWS_UNSEEN: u32 = 16;

/// A gap between two looks that shows a slow source: from then on each row is looked at.
const SLOW: Duration = Duration::from_millis(1);

/// A value that cannot be written, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkError {
    /// Why.
    pub error: WriteError,
    /// Column (from 0); `None` between cells, where only room can be missing.
    pub column: Option<usize>,
}

impl SinkError {
    /// The error with its row (from 0) and its column's name.
    #[must_use]
    pub fn into_error(self, schema: &Schema, row: u64) -> Error {
        let kind = match self.error {
            WriteError::Malformed(_) => ErrorKind::Malformed,
            WriteError::SinkFull(_) => ErrorKind::Operational,
            WriteError::NotADecimal | WriteError::NotADate | WriteError::YearOutOfRange(_) => {
                let column = self.column.unwrap_or_default();
                return schema.invalid_value(&self.error.to_string(), column, row);
            }
            _ => ErrorKind::Data,
        };
        let mut error = Error::new(kind, self.error.to_string()).at_row(row);
        error.is_transient = matches!(self.error, WriteError::SinkFull(_));
        if matches!(self.error, WriteError::SinkFull(_) | WriteError::TooLong(_)) {
            // A driver may give more and more of a value.
            error = error.of_driver(schema.driver());
        }
        match self.column {
            Some(index) => error.at_column(index, &schema.columns[index].name),
            None => error,
        }
    }
}

/// One turn of filling a chunk: how far and how long.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Bytes in the chunk at which there is enough in it.
    pub enough_bytes: usize,
    /// When what is there is to be handed on, however little.
    pub deadline: Option<Instant>,
}

/// What stays of a sink of bytes between two chunks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Rows completed.
    pub n_rows: u64,
    /// The longest row so far, in bytes written: there should be room for another.
    pub longest_row_bytes: usize,
    /// The longest part of a long value so far, in bytes written.
    pub longest_part_bytes: usize,
    /// Bytes of the last row.
    pub last_row_bytes: usize,
    /// Whether a long value is under way.
    pub in_long: bool,
    /// Whether a row is under way that has to stay in this chunk ([`RowFormat::WHOLE_ROWS`]).
    pub in_whole_row: bool,
}

/// Writes rows in the format `F` into the chunk `S`.
#[derive(Debug)]
pub struct ByteRows<'a, F, S> {
    format: &'a mut F,
    out: &'a mut S,
    progress: &'a mut Progress,
    turn: Turn,
    /// Where the row or part that is under way began in this chunk.
    start: usize,
    rows_to_look: u32,
    rows_unseen: u32,
    last_look: Option<Instant>,
    late: bool,
}

impl<'a, F: RowFormat, S: ByteSink> ByteRows<'a, F, S> {
    /// A sink for one turn.
    pub fn new(
        format: &'a mut F,
        out: &'a mut S,
        progress: &'a mut Progress,
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

    /// Whether another row, or another part where one is under way, may not fit.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        let next = if self.progress.in_long {
            self.progress.longest_part_bytes
        } else {
            // One row that was very long must not make each chunk after it a small one.
            let most = self.turn.enough_bytes / 4;
            let usual = self.progress.longest_row_bytes.min(most);
            // A row that cannot be parted would move all that is there.
            match F::WHOLE_ROWS {
                true => usual.max(self.progress.last_row_bytes),
                false => usual,
            }
        };
        self.len() + next + self.format.cell_room_bytes() > self.turn.enough_bytes
    }

    /// Whether the chunk has to stay: it ends inside a row that cannot be parted.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        F::WHOLE_ROWS && self.progress.in_whole_row
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// Takes back what stands behind the last complete row or part.
    pub fn take_back(&mut self) {
        self.out.cut(self.start);
    }

    /// Takes the deadline away: for rows that are there and need not be waited for.
    pub fn forget_deadline(&mut self) {
        self.turn.deadline = None;
        self.late = false;
        self.rows_to_look = u32::MAX;
    }

    /// Bytes in the chunk.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.committed().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows completed since the stream began.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.progress.n_rows
    }

    /// Looks at the clock, now and then: each row where rows come slowly, each 16th where they come fast.
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

    /// Bytes written since the last call.
    #[inline]
    fn take_size(&mut self) -> usize {
        let len = self.len();
        let size = len - self.start;
        self.start = len;
        size
    }
}

/// Between cells only room can be missing.
fn between(error: WriteError) -> SinkError {
    SinkError {
        error,
        column: None,
    }
}

/// The error of a cell.
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
