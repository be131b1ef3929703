//! `CurrentBlock`: the rows that one fetch of an ODBC statement returned. Short values are in the
//! slots of the `Rowset`. Values that are longer than their slot are in the `Arena`.

use onecopy_text::Units;

use super::arena::Arena;
use super::long::{ArenaPart, RowsetSlice};
use super::rowset::Rowset;
use crate::cell::{Cell, LongKind};
use crate::odbc::column::{Kind, Raw, each_kind};
use crate::source::{Block, Emitted, RowSink};

/// The rows of one fetch of an ODBC statement.
#[derive(Default)]
pub struct CurrentBlock {
    pub(crate) rowset: Option<Rowset>,
    pub(crate) arena: Arena,
    pub(crate) view: RowsetSlice,
}

impl std::fmt::Debug for CurrentBlock {
    /// Prints only the number of rows, because values must not be written to a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CurrentBlock")
            .field("n_rows", &self.view.n_rows)
            .finish_non_exhaustive()
    }
}

impl CurrentBlock {
    /// Creates an empty block for the next fetch of the same statement. That fetch may fill the new
    /// block while the rows of this block are emitted.
    pub(crate) fn another(&self) -> CurrentBlock {
        CurrentBlock {
            arena: self.arena.another(),
            ..CurrentBlock::default()
        }
    }

    pub(crate) fn clear(&mut self) {
        self.view = RowsetSlice::default();
        self.arena.clear();
    }

    /// Emits the values in columns `from..to` of the row in `slot` to the sink.
    #[inline]
    fn cells<S: RowSink>(
        &self,
        rowset: &Rowset,
        slot: usize,
        from: usize,
        to: usize,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        for (column, slots) in rowset.columns[from..to].iter().enumerate() {
            sink.cell(from + column, rowset.cell(slots, slot, &self.arena))?;
        }
        Ok(())
    }

    fn part<S: RowSink>(
        &self,
        rowset: &Rowset,
        part: &ArenaPart,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let bytes = self.arena.at(part.bytes.clone());
        if bytes.is_empty() {
            return Ok(());
        }
        let cell = rowset.columns[part.column].kind.cell(Raw::new(bytes));
        sink.long_part(part.column, cell)
    }
}

impl Block for CurrentBlock {
    fn n_rows(&self) -> usize {
        self.view.n_rows
    }

    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error> {
        let Some(rowset) = &self.rowset else {
            return Ok(Emitted::All);
        };
        let n_columns = rowset.columns.len();
        for row in first_row..self.view.n_rows {
            let slot = self.view.first_slot + row;
            let mut from = 0;
            match &self.view.resume {
                Some(part) if row == 0 => {
                    self.part(rowset, part, sink)?;
                    if !part.last {
                        return Ok(Emitted::All);
                    }
                    sink.long_end(part.column)?;
                    from = part.column + 1;
                }
                _ => sink.begin_row()?,
            }
            if let Some(part) = &self.view.stop
                && row + 1 == self.view.n_rows
            {
                self.cells(rowset, slot, from, part.column, sink)?;
                let kind = match rowset.columns[part.column].kind {
                    Kind::Binary(_) => LongKind::Bytes,
                    _ => LongKind::Text,
                };
                sink.long_begin(part.column, kind)?;
                self.part(rowset, part, sink)?;
                return Ok(Emitted::All);
            }
            self.cells(rowset, slot, from, n_columns, sink)?;
            if !sink.end_row()? && row + 1 < self.view.n_rows {
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
        if let Some(rowset) = &self.rowset {
            let slots = self.view.first_slot + first_row;
            for (index, column) in rowset.columns.iter().enumerate() {
                // The match on the column kind is outside the loop: it is made once per column, not
                // once per cell.
                each_kind!(column.kind, kind => {
                    for row in 0..n_rows {
                        let cell = match rowset.raw(column, slots + row, &self.arena) {
                            None => Cell::Null,
                            Some(raw) => kind.cell(raw),
                        };
                        sink.column_cell(row, index, cell)?;
                    }
                });
            }
        }
        sink.end_columns()
    }
}

/// Converts a text to `Units`. The text is in the rowset, or in the arena (the memory for values
/// that are longer than their slot). These methods are in this module, because it guarantees the
/// alignment of the slots and of the arena.
impl<'b> Raw<'b> {
    /// Returns the bytes as UTF-16 text, in native byte order.
    pub(crate) fn utf16(self) -> Units<'b> {
        let bytes = self.bytes();
        let n = bytes.len() / 2;
        debug_assert_eq!(bytes.as_ptr() as usize % 2, 0);
        // SAFETY: slots of wide text begin at even addresses with even strides, values in the arena
        // at multiples of 8; `n` units lie inside the slice.
        Units::Utf16(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), n) })
    }
}
