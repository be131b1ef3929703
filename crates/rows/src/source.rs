//! The central traits: a `Source` fetches a `Block` of rows, and the block emits each `Cell` to a
//! `RowSink`.
//!
//! **Fetching** a block may block the thread, uses no sink, does not require the GIL, and can be
//! cancelled from another thread. **Emitting** a block's cells never blocks and can stop after any
//! row. Sources are `Send`, so another thread can fetch. All calls are dispatched statically: the
//! output format is chosen once per stream, not once per cell.

use onecopy_text::Policy;
use onecopy_wire::CancelHandle;

use crate::cell::{Cell, LongKind};
use crate::error::Error;
use crate::schema::Schema;

/// The limits of one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The approximate limit for the memory of a block's buffers, in bytes.
    pub block_bytes: usize,
    /// The largest number of rows that a block may contain.
    pub block_rows: usize,
}

impl Default for Budget {
    /// Returns the default limits of a block of rows: 512 KiB and 4,096 rows. A block of this size
    /// stays in the processor's L2 cache while its cells are converted.
    fn default() -> Self {
        Budget {
            block_bytes: 512 << 10,
            block_rows: 4096,
        }
    }
}

/// The way in which a value that is too long for a block is passed to the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongValues {
    /// The value is emitted as one cell, for sinks that need the complete value (to create a Python
    /// `str`).
    Whole,
    /// The value is emitted in parts, by calls of `long_begin`, `long_part` and `long_end`. This is
    /// for sinks that can write the beginning of a value before the rest was fetched.
    Parts {
        /// The largest number of bytes of the value that one call of `long_part` emits.
        part_bytes: usize,
    },
}

/// The encoding of the bytes of a deferred value, which the caller reads with
/// `DatabaseStatement::read_part`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongForm {
    /// The bytes are text in UTF-8.
    Utf8,
    /// The bytes are text in UTF-16, in native byte order.
    Utf16,
    /// A binary value: the bytes are not text, and are not converted.
    Bytes,
}

/// Describes the part of a deferred value that `DatabaseStatement::read_part` has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongPart {
    /// The encoding of the bytes of this part.
    pub form: LongForm,
    /// The number of bytes of this part, which were written to the caller's buffer. If the value is
    /// text, a part may end inside a character.
    pub n_bytes: usize,
    /// `true` if this is the last part of the value.
    pub is_last: bool,
    /// `true` if this part was copied from memory in which this library had received the value;
    /// `false` if the driver wrote the part directly into the caller's buffer.
    pub is_copied: bool,
}

/// The host program that calls [`Source::pump_attached`], and that holds an interpreter lock (the
/// GIL) while rows are read.
pub trait AttachedHost {
    /// Called every few milliseconds, so that the host can let its other threads run and handle
    /// signals. During this call the host must not use the connection whose rows are read; it may
    /// use other connections. Returns `true` to continue. If this method returns `false` or panics,
    /// the statement ends with [`crate::ErrorKind::Cancelled`]; the host stores the reason.
    fn turn(&self) -> bool;

    /// Releases the interpreter lock, calls `wait` on this thread (the call blocks), and acquires
    /// the interpreter lock again.
    fn released(&self, wait: &mut (dyn FnMut() + Send));
}

/// The result of [`Source::fetch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The block contains this number of rows, at least 1. A long value is read in parts, and each
    /// part except the last one ends a block. A row whose value was read only in part counts as one
    /// row. Therefore, one call to [`Block::emit`] emits a limited number of bytes of a long value.
    Rows(usize),
    /// The result has no further rows, and the block is empty.
    End,
}

/// The position in the current block at which the next [`Source::pump`] continues. The caller
/// creates it with `BlockPosition::default()` before the first call for a statement. Sources
/// without blocks (SQLite) do not use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPosition {
    /// The index (from 0) of the first row of the block that was not emitted.
    pub next_row: usize,
    /// The number of rows in the block; 0 before the first fetch.
    pub n_rows: usize,
}

impl BlockPosition {
    /// Fetches the next block if all rows of the current block were emitted. Returns `false` if the
    /// result has no further rows, otherwise `true`.
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

/// The result of [`Source::pump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pumped {
    /// At least one cell or part was emitted, and more may follow. The call ended because the sink
    /// is full, the block is at its end, the budget is used up, or a part of a long value was
    /// emitted. The caller should call `pump` again when the sink has capacity.
    More,
    /// The result has no further rows.
    End,
}

/// The error of [`Source::pump`]. The variant says if the source or the sink has failed.
#[derive(Debug)]
pub enum PumpError<E> {
    /// The database or its driver failed.
    Source(Error),
    /// The sink failed.
    Sink(E),
}

/// A statement whose rows are fetched block by block.
pub trait Source: Send {
    /// The type that holds the rows of one fetch.
    type Block: Block;

    /// `true` if `fetch` reads a block of rows into memory. `false` for a source that reads rows
    /// one by one (SQLite). A caller that holds an interpreter lock reads the rows of such a source
    /// with `pump_attached`.
    const HAS_BLOCKS: bool = true;

    /// Returns the columns of the current result.
    fn schema(&self) -> &Schema;

    /// Fetches the next rows into the current block, and replaces its contents. May block; the
    /// caller must not hold an interpreter lock.
    ///
    /// # Errors
    /// The error of the database or its driver. The rows of earlier fetches are still correct, but
    /// no further rows can be fetched.
    fn fetch(&mut self, budget: Budget) -> Result<Fetched, Error>;

    /// Returns `true` if the next fetch neither blocks nor waits for a lock.
    fn is_ready(&mut self) -> bool {
        false
    }

    /// Returns `true` if the next fetch reads only a few bytes, which the driver already has in
    /// memory. The fetch then does not wait for the server, so the caller need not make it
    /// cancellable. The fetch may still wait for another thread's call on the connection.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// Returns the current block. Its cells are valid until the next call to `fetch`.
    fn block(&self) -> &Self::Block;

    /// Emits the next rows to `sink`, row by row. A source with blocks emits the remaining rows of
    /// the current block; if no rows remain, it fetches a block first. A source without blocks
    /// (SQLite) reads and emits each row before it reads the next one. This call may block.
    ///
    /// The caller must pass the same `position` to every call for a statement. For this statement,
    /// it must not call `fetch` or `emit` itself.
    ///
    /// # Errors
    /// [`PumpError::Source`] or [`PumpError::Sink`]. The caller must not pump after an error.
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

    /// Fetches and emits rows as [`Source::pump`] does, with two differences for a source with
    /// blocks: the rows are emitted column by column, and a full sink does not end the call. One
    /// call emits the remaining rows of the current block, at most `most_rows` of them.
    ///
    /// # Errors
    /// The errors of [`Source::pump`]. `position` is the first row that was not emitted.
    fn pump_columns<S: RowSink>(
        &mut self,
        position: &mut BlockPosition,
        budget: Budget,
        most_rows: usize,
        sink: &mut S,
    ) -> Result<Pumped, PumpError<S::Error>> {
        if !position.refill(self, budget).map_err(PumpError::Source)? {
            return Ok(Pumped::End);
        }
        let n_rows = most_rows.min(position.n_rows - position.next_row);
        let emitted = self.block().emit_columns(position.next_row, n_rows, sink);
        emitted.map_err(PumpError::Sink)?;
        position.next_row += n_rows;
        Ok(Pumped::More)
    }

    /// Fetches and emits rows as [`Source::pump`] does, for a caller that holds an interpreter
    /// lock. A source without blocks keeps the interpreter lock while it reads rows one by one, and
    /// calls [`AttachedHost::turn`] every few milliseconds. If it has to wait, it releases the lock
    /// with [`AttachedHost::released`].
    ///
    /// # Errors
    /// The errors of [`Source::pump`].
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

    /// Returns a handle that cancels a fetch from any thread.
    fn cancel_handle(&self) -> CancelHandle;

    /// Returns the number of bytes that fetches have copied within memory since the last call of
    /// this method. Bytes are copied if the buffer of a long value grows, and if a buffer ends with
    /// an incomplete row, which is copied to the next buffer. The caller adds the number to its
    /// `Ledger`, at [`onecopy_text::Stage::Fetch`].
    fn take_moved_bytes(&mut self) -> usize {
        0
    }

    /// Returns the policy of the connection for malformed text
    /// ([`crate::database::ConnectOptions::text_policy`]). A row stream reads the policy once,
    /// before its first byte.
    fn text_policy(&self) -> Policy {
        Policy::Strict
    }
}

/// The result of [`Block::emit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitted {
    /// All rows of the block were emitted.
    All,
    /// The sink is full; the caller should continue with row `next_row` of the block.
    Paused {
        /// The index (from 0) of the first row of the block that was not emitted completely.
        next_row: usize,
    },
}

/// The rows of one fetch, in the driver's own buffers.
pub trait Block {
    /// Returns the number of rows of the block, including a row that is incomplete because its long
    /// value is read in parts.
    fn n_rows(&self) -> usize;

    /// Emits the rows from `first_row` (from 0) on, row by row, until the sink is full. Never
    /// blocks.
    ///
    /// # Errors
    /// The sink's error; nothing is emitted after the failed cell.
    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error>;

    /// Emits `n_rows` rows from `first_row` (from 0) on, column by column, for sinks with
    /// [`RowSink::COLUMNS`]. None of these rows may contain a part of a long value.
    ///
    /// # Errors
    /// The errors of [`Block::emit`].
    fn emit_columns<S: RowSink>(
        &self,
        first_row: usize,
        n_rows: usize,
        sink: &mut S,
    ) -> Result<(), S::Error>;
}

/// Receives cells and writes each cell directly to its destination.
///
/// In row order, the calls are `begin_row`, then for each column `cell` or (`long_begin`,
/// `long_part`…, `long_end`), then `end_row`. Between any two calls the stream may pause and
/// continue with another block, because the parts of a long value are in different blocks.
///
/// In column order (for a sink with `COLUMNS`), the calls are `begin_columns`, then `column_cell`
/// for every row of column 0, then of column 1, …, then `end_columns`.
pub trait RowSink {
    /// The error type of the sink: the reason why it cannot write a value.
    type Error;

    /// `true` if the sink prefers to receive cells column by column.
    const COLUMNS: bool = false;

    /// Begins a row.
    ///
    /// # Errors
    /// The error of the sink.
    fn begin_row(&mut self) -> Result<(), Self::Error>;

    /// Writes the value of `column` (from 0).
    ///
    /// # Errors
    /// The error of the sink: it cannot represent the value, or has no capacity left.
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Self::Error>;

    /// Begins a long value of `column`, which arrives in parts.
    ///
    /// # Errors
    /// The errors of [`RowSink::cell`].
    fn long_begin(&mut self, column: usize, kind: LongKind) -> Result<(), Self::Error>;

    /// Writes `part`, the next part of a long value, which is a `Cell::Text` or a `Cell::Bytes`.
    ///
    /// # Errors
    /// The errors of [`RowSink::cell`].
    fn long_part(&mut self, column: usize, part: Cell<'_>) -> Result<(), Self::Error>;

    /// Ends the long value that `long_begin` began.
    ///
    /// # Errors
    /// The errors of [`RowSink::cell`].
    fn long_end(&mut self, column: usize) -> Result<(), Self::Error>;

    /// Ends the row. Returns `true` if the sink accepts another row now.
    ///
    /// # Errors
    /// The error of the sink.
    fn end_row(&mut self) -> Result<bool, Self::Error>;

    /// Begins a batch of `n_rows` rows that are emitted column by column.
    ///
    /// # Errors
    /// The error of the sink.
    fn begin_columns(&mut self, n_rows: usize) -> Result<(), Self::Error> {
        let _ = n_rows;
        Ok(())
    }

    /// Writes the value of `row` (from 0, within the batch) and `column` (from 0).
    ///
    /// # Errors
    /// The errors of [`RowSink::cell`].
    fn column_cell(
        &mut self,
        row: usize,
        column: usize,
        cell: Cell<'_>,
    ) -> Result<(), Self::Error> {
        let _ = row;
        self.cell(column, cell)
    }

    /// Ends the batch of rows that `begin_columns` began.
    ///
    /// # Errors
    /// The error of the sink.
    fn end_columns(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}
