//! The bound buffers of a statement: for each column a slot and an indicator per row.
//!
//! Two layouts. *By column*: one array per column, filled by one `SQLFetch` for many rows. *By row*: rows one behind the
//! other, filled by one `SQLFetch` each with a moving `SQL_ATTR_ROW_BIND_OFFSET_PTR`; for drivers that cannot fetch the
//! tail of a long value inside a block (binding is the win, not the block: anchors, rows, section 10).
//! Either way a slot is `base + row * stride`.

use super::arena::Arena;
use super::buffer::Buffer;
use crate::cell::Cell;
use crate::error::Error;
use crate::odbc::column::is_whole_units;
use crate::odbc::column::{Kind, Planned, Raw, Spec, Today};
use crate::odbc::ffi;

/// Indicators at or below this are ours: cell `BASE - indicator` of the arena.
const ARENA_BASE: isize = -1_000_000;

/// How a column's value comes into its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Bound: `SQLFetch` writes it.
    Bound,
    /// Not bound: `SQLGetData` after the fetch, in column order.
    GetData,
    /// Not bound, and NULL in its row: who wants the value asks for it part by part.
    Deferred,
}

/// How a bound value is in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It is NULL, or all of it is there.
    Whole,
    /// It did not fit; its length, if the driver reports one.
    Cut(Option<usize>),
    /// The driver reports a length that ODBC does not have.
    Invalid(isize),
}

/// A column of a rowset.
#[derive(Debug)]
pub(crate) struct ColumnBuffer {
    pub(crate) kind: Kind,
    pub(crate) spec: Spec,
    pub(crate) access: Access,
    /// Where its first slot is, as an offset into `data`.
    base: usize,
    /// Where its first indicator is, as an offset into `data`.
    indicators: usize,
    stride: usize,
    indicator_stride: usize,
}

/// All buffers of a statement.
#[derive(Debug)]
pub(crate) struct Rowset {
    pub(crate) columns: Vec<ColumnBuffer>,
    data: Buffer,
    /// Rows that there is room for.
    pub(crate) capacity: usize,
    /// Bytes of a row in the layout by row; 0 in the layout by column.
    pub(crate) row_bytes: usize,
}

impl Rowset {
    /// Buffers for `capacity` rows; `by_row` chooses the layout. They are made in `spare` where that is large enough: the
    /// pages of a fresh block cost more than the driver's call for a short result (128 faults for 512 KiB).
    ///
    /// # Errors
    /// Without memory.
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
                // The stride of a bound array is the size of its C type or the buffer length given, exactly.
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

    /// Clears the indicators of `rows` before each fetch, since a driver may leave some unwritten:
    /// Connector/ODBC 3.1.15 writes that of a `SQL_C_BIT` only where the value is NULL. Those of
    /// deferred columns are NULL.
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

    /// Its memory, for the next statement. No driver may write into it any more.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.data
    }

    /// Bytes that a row of these columns takes, indicators included.
    pub(crate) fn bytes_per_row(columns: &[Planned]) -> usize {
        columns
            .iter()
            .map(|p| slot_bytes(&p.spec) + 8)
            .sum::<usize>()
            .max(1)
    }

    /// Where its memory is: what tells two rowsets apart.
    pub(crate) fn address(&self) -> usize {
        self.data.ptr() as usize
    }

    /// Where the driver writes the value of `row`.
    pub(crate) fn slot_ptr(&self, column: usize, row: usize) -> *mut u8 {
        let c = &self.columns[column];
        debug_assert!(row < self.capacity);
        // SAFETY: `base + capacity * stride` lies inside the buffer by construction, and `row < capacity`.
        unsafe { self.data.ptr().add(c.base + row * c.stride) }
    }

    /// Where the driver writes the indicator of `row`.
    pub(crate) fn indicator_ptr(&self, column: usize, row: usize) -> *mut isize {
        let c = &self.columns[column];
        debug_assert!(row < self.capacity);
        // SAFETY: as `slot_ptr`; indicators begin at multiples of 8 in an 8-aligned buffer.
        unsafe {
            self.data
                .ptr()
                .add(c.indicators + row * c.indicator_stride)
                .cast()
        }
    }

    /// A number that no other slot has: where its indicator is.
    pub(crate) fn slot(column: &ColumnBuffer, row: usize) -> usize {
        column.indicators + row * column.indicator_stride
    }

    /// The indicator of `row`, read once: a driver may write to it at any time.
    pub(crate) fn indicator(&self, column: &ColumnBuffer, row: usize) -> isize {
        let at = Rowset::slot(column, row);
        let bytes = self.data.bytes()[at..at + 8]
            .try_into()
            .expect("eight bytes were taken");
        isize::from_ne_bytes(bytes)
    }

    /// Says that the value of `row` is cell `number` of the arena.
    pub(crate) fn set_arena_cell(&mut self, column: usize, row: usize, number: usize) {
        let number = isize::try_from(number).expect("a block has fewer cells than isize::MAX");
        self.set_indicator(column, row, ARENA_BASE - number);
    }

    /// Sets the indicator of `row`.
    pub(crate) fn set_indicator(&mut self, column: usize, row: usize, value: isize) {
        let c = &self.columns[column];
        let at = c.indicators + row * c.indicator_stride;
        self.data.bytes_mut()[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    /// How the bound value of `row` is in its slot.
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

    /// Returns whether any bound value among the first `n_rows` rows of `column` is not whole.
    pub(crate) fn any_cut(&self, column: &ColumnBuffer, n_rows: usize) -> bool {
        column.spec.variable && (0..n_rows).any(|row| self.fit(column, row) != Fit::Whole)
    }

    /// Puts values right that a driver writes in another form (a decimal without its leading zero, money with its sign),
    /// in place.
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

    /// Bytes of the largest among some rows of `n_rows` from `first` on: every so many, the last one included. `None` where
    /// there are none.
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
                        // A value that is read in parts still has its whole length as indicator; the
                        // columns after it are not read yet, and may have those of another row.
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

    /// Whether the driver may have filled the value of `row` with today's date.
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

    /// The value of `row`.
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
                // A driver that claims more than the slot was handled by the walk; this bound keeps us inside.
                (indicator as usize).min(column.spec.bytes)
            } else {
                column.spec.bytes
            };
            Some(Raw::new(&self.data.bytes()[at..at + len]))
        } else if indicator == ffi::NULL_DATA {
            None
        } else if !column.spec.variable && column.access == Access::Bound {
            // Fixed-size values need no length: some drivers leave another negative number there.
            Some(Raw::new(&self.data.bytes()[at..at + column.spec.bytes]))
        } else {
            self.arena_cell(column, row, indicator, arena).map(Raw::new)
        }
    }

    /// The cell of the arena that this indicator of `row` names; `None` unless it is one of that
    /// slot: whatever a driver writes to an indicator, it gives no other slot's value.
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

    /// The value of `row` as a cell.
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

/// Bytes of a slot in the layout by row: aligned for the next one.
fn slot_bytes(spec: &Spec) -> usize {
    spec.bytes.next_multiple_of(8)
}
