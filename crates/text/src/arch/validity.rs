//! Well-formedness by simdutf, or by the scalar reference implementation where it is left out.

use super::kernel::no_simdutf;
use crate::{Units, naive};

/// The bytes as a `str`, where they are well-formed UTF-8: of memory that nobody writes to.
#[inline]
pub(crate) fn as_str(src: &[u8]) -> Option<&str> {
    // SAFETY: validated (RFC 3629, the same rules as core's).
    is_utf8(src).then(|| unsafe { std::str::from_utf8_unchecked(src) })
}

/// Returns whether the bytes are well-formed UTF-8.
#[inline]
pub(crate) fn is_utf8(src: &[u8]) -> bool {
    if no_simdutf() {
        return std::str::from_utf8(src).is_ok();
    }
    simdutf::validate_utf8(src)
}

/// Units up to about the first malformed sequence of UTF-8 (it starts at most 3 before), or `None`.
pub(crate) fn utf8_error_near(src: &[u8]) -> Option<usize> {
    if no_simdutf() {
        return std::str::from_utf8(src).err().map(|e| e.valid_up_to());
    }
    let result = simdutf::validate_utf8_with_errors(src);
    (result.error != simdutf::ErrorCode::Success).then_some(result.count)
}

/// As [`utf8_error_near`] for UTF-16.
pub(crate) fn utf16_error_near(src: &[u16]) -> Option<usize> {
    if no_simdutf() {
        return naive::find_malformed(Units::Utf16(src)).map(|e| e.at_units);
    }
    let result = simdutf::validate_utf16_with_errors(src);
    (result.error != simdutf::ErrorCode::Success).then_some(result.count)
}
