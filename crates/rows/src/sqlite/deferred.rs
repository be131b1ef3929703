//! Deferred columns: rows are emitted with NULL in these columns, and the caller reads each of
//! their values in parts.

use std::ffi::c_int;

use libsqlite3_sys as ffi;
use onecopy_text::Units;

use super::row::{RowEnd, read_value};
use crate::cell::Cell;
use crate::error::{Error, ErrorKind};
use crate::source::{LongForm, LongPart, RowSink};

/// Emits the current row of `stmt`, with NULL for each column for which `deferred` is `true`.
///
/// # Safety
/// The requirements of [`super::row::emit_row`] apply. The row must have `deferred.len()`
/// columns.
pub(super) unsafe fn emit_row_without<S: RowSink>(
    stmt: *mut ffi::sqlite3_stmt,
    deferred: &[bool],
    sink: &mut S,
) -> Result<RowEnd, S::Error> {
    sink.begin_row()?;
    for (column, is_deferred) in deferred.iter().enumerate() {
        let index = c_int::try_from(column).unwrap_or(c_int::MAX);
        let cell = if *is_deferred {
            Some(Cell::Null)
        } else {
            // SAFETY: as in `emit_row`.
            unsafe { read_value(ffi::sqlite3_column_value(stmt, index)) }
        };
        let Some(cell) = cell else {
            return Ok(RowEnd::NoMemory);
        };
        sink.cell(column, cell)?;
    }
    let more = sink.end_row()?;
    Ok(RowEnd::Complete { more })
}

/// Copies bytes of the value in `column` (from 0), from byte `offset` on, into `buffer`; returns
/// `None` for NULL.
///
/// # Safety
/// The requirements of [`super::row::emit_row`] apply. The row must have the column
/// `column`.
pub(super) unsafe fn read_part(
    stmt: *mut ffi::sqlite3_stmt,
    column: c_int,
    offset: u64,
    buffer: &mut [u8],
) -> Result<Option<LongPart>, Error> {
    // SAFETY: as in `emit_row`; the cell is not used after this function returns.
    let cell = unsafe { read_value(ffi::sqlite3_column_value(stmt, column)) };
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let (form, n_bytes, n_left) = match cell {
        Some(Cell::Null) => return Ok(None),
        Some(Cell::Bytes(bytes)) => {
            let rest = bytes.get(offset..).unwrap_or_default();
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            (LongForm::Bytes, n, rest.len() - n)
        }
        Some(Cell::Text(Units::Utf8(text))) => {
            let rest = text.get(offset..).unwrap_or_default();
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            (LongForm::Utf8, n, rest.len() - n)
        }
        Some(Cell::Text(Units::Utf16(units))) => {
            let rest = units.get(offset / 2..).unwrap_or_default();
            let n = rest.len().min(buffer.len() / 2);
            for (to, unit) in buffer.chunks_exact_mut(2).zip(&rest[..n]) {
                to.copy_from_slice(&unit.to_ne_bytes());
            }
            (LongForm::Utf16, 2 * n, rest.len() - n)
        }
        Some(_) => {
            let what = "the value is a number: only text and bytes can be read in parts";
            return Err(Error::new(ErrorKind::Data, what));
        }
        None => return Err(Error::new(ErrorKind::Operational, "out of memory").transient()),
    };
    Ok(Some(LongPart {
        form,
        n_bytes,
        is_last: n_left == 0,
        is_copied: true,
    }))
}
