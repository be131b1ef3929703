//! Text into a place of exactly its size: an object that is made once and never grows.

use std::mem::MaybeUninit;

use super::ordered::utf16_len_of_str;
use crate::Units;
use crate::arch::memory::uninit;
use crate::arch::{self, bulk, decode, encode};

/// Bytes of the text as UTF-8; `None` where it is malformed.
///
/// Copies: none.
#[inline]
#[must_use]
pub fn utf8_len_exact(units: Units<'_>) -> Option<usize> {
    encode::valid_utf8_len(units)
}

/// Writes the text as UTF-8: all of `out`, which is as long as [`utf8_len_exact`] says.
///
/// Copies: none besides the conversion (for UTF-8 input one copy).
///
/// # Panics
/// Where `out` has another length: a bug of the caller (so below).
#[inline]
pub fn utf8_exact(units: Units<'_>, out: &mut [MaybeUninit<u8>]) {
    let n = match units {
        Units::Latin1(u) | Units::Utf8(u) if u.len() == out.len() => {
            out.copy_from_slice(uninit(u));
            Some(u.len())
        }
        Units::Latin1(u) => Some(encode::latin1_to_utf8(u, out)),
        Units::Utf8(_) => None,
        Units::Utf16(u) | Units::Ucs2(u) => encode::utf16_to_utf8_exact(u, out),
        Units::Utf32(u) => encode::utf32_to_utf8(u, out),
    };
    assert_eq!(n, Some(out.len()), "the place was made for another text");
}

/// Units of the text as UTF-16; `None` where it is malformed.
///
/// Copies: none.
#[inline]
#[must_use]
pub fn utf16_len_exact(units: Units<'_>) -> Option<usize> {
    match units {
        Units::Latin1(u) => Some(u.len()),
        Units::Utf8(u) => decode::valid_utf16_len(u),
        Units::Utf16(u) => bulk::is_utf16(u).then_some(u.len()),
        Units::Ucs2(u) => (!arch::scan_u16(u).surrogate).then_some(u.len()),
        Units::Utf32(_) => utf16_len_of_str(units),
    }
}
