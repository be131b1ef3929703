//! The one idea: source → cell → row sink.
//!
//! **fetch** may block, sees no sink, needs no GIL and can be cancelled from another thread. **emit** never blocks
//! and can stop after any row. What crosses a thread is `Send`. Everything here is dispatched statically: the choice
//! of format is made once per stream.

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use crate::cell::{Cell, LongKind};
use crate::error::Error;
use crate::schema::Schema;

/// How much a fetch may bring at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Buffers of a block stay about below this many bytes.
    pub block_bytes: usize,
    /// Never more rows than this in a block.
    pub block_rows: usize,
}

impl Default for Budget {
    /// 512 KiB and 4,096 rows: a block stays in L2 while its cells are converted (anchors: rows, section 10).
    fn default() -> Self {
        Budget {
            block_bytes: 512 << 10,
            block_rows: 4096,
        }
    }
}

/// How a value too long for a block is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongValues {
    /// Whole, as one cell: for sinks that need it whole (a Python `str`).
    Whole,
    /// As `begin / part / end`, each part at most this many bytes: for sinks that stream.
    Parts {
        /// Largest part, in bytes.
        part_bytes: usize,
    },
}

/// What the bytes of a deferred value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongForm {
    /// Text in UTF-8.
    Utf8,
    /// Text in UTF-16, in the machine's byte order.
    Utf16,
    /// Bytes.
    Bytes,
}

/// A part of a deferred value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongPart {
    /// What its bytes are.
    pub form: LongForm,
    /// Bytes written; a part of text may end inside a character.
    pub n_bytes: usize,
    /// Nothing comes after it.
    pub is_last: bool,
    /// Whether the database held the whole value, so that this part is a copy of it; `false` where the driver wrote
    /// it straight into the caller's buffer.
    pub is_copied: bool,
}

/// A caller that holds an interpreter lock while rows are read ([`Source::pump_attached`]).
pub trait AttachedHost {
    /// The host's turn, every few milliseconds: lets its other threads run and handles signals. It may use other
    /// connections, not this one. Returns whether to go on; `false` (or a panic, caught) ends the statement with
    /// [`crate::ErrorKind::Cancelled`], and the host knows why.
    fn turn(&self) -> bool;

    /// Runs `wait`, which blocks, on this thread, with the interpreter lock released.
    fn released(&self, wait: &mut (dyn FnMut() + Send));
}

/// What a fetch brought into the current block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The block holds this many rows (a row of which only a part is there, because a long value is under way, counts
    /// as one): at least 1. A block ends after each part of a long value that is not its last, so that a sink of bytes
    /// can hand a chunk on between two parts: what one emit writes stays bounded however long the value is.
    Rows(usize),
    /// No rows are left; the block is empty.
    End,
}

/// Where a pump stands within the current block; starts as the default. SQLite does not need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPosition {
    /// First row of the block not yet emitted, from 0.
    pub next_row: usize,
    /// Rows in the block; 0 before the first fetch.
    pub n_rows: usize,
}

impl BlockPosition {
    /// Fetches the next block where nothing is left of this one; whether there are rows.
    fn refill<S: Source + ?Sized>(
        &mut self,
        source: &mut S,
        budget: Budget,
    ) -> Result<bool, Error> {
        if self.next_row < self.n_rows {
            return Ok(true);
        }
        match source.fetch(budget)? {
            Fetched::End => Ok(false),
            Fetched::Rows(n_rows) => {
                *self = BlockPosition {
                    next_row: 0,
                    n_rows,
                };
                Ok(true)
            }
        }
    }
}

/// What a pump has left to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pumped {
    /// The sink has had enough, the budget is used up, or a part of a long value was emitted: pump again when there is
    /// room. At least one cell or part was emitted.
    More,
    /// No rows are left.
    End,
}

/// Why a pump failed: the two sides keep their own errors.
#[derive(Debug)]
pub enum PumpError<E> {
    /// The database or its driver.
    Source(Error),
    /// The sink.
    Sink(E),
}

/// A statement under execution whose rows are fetched block by block.
pub trait Source: Send {
    /// The rows of one fetch.
    type Block: Block;

    /// Whether a fetch reads a block of rows that can be emitted again, by row or by column. If not (SQLite), rows are
    /// stepped one by one, always in row order, and a host reads them by `pump_attached`.
    const HAS_BLOCKS: bool = true;

    /// Columns of the current result.
    fn schema(&self) -> &Schema;

    /// Fetches the next rows into the current block, replacing those it held. May block; holds no lock of Python's.
    ///
    /// # Errors
    /// [`Error`] of the source; the rows of earlier fetches were right, no more will come.
    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error>;

    /// Whether the next fetch has its rows already: it neither blocks nor waits for a lock.
    fn is_ready(&mut self) -> bool {
        false
    }

    /// Whether the next fetch only reads what the driver holds, and that is little: it does not block, and there is nothing to be
    /// cancelled. (Another thread's call on the same connection may still be waited for.)
    fn is_at_hand(&self) -> bool {
        false
    }

    /// The current block: its cells are valid until the next call of `fetch`.
    fn block(&self) -> &Self::Block;

    /// Fetches and emits in one go, row by row: what a caller wants that has a place for rows now. A source whose text
    /// dies at the next row (SQLite) steps and emits in one tight loop under one lock; the others emit what is left of
    /// the block, fetching one first where nothing is left. May block, as `fetch` does.
    ///
    /// A statement is read either by `fetch` and `emit` or by `pump`, not by both in turn; `position` is the same
    /// variable in every call.
    ///
    /// # Errors
    /// [`PumpError`] with the side that failed; nothing can be pumped after it.
    fn pump<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        if !position.refill(self, budget).map_err(PumpError::Source)? {
            return Ok(Pumped::End);
        }
        let emitted = self.block().emit(position.next_row, sink);
        position.next_row = match emitted.map_err(PumpError::Sink)? {
            Emitted::All => position.n_rows,
            Emitted::Paused { next_row } => next_row,
        };
        Ok(Pumped::More)
    }

    /// As [`Source::pump`], column by column where the source has blocks: what is left of the block is emitted whole,
    /// whatever the sink has had.
    ///
    /// # Errors
    /// As [`Source::pump`]; `position` is then the first row of what was not emitted.
    fn pump_columns<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        if !position.refill(self, budget).map_err(PumpError::Source)? {
            return Ok(Pumped::End);
        }
        let n_rows = position.n_rows - position.next_row;
        let emitted = self.block().emit_columns(position.next_row, n_rows, sink);
        emitted.map_err(PumpError::Sink)?;
        position.next_row = position.n_rows;
        Ok(Pumped::More)
    }

    /// As [`Source::pump`], for a caller that holds an interpreter lock. A source without blocks holds it while it steps;
    /// `host` has its turn every few milliseconds and waits for locks with the interpreter's released.
    ///
    /// # Errors
    /// As [`Source::pump`].
    fn pump_attached<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        sink: &mut S,
        host: &dyn AttachedHost,
    ) -> Result<Pumped, PumpError<S::Error>> {
        let _ = host;
        self.pump(position, budget, sink)
    }

    /// Stops a fetch under way, from any thread.
    fn cancel_handle(&self) -> CancelHandle;

    /// Bytes of text that fetching has moved since this was last asked: long values are gathered in one place, which may
    /// have to grow. Whoever keeps the ledger enters them under [`onecopy_text::Stage::Fetch`].
    fn take_moved_bytes(&mut self) -> usize {
        0
    }

    /// What its connection wants done with malformed text ([`crate::database::ConnectOptions::text_policy`]): a row
    /// stream asks once, before it writes.
    fn text_policy(&self) -> Policy {
        Policy::Strict
    }
}

/// Why an emit returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitted {
    /// All rows of the block were emitted.
    All,
    /// The sink has had enough for now; go on with the row of this index (from 0, within the block).
    Paused {
        /// First row not yet emitted.
        next_row: usize,
    },
}

/// The rows of one fetch, in the driver's own buffers.
pub trait Block {
    /// Rows held, a partial one included.
    fn n_rows(&self) -> usize;

    /// Emits the rows from `first_row` (from 0) on, row by row, until the sink has enough. Never blocks.
    ///
    /// # Errors
    /// The sink's error, with nothing emitted after the cell that failed.
    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error>;

    /// Emits column by column, for sinks with [`RowSink::COLUMNS`]. `n_rows` rows from `first_row`, all complete.
    ///
    /// # Errors
    /// As [`Block::emit`].
    fn emit_columns<S: RowSink>(
        &self,
        first_row: usize,
        n_rows: usize,
        sink: &mut S,
    ) -> Result<(), S::Error>;
}

/// Takes cells and puts each straight into its final place.
///
/// Row order: `begin_row`, then for each column `cell` or (`long_begin`, `long_part`…, `long_end`), then `end_row`.
/// Between any two calls the stream may pause and go on with another block: a long value passes through many fetches.
///
/// Column order (for a sink with `COLUMNS`): `begin_columns`, then `column_cell` for every row of column 0, then of
/// column 1, …, then `end_columns`.
pub trait RowSink {
    /// Why a value cannot be written.
    type Error;

    /// Whether this sink would rather be given a column of the block at a time.
    const COLUMNS: bool = false;

    /// A row begins.
    ///
    /// # Errors
    /// The sink's own.
    fn begin_row(&mut self) -> Result<(), Self::Error>;

    /// The value of `column` (from 0).
    ///
    /// # Errors
    /// The sink's own: the value has no form in this format, or there is no room.
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Self::Error>;

    /// A value of `column` begins that comes in parts.
    ///
    /// # Errors
    /// As `cell`.
    fn long_begin(&mut self, column: usize, kind: LongKind) -> Result<(), Self::Error>;

    /// The next part of it: `Cell::Text` or `Cell::Bytes`.
    ///
    /// # Errors
    /// As `cell`.
    fn long_part(&mut self, column: usize, part: Cell<'_>) -> Result<(), Self::Error>;

    /// It is complete.
    ///
    /// # Errors
    /// As `cell`.
    fn long_end(&mut self, column: usize) -> Result<(), Self::Error>;

    /// The row is complete. Returns whether the sink takes another one now.
    ///
    /// # Errors
    /// The sink's own.
    fn end_row(&mut self) -> Result<bool, Self::Error>;

    /// `n_rows` rows are coming, column by column.
    ///
    /// # Errors
    /// The sink's own.
    fn begin_columns(&mut self, n_rows: usize) -> Result<(), Self::Error> {
        let _ = n_rows;
        Ok(())
    }

    /// The value of `row` (from 0, within this batch) and `column`.
    ///
    /// # Errors
    /// As `cell`.
    fn column_cell(
        &mut self,
        row: usize,
        column: usize,
        cell: Cell<'_>,
    ) -> Result<(), Self::Error> {
        let _ = row;
        self.cell(column, cell)
    }

    /// All columns of the batch were given.
    ///
    /// # Errors
    /// The sink's own.
    fn end_columns(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
