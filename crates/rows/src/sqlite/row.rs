//! A row's cells, straight from SQLite's memory into the sink.

use std::cell::Cell as MutCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use libsqlite3_sys as ffi;
use onecopy_text::Units;

use super::database::Database;
use crate::cell::{Cell, LongKind};
use crate::source::{Block, Emitted, LongValues, RowSink};

// The bindings leave the UTF-16 functions out; the bundled library has them.
// SAFETY: declared as in sqlite3.h, with the types that the bindings have for the other `sqlite3_value_` functions.
unsafe extern "C" {
    fn sqlite3_value_text16(value: *mut ffi::sqlite3_value) -> *const c_void;
    fn sqlite3_value_bytes16(value: *mut ffi::sqlite3_value) -> c_int;
}

/// Where emitting stands within a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct At {
    /// Whether the row was begun.
    begun: bool,
    /// Next column.
    column: c_int,
    /// Bytes of it emitted as parts; 0 where it was not begun.
    offset: usize,
}

/// What emitting a row came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// The row is complete; whether the sink takes another one now.
    Complete { more: bool },
    /// A part of a long value that is not its last was emitted.
    Part,
    /// SQLite had no memory to convert a value.
    NoMemory,
}

/// Size from which a value comes in parts.
pub(super) fn part_bytes(long_values: LongValues) -> usize {
    match long_values {
        LongValues::Whole => usize::MAX,
        // Room for a character of the longest form, so that every part makes progress.
        LongValues::Parts { part_bytes } => part_bytes.max(4),
    }
}

/// Emits the current row of `stmt` from `at` on, which it moves along.
///
/// Values are read by `sqlite3_value_*`: on a connection opened without mutexes an unprotected value is as good as a
/// protected one (<https://sqlite.org/c3ref/value.html>), and the column functions check and lock at every call.
///
/// # Safety
/// `stmt` stands on a row of `n_columns`, on a connection opened without mutexes, and this thread holds its call lock.
#[inline]
pub(super) unsafe fn emit_row<S: RowSink>(
    stmt: *mut ffi::sqlite3_stmt,
    n_columns: c_int,
    at: &mut At,
    part_bytes: usize,
    sink: &mut S,
) -> Result<RowEnd, S::Error> {
    if !at.begun {
        sink.begin_row()?;
        at.begun = true;
    }
    while at.column < n_columns {
        let column = at.column as usize;
        // SAFETY: the statement stands on a row and column < n_columns, so the value is live until the next step, reset or
        // finalise, which need the lock this thread holds. Its text and bytes live as long: a value is asked for one
        // form alone, so no conversion moves them.
        let cell = match unsafe { read_value(ffi::sqlite3_column_value(stmt, at.column)) } {
            Some(cell) => cell,
            None => return Ok(RowEnd::NoMemory),
        };
        let len_bytes = match cell {
            Cell::Text(units) => units.len_bytes(),
            Cell::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        if len_bytes > part_bytes {
            if emit_part(column, cell, &mut at.offset, part_bytes, sink)? {
                return Ok(RowEnd::Part);
            }
            at.offset = 0;
        } else {
            sink.cell(column, cell)?;
        }
        at.column += 1;
    }
    *at = At::default();
    Ok(RowEnd::Complete {
        more: sink.end_row()?,
    })
}

/// The value as a cell; `None` where SQLite had no memory.
///
/// # Safety
/// `value` is live, of a connection this thread has to itself, and stays unchanged as long as the cell is used.
#[inline]
pub(super) unsafe fn read_value<'a>(value: *mut ffi::sqlite3_value) -> Option<Cell<'a>> {
    // SAFETY: the value is live as the caller vouches. Length is asked after the pointer, in the same form, as
    // <https://sqlite.org/c3ref/column_blob.html> wants; pointer and length describe memory of SQLite's that stays as it is.
    unsafe {
        Some(match ffi::sqlite3_value_type(value) {
            ffi::SQLITE_INTEGER => Cell::I64(ffi::sqlite3_value_int64(value)),
            ffi::SQLITE_FLOAT => Cell::F64(ffi::sqlite3_value_double(value)),
            ffi::SQLITE_TEXT => return read_text(value).map(Cell::Text),
            ffi::SQLITE_BLOB => {
                let bytes = ffi::sqlite3_value_blob(value);
                let len = ffi::sqlite3_value_bytes(value) as usize;
                if bytes.is_null() {
                    // Null stands for an empty blob too.
                    return (len == 0).then_some(Cell::Bytes(&[]));
                }
                Cell::Bytes(std::slice::from_raw_parts(bytes.cast(), len))
            }
            _ => Cell::Null,
        })
    }
}

/// Text in the encoding SQLite holds it in: UTF-8, or UTF-16 in the machine's order in a UTF-16 database.
///
/// # Safety
/// As [`read_value`]; the value is text.
#[inline]
unsafe fn read_text<'a>(value: *mut ffi::sqlite3_value) -> Option<Units<'a>> {
    // SAFETY: as in `read_value`. UTF-16 is taken where it is aligned for u16; elsewhere SQLite converts to UTF-8.
    unsafe {
        if ffi::sqlite3_value_encoding(value) != ffi::SQLITE_UTF8 {
            let units = sqlite3_value_text16(value).cast::<u16>();
            if units.is_null() {
                return None;
            }
            if units.is_aligned() {
                let len_bytes = sqlite3_value_bytes16(value) as usize;
                return Some(Units::Utf16(std::slice::from_raw_parts(
                    units,
                    len_bytes / 2,
                )));
            }
        }
        let text = ffi::sqlite3_value_text(value);
        if text.is_null() {
            return None;
        }
        let len = ffi::sqlite3_value_bytes(value) as usize;
        Some(Units::Utf8(std::slice::from_raw_parts(text, len)))
    }
}

/// Emits the part of a long `cell` that begins at `offset` (bytes), which it moves along; returns whether more are to come.
fn emit_part<S: RowSink>(
    column: usize,
    cell: Cell<'_>,
    offset: &mut usize,
    part_bytes: usize,
    sink: &mut S,
) -> Result<bool, S::Error> {
    let (kind, part, len_bytes, end) = match cell {
        Cell::Text(Units::Utf8(text)) => {
            let end = utf8_cut(text, offset.saturating_add(part_bytes));
            let part = Cell::Text(Units::Utf8(&text[*offset..end]));
            (LongKind::Text, part, text.len(), end)
        }
        Cell::Text(Units::Utf16(units)) => {
            let from = *offset / 2;
            let end = from.saturating_add(part_bytes / 2).min(units.len());
            let part = Cell::Text(Units::Utf16(&units[from..end]));
            (LongKind::Text, part, units.len() * 2, end * 2)
        }
        Cell::Bytes(bytes) => {
            let end = offset.saturating_add(part_bytes).min(bytes.len());
            (
                LongKind::Bytes,
                Cell::Bytes(&bytes[*offset..end]),
                bytes.len(),
                end,
            )
        }
        // Only text and bytes have a length that asks for parts.
        other => {
            sink.cell(column, other)?;
            return Ok(false);
        }
    };
    if *offset == 0 {
        sink.long_begin(column, kind)?;
    }
    sink.long_part(column, part)?;
    *offset = end;
    if end < len_bytes {
        return Ok(true);
    }
    sink.long_end(column)?;
    Ok(false)
}

/// `at`, or up to three bytes before it, so that no sequence is cut in well-formed text.
fn utf8_cut(text: &[u8], at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let is_start = |i: &usize| text[*i] & 0xc0 != 0x80;
    (at.saturating_sub(3)..=at)
        .rev()
        .find(is_start)
        .unwrap_or(at)
}

/// The current row of a statement: a live view, gone at the next fetch.
///
/// It reads SQLite's memory under the connection's call lock, for which [`Block::emit`] may have to wait: who must not
/// wait reads by [`super::Statement::pump_attached`]. Where the row was lost between fetch and emit (a rollback or close by
/// another thread), nothing is emitted and the next fetch says why.
#[derive(Debug)]
pub struct LiveRow {
    pub(super) database: Arc<Database>,
    /// Null where there is no statement under way.
    pub(super) stmt: *mut ffi::sqlite3_stmt,
    pub(super) n_columns: c_int,
    pub(super) part_bytes: usize,
    /// 1 while a row, or what is left of it, is shown.
    pub(super) n_rows: usize,
    /// Where the row shown begins.
    pub(super) start: At,
    /// Where emitting it stopped inside the row.
    pub(super) next: MutCell<Option<At>>,
    /// SQLite had no memory for a value of it.
    pub(super) no_memory: MutCell<bool>,
    pub(super) n_rollbacks: u64,
}

// SAFETY: the statement is used under the database's call lock alone, and no handle is bound to a thread.
unsafe impl Send for LiveRow {}

impl Block for LiveRow {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error> {
        if first_row >= self.n_rows {
            return Ok(Emitted::All);
        }
        let Ok(guard) = self.database.enter() else {
            return Ok(Emitted::All);
        };
        if guard.db().is_null() || guard.n_rollbacks() != self.n_rollbacks {
            return Ok(Emitted::All);
        }
        let mut at = self.start;
        // SAFETY: n_rows is 1 only while the statement stands on a row; the connection is open, was not rolled back
        // since, and its lock is held.
        let end = unsafe { emit_row(self.stmt, self.n_columns, &mut at, self.part_bytes, sink)? };
        match end {
            RowEnd::Part => self.next.set(Some(at)),
            RowEnd::Complete { .. } => self.next.set(None),
            RowEnd::NoMemory => self.no_memory.set(true),
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
        if n_rows > 0 {
            self.emit(first_row, &mut AsColumns(sink))?;
        }
        sink.end_columns()
    }
}

/// Gives the one row of the block to a sink that wants columns.
struct AsColumns<'a, S>(&'a mut S);

impl<S: RowSink> RowSink for AsColumns<'_, S> {
    type Error = S::Error;

    fn begin_row(&mut self) -> Result<(), S::Error> {
        Ok(())
    }

    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), S::Error> {
        self.0.column_cell(0, column, cell)
    }

    fn long_begin(&mut self, column: usize, kind: LongKind) -> Result<(), S::Error> {
        self.0.long_begin(column, kind)
    }

    fn long_part(&mut self, column: usize, part: Cell<'_>) -> Result<(), S::Error> {
        self.0.long_part(column, part)
    }

    fn long_end(&mut self, column: usize) -> Result<(), S::Error> {
        self.0.long_end(column)
    }

    fn end_row(&mut self) -> Result<bool, S::Error> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_well_formed_text_end_between_characters() {
        let text = "aé漢😀z".as_bytes();
        for at in 0..=text.len() {
            let cut = utf8_cut(text, at);
            assert!(cut <= at && at - cut < 4);
            assert!(std::str::from_utf8(&text[..cut]).is_ok(), "{at}");
        }
        assert_eq!(utf8_cut(&[0x80; 9], 5), 5);
    }
}
