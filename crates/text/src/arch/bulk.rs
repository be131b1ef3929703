//! Bulk decoding and validation by our kernels and by simdutf, after checks of lengths; the scalar
//! reference implementation under `ONECOPY_KERNEL=scalar`, and under Miri, which runs no C++.
//!
//! No function writes past its destination or reads past its text, whatever the text holds: it may
//! have changed since it was measured. Our kernels know the end of the destination; simdutf's are
//! given parts of the text that have no more units than are left in it (`arch::tests` and
//! `arch::changing_tests` test both).

use std::mem::MaybeUninit;

use super::family::{Kernels, Work, with_kernels};
use super::kernel::{is_avx2, is_avx512, no_simdutf};
use super::memory::written;
use super::validity::{is_utf8, utf16_error_near};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use super::{scalar, scan_utf8};
use crate::{Kind, Shape, Units};

/// Past this many bytes simdutf's kernel for valid pairs is faster than ours.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 256;

/// Returns the shape of a Python `str` of the bytes, if they are well-formed UTF-8.
#[inline]
pub(crate) fn shape_of_utf8(src: &[u8]) -> Option<Shape> {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        let (kind, n_chars) = unsafe { avx512::utf8::measure(src) }?;
        return Some(Shape { kind, n_chars });
    }
    is_utf8(src).then(|| {
        let scan = scan_utf8(src);
        Shape {
            kind: Kind::of_utf8(scan.max),
            n_chars: scan.n_chars,
        }
    })
}

/// Characters of UTF-16 that is valid; units that are no second halves of pairs in other text.
pub(crate) fn count_utf16(src: &[u16]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::utf16::count(src) };
    }
    #[cfg(target_arch = "x86_64")]
    if is_avx2() {
        // SAFETY: AVX2 is there.
        return unsafe { avx2::utf16::count(src) };
    }
    scalar::count_utf16(src)
}

/// Whether all surrogates stand in pairs.
pub(crate) fn is_utf16(src: &[u16]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::measure::is_utf16(src) };
    }
    #[cfg(target_arch = "x86_64")]
    if is_avx2() {
        // SAFETY: AVX2 is there.
        return unsafe { avx2::utf16::is_valid(src) };
    }
    utf16_error_near(src).is_none()
}

/// Converts UTF-8 that was measured to Latin-1 units. Returns whether it gives as many as `out`
/// takes. If it does not, the text has changed since, and the contents of `out` are unspecified (so
/// below).
#[inline]
#[must_use]
pub(super) fn valid_utf8_to_latin1(src: &[u8], out: &mut [MaybeUninit<u8>]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() || is_avx2() {
        let (dst, n) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: the kernels are there; `out` takes n units.
        let made = unsafe {
            if is_avx512() {
                avx512::utf8::to_latin1::<false>(src, dst, n)
            } else {
                avx2::utf8::to_latin1(src, dst, n)
            }
        };
        return made == Some(n);
    }
    if no_simdutf() {
        return scalar::fill(scalar::chars_of(src), out);
    }
    by_parts(src, out, |part, dst| {
        // SAFETY: `dst` takes a unit for each byte of the part, and a byte gives one at most.
        unsafe { simdutf::convert_valid_utf8_to_latin1(part.as_ptr(), part.len(), dst) }
    })
}

/// Converts by parts that have no more bytes than there are units left in the destination:
/// `convert` gives a unit at most for each byte, and does not know where the destination ends.
fn by_parts<U: TryFrom<u32>>(
    src: &[u8],
    out: &mut [MaybeUninit<U>],
    convert: impl Fn(&[u8], *mut U) -> usize,
) -> bool {
    const FEW: usize = 16;
    let (mut rest, mut n) = (src, 0);
    while rest.len() > FEW && out.len() - n > FEW {
        let end = rest.len().min(out.len() - n);
        let starts_at = |&at: &usize| rest.get(at).is_none_or(|b| b & 0xC0 != 0x80);
        // A character has three bytes after its first at most.
        let Some(end) = (end - 3..=end).rev().find(starts_at) else {
            return false;
        };
        let (part, after) = rest.split_at(end);
        let made = convert(part, out[n..].as_mut_ptr().cast());
        debug_assert!(made <= part.len());
        n += made.min(part.len());
        rest = after;
    }
    let code_points = scalar::chars_of(rest);
    if size_of::<U>() == 2 {
        scalar::fill(scalar::utf16_of(code_points), &mut out[n..])
    } else {
        scalar::fill(code_points, &mut out[n..])
    }
}

/// As [`valid_utf8_to_latin1`], to UTF-16 units; without `PAIRS` to those of kind 2.
#[inline]
#[must_use]
pub(super) fn valid_utf8_to_utf16<const PAIRS: bool>(
    src: &[u8],
    out: &mut [MaybeUninit<u16>],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() || is_avx2() {
        let (dst, n) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: the kernels are there; `out` takes n units.
        let made = unsafe {
            if is_avx512() {
                avx512::utf8::to_utf16::<false, PAIRS>(src, dst, n)
            } else {
                avx2::utf8::to_utf16::<false, PAIRS>(src, dst, n)
            }
        };
        return made == Some(n);
    }
    if no_simdutf() {
        return scalar::fill(scalar::utf16_of(scalar::chars_of(src)), out);
    }
    by_parts(src, out, |part, dst| {
        // SAFETY: `dst` takes a unit for each byte of the part, and a byte gives one at most.
        unsafe { simdutf::convert_valid_utf8_to_utf16(part.as_ptr(), part.len(), dst) }
    })
}

/// As [`valid_utf8_to_latin1`], to UTF-32 units.
#[inline]
#[must_use]
pub(super) fn valid_utf8_to_utf32(src: &[u8], out: &mut [MaybeUninit<u32>]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() || is_avx2() {
        let (dst, n) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: the kernels are there; `out` takes n units.
        let made = unsafe {
            if is_avx512() {
                avx512::utf8::to_ucs4::<false>(src, dst, n)
            } else {
                avx2::utf8::to_ucs4(src, dst, n)
            }
        };
        return made == Some(n);
    }
    if no_simdutf() {
        return scalar::fill(scalar::chars_of(src), out);
    }
    by_parts(src, out, |part, dst| {
        // SAFETY: `dst` takes a unit for each byte of the part, and a byte gives one at most.
        unsafe { simdutf::convert_valid_utf8_to_utf32(part.as_ptr(), part.len(), dst) }
    })
}

/// As [`valid_utf8_to_latin1`], of UTF-16 to UTF-32 units.
#[inline]
#[must_use]
pub(super) fn valid_utf16_to_utf32(src: &[u16], out: &mut [MaybeUninit<u32>]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() && 2 * src.len() <= LONG_BYTES || is_avx2() {
        let (dst, n) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: the kernels are there; `out` takes n units.
        let made = unsafe {
            if is_avx512() {
                avx512::utf16::to_ucs4(src, dst, n)
            } else {
                avx2::utf16::to_ucs4(src, dst, n)
            }
        };
        return made == Some(n);
    }
    if no_simdutf() {
        return scalar::fill(scalar::lossy(Units::Utf16(src)), out);
    }
    // As `by_parts`, of units.
    let (mut rest, mut n) = (src, 0);
    while rest.len() > 16 && out.len() - n > 16 {
        let mut end = rest.len().min(out.len() - n);
        if end < rest.len() && rest[end - 1] & 0xFC00 == 0xD800 {
            end -= 1;
        }
        let (part, after) = rest.split_at(end);
        let dst = out[n..].as_mut_ptr().cast();
        // SAFETY: a unit gives one at most, and `dst` takes as many as the part has.
        let made = unsafe { simdutf::convert_valid_utf16_to_utf32(part.as_ptr(), part.len(), dst) };
        debug_assert!(made <= part.len());
        n += made.min(part.len());
        rest = after;
    }
    scalar::fill(scalar::lossy(Units::Utf16(rest)), &mut out[n..])
}

/// Code points without surrogates and up to U+10FFFF as UTF-16, at the start of a place.
///
/// # Panics
/// Where it has less than two units for each.
pub(super) fn str_utf32_to_utf16<'a>(src: &[u32], out: &'a mut [MaybeUninit<u16>]) -> &'a [u16] {
    assert!(out.len() >= 2 * src.len());
    let mut n = 0;
    if no_simdutf() {
        let mut put = |u: u32| {
            out[n].write(u as u16);
            n += 1;
        };
        for &c in src {
            match c.checked_sub(0x1_0000) {
                None => put(c),
                Some(c) => {
                    put(0xD800 | c >> 10);
                    put(0xDC00 | c & 0x3FF);
                }
            }
        }
    } else {
        // SAFETY: two units for each code point are as many as can be needed, whatever it is.
        n = unsafe {
            simdutf::convert_valid_utf32_to_utf16(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
        };
    }
    // SAFETY: the first n were written.
    unsafe { std::slice::from_raw_parts(out.as_ptr().cast(), n) }
}

/// Whether UTF-8 is validated while it is decoded; where it is not, the two are separate passes.
pub(super) fn checks_while_decoding() -> bool {
    is_avx512() || is_avx2()
}

/// Bytes that are validated and then decoded, while they are in the first cache, where one kernel does not do both.
#[cfg(target_arch = "x86_64")]
const BLOCK_BYTES: usize = 16 << 10;

/// Validates and decodes block by block; `decode` is given a valid block and how many units the blocks before it gave.
#[cfg(target_arch = "x86_64")]
fn by_blocks(src: &[u8], mut decode: impl FnMut(&[u8], usize) -> Option<usize>) -> Option<usize> {
    let (mut rest, mut n_units) = (src, 0);
    while !rest.is_empty() {
        let mut end = rest.len().min(BLOCK_BYTES);
        // Where a character starts, if the text is well-formed.
        while end > 1 && rest.get(end).is_some_and(|b| b & 0xC0 == 0x80) {
            end -= 1;
        }
        let (block, after) = rest.split_at(end);
        if !is_utf8(block) {
            return None;
        }
        n_units += decode(block, n_units)?;
        rest = after;
    }
    Some(n_units)
}

/// Decodes and validates at once; `false` where the text is malformed or gives other than as many
/// units as `out` takes. Only where [`checks_while_decoding`], and of bytes up to 0xC3.
#[must_use]
pub(super) fn utf8_to_latin1_checked(src: &[u8], out: &mut [MaybeUninit<u8>]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let (dst, n) = (out.as_mut_ptr().cast::<u8>(), out.len());
        // SAFETY: the kernels are there; `out` takes n units (so for those below).
        unsafe {
            if is_avx512() {
                return avx512::utf8::to_latin1::<true>(src, dst, n) == Some(n);
            }
            assert!(is_avx2());
            avx2::utf8::to_latin1_checked(src, dst, n) == Some(n)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{src:?} {out:?}")
}

/// As [`utf8_to_latin1_checked`], of bytes up to 0xEF.
#[must_use]
pub(super) fn utf8_to_ucs2_checked(src: &[u8], out: &mut [MaybeUninit<u16>]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let (dst, n) = (out.as_mut_ptr().cast::<u16>(), out.len());
        // SAFETY: the kernels are there; `out` takes n units.
        unsafe {
            if is_avx512() {
                return avx512::utf8::to_utf16::<true, false>(src, dst, n) == Some(n);
            }
            assert!(is_avx2());
            avx2::utf8::to_utf16::<true, false>(src, dst, n) == Some(n)
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{src:?} {out:?}")
}

/// Decodes and validates UTF-8 of any characters at once; `None` where it is malformed or `out` too
/// short. Only by kernels of our own.
#[cfg(target_arch = "x86_64")]
pub(super) fn utf8_to_utf16_checked(src: &[u8], out: &mut [MaybeUninit<u16>]) -> Option<usize> {
    let n = if src.len() <= out.len() {
        src.len()
    } else if is_avx512() {
        // SAFETY: AVX-512 is there.
        unsafe { avx512::utf8::units_of(src) }
    } else {
        assert!(is_avx2());
        // SAFETY: AVX2 is there.
        unsafe { avx2::utf8::units_of(src) }
    };
    let dst = out.get_mut(..n)?.as_mut_ptr().cast();
    // SAFETY: the kernels are there; `out` takes n units.
    unsafe {
        if is_avx512() {
            return avx512::utf8::to_utf16::<true, true>(src, dst, n);
        }
        assert!(is_avx2());
        avx2::utf8::to_utf16::<true, true>(src, dst, n)
    }
}

/// As [`utf8_to_latin1_checked`], of any bytes. With `VOLATILE`, each unit is a code point even if
/// the text changes meanwhile.
#[must_use]
pub(super) fn utf8_to_ucs4_checked<const VOLATILE: bool>(
    src: &[u8],
    out: &mut [MaybeUninit<u32>],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let (dst, n) = (out.as_mut_ptr().cast::<u32>(), out.len());
        // SAFETY: the kernels are there; `out` takes n units, of which a block is given those that
        // the blocks before it left.
        unsafe {
            if is_avx512() {
                return avx512::utf8::to_ucs4::<true>(src, dst, n) == Some(n);
            }
            assert!(is_avx2());
            let made = by_blocks(src, |block, at| {
                avx2::utf8::to_ucs4(block, dst.add(at), n - at)
            });
            made == Some(n) && (!VOLATILE || are_code_points(out))
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{src:?} {out:?}")
}

/// Decodes and validates UTF-16 at once; `false` where it is malformed or gives other than as many
/// units as `out` takes. `VOLATILE`: as of [`utf8_to_ucs4_checked`].
#[must_use]
pub(super) fn utf16_to_ucs4_checked<const VOLATILE: bool>(
    src: &[u16],
    out: &mut [MaybeUninit<u32>],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there; `out` takes as many units as is said.
        let made = unsafe { avx512::utf16::to_ucs4(src, out.as_mut_ptr().cast(), out.len()) };
        return made == Some(out.len());
    }
    is_utf16(src) && valid_utf16_to_utf32(src, out) && (!VOLATILE || are_code_points(out))
}

/// Returns whether units that were all written are code points.
fn are_code_points(units: &[MaybeUninit<u32>]) -> bool {
    with_kernels(LargestUnit(written(units))) <= 0x10_FFFF
}

/// The largest of the units.
pub(super) struct LargestUnit<'a>(pub(super) &'a [u32]);

impl Work for LargestUnit<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<K: Kernels>(self, _: K) -> u32 {
        // No branch inside: the compiler makes vectors of it.
        self.0.iter().fold(0, |max, &c| c.max(max))
    }
}
