//! Results as numbers, and numbers as arguments.

use onecopy_text::Malformed;
use onecopy_text::convert::within::WithinError;

/// The destination has less room than the text needs. The text is well-formed, or there is a replacement for what is not.
pub const ONECOPY_NO_ROOM: i64 = i64::MIN;

/// An argument breaks a rule: NULL with a length, a pointer that is not aligned, a length past the address space, source and
/// destination that overlap, a replacement that is no Unicode scalar value, a text too long for the length in front of it.
pub const ONECOPY_INVALID_ARGUMENT: i64 = i64::MIN + 1;

/// A bug of the library's, caught before it reached the caller. Nobody has seen one.
pub const ONECOPY_INTERNAL_ERROR: i64 = i64::MIN + 2;

/// A count as a result.
pub(crate) fn count(n: usize) -> i64 {
    i64::try_from(n).expect("no object is longer than isize::MAX")
}

/// A position of malformed text as a result.
pub(crate) fn malformed(e: Malformed) -> i64 {
    -1 - count(e.at_units)
}

/// The result of a conversion.
#[inline(always)]
pub(crate) fn of(result: Result<usize, WithinError>) -> i64 {
    match result {
        Ok(n) => count(n),
        Err(WithinError::Malformed(e)) => malformed(e),
        Err(_) => ONECOPY_NO_ROOM,
    }
}

/// The result of a measurement.
#[inline(always)]
pub(crate) fn of_len(result: Result<usize, Malformed>) -> i64 {
    result.map_or_else(malformed, count)
}

/// What stands in for malformed text: nothing for 0; an error where the number is no Unicode scalar value.
#[inline(always)]
pub(crate) fn replacement(code_point: u32) -> Result<Option<char>, i64> {
    match code_point {
        0 => Ok(None),
        c => char::from_u32(c).map(Some).ok_or(ONECOPY_INVALID_ARGUMENT),
    }
}
