//! `RowFormat`: the trait that an output format implements.

use onecopy_text::{ByteSink, Policy, Tally};
use onecopy_wire::{NonFinite, WriteError};

use crate::cell::{Cell, LongKind};

/// Writes rows as bytes. One object of this type writes a whole stream. Each call receives the
/// current chunk, so that the stream can pause between any two calls and continue with another
/// chunk.
///
/// The order of calls: `begin`; for each row `begin_row`, then for each column `cell` or
/// (`long_begin`, `long_part`…, `long_end`), then `end_row`; and `end` after the last row of the
/// result. No call follows a call that failed.
pub trait RowFormat: Send {
    /// `true` if a row must stay in one chunk, because its first bytes (such as the length of a
    /// BSON document) depend on the whole row.
    const WHOLE_ROWS: bool = false;

    /// Writes the bytes before the first row.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`]: the chunk has no capacity left.
    fn begin<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// Writes the bytes before a row; `is_first` is `true` for the first row of the result.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`]: the chunk has no capacity left.
    fn begin_row<S: ByteSink>(&mut self, is_first: bool, out: &mut S) -> Result<(), WriteError>;

    /// Writes one value and the separator before it.
    ///
    /// # Errors
    /// [`WriteError`]: the format has no representation for the value, or the chunk has no capacity
    /// left.
    fn cell<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError>;

    /// Begins a long value, which arrives in parts.
    ///
    /// # Errors
    /// The errors of [`RowFormat::cell`].
    fn long_begin<S: ByteSink>(
        &mut self,
        column: usize,
        kind: LongKind,
        out: &mut S,
    ) -> Result<(), WriteError>;

    /// Writes the next part of the long value that `long_begin` began.
    ///
    /// # Errors
    /// The errors of [`RowFormat::cell`].
    fn long_part<S: ByteSink>(&mut self, part: Cell<'_>, out: &mut S) -> Result<(), WriteError>;

    /// Ends the long value that `long_begin` began.
    ///
    /// # Errors
    /// The errors of [`RowFormat::cell`]. A text value that ends inside a character is malformed.
    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// Writes the bytes after a row.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`]: the chunk has no capacity left.
    fn end_row<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// Writes the bytes after the last row, for example the closing bracket of an array.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`]: the chunk has no capacity left.
    fn end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// Returns the number of bytes that must be free in the chunk before a cell that is neither
    /// text nor bytes is written. The cell may need fewer bytes.
    fn cell_room_bytes(&self) -> usize;

    /// Returns the counts of text bytes that were converted and copied. The caller adds them to a
    /// `Ledger` and resets them to 0.
    fn tally(&mut self) -> &mut Tally;
}

/// Determines how values that an output format cannot represent are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueOptions {
    /// The treatment of malformed text: an error, or replacement by U+FFFD.
    pub policy: Policy,
    /// The treatment of NaN and infinities: an error, null or text.
    pub non_finite: NonFinite,
}
