//! A value by `SQLGetData`, into the end of the arena: in one window, in windows that grow, or part by part.

use super::arena::Arena;
use super::long::Calls;
use crate::error::{Error, ErrorKind};
use crate::odbc::ffi;
use crate::source::LongValues;

/// First window for a value whose length the driver does not tell.
const FIRST_WINDOW: usize = 16 << 10;
/// Largest window for such a value: windows double up to this.
const LARGEST_WINDOW: usize = 4 << 20;

/// Calls in a row that may return nothing of a value that is not at its end.
const MOST_EMPTY: usize = 3;

/// How many bytes short of a full window a driver may stop and be noticed; a character has at most 4.
const MARKED: usize = 64;

/// What a value turned out to be.
pub(super) enum Value {
    Null,
    Whole,
    FirstPart,
}

/// Reads a value from its beginning into the arena: all of it, or its first part where it is to stream.
#[allow(clippy::too_many_arguments)] // One call site; a struct of them would only rename them.
pub(super) fn value<C: Calls>(
    calls: &mut C,
    arena: &mut Arena,
    column: usize,
    c_type: i16,
    terminator: usize,
    known: Option<usize>,
    streams: bool,
    long_values: LongValues,
) -> Result<Value, Error> {
    let part = match long_values {
        LongValues::Parts { part_bytes } if streams => Some(part_bytes.max(64) & !7),
        _ => None,
    };
    let mut window = match (known, part) {
        (Some(len), None) => len.saturating_add(terminator),
        (Some(len), Some(part)) => len.min(part) + terminator,
        (None, None) => FIRST_WINDOW,
        (None, Some(part)) => part.min(FIRST_WINDOW) + terminator,
    };
    let (mut held, mut n_empty) = (0, 0);
    loop {
        let piece = piece(calls, arena, column, c_type, terminator, window)?;
        n_empty = if piece.len > 0 { 0 } else { n_empty + 1 };
        if n_empty > MOST_EMPTY && !piece.last {
            let message = "the driver reports more of a value and returns none of it";
            return Err(Error::new(ErrorKind::Internal, message).at_column(column, ""));
        }
        if piece.null {
            return Ok(Value::Null);
        }
        held += piece.len;
        if piece.last {
            return Ok(Value::Whole);
        }
        match part {
            Some(part) if held + 64 > part || piece.rest.is_none_or(|rest| held + rest > part) => {
                return Ok(Value::FirstPart);
            }
            _ => {}
        }
        window = match piece.rest {
            Some(rest) => rest.saturating_add(terminator),
            None => (window * 2).min(LARGEST_WINDOW),
        };
    }
}

/// Window for the next part of a value under way.
pub(super) fn window_for(long_values: LongValues, terminator: usize) -> usize {
    match long_values {
        LongValues::Parts { part_bytes } => (part_bytes.max(64) & !7) + terminator,
        LongValues::Whole => FIRST_WINDOW,
    }
}

/// What one call of `SQLGetData` brought.
pub(crate) struct Piece {
    pub(crate) null: bool,
    pub(crate) last: bool,
    pub(crate) len: usize,
    /// Bytes that the driver says are still to come.
    rest: Option<usize>,
}

/// One `SQLGetData` into the end of the arena.
pub(super) fn piece<C: Calls>(
    calls: &mut C,
    arena: &mut Arena,
    column: usize,
    c_type: i16,
    terminator: usize,
    window: usize,
) -> Result<Piece, Error> {
    let piece = piece_into(calls, column, c_type, terminator, arena.window(window)?)?;
    arena.commit(piece.len);
    Ok(piece)
}

/// One `SQLGetData` into `buffer`, which has room for the terminator too.
pub(crate) fn piece_into<C: Calls>(
    calls: &mut C,
    column: usize,
    c_type: i16,
    terminator: usize,
    buffer: &mut [u8],
) -> Result<Piece, Error> {
    // A driver may stop a few bytes short of a full window so as not to split a character, and its indicator does not
    // tell by how many. 0xFF, in no UTF-8 text and no UTF-16 terminator, marks what it did not write.
    let marked = buffer.len().saturating_sub(MARKED + terminator);
    if terminator > 0 {
        buffer[marked..].fill(0xFF);
    }
    let (code, indicator) = calls.get_data(column, c_type, buffer)?;
    if code == ffi::NO_DATA {
        return Ok(Piece {
            null: false,
            last: true,
            len: 0,
            rest: None,
        });
    }
    if indicator == ffi::NULL_DATA {
        return Ok(Piece {
            null: true,
            last: true,
            len: 0,
            rest: None,
        });
    }
    let room = buffer.len() - terminator;
    let total = usize::try_from(indicator).ok();
    let len = match total {
        Some(total) if total <= room => {
            return Ok(Piece {
                null: false,
                last: true,
                len: total,
                rest: None,
            });
        }
        _ if terminator == 0 => room,
        _ => written(buffer, terminator),
    };
    // No total, no warning: the driver has written all there was.
    let last = total.is_none() && code == ffi::SUCCESS;
    Ok(Piece {
        null: false,
        last,
        len,
        rest: total.map(|total| total - len),
    })
}

/// Bytes of text in a window whose end was marked with 0xFF: up to the terminator that stands last.
fn written(window: &[u8], terminator: usize) -> usize {
    let mut end = window.len();
    while end > terminator && window[end - 1] == 0xFF {
        end -= 1;
    }
    // `end` is now behind the terminator. (Wide: both its bytes are zero.)
    end.saturating_sub(terminator)
}
