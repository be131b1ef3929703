//! simdutf's kernels as functions of the table in [`dispatch`](super::dispatch).
//!
//! simdutf does not check the bounds of its output. So each call gets a part of the text whose
//! longest possible result fits. Text that is read in two passes is first copied to private memory.

use std::mem::MaybeUninit;

use super::private::{Encoded, by_private_parts};
use super::scalar;
use crate::Units;

#[inline]
pub(super) fn is_utf8(src: &[u8]) -> bool {
    simdutf::validate_utf8(src)
}

#[inline]
pub(super) fn utf8_error_near(src: &[u8]) -> Option<usize> {
    let result = simdutf::validate_utf8_with_errors(src);
    (result.error != simdutf::ErrorCode::Success).then_some(result.count)
}

#[inline]
pub(super) fn is_utf16(src: &[u16]) -> bool {
    utf16_error_near(src).is_none()
}

#[inline]
pub(super) fn utf16_error_near(src: &[u16]) -> Option<usize> {
    let result = simdutf::validate_utf16_with_errors(src);
    (result.error != simdutf::ErrorCode::Success).then_some(result.count)
}

#[inline]
pub(super) fn utf16_len_from_utf8(src: &[u8]) -> usize {
    simdutf::utf16_length_from_utf8(src)
}

/// Converts the text in parts. Returns the unconverted units and the number of written units.
/// `most` is the largest number of output units for one input unit. `whole` returns the length of a
/// part without an incomplete character, or `None` for malformed text.
fn by_parts<'s, U, T>(
    src: &'s [U],
    out: &mut [MaybeUninit<T>],
    most: usize,
    whole: impl Fn(&'s [U], usize) -> Option<usize>,
    convert: impl Fn(&[U], *mut T) -> usize,
) -> Option<(&'s [U], usize)> {
    const FEW: usize = 16;
    let (mut rest, mut n) = (src, 0);
    loop {
        let fitting = rest.len().min((out.len() - n) / most);
        if fitting <= FEW {
            return Some((rest, n));
        }
        let (part, after) = rest.split_at(whole(rest, fitting)?);
        let made = convert(part, out[n..].as_mut_ptr().cast());
        debug_assert!(made <= most * part.len());
        n += made.min(most * part.len());
        rest = after;
    }
}

/// Returns the length of `src[..end]` without an incomplete character at its end. Returns `None`
/// for four continuation bytes in sequence, which are malformed.
fn whole_utf8(src: &[u8], end: usize) -> Option<usize> {
    let starts_at = |&at: &usize| src.get(at).is_none_or(|b| b & 0xC0 != 0x80);
    (end - 3..=end).rev().find(starts_at)
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "as `whole_utf8`, of which a part may be none"
)]
fn whole_utf16(src: &[u16], end: usize) -> Option<usize> {
    let is_cut = end < src.len() && src[end - 1] & 0xFC00 == 0xD800;
    Some(end - usize::from(is_cut))
}

#[inline(never)]
pub(super) fn valid_utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (rest, n) = by_parts(src, out, 1, whole_utf8, |part, dst| {
        // SAFETY: each byte yields at most one unit, and `dst` has a unit for each byte.
        unsafe { simdutf::convert_valid_utf8_to_latin1(part.as_ptr(), part.len(), dst) }
    })?;
    Some(n + scalar::valid_utf8_to_latin1(rest, &mut out[n..])?)
}

#[inline(never)]
pub(super) fn valid_utf8_to_utf16(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    let (rest, n) = by_parts(src, out, 1, whole_utf8, |part, dst| {
        // SAFETY: each byte yields at most one unit, and `dst` has a unit for each byte.
        unsafe { simdutf::convert_valid_utf8_to_utf16(part.as_ptr(), part.len(), dst) }
    })?;
    Some(n + scalar::valid_utf8_to_utf16(rest, &mut out[n..])?)
}

#[inline(never)]
pub(super) fn valid_utf8_to_ucs4(src: &[u8], out: &mut [MaybeUninit<u32>]) -> Option<usize> {
    let (rest, n) = by_parts(src, out, 1, whole_utf8, |part, dst| {
        // SAFETY: each byte yields at most one unit, and `dst` has a unit for each byte.
        unsafe { simdutf::convert_valid_utf8_to_utf32(part.as_ptr(), part.len(), dst) }
    })?;
    Some(n + scalar::valid_utf8_to_ucs4(rest, &mut out[n..])?)
}

#[inline(never)]
pub(super) fn valid_utf16_to_ucs4(src: &[u16], out: &mut [MaybeUninit<u32>]) -> Option<usize> {
    let (rest, n) = by_parts(src, out, 1, whole_utf16, |part, dst| {
        // SAFETY: each unit yields at most one unit, and `dst` has a unit for each.
        unsafe { simdutf::convert_valid_utf16_to_utf32(part.as_ptr(), part.len(), dst) }
    })?;
    Some(n + scalar::valid_utf16_to_ucs4(rest, &mut out[n..])?)
}

#[inline(never)]
pub(super) fn valid_ucs4_to_utf16(src: &[u32], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    assert!(out.len() >= 2 * src.len());
    // SAFETY: `out` has two units for each code point.
    Some(unsafe {
        simdutf::convert_valid_utf32_to_utf16(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    })
}

#[inline(never)]
pub(super) fn utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    by_private_parts(Encoded::Utf8(src), out, |part, out| {
        let scan = scalar::scan_utf8(part);
        if scan.max > 0xC3 || !is_utf8(part) {
            return None;
        }
        let dst = out.get_mut(..scan.n_chars)?.as_mut_ptr().cast();
        // SAFETY: the part is valid and private, without characters past U+00FF. The destination
        // has a unit for each character.
        Some(unsafe { simdutf::convert_valid_utf8_to_latin1(part.as_ptr(), part.len(), dst) })
    })
}

#[inline(never)]
pub(super) fn utf8_to_utf16(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    by_private_parts(Encoded::Utf8(src), out, |part, out| {
        let dst = out.as_mut_ptr().cast();
        if out.len() >= part.len() {
            let result =
                // SAFETY: each byte yields at most one unit, so the result fits into `out`.
                unsafe { simdutf::convert_utf8_to_utf16_with_errors(part.as_ptr(), part.len(), dst) };
            return (result.error == simdutf::ErrorCode::Success).then_some(result.count);
        }
        if !is_utf8(part) || utf16_len_from_utf8(part) > out.len() {
            return None;
        }
        // SAFETY: the part is valid and private, and the result fits into `out`.
        Some(unsafe { simdutf::convert_valid_utf8_to_utf16(part.as_ptr(), part.len(), dst) })
    })
}

#[inline(never)]
pub(super) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (rest, n) = by_parts(
        src,
        out,
        2,
        |_, end| Some(end),
        |part, dst| {
            // SAFETY: each unit yields at most 2 bytes, and `dst` has 2 bytes for each.
            unsafe { simdutf::convert_latin1_to_utf8(part.as_ptr(), part.len(), dst) }
        },
    )?;
    Some(n + scalar::latin1_to_utf8(rest, &mut out[n..])?)
}

#[inline(never)]
pub(super) fn utf16_to_utf8(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    if out.len() / 3 >= src.len() {
        let dst = out.as_mut_ptr().cast();
        let result =
            // SAFETY: each unit yields at most 3 bytes, so the result fits into `out`.
            unsafe { simdutf::convert_utf16_to_utf8_with_errors(src.as_ptr(), src.len(), dst) };
        return (result.error == simdutf::ErrorCode::Success).then_some(result.count);
    }
    by_private_parts(Encoded::Utf16(src), out, |part, out| {
        if !is_utf16(part) {
            return None;
        }
        let (rest, n) = by_parts(part, out, 3, whole_utf16, |part, dst| {
            // SAFETY: each unit yields at most 3 bytes, and `dst` has 3 bytes for each.
            unsafe { simdutf::convert_valid_utf16_to_utf8(part.as_ptr(), part.len(), dst) }
        })?;
        scalar::to_utf8(Units::Utf16(rest), &mut out[n..]).map(|more| n + more)
    })
}
