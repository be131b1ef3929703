//! UTF-8 to UTF-16 and to Latin-1, validated on the way, in a place of any size: simdutf's kernels, and the scalar twin where
//! `ONECOPY_KERNEL=scalar` asks for it and under Miri.

use std::mem::MaybeUninit;

use super::bulk::{as_str, no_simdutf};
use crate::{Units, naive};

/// UTF-8 to UTF-16. `None` where it is malformed and where the place is too short, and `out` holds anything then.
#[inline]
pub(crate) fn utf8_to_utf16_within(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    if no_simdutf() {
        return scalar(src, out, |c, units| Some(c.encode_utf16(units).len()));
    }
    let dst = out.as_mut_ptr().cast();
    if out.len() >= src.len() {
        // SAFETY: src is readable for its length; no byte gives more than one unit, so out takes the text.
        let result =
            unsafe { simdutf::convert_utf8_to_utf16_with_errors(src.as_ptr(), src.len(), dst) };
        return (result.error == simdutf::ErrorCode::Success).then_some(result.count);
    }
    as_str(src)?;
    if simdutf::utf16_length_from_utf8(src) > out.len() {
        return None;
    }
    // SAFETY: src was validated, and out takes its length.
    Some(unsafe { simdutf::convert_valid_utf8_to_utf16(src.as_ptr(), src.len(), dst) })
}

/// Units of the text as UTF-16; `None` where it is malformed.
#[inline]
pub(crate) fn valid_utf16_len(src: &[u8]) -> Option<usize> {
    if super::is_ascii(src) {
        return Some(src.len());
    }
    let text = as_str(src)?;
    Some(if no_simdutf() {
        text.encode_utf16().count()
    } else {
        simdutf::utf16_length_from_utf8(src)
    })
}

/// UTF-8 to Latin-1. `None` where it is malformed, where a character is past U+00FF, and where the place is too short; `out` holds
/// anything then.
#[inline]
pub(crate) fn utf8_to_latin1_within(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    if no_simdutf() {
        return scalar(src, out, |c, units| {
            units[0] = u8::try_from(u32::from(c)).ok()?;
            Some(1)
        });
    }
    // In well-formed text a unit for each byte that continues nothing.
    if out.len() < src.len() && out.len() < super::scan_utf8(src).n_chars {
        return None;
    }
    let dst = out.as_mut_ptr().cast();
    if out.len() < src.len() {
        as_str(src)?;
    }
    // SAFETY: src is readable for its length; out takes a unit for each byte of it, or for each character, of valid text.
    let result =
        unsafe { simdutf::convert_utf8_to_latin1_with_errors(src.as_ptr(), src.len(), dst) };
    (result.error == simdutf::ErrorCode::Success).then_some(result.count)
}

/// The twin of the conversions above: `put` gives the units of a character at the start of two, and how many there are.
fn scalar<U: Copy + Default>(
    src: &[u8],
    out: &mut [MaybeUninit<U>],
    put: impl Fn(char, &mut [U; 2]) -> Option<usize>,
) -> Option<usize> {
    let mut n = 0;
    for c in naive::code_points(Units::Utf8(src)) {
        let c = char::from_u32(c.ok()?).expect("the naive decoder gives scalar values");
        let mut units = [U::default(); 2];
        let n_units = put(c, &mut units)?;
        for &unit in &units[..n_units] {
            out.get_mut(n)?.write(unit);
            n += 1;
        }
    }
    Some(n)
}
