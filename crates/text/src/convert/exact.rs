//! Converts text into a destination of exactly the needed size.

use std::mem::MaybeUninit;

use super::ordered::utf16_len_of_str;
use crate::Units;
use crate::arch::dispatch::{is_utf16, latin1_to_utf8, scan_u16, ucs4_to_utf8, utf16_to_utf8};
use crate::arch::encode;
use crate::arch::memory::uninit;

/// Returns the UTF-8 length of the text in bytes. `None` for malformed text.
///
/// Copies: none.
#[inline]
#[must_use]
pub fn utf8_len_exact(units: Units<'_>) -> Option<usize> {
    encode::valid_utf8_len(units)
}

/// Writes the text as UTF-8. `out` must have the length that [`utf8_len_exact`] returns.
///
/// Copies: none besides the conversion. For UTF-8, the conversion is a plain copy.
///
/// # Panics
/// Panics if `out` has another length.
#[inline]
pub fn utf8_exact(units: Units<'_>, out: &mut [MaybeUninit<u8>]) {
    let n = match units {
        Units::Latin1(u) | Units::Utf8(u) if u.len() == out.len() => {
            out.copy_from_slice(uninit(u));
            Some(u.len())
        }
        Units::Latin1(u) => latin1_to_utf8(u, out),
        Units::Utf8(_) => None,
        Units::Utf16(u) | Units::Ucs2(u) => utf16_to_utf8(u, out),
        Units::Utf32(u) => ucs4_to_utf8(u, out),
    };
    assert_eq!(n, Some(out.len()), "the buffer was made for another text");
}

/// Returns the UTF-16 length of the text in units. `None` for malformed text.
///
/// Copies: none.
#[inline]
#[must_use]
pub fn utf16_len_exact(units: Units<'_>) -> Option<usize> {
    match units {
        Units::Latin1(u) => Some(u.len()),
        Units::Utf8(u) => encode::valid_utf16_len(u),
        Units::Utf16(u) => is_utf16(u).then_some(u.len()),
        Units::Ucs2(u) => (!scan_u16(u).surrogate).then_some(u.len()),
        Units::Utf32(_) => utf16_len_of_str(units),
    }
}
