//! Converts between Rust values and the numbers of the C interface. The results of Rust functions
//! become result codes. The argument `replacement`, which is a code point or 0, becomes a `char`.

use onecopy_text::Malformed;
use onecopy_text::convert::within::WithinError;

/// The converted text is longer than the destination. This code implies that the text is
/// well-formed, or that a replacement was given for its malformed parts.
pub const ONECOPY_NO_ROOM: i64 = i64::MIN;

/// An argument is invalid: NULL with a length other than 0, a pointer that is not aligned, a length
/// that exceeds the address space, a source and a destination that overlap, a replacement that is
/// not a Unicode scalar value, or a text that is too long for its length prefix.
pub const ONECOPY_INVALID_ARGUMENT: i64 = i64::MIN + 1;

/// An internal error of the library: a panic, which was caught. Please report it.
pub const ONECOPY_INTERNAL_ERROR: i64 = i64::MIN + 2;

/// Returns the result code for success: `n`, the number of bytes or UTF-16 units that a function
/// counted or wrote.
pub(crate) fn count(n: usize) -> i64 {
    i64::try_from(n).expect("no object is longer than isize::MAX")
}

/// Returns the result code for malformed text: -1 - k, where k is the index of the first malformed
/// byte or UTF-16 unit.
pub(crate) fn malformed(e: Malformed) -> i64 {
    -1 - count(e.at_units)
}

/// Returns the result code of a function that converts text: the number of bytes or units that it
/// wrote, or an error.
#[inline(always)]
pub(crate) fn of(result: Result<usize, WithinError>) -> i64 {
    match result {
        Ok(n) => count(n),
        Err(WithinError::Malformed(e)) => malformed(e),
        Err(_) => ONECOPY_NO_ROOM,
    }
}

/// Returns the result code of a function that only computes the length that a text has after the
/// conversion.
#[inline(always)]
pub(crate) fn of_len(result: Result<usize, Malformed>) -> i64 {
    result.map_or_else(malformed, count)
}

/// Converts the `replacement` argument of a C function, a code point, to the `char` that replaces
/// malformed text. Converts 0 to `None`, which means that malformed text is an error.
///
/// # Errors
/// Returns [`ONECOPY_INVALID_ARGUMENT`] if the number is not a Unicode scalar value.
#[inline(always)]
pub(crate) fn replacement(code_point: u32) -> Result<Option<char>, i64> {
    match code_point {
        0 => Ok(None),
        c => char::from_u32(c).map(Some).ok_or(ONECOPY_INVALID_ARGUMENT),
    }
}
