//! Reads a value into the arena by calls to `SQLGetData`. The buffer of one call is named a window.
//! A value is read in one window, in several windows of growing size, or in parts that are emitted
//! separately.

use super::arena::Arena;
use super::calls::FetchCalls;
use crate::error::{Error, ErrorKind};
use crate::odbc::column::is_whole_units;
use crate::odbc::ffi;
use crate::source::LongValues;

/// The size in bytes of the first window (the buffer of one `SQLGetData` call) for a value whose
/// length the driver does not report.
const FIRST_WINDOW: usize = 16 << 10;
/// The largest size in bytes of a window (the buffer of one `SQLGetData` call) for a value of
/// unknown length. Up to this size, each window is twice as large as the previous window.
const LARGEST_WINDOW: usize = 4 << 20;

/// The largest size in bytes of a window (the buffer of one `SQLGetData` call) at the beginning of
/// a value, that is, until as many bytes of the value were read. The limit does not depend on the
/// length that the driver reports, so a wrong length cannot cause a larger allocation.
const LARGEST_UNSEEN: usize = 64 << 20;
/// The largest length of a value in bytes. No server sends a value of this length. The limit ends
/// the reading if a driver returns data endlessly.
pub(crate) const LARGEST_VALUE: usize = 1 << 31;

/// The largest number of consecutive `SQLGetData` calls that may return no bytes before the end of
/// a value is reached.
const MOST_EMPTY: usize = 3;

/// The number of marked bytes at the end of a window (the buffer of an `SQLGetData` call). They are
/// set to a mark before the call. Bytes that still have the mark after the call were not written by
/// the driver. The number is larger than the size of a character (4 bytes).
const MARKED: usize = 64;

/// The outcome of reading the beginning of a value: NULL, the whole value, or its first part.
pub(super) enum FirstPiece {
    Null,
    Whole,
    FirstPart(ValueProgress),
}

/// Reads a value from its beginning into the arena (the memory for values that do not fit into
/// their slot). It reads the whole value, or only its first part if the value is emitted in parts.
// There is one call site; a struct of the arguments would only rename them.
#[allow(clippy::too_many_arguments)]
pub(super) fn value<C: FetchCalls>(
    calls: &mut C,
    arena: &mut Arena,
    column: usize,
    c_type: i16,
    terminator: usize,
    known: Option<usize>,
    streams: bool,
    long_values: LongValues,
) -> Result<FirstPiece, Error> {
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
    let mut progress = ValueProgress::of(known);
    loop {
        let window_now = window.min(LARGEST_UNSEEN.max(progress.n_bytes));
        let piece = piece(calls, arena, column, c_type, terminator, window_now)?;
        progress.add(&piece)?;
        if piece.null {
            return Ok(FirstPiece::Null);
        }
        if piece.last {
            return Ok(FirstPiece::Whole);
        }
        let held = progress.n_bytes;
        match part {
            Some(part) if held + 64 > part || piece.rest.is_none_or(|rest| rest > part - held) => {
                return Ok(FirstPiece::FirstPart(progress));
            }
            _ => {}
        }
        window = match piece.rest {
            Some(rest) => rest.saturating_add(terminator),
            None => window.saturating_mul(2).min(LARGEST_WINDOW),
        };
    }
}

/// The progress of reading a value by several calls to `SQLGetData`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueProgress {
    n_bytes: usize,
    n_empty: usize,
    /// The length of the whole value in bytes, as the driver reports it; 0 if it is unknown.
    reported: usize,
}

impl ValueProgress {
    /// Creates the read state of a value of which no byte was read yet. `reported` is the length in
    /// bytes that the driver reports; `None` if it is unknown.
    fn of(reported: Option<usize>) -> ValueProgress {
        ValueProgress {
            reported: reported.unwrap_or_default(),
            ..ValueProgress::default()
        }
    }

    /// Records the result of one `SQLGetData` call in the progress.
    ///
    /// # Errors
    /// The driver returns data endlessly, or the value has ended although the driver reported a
    /// much greater length.
    pub(crate) fn add(&mut self, piece: &Piece) -> Result<(), Error> {
        self.n_bytes = self.n_bytes.saturating_add(piece.len);
        self.n_empty = if piece.len > 0 { 0 } else { self.n_empty + 1 };
        if piece.last {
            // Some drivers report a length in the encoding of the server, or in characters: a
            // length of up to four times the bytes that were read is plausible.
            let most = self.n_bytes.saturating_mul(4).saturating_add(MARKED);
            if self.reported > most && !piece.null {
                return Err(cut(self.reported, self.n_bytes));
            }
            return Ok(());
        }
        if let Some(rest) = piece.rest {
            self.reported = self.n_bytes.saturating_add(rest);
        }
        if self.n_empty > MOST_EMPTY {
            let message = "the driver reports that a value continues, and returns no more of it";
            return Err(Error::new(ErrorKind::Data, message));
        }
        if self.n_bytes > LARGEST_VALUE {
            let message = "the driver returns more than 2 GiB of a value, without its end";
            return Err(Error::new(ErrorKind::Data, message));
        }
        Ok(())
    }
}

#[cold]
fn cut(reported: usize, held: usize) -> Error {
    let message = format!("the driver reports a value of {reported} bytes and returns {held}");
    Error::new(ErrorKind::Data, message)
}

/// Returns the size in bytes of the window (the buffer of an `SQLGetData` call) for the next part
/// of a value.
pub(super) fn window_for(long_values: LongValues, terminator: usize) -> usize {
    match long_values {
        LongValues::Parts { part_bytes } => (part_bytes.max(64) & !7) + terminator,
        LongValues::Whole => FIRST_WINDOW,
    }
}

/// The result of one call to `SQLGetData`: a part of a value.
pub(crate) struct Piece {
    pub(crate) null: bool,
    pub(crate) last: bool,
    pub(crate) len: usize,
    /// The number of bytes that remain of the value after this call, as the driver reports it;
    /// `None` if it is unknown.
    rest: Option<usize>,
}

/// Calls `SQLGetData` once, with a window at the end of the arena as the buffer.
pub(super) fn piece<C: FetchCalls>(
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

/// Calls `SQLGetData` once. The driver writes to `buffer`, whose size includes the space for a
/// terminator.
pub(crate) fn piece_into<C: FetchCalls>(
    calls: &mut C,
    column: usize,
    c_type: i16,
    terminator: usize,
    buffer: &mut [u8],
) -> Result<Piece, Error> {
    // A driver may stop a few bytes before the end of a full window to avoid splitting a character,
    // and its indicator does not report this. The end of the window is therefore filled with 0xFF,
    // which occurs neither in UTF-8 nor in a terminator of UTF-16, to find the bytes that were not
    // written.
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
    let capacity = buffer.len() - terminator;
    let total = match indicator {
        ffi::NO_TOTAL => None,
        _ => Some(usize::try_from(indicator).map_err(|_| invalid_length(indicator))?),
    };
    let total = match total {
        Some(total) if !is_whole_units(total, terminator) => return Err(invalid_length(indicator)),
        total => total,
    };
    let len = match total {
        Some(total) if total <= capacity => {
            return Ok(Piece {
                null: false,
                last: true,
                len: total,
                rest: None,
            });
        }
        None if code == ffi::SUCCESS => match terminator {
            0 => return Err(no_length()),
            // Without a total length and without a warning, the driver has written the whole value.
            _ => until_terminator(buffer, terminator),
        },
        _ if terminator == 0 => capacity,
        // If all marked bytes are unchanged, the window is not full, and the length is unknown.
        _ if marked > 0 && buffer[marked..].iter().all(|b| *b == 0xFF) => return Err(no_length()),
        _ => written(buffer, terminator),
    };
    let last = total.is_none() && code == ffi::SUCCESS;
    Ok(Piece {
        null: false,
        last,
        len,
        rest: total.map(|total| total - len),
    })
}

/// Creates the error for a length that ODBC does not define.
#[cold]
pub(super) fn invalid_length(indicator: isize) -> Error {
    let message = format!("the driver reports a length of {indicator} bytes");
    Error::new(ErrorKind::Data, message)
}

#[cold]
fn no_length() -> Error {
    let message = "the driver returns part of a value and not the length of that part";
    Error::new(ErrorKind::Data, message)
}

/// Returns the number of bytes of text in `window` before the first terminator. `terminator` is the
/// size of a terminator in bytes. If there is none, the last `terminator` bytes are not counted.
fn until_terminator(window: &[u8], terminator: usize) -> usize {
    let mut units = window.chunks_exact(terminator);
    let n_units = units.position(|unit| unit.iter().all(|b| *b == 0));
    n_units.map_or(window.len() - terminator, |n| n * terminator)
}

/// Returns the number of bytes of text in a window: the bytes before the last terminator. The
/// window must have been filled with 0xFF before the driver wrote to it.
fn written(window: &[u8], terminator: usize) -> usize {
    let mut end = window.len();
    while end > terminator && window[end - 1] == 0xFF {
        end -= 1;
    }
    // `end` is the position after the terminator (in wide text, both of its bytes are zero).
    end.saturating_sub(terminator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(len: usize, last: bool, rest: Option<usize>) -> Piece {
        Piece {
            null: false,
            last,
            len,
            rest,
        }
    }

    fn message(added: Result<(), Error>) -> String {
        added.map_or_else(|e| e.message, |()| String::new())
    }

    #[test]
    fn a_value_without_an_end_ends_after_2_gib() {
        let mut progress = ValueProgress::of(None);
        let n_windows = LARGEST_VALUE / LARGEST_WINDOW;
        for _ in 0..n_windows {
            progress.add(&piece(LARGEST_WINDOW, false, None)).unwrap();
        }
        let shown = message(progress.add(&piece(LARGEST_WINDOW, false, None)));
        assert!(shown.contains("more than 2 GiB"), "{shown}");
    }

    #[test]
    fn a_value_of_which_nothing_comes_ends_after_a_few_calls() {
        let mut progress = ValueProgress::of(Some(1 << 40));
        progress.add(&piece(8, false, Some(1 << 40))).unwrap();
        for _ in 0..MOST_EMPTY {
            progress.add(&piece(0, false, Some(1 << 40))).unwrap();
        }
        let shown = message(progress.add(&piece(0, false, Some(1 << 40))));
        assert!(shown.contains("returns no more of it"), "{shown}");
    }

    #[test]
    fn a_value_that_ends_long_before_its_reported_length_is_an_error() {
        for (reported, held, is_error) in [
            (None, 0, false),
            (Some(4 * 100 + MARKED), 100, false),
            (Some(4 * 100 + MARKED + 1), 100, true),
            (Some(usize::MAX), 1 << 20, true),
        ] {
            let shown = message(ValueProgress::of(reported).add(&piece(held, true, None)));
            assert_eq!(!shown.is_empty(), is_error, "{reported:?} {shown}");
        }
        let mut progress = ValueProgress::of(None);
        progress.add(&piece(100, false, Some(1 << 40))).unwrap();
        let shown = message(progress.add(&piece(0, true, None)));
        assert!(shown.contains("and returns 100"), "{shown}");
    }

    #[test]
    fn text_without_a_length_ends_at_its_terminator() {
        assert_eq!(until_terminator(b"ab\0cd", 1), 2);
        assert_eq!(until_terminator(b"a\0b\0\0\0", 2), 4);
        assert_eq!(until_terminator(b"abcd", 1), 3);
    }
}
