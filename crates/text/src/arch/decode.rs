//! UTF-8 to UTF-16 and to Latin-1, validated on the way, in a place of any size: our kernels, simdutf's for short text and where ours
//! are none, and the scalar twin where `ONECOPY_KERNEL=scalar` asks for it and under Miri.

use std::mem::MaybeUninit;

use super::bulk::{
    self, as_str, as_str_of_shape, checks_while_decoding, is_avx2, is_avx512, no_simdutf,
    utf8_to_latin1_checked,
};
use super::scan_utf8;
use crate::{Kind, Units, naive};

/// Up to so many bytes simdutf's kernels are faster than ours on 32-byte vectors (measured: texts of 5 to 50 characters of five
/// scripts).
const FEW_BYTES: usize = 31;

/// UTF-8 to UTF-16. `None` where it is malformed and where the place is too short, and `out` holds anything then.
#[inline]
pub(crate) fn utf8_to_utf16_within(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    if no_simdutf() {
        return scalar(src, out, |c, units| Some(c.encode_utf16(units).len()));
    }
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    #[cfg(target_arch = "x86_64")]
    if is_avx512() || is_avx2() && !(src.len() <= FEW_BYTES && room >= src.len()) {
        return bulk::utf8_to_utf16_checked(src, out);
    }
    if room >= src.len() {
        let result =
            // SAFETY: src is readable for its length; no byte gives more than one unit, so out takes the text.
            unsafe { simdutf::convert_utf8_to_utf16_with_errors(src.as_ptr(), src.len(), dst) };
        return (result.error == simdutf::ErrorCode::Success).then_some(result.count);
    }
    let n = valid_utf16_len(src)?;
    if n > room {
        return None;
    }
    // SAFETY: src was validated, and out takes its length.
    Some(unsafe { simdutf::convert_valid_utf8_to_utf16(src.as_ptr(), src.len(), dst) })
}

/// Units of the text as UTF-16; `None` where it is malformed.
#[inline]
pub(crate) fn valid_utf16_len(src: &[u8]) -> Option<usize> {
    let (text, shape) = as_str_of_shape(src)?;
    Some(if shape.kind < Kind::Ucs4 {
        shape.n_chars
    } else if no_simdutf() {
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
    let scan = scan_utf8(src);
    if scan.max > 0xC3 {
        return None;
    }
    let place = out.get_mut(..scan.n_chars)?;
    if checks_while_decoding() {
        // SAFETY: no byte is above 0xC3, and the place has a unit for each byte that continues nothing, just counted.
        return unsafe { utf8_to_latin1_checked(src, place) }.then_some(scan.n_chars);
    }
    as_str(src)?;
    let dst = place.as_mut_ptr().cast();
    // SAFETY: src was validated, no character of it is past U+00FF, and the place has a unit for each.
    Some(unsafe { simdutf::convert_valid_utf8_to_latin1(src.as_ptr(), src.len(), dst) })
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
