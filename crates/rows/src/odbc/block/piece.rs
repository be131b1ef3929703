//! A value by `SQLGetData`, into the end of the arena: in one window, in windows that grow, or part by part.

use super::arena::Arena;
use super::calls::FetchCalls;
use crate::error::{Error, ErrorKind};
use crate::odbc::column::is_whole_units;
use crate::odbc::ffi;
use crate::source::LongValues;

/// First window for a value whose length the driver does not tell.
const FIRST_WINDOW: usize = 16 << 10;
/// Largest window for such a value: windows double up to this.
const LARGEST_WINDOW: usize = 4 << 20;

/// Largest window for a value of which no more than this was read yet, whatever length the driver
/// reports: memory is for bytes that came.
const LARGEST_UNSEEN: usize = 64 << 20;
/// Bytes of a value at most: more than any server carries, and a bound for a driver that never ends.
pub(crate) const LARGEST_VALUE: usize = 1 << 31;

/// FetchCalls in a row that may return nothing of a value that is not at its end.
const MOST_EMPTY: usize = 3;

/// How many bytes short of a full window a driver may stop and be noticed; a character has at most 4.
const MARKED: usize = 64;

/// What a value turned out to be.
pub(super) enum Value {
    Null,
    Whole,
    FirstPart(Progress),
}

/// Reads a value from its beginning into the arena: all of it, or its first part where it is to stream.
#[allow(clippy::too_many_arguments)] // One call site; a struct of them would only rename them.
pub(super) fn value<C: FetchCalls>(
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
    let mut progress = Progress::of(known);
    loop {
        let window_now = window.min(LARGEST_UNSEEN.max(progress.n_bytes));
        let piece = piece(calls, arena, column, c_type, terminator, window_now)?;
        progress.add(&piece)?;
        if piece.null {
            return Ok(Value::Null);
        }
        if piece.last {
            return Ok(Value::Whole);
        }
        let held = progress.n_bytes;
        match part {
            Some(part) if held + 64 > part || piece.rest.is_none_or(|rest| rest > part - held) => {
                return Ok(Value::FirstPart(progress));
            }
            _ => {}
        }
        window = match piece.rest {
            Some(rest) => rest.saturating_add(terminator),
            None => window.saturating_mul(2).min(LARGEST_WINDOW),
        };
    }
}

/// How far a value was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    n_bytes: usize,
    n_empty: usize,
    /// Bytes of the whole value, by the driver.
    reported: usize,
}

impl Progress {
    /// Of a value that was not read yet, with the length that the driver reports.
    fn of(reported: Option<usize>) -> Progress {
        Progress {
            reported: reported.unwrap_or_default(),
            ..Progress::default()
        }
    }

    /// Counts a piece.
    ///
    /// # Errors
    /// The driver goes on without an end, or ends long before the length that it reported.
    pub(crate) fn add(&mut self, piece: &Piece) -> Result<(), Error> {
        self.n_bytes = self.n_bytes.saturating_add(piece.len);
        self.n_empty = if piece.len > 0 { 0 } else { self.n_empty + 1 };
        if piece.last {
            // Some drivers count in the encoding of the server, or characters: a factor of four
            // is no contradiction.
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
            let message = "the driver reports more of a value and returns none of it";
            return Err(Error::new(ErrorKind::Data, message));
        }
        if self.n_bytes > LARGEST_VALUE {
            let message = "the driver returns more than 2 GiB of a value, and no end of it";
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

/// One `SQLGetData` into `buffer`, which has room for the terminator too.
pub(crate) fn piece_into<C: FetchCalls>(
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
    let total = match indicator {
        ffi::NO_TOTAL => None,
        _ => Some(usize::try_from(indicator).map_err(|_| invalid_length(indicator))?),
    };
    let total = match total {
        Some(total) if !is_whole_units(total, terminator) => return Err(invalid_length(indicator)),
        total => total,
    };
    let len = match total {
        Some(total) if total <= room => {
            return Ok(Piece {
                null: false,
                last: true,
                len: total,
                rest: None,
            });
        }
        None if code == ffi::SUCCESS => match terminator {
            0 => return Err(no_length()),
            // No total, no warning: the driver has written all there was.
            _ => until_terminator(buffer, terminator),
        },
        _ if terminator == 0 => room,
        // A full window ends in the marked bytes.
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

/// The error of a length that ODBC does not have.
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

/// Bytes of text up to the first terminator; all of them without one.
fn until_terminator(window: &[u8], terminator: usize) -> usize {
    let mut units = window.chunks_exact(terminator);
    let n_units = units.position(|unit| unit.iter().all(|b| *b == 0));
    n_units.map_or(window.len() - terminator, |n| n * terminator)
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
        let mut progress = Progress::of(None);
        let n_windows = LARGEST_VALUE / LARGEST_WINDOW;
        for _ in 0..n_windows {
            progress.add(&piece(LARGEST_WINDOW, false, None)).unwrap();
        }
        let shown = message(progress.add(&piece(LARGEST_WINDOW, false, None)));
        assert!(shown.contains("more than 2 GiB"), "{shown}");
    }

    #[test]
    fn a_value_of_which_nothing_comes_ends_after_a_few_calls() {
        let mut progress = Progress::of(Some(1 << 40));
        progress.add(&piece(8, false, Some(1 << 40))).unwrap();
        for _ in 0..MOST_EMPTY {
            progress.add(&piece(0, false, Some(1 << 40))).unwrap();
        }
        let shown = message(progress.add(&piece(0, false, Some(1 << 40))));
        assert!(shown.contains("returns none of it"), "{shown}");
    }

    #[test]
    fn a_value_that_ends_long_before_its_reported_length_is_an_error() {
        for (reported, held, is_error) in [
            (None, 0, false),
            (Some(4 * 100 + MARKED), 100, false),
            (Some(4 * 100 + MARKED + 1), 100, true),
            (Some(usize::MAX), 1 << 20, true),
        ] {
            let shown = message(Progress::of(reported).add(&piece(held, true, None)));
            assert_eq!(!shown.is_empty(), is_error, "{reported:?} {shown}");
        }
        let mut progress = Progress::of(None);
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
