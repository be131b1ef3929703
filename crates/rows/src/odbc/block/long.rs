//! `RowsetReader`: reads the values that do not fit in their slot, either whole or in parts over
//! several fetches.
//!
//! ```text
//!             fetch_rows                    walk row by row, column by column
//!  (start) ──────────────► rows in slots ─────────────────────────────────────► view of complete rows
//!                                │ a value does not fit: SQLGetData
//!                                ├── whole (or shorter than a part) → arena, goes on
//!                                └── longer than a part → its first part → arena; the view ends inside this row
//!                                                              │ next fetch
//!                                                              ├── part, not the last → a view of only that part
//!                                                              └── last part → goes on with the row's next column
//! ```
//!
//! The reader calls the driver in ascending order of rows and columns. Drivers without extensions
//! of `SQLGetData` (`SQL_GETDATA_EXTENSIONS` is 0) require this order.

use std::ops::Range;

use super::arena::Arena;
use super::calls::FetchCalls;
use super::piece::{FirstPiece, ValueProgress, invalid_length, piece, value, window_for};
use super::rowset::{Access, Fit, Rowset};
use crate::error::{Error, ErrorKind};
use crate::odbc::column::Today;
use crate::odbc::ffi::{self, c};
use crate::source::{Budget, LongValues};

/// A part of a long value: its column, and the range of its bytes in the arena (the memory for long
/// values).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArenaPart {
    pub(crate) column: usize,
    pub(crate) bytes: Range<usize>,
    pub(crate) last: bool,
}

/// A range of slots with fetched rows. One call to [`RowsetReader::advance`] returns such a range,
/// and its rows can then be emitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowsetSlice {
    /// The number of the slot that contains the first row of the range.
    pub(crate) first_slot: usize,
    /// The number of rows, including rows of which only a part was read.
    pub(crate) n_rows: usize,
    /// The part of a long value with which this slice begins. `None` if the first row of the slice
    /// is not the rest of a row whose beginning was in an earlier slice.
    pub(crate) resume: Option<ArenaPart>,
    /// The part of a long value with which this slice ends. `None` if the last row of the slice is
    /// complete.
    pub(crate) stop: Option<ArenaPart>,
}

/// Reads rows and their long values, and records which rows and which parts of long values were
/// read.
#[derive(Debug)]
pub(crate) struct RowsetReader {
    /// The slots `next..end` contain the rows that were fetched, but not yet returned in a
    /// [`RowsetSlice`].
    next: usize,
    end: usize,
    /// `None` unless a part of a long value of row `next` was already read. Then: the column of
    /// this value, and how much of the value was read.
    under_way: Option<(usize, ValueProgress)>,
    /// `true` if the reader must check each row for values that did not fit in their slot.
    check: bool,
    /// The error to return after the rows `next..end`; `None` if no call has failed.
    failure: Option<Box<Error>>,
    /// The number of rows of the result that precede this rowset: in the layout by column, the rows
    /// before the first slot; in the layout by row, the rows that were already returned as a whole.
    before: u64,
    /// The slot of the row from which `get_data` reads a long value. The function `position` sets
    /// it. `None` after a fetch, until `position` is called.
    positioned: Option<usize>,
    /// The date on which the statement was executed. Some drivers return this date instead of a
    /// date that they cannot parse.
    today: Today,
}

impl RowsetReader {
    pub(crate) fn new() -> RowsetReader {
        RowsetReader {
            next: 0,
            end: 0,
            under_way: None,
            check: false,
            failure: None,
            before: 0,
            positioned: None,
            today: Today::now(),
        }
    }

    /// Returns `true` if all fetched rows were already returned. The next call to `advance` must
    /// then fetch rows.
    pub(crate) fn is_between_blocks(&self) -> bool {
        self.next == self.end && self.under_way.is_none() && self.failure.is_none()
    }

    /// Returns the rows to emit next, as a range of slots of `rowset`. If all fetched rows were
    /// returned, fetches more rows. The range is empty after the last row of the result.
    pub(crate) fn advance<C: FetchCalls>(
        &mut self,
        rowset: &mut Rowset,
        arena: &mut Arena,
        calls: &mut C,
        long_values: LongValues,
        budget: Budget,
    ) -> Result<RowsetSlice, Error> {
        arena.clear();
        if rowset.row_bytes > 0 {
            self.by_row(rowset, arena, calls, long_values, budget)
        } else {
            self.by_column(rowset, arena, calls, long_values, budget)
        }
    }

    fn by_column<C: FetchCalls>(
        &mut self,
        rowset: &mut Rowset,
        arena: &mut Arena,
        calls: &mut C,
        long_values: LongValues,
        budget: Budget,
    ) -> Result<RowsetSlice, Error> {
        if self.next == self.end {
            self.fail_now()?;
            self.before += self.end as u64;
            rowset.clear_indicators(0..rowset.capacity);
            let brought = calls.fetch_rows(rowset, 0);
            (self.next, self.end, self.positioned) = (0, brought.n_rows, None);
            self.failure = brought.failure.map(Box::new);
            for column in 0..rowset.columns.len() {
                rowset.tidy(column, 0..brought.n_rows);
                // The first row with an error ends the block, whichever column has the error.
                let mut row = 0;
                while row < self.end {
                    if let Err(error) = self.check_date(column, row, rowset, arena, calls) {
                        self.failure = Some(Box::new(error.at_row(self.before + row as u64)));
                        self.end = row;
                    }
                    row += 1;
                }
            }
            if self.end == 0 {
                self.fail_now()?;
            }
            self.check = rowset
                .columns
                .iter()
                .any(|c| c.access == Access::GetData || rowset.any_cut(c, self.end));
        }
        let mut view = RowsetSlice {
            first_slot: self.next,
            ..RowsetSlice::default()
        };
        let mut column = 0;
        if !self.resume(&mut view, &mut column, rowset, arena, calls, long_values)? {
            return Ok(view);
        }
        if !self.check {
            view.n_rows = (self.end - self.next).min(budget.block_rows.max(1));
            self.next += view.n_rows;
            return Ok(view);
        }
        while self.next < self.end && view.n_rows < budget.block_rows.max(1) {
            view.n_rows += 1;
            match self.row(&mut view, column, rowset, arena, calls, long_values) {
                Ok(true) => {}
                Ok(false) => return Ok(view),
                Err(error) => {
                    let error = error.at_row(self.before + self.next as u64);
                    view.n_rows -= 1;
                    if view.n_rows == 0 {
                        return Err(error);
                    }
                    (self.end, self.failure) = (self.next, Some(Box::new(error)));
                    return Ok(view);
                }
            }
            column = 0;
            self.next += 1;
            if arena.len() >= budget.block_bytes {
                break;
            }
        }
        Ok(view)
    }

    fn by_row<C: FetchCalls>(
        &mut self,
        rowset: &mut Rowset,
        arena: &mut Arena,
        calls: &mut C,
        long_values: LongValues,
        budget: Budget,
    ) -> Result<RowsetSlice, Error> {
        if self.under_way.is_some() {
            // The row whose value is read in parts is returned as a slice of its own until it is
            // complete.
            let mut view = RowsetSlice {
                first_slot: self.next,
                ..RowsetSlice::default()
            };
            let mut column = 0;
            if self.resume(&mut view, &mut column, rowset, arena, calls, long_values)? {
                view.n_rows = 1;
                let row = self.row(&mut view, column, rowset, arena, calls, long_values);
                if row.map_err(|e| e.at_row(self.before))? {
                    self.before += 1;
                    self.next = 0;
                }
            }
            return Ok(view);
        }
        self.fail_now()?;
        self.next = 0;
        let mut view = RowsetSlice::default();
        while self.next < rowset.capacity.min(budget.block_rows.max(1)) {
            rowset.clear_indicators(self.next..self.next + 1);
            let brought = calls.fetch_rows(rowset, self.next);
            self.failure = brought.failure.map(Box::new);
            if brought.n_rows == 0 {
                break;
            }
            view.n_rows += 1;
            match self.whole_row(&mut view, rowset, arena, calls, long_values) {
                Ok(true) => {}
                Ok(false) => return Ok(view),
                Err(error) => {
                    view.n_rows -= 1;
                    self.failure = Some(Box::new(error.at_row(self.before)));
                }
            }
            if self.failure.is_some() {
                break;
            }
            self.before += 1;
            self.next += 1;
            if arena.len() >= budget.block_bytes {
                break;
            }
        }
        self.next = 0;
        if view.n_rows == 0 {
            self.fail_now()?;
        }
        Ok(view)
    }

    /// Reads all columns of the row `next` with [`RowsetReader::row`], rewrites texts that this
    /// driver writes differently, and checks dates. (If the buffer has the layout by column, the
    /// texts and dates of all rows are processed after the fetch instead.) Returns `true` if the
    /// row is complete.
    fn whole_row<C: FetchCalls>(
        &mut self,
        view: &mut RowsetSlice,
        rowset: &mut Rowset,
        arena: &mut Arena,
        calls: &mut C,
        long_values: LongValues,
    ) -> Result<bool, Error> {
        if !self.row(view, 0, rowset, arena, calls, long_values)? {
            return Ok(false);
        }
        for column in 0..rowset.columns.len() {
            rowset.tidy(column, self.next..self.next + 1);
            self.check_date(column, self.next, rowset, arena, calls)?;
        }
        Ok(true)
    }

    /// Returns the error of the call that failed during this fetch as `Err`; `Ok` if no call
    /// failed. It must be called only after the rows before the error were returned.
    fn fail_now(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), |failure| Err(*failure))
    }

    /// Detects a date that the driver cannot parse and for which it has returned the current date;
    /// see `Quirks::fills_dates`. If the value may be such a date, it is read a second time, as a
    /// number. The driver computes the number by passing the server's text to C's `atof`, which
    /// returns the year or an infinity. Returns an error if the number is above 9999 or infinite.
    #[inline]
    fn check_date<C: FetchCalls>(
        &mut self,
        column: usize,
        row: usize,
        rowset: &Rowset,
        arena: &Arena,
        calls: &mut C,
    ) -> Result<(), Error> {
        let slots = &rowset.columns[column];
        if !slots.kind.fills_dates()
            || !rowset.may_be_driver_default(slots, row, arena, &self.today)
        {
            return Ok(());
        }
        self.position(row, rowset, calls)?;
        let mut number = [0u8; 8];
        calls.get_data(column, c::DOUBLE, &mut number)?;
        let year = f64::from_ne_bytes(number);
        let what = if year.is_infinite() {
            let sign = if year < 0.0 { "-" } else { "" };
            format!("`{sign}infinity`, which the driver has no date for")
        } else if year > 9999.0 {
            format!("a date of the year {year}, and the driver supports none above 9999")
        } else {
            return Ok(());
        };
        let remedy = "Cast the column to text, or to a date within its range, in the query.";
        Err(Error::new(ErrorKind::Data, format!("{what}\n{remedy}")).at_column(column, ""))
    }

    /// Makes `row` the row from which `get_data` reads. This is needed only if the block has
    /// several rows.
    fn position<C: FetchCalls>(
        &mut self,
        row: usize,
        rowset: &Rowset,
        calls: &mut C,
    ) -> Result<(), Error> {
        if rowset.row_bytes == 0 && rowset.capacity > 1 && self.positioned != Some(row) {
            calls.position(row)?;
            self.positioned = Some(row);
        }
        Ok(())
    }

    /// If earlier calls have read only a part of a long value, reads the next part of this value.
    /// Returns `true` if the value is now complete, or if there was no such value. The caller must
    /// then read the remaining columns of the row, the first of which is `column`.
    fn resume<C: FetchCalls>(
        &mut self,
        view: &mut RowsetSlice,
        column: &mut usize,
        rowset: &Rowset,
        arena: &mut Arena,
        calls: &mut C,
        long_values: LongValues,
    ) -> Result<bool, Error> {
        let Some((under_way, mut progress)) = self.under_way else {
            return Ok(true);
        };
        let spec = rowset.columns[under_way].spec;
        let start = arena.begin();
        let window = window_for(long_values, spec.terminator);
        let piece = piece(
            calls,
            arena,
            under_way,
            spec.c_type,
            spec.terminator,
            window,
        )
        .and_then(|piece| progress.add(&piece).map(|()| piece))
        .map_err(|error| {
            let row = self.before
                + if rowset.row_bytes == 0 {
                    self.next as u64
                } else {
                    0
                };
            error.at_column(under_way, "").at_row(row)
        })?;
        self.under_way = Some((under_way, progress));
        view.resume = Some(ArenaPart {
            column: under_way,
            bytes: start..arena.len(),
            last: piece.last,
        });
        view.n_rows = 1;
        if !piece.last {
            return Ok(false);
        }
        self.under_way = None;
        *column = under_way + 1;
        // The caller counts this row again.
        view.n_rows = 0;
        self.check = true;
        Ok(true)
    }

    /// Reads the values of row `self.next` that the driver has not written completely to their
    /// bound buffers, beginning at column `from`. Returns `true` if the row is then complete.
    fn row<C: FetchCalls>(
        &mut self,
        view: &mut RowsetSlice,
        from: usize,
        rowset: &mut Rowset,
        arena: &mut Arena,
        calls: &mut C,
        long_values: LongValues,
    ) -> Result<bool, Error> {
        let row = self.next;
        for column in from..rowset.columns.len() {
            let slots = &rowset.columns[column];
            let (spec, access) = (slots.spec, slots.access);
            let known = match access {
                Access::Deferred => continue,
                Access::GetData => None,
                Access::Bound => match rowset.fit(slots, row) {
                    Fit::Whole => continue,
                    Fit::Cut(len) => len,
                    Fit::Invalid(indicator) => {
                        return Err(invalid_length(indicator).at_column(column, ""));
                    }
                },
            };
            self.position(row, rowset, calls)
                .map_err(|e| e.at_column(column, ""))?;
            let streams = slots.kind.streams();
            let start = arena.begin();
            let brought = value(
                calls,
                arena,
                column,
                spec.c_type,
                spec.terminator,
                known,
                streams,
                long_values,
            );
            match brought.map_err(|e| e.at_column(column, ""))? {
                FirstPiece::Null => rowset.set_indicator(column, row, ffi::NULL_DATA),
                FirstPiece::Whole => {
                    let len = arena.len() - start;
                    if !spec.variable && len != spec.bytes {
                        let message = format!(
                            "the driver returns {len} bytes of a value of {} bytes",
                            spec.bytes
                        );
                        return Err(Error::new(ErrorKind::Data, message).at_column(column, ""));
                    }
                    if let Some(tidy) = rowset.columns[column].kind.tidy() {
                        arena.tidy(start, tidy)?;
                    }
                    let slot = Rowset::slot(&rowset.columns[column], row);
                    let number = arena.end_cell(slot, start);
                    rowset.set_arena_cell(column, row, number);
                }
                FirstPiece::FirstPart(progress) => {
                    view.stop = Some(ArenaPart {
                        column,
                        bytes: start..arena.len(),
                        last: false,
                    });
                    self.under_way = Some((column, progress));
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
#[path = "long_tests.rs"]
mod tests;
