//! Validates UTF-8 and converts it to UTF-16 or Latin-1.

use std::mem::MaybeUninit;

use super::dispatch::{scan_utf8, utf8_to_latin1, utf8_to_utf16, utf16_len_from_utf8};

/// Converts UTF-8 to UTF-16. Returns `None` if `src` is malformed or `out` is too short. The
/// contents of `out` are then undefined.
#[inline]
pub(crate) fn utf8_to_utf16_within(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    let n = if src.len() <= out.len() {
        src.len()
    } else {
        utf16_len_from_utf8(src)
    };
    utf8_to_utf16::<true>(src, out.get_mut(..n)?)
}

/// Converts UTF-8 to Latin-1. Returns `None` if `src` is malformed or has a character above U+00FF,
/// or if `out` is too short. The contents of `out` are then undefined.
#[inline]
pub(crate) fn utf8_to_latin1_within(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let scan = scan_utf8(src);
    if scan.max > 0xC3 {
        return None;
    }
    utf8_to_latin1(src, out.get_mut(..scan.n_chars)?)
}
