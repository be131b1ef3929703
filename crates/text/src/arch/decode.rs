//! UTF-8 to UTF-16 and to Latin-1, validated on the way, into a destination of any size: our
//! kernels, simdutf's for short text and where we have none, and the scalar reference
//! implementation under `ONECOPY_KERNEL=scalar` and under Miri.
//!
//! The text may be written to meanwhile: our kernels end where the destination does, whatever they
//! read; simdutf's read private copies of its parts.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::bulk;
use super::bulk::{checks_while_decoding, shape_of_utf8, utf8_to_latin1_checked};
use super::kernel::no_simdutf;
#[cfg(target_arch = "x86_64")]
use super::kernel::{is_avx2, is_avx512};
use super::private::{Encoded, by_private_parts};
use super::validity::is_utf8;
use super::{scalar, scan_utf8};
use crate::{Kind, Units, naive};

/// Up to so many bytes simdutf's kernels are faster than ours on 32-byte vectors (measured: texts of 5 to 50 characters of five
/// scripts).
const FEW_BYTES: usize = 31;

/// UTF-8 to UTF-16. `None` where it is malformed and where the destination is too short, and `out`
/// holds anything then.
#[inline]
pub(crate) fn utf8_to_utf16_within(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    if no_simdutf() {
        return one_by_one(src, out, |c, units| Some(c.encode_utf16(units).len()));
    }
    #[cfg(target_arch = "x86_64")]
    if is_avx512() || is_avx2() && !(src.len() <= FEW_BYTES && out.len() >= src.len()) {
        return bulk::utf8_to_utf16_checked(src, out);
    }
    by_private_parts(Encoded::Utf8(src), out, private_utf8_to_utf16)
}

/// As [`utf8_to_utf16_within`], of text that nobody writes to, by simdutf.
fn private_utf8_to_utf16(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    let dst = out.as_mut_ptr().cast();
    if out.len() >= src.len() {
        let result =
            // SAFETY: src is readable for its length; no byte gives more than one unit, so out takes the text.
            unsafe { simdutf::convert_utf8_to_utf16_with_errors(src.as_ptr(), src.len(), dst) };
        return (result.error == simdutf::ErrorCode::Success).then_some(result.count);
    }
    let n = valid_utf16_len(src)?;
    if n > out.len() {
        return None;
    }
    // SAFETY: src was validated, nobody writes to it, and out takes its length.
    Some(unsafe { simdutf::convert_valid_utf8_to_utf16(src.as_ptr(), src.len(), dst) })
}

/// Units of the text as UTF-16; `None` where it is malformed.
#[inline]
pub(crate) fn valid_utf16_len(src: &[u8]) -> Option<usize> {
    let shape = shape_of_utf8(src)?;
    Some(if shape.kind < Kind::Ucs4 {
        shape.n_chars
    } else if no_simdutf() {
        scalar::utf16_of(scalar::chars_of(src)).count()
    } else {
        simdutf::utf16_length_from_utf8(src)
    })
}

/// UTF-8 to Latin-1. `None` where it is malformed, where a character is past U+00FF, and where the
/// destination is too short; `out` holds anything then.
#[inline]
pub(crate) fn utf8_to_latin1_within(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    if no_simdutf() {
        return one_by_one(src, out, |c, units| {
            units[0] = u8::try_from(u32::from(c)).ok()?;
            Some(1)
        });
    }
    if checks_while_decoding() {
        let scan = scan_utf8(src);
        if scan.max > 0xC3 {
            return None;
        }
        let out = out.get_mut(..scan.n_chars)?;
        return utf8_to_latin1_checked(src, out).then_some(scan.n_chars);
    }
    by_private_parts(Encoded::Utf8(src), out, private_utf8_to_latin1)
}

/// As [`utf8_to_latin1_within`], of text that nobody writes to, by simdutf.
fn private_utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let scan = scan_utf8(src);
    if scan.max > 0xC3 || !is_utf8(src) {
        return None;
    }
    let dst = out.get_mut(..scan.n_chars)?.as_mut_ptr().cast();
    // SAFETY: src was validated, nobody writes to it, no character of it is past U+00FF, and the
    // destination takes a unit for each.
    Some(unsafe { simdutf::convert_valid_utf8_to_latin1(src.as_ptr(), src.len(), dst) })
}

/// The reference implementation of the conversions above: `put` gives the units of a character at
/// the start of two, and how many there are.
fn one_by_one<U: Copy + Default>(
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
