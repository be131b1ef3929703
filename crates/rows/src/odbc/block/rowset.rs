//! `Rowset`: the bound buffers of a statement. Each column has a slot and an indicator for each
//! row.
//!
//! There are two layouts. *By column*: one array for each column, filled by one `SQLFetch` for many
//! rows. *By row*: consecutive rows, each filled by one `SQLFetch` after
//! `SQL_ATTR_ROW_BIND_OFFSET_PTR` was moved. The layout by row is for drivers whose `SQLGetData`
//! reads the end of a long value only if the fetch returned one row. (Fetching row by row is not
//! slower: a fetch is fast because its buffers are bound, not because it returns many rows.) In
//! each layout, the slot of `row` is at `base + row * stride`.

use super::arena::Arena;
use super::buffer::Buffer;
use crate::cell::Cell;
use crate::error::Error;
use crate::odbc::column::is_whole_units;
use crate::odbc::column::{Kind, Planned, Raw, Spec, Today};
use crate::odbc::ffi;

/// An indicator at or below this number was written by this crate, not by the driver. The value did
/// not fit in its slot and is in the arena, as value number `ARENA_BASE - indicator`.
const ARENA_BASE: isize = -1_000_000;

/// The way in which the values of a column are read: by `SQLFetch`, by `SQLGetData` after the
/// fetch, or by `SQLGetData` when the caller requests a part of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The column is bound: `SQLFetch` writes each value to its slot in the rowset.
    Bound,
    /// The column is not bound: after the fetch, `SQLGetData` reads each value, in column order.
    GetData,
    /// The column is not bound, and the rows contain NULL instead of its values. The caller can
    /// request the value of the current row, and reads it in parts.
    Deferred,
}

/// The state of a bound value in its slot: complete, truncated, or with an invalid length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The slot contains the complete value, or the value is NULL.
    Whole,
    /// The value did not fit in its slot. Contains the value's length in bytes, if the driver
    /// reports it.
    Cut(Option<usize>),
    /// The driver reported a length that ODBC does not define.
    Invalid(isize),
}

/// The slots (buffers for values) and indicators (lengths or NULL) of one column of a rowset.
#[derive(Debug)]
pub(crate) struct ColumnBuffer {
    pub(crate) kind: Kind,
    pub(crate) spec: Spec,
    pub(crate) access: Access,
    /// The offset of the column's first slot in `data`, in bytes.
    base: usize,
    /// The offset of the column's first indicator in `data`, in bytes.
    indicators: usize,
    stride: usize,
    indicator_stride: usize,
}

/// The slots (buffers for values) and indicators (lengths or NULL) of all columns of a statement.
#[derive(Debug)]
pub(crate) struct Rowset {
    pub(crate) columns: Vec<ColumnBuffer>,
    data: Buffer,
    /// The number of rows that fit in the rowset.
    pub(crate) capacity: usize,
    /// The size of a row in bytes if the driver writes row by row to the rowset; 0 if it writes to
    /// one array per column.
    pub(crate) row_bytes: usize,
}

impl Rowset {
    /// Creates buffers for `capacity` rows, in the layout by row if `by_row` is `true`. The buffers
    /// use the memory of `spare` if it is large enough. Reuse saves time for a short result,
    /// because the page faults of newly allocated memory (128 for 512 KiB) take longer than the
    /// driver's call.
    ///
    /// # Errors
    /// The allocation failed.
    pub(crate) fn new(
        columns: &[(Planned, Access)],
        capacity: usize,
        by_row: bool,
        spare: Option<Buffer>,
    ) -> Result<Rowset, Error> {
        let row_bytes: usize = columns.iter().map(|(p, _)| slot_bytes(&p.spec) + 8).sum();
        let mut slots = Vec::with_capacity(columns.len());
        let mut at = 0;
        for (planned, access) in columns {
            let slot = slot_bytes(&planned.spec);
            let (base, indicators, stride, indicator_stride);
            if by_row {
                (indicators, base) = (at, at + 8);
                (stride, indicator_stride) = (row_bytes, row_bytes);
                at += 8 + slot;
            } else {
                // ODBC requires this stride of a bound array: the size of the C type, or the buffer
                // length that was passed.
                (stride, indicator_stride) = (planned.spec.bytes, 8);
                base = at;
                at += (stride * capacity).next_multiple_of(8);
                indicators = at;
                at += 8 * capacity;
            }
            slots.push(ColumnBuffer {
                kind: planned.kind,
                spec: planned.spec,
                access: *access,
                base,
                indicators,
                stride,
                indicator_stride,
            });
        }
        let len = if by_row { row_bytes * capacity } else { at };
        let mut rowset = Rowset {
            columns: slots,
            data: Buffer::reuse(spare, len)?,
            capacity,
            row_bytes: if by_row { row_bytes } else { 0 },
        };
        rowset.clear_indicators(0..capacity);
        Ok(rowset)
    }

    /// Sets the indicators of `rows` to 0, or to NULL for deferred columns. Must be called before
    /// each fetch, because a driver may leave some indicators unwritten: Connector/ODBC 3.1.15
    /// writes the indicator of a `SQL_C_BIT` only if the value is NULL.
    pub(crate) fn clear_indicators(&mut self, rows: std::ops::Range<usize>) {
        let bytes = self.data.bytes_mut();
        for slots in &self.columns {
            let cleared = match slots.access {
                Access::Deferred => ffi::NULL_DATA,
                _ => 0,
            };
            for row in rows.clone() {
                let at = slots.indicators + row * slots.indicator_stride;
                bytes[at..at + 8].copy_from_slice(&cleared.to_ne_bytes());
            }
        }
    }

    /// Returns the memory of the block, so that the next statement can reuse it. After this call,
    /// no driver may write to the memory.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.data
    }

    /// Returns the size in bytes of a row of these columns, including the indicators.
    pub(crate) fn bytes_per_row(columns: &[Planned]) -> usize {
        columns
            .iter()
            .map(|p| slot_bytes(&p.spec) + 8)
            .sum::<usize>()
            .max(1)
    }

    /// Returns the address of the buffers, which identifies the rowset.
    pub(crate) fn address(&self) -> usize {
        self.data.ptr() as usize
    }

    /// Returns the address to which the driver writes the value of `row` in `column`.
    pub(crate) fn slot_ptr(&self, column: usize, row: usize) -> *mut u8 {
        let c = &self.columns[column];
        debug_assert!(row < self.capacity);
        // SAFETY: `base + capacity * stride` lies inside the buffer by construction, and `row <
        // capacity`.
        unsafe { self.data.ptr().add(c.base + row * c.stride) }
    }

    /// Returns the address to which the driver writes the indicator of `row` in `column`.
    pub(crate) fn indicator_ptr(&self, column: usize, row: usize) -> *mut isize {
        let c = &self.columns[column];
        debug_assert!(row < self.capacity);
        // SAFETY: as in `slot_ptr`; indicators begin at multiples of 8 in an 8-aligned buffer.
        unsafe {
            self.data
                .ptr()
                .add(c.indicators + row * c.indicator_stride)
                .cast()
        }
    }

    /// Returns the offset of the indicator of `row` and `column` in the block's memory. The offset
    /// serves as a number that identifies the slot.
    pub(crate) fn slot(column: &ColumnBuffer, row: usize) -> usize {
        column.indicators + row * column.indicator_stride
    }

    /// Reads the indicator of `row` once, and returns it. The caller must not read it again,
    /// because a driver may change it at any time.
    pub(crate) fn indicator(&self, column: &ColumnBuffer, row: usize) -> isize {
        let at = Rowset::slot(column, row);
        let bytes = self.data.bytes()[at..at + 8]
            .try_into()
            .expect("eight bytes were taken");
        isize::from_ne_bytes(bytes)
    }

    /// Sets the indicator of `row` to a number that refers to the arena value with the index
    /// `number`.
    pub(crate) fn set_arena_cell(&mut self, column: usize, row: usize, number: usize) {
        let number = isize::try_from(number).expect("a block has fewer cells than isize::MAX");
        self.set_indicator(column, row, ARENA_BASE - number);
    }

    pub(crate) fn set_indicator(&mut self, column: usize, row: usize, value: isize) {
        let c = &self.columns[column];
        let at = c.indicators + row * c.indicator_stride;
        self.data.bytes_mut()[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    /// Returns whether the bound value of `row` is complete in its slot, was truncated, or has an
    /// invalid length.
    pub(crate) fn fit(&self, column: &ColumnBuffer, row: usize) -> Fit {
        if !column.spec.variable {
            return Fit::Whole;
        }
        let most = column.spec.bytes - column.spec.terminator;
        match self.indicator(column, row) {
            ffi::NULL_DATA => Fit::Whole,
            ffi::NO_TOTAL => Fit::Cut(None),
            indicator => match usize::try_from(indicator) {
                Ok(len) if !is_whole_units(len, column.spec.terminator) => Fit::Invalid(indicator),
                Ok(len) if len <= most => Fit::Whole,
                Ok(len) => Fit::Cut(Some(len)),
                Err(_) => Fit::Invalid(indicator),
            },
        }
    }

    /// Returns `true` if a value in the first `n_rows` rows of `column` did not fit in its slot.
    pub(crate) fn any_cut(&self, column: &ColumnBuffer, n_rows: usize) -> bool {
        column.spec.variable && (0..n_rows).any(|row| self.fit(column, row) != Fit::Whole)
    }

    /// Rewrites values in the slots of `rows` as plain decimals, if the driver returns decimals
    /// without a leading zero, or money with a currency sign.
    pub(crate) fn tidy(&mut self, column: usize, rows: std::ops::Range<usize>) {
        let Some(tidy) = self.columns[column].kind.tidy() else {
            return;
        };
        for row in rows {
            let c = &self.columns[column];
            let Ok(len) = usize::try_from(self.indicator(c, row)) else {
                continue;
            };
            if len > c.spec.bytes {
                continue;
            }
            let at = c.base + row * c.stride;
            let slot = &mut self.data.bytes_mut()[at..at + self.columns[column].spec.bytes];
            let len = tidy(slot, len);
            self.set_indicator(column, row, isize::try_from(len).unwrap_or(0));
        }
    }

    /// Returns the size in bytes of the largest row in a sample of the `n_rows` rows from `first`
    /// on; `None` if there are no rows. The sample is evenly spaced and includes the last row.
    pub(crate) fn largest_row(&self, first: usize, n_rows: usize, arena: &Arena) -> Option<usize> {
        let step = (n_rows / 16).max(1);
        (0..n_rows)
            .rev()
            .step_by(step)
            .map(|row| {
                self.columns
                    .iter()
                    .map(|c| {
                        let indicator = self.indicator(c, first + row);
                        // The indicator of a value that is read in parts still contains the whole
                        // length. The columns after that value are not read yet, and may have
                        // indicators of another row.
                        let bytes = match usize::try_from(indicator) {
                            Ok(len) => len,
                            Err(_) => {
                                let cell = self.arena_cell(c, first + row, indicator, arena);
                                cell.map_or(0, <[u8]>::len)
                            }
                        };
                        bytes.saturating_add(8)
                    })
                    .fold(0, usize::saturating_add)
            })
            .max()
    }

    /// Returns `true` if the date of `row` may be wrong: the driver may have returned the current
    /// date because it could not parse the server's date.
    pub(crate) fn may_be_driver_default(
        &self,
        column: &ColumnBuffer,
        row: usize,
        arena: &Arena,
        today: &Today,
    ) -> bool {
        self.raw(column, row, arena)
            .is_some_and(|raw| column.kind.may_be_driver_default(raw, today))
    }

    /// Returns the bytes of the value of `row`; `None` if the value is NULL.
    #[inline]
    pub(crate) fn raw<'b>(
        &'b self,
        column: &ColumnBuffer,
        row: usize,
        arena: &'b Arena,
    ) -> Option<Raw<'b>> {
        let indicator = self.indicator(column, row);
        let at = column.base + row * column.stride;
        if indicator >= 0 {
            let len = if column.spec.variable {
                // The reader has handled a length that exceeds the slot; this limit only keeps the
                // access inside the slot.
                (indicator as usize).min(column.spec.bytes)
            } else {
                column.spec.bytes
            };
            Some(Raw::new(&self.data.bytes()[at..at + len]))
        } else if indicator == ffi::NULL_DATA {
            None
        } else if !column.spec.variable && column.access == Access::Bound {
            // A value of fixed size needs no length. Some drivers store a negative number other
            // than `SQL_NULL_DATA` as its indicator.
            Some(Raw::new(&self.data.bytes()[at..at + column.spec.bytes]))
        } else {
            self.arena_cell(column, row, indicator, arena).map(Raw::new)
        }
    }

    /// Returns the arena value to which the indicator of `row` refers. Returns `None` if that value
    /// belongs to another slot, because a driver may write any number to the indicator.
    fn arena_cell<'b>(
        &self,
        column: &ColumnBuffer,
        row: usize,
        indicator: isize,
        arena: &'b Arena,
    ) -> Option<&'b [u8]> {
        let number = ARENA_BASE.wrapping_sub(indicator) as usize;
        arena.cell(Rowset::slot(column, row), number)
    }

    /// Returns the value of `row` in `column` as a cell.
    #[inline]
    pub(crate) fn cell<'b>(
        &'b self,
        column: &ColumnBuffer,
        row: usize,
        arena: &'b Arena,
    ) -> Cell<'b> {
        match self.raw(column, row, arena) {
            None => Cell::Null,
            Some(raw) => column.kind.cell(raw),
        }
    }
}

/// Returns the size of a slot in the layout by row, rounded up to the alignment of the next slot.
fn slot_bytes(spec: &Spec) -> usize {
    spec.bytes.next_multiple_of(8)
}
