//! `LiveRow`: emits the cells of the current row from SQLite's memory to the sink.

use std::cell::Cell as MutCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use libsqlite3_sys as ffi;
use onecopy_text::Units;

use super::database::Database;
use crate::cell::{Cell, LongKind};
use crate::source::{Block, Emitted, LongValues, RowSink};

// The Rust bindings omit these UTF-16 functions, which the bundled library has.
// SAFETY: declared as in sqlite3.h, with the types that the bindings have for the other
// `sqlite3_value_` functions.
unsafe extern "C" {
    fn sqlite3_value_text16(value: *mut ffi::sqlite3_value) -> *const c_void;
    fn sqlite3_value_bytes16(value: *mut ffi::sqlite3_value) -> c_int;
}

/// The position within a row up to which the row's values were emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct At {
    /// `true` if `begin_row` was called for the row.
    begun: bool,
    /// The index (from 0) of the column that is emitted next.
    column: c_int,
    /// The number of bytes of the value of `column` that were emitted in parts; 0 before the first
    /// part.
    offset: usize,
}

/// The result of emitting a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// The row is complete; `more` is `true` if the sink accepts another row now.
    Complete { more: bool },
    /// A part of a long value was emitted, and more parts follow.
    Part,
    /// SQLite could not allocate memory to convert a value.
    NoMemory,
}

/// Returns the size in bytes above which a value is emitted in parts.
pub(super) fn part_bytes(long_values: LongValues) -> usize {
    match long_values {
        LongValues::Whole => usize::MAX,
        // A part has at least four bytes, the size of the longest character in UTF-8, so that every
        // part contains at least one character.
        LongValues::Parts { part_bytes } => part_bytes.max(4),
    }
}

/// Emits the current row of `stmt` from the position `at` on, and advances `at`.
///
/// Values are read with `sqlite3_value_*` instead of the column functions, which would check and
/// lock at every call. On a connection without mutexes, an unprotected value may be used as a
/// protected one (<https://sqlite.org/c3ref/value.html>).
///
/// # Safety
/// `stmt` must be on a row with `n_columns` columns, on a connection opened without mutexes, and
/// this thread must hold its call lock.
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
        // SAFETY: the statement is on a row and column < n_columns, so the value is live until the
        // next step, reset or finalise, which require the lock that this thread holds. The value's
        // text and bytes live as long: a value is read in only one encoding, so no conversion moves
        // them.
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

/// Returns the value as a cell; `None` if SQLite could not allocate memory.
///
/// # Safety
/// The caller must pass a live value of a connection that only this thread uses, and must not
/// change it while the cell is in use.
#[inline]
pub(super) unsafe fn read_value<'a>(value: *mut ffi::sqlite3_value) -> Option<Cell<'a>> {
    // SAFETY: the value is live, by the contract of this function. Its length is read after its
    // pointer, in the same encoding, as <https://sqlite.org/c3ref/column_blob.html> requires;
    // pointer and length describe memory of SQLite that does not change.
    unsafe {
        Some(match ffi::sqlite3_value_type(value) {
            ffi::SQLITE_INTEGER => Cell::I64(ffi::sqlite3_value_int64(value)),
            ffi::SQLITE_FLOAT => Cell::F64(ffi::sqlite3_value_double(value)),
            ffi::SQLITE_TEXT => return read_text(value).map(Cell::Text),
            ffi::SQLITE_BLOB => {
                let bytes = ffi::sqlite3_value_blob(value);
                let len = ffi::sqlite3_value_bytes(value) as usize;
                if bytes.is_null() {
                    // SQLite also returns a null pointer for an empty blob.
                    return (len == 0).then_some(Cell::Bytes(&[]));
                }
                Cell::Bytes(std::slice::from_raw_parts(bytes.cast(), len))
            }
            _ => Cell::Null,
        })
    }
}

/// Returns the text of a value in the encoding in which SQLite stores it: UTF-8, or UTF-16 in
/// native byte order in a UTF-16 database. Returns `None` if SQLite could not allocate memory.
///
/// # Safety
/// The requirements of [`read_value`] apply. The value must be text.
#[inline]
unsafe fn read_text<'a>(value: *mut ffi::sqlite3_value) -> Option<Units<'a>> {
    // SAFETY: as in `read_value`. UTF-16 is used if it is aligned for u16; otherwise SQLite
    // converts it to UTF-8.
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

/// Emits the next part of the long value in `cell`. The part begins at byte `offset` of the value.
/// Afterwards, `offset` is the end of the part. Returns `true` if more parts follow.
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
        // A value of another type is never long enough to be emitted in parts.
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

/// Returns the last position up to `at` that does not divide a character of the UTF-8 `text`. If
/// `text` is well-formed, the position is at most three bytes before `at`.
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

/// The current row of a statement, a live view that is valid until the next fetch.
///
/// The view reads SQLite's memory under the connection's call lock, so [`Block::emit`] may wait for
/// this lock. A caller that must not wait uses [`crate::Source::pump_attached`]. If the row was
/// lost between fetch and emit (by a rollback or close of another thread), nothing is emitted, and
/// the next fetch returns the error.
#[derive(Debug)]
pub struct LiveRow {
    pub(super) database: Arc<Database>,
    /// The handle of the statement; null if the statement has ended.
    pub(super) stmt: *mut ffi::sqlite3_stmt,
    pub(super) n_columns: c_int,
    pub(super) part_bytes: usize,
    /// 1 if a row, or a part of a row, remains to be emitted; otherwise 0.
    pub(super) n_rows: usize,
    /// The position within the row at which the next call to `emit` begins.
    pub(super) start: At,
    /// The position in the row from which the next emit continues; `None` if the last emit has
    /// emitted the whole row.
    pub(super) next: MutCell<Option<At>>,
    /// `true` if SQLite could not allocate memory for a value of the row.
    pub(super) no_memory: MutCell<bool>,
    pub(super) n_rollbacks: u64,
}

// SAFETY: the statement is used only under the database's call lock, and no handle of SQLite is
// bound to a thread.
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
        // SAFETY: n_rows is 1 only while the statement is on a row; the connection is open, it was
        // not rolled back since, and this thread holds its lock.
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

/// Adapts a sink that receives cells column by column ([`RowSink::COLUMNS`]) to SQLite, whose rows
/// are emitted one by one. Each row is passed to the sink as a batch of one row.
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
