//! What a format of rows is.

use onecopy_text::{ByteSink, Policy, Tally};
use onecopy_wire::{NonFinite, WriteError, datetime};

use crate::cell::{Cell, Date, LongKind, Time, Timestamp};

/// How a format writes rows into bytes. It lives as long as a stream and is given the current chunk with each call, so
/// that a stream can pause anywhere.
///
/// Order of calls: `begin`; for each row `begin_row`, then for each column `cell` or (`long_begin`, `long_part`…,
/// `long_end`), then `end_row`; `end` only after the last row of all. After an error nothing more is called.
pub trait RowFormat: Send {
    /// Whether a row has to stay in one chunk: what stands in its front depends on all of it.
    const WHOLE_ROWS: bool = false;

    /// What stands before the first row.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`].
    fn begin<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// What stands before a row; `is_first` for the first of all.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`].
    fn begin_row<S: ByteSink>(&mut self, is_first: bool, out: &mut S) -> Result<(), WriteError>;

    /// One value, with what stands before it.
    ///
    /// # Errors
    /// [`WriteError`]: the value has no form in this format.
    fn cell<S: ByteSink>(
        &mut self,
        column: usize,
        cell: Cell<'_>,
        out: &mut S,
    ) -> Result<(), WriteError>;

    /// A value that comes in parts begins.
    ///
    /// # Errors
    /// As `cell`.
    fn long_begin<S: ByteSink>(
        &mut self,
        column: usize,
        kind: LongKind,
        out: &mut S,
    ) -> Result<(), WriteError>;

    /// Its next part.
    ///
    /// # Errors
    /// As `cell`.
    fn long_part<S: ByteSink>(&mut self, part: Cell<'_>, out: &mut S) -> Result<(), WriteError>;

    /// Its end.
    ///
    /// # Errors
    /// As `cell`: the text may end inside a character.
    fn long_end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// What stands behind a row.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`].
    fn end_row<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// What stands behind the last row: what makes the text complete.
    ///
    /// # Errors
    /// [`WriteError::SinkFull`].
    fn end<S: ByteSink>(&mut self, out: &mut S) -> Result<(), WriteError>;

    /// Bytes that a short cell reserves at most: more than it writes, so a chunk must have them to spare.
    fn cell_room_bytes(&self) -> usize;

    /// The text converted since it was last entered into a ledger.
    fn tally(&mut self) -> &mut Tally;
}

/// What a stream does with values that its format has no form for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueOptions {
    /// Malformed text: an error, or U+FFFD in its place.
    pub policy: Policy,
    /// NaN and the infinities: an error, null or text.
    pub non_finite: NonFinite,
}

impl From<Date> for datetime::Date {
    #[inline]
    fn from(date: Date) -> Self {
        datetime::Date {
            year: date.year,
            month: date.month,
            day: date.day,
        }
    }
}

/// A time with its stored digits, as the writers want it.
#[inline]
pub(super) fn time(time: Time, digits: u8) -> datetime::Time {
    datetime::Time {
        hour: time.hour,
        minute: time.minute,
        second: time.second,
        nanosecond: time.nanosecond,
        digits,
    }
}

/// A timestamp with its stored digits, as the writers want it.
#[inline]
pub(super) fn timestamp(stamp: Timestamp, digits: u8) -> datetime::Timestamp {
    datetime::Timestamp {
        date: stamp.date.into(),
        time: time(stamp.time, digits),
        offset_minutes: stamp.offset_minutes,
    }
}
