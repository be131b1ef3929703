//! Bulk transcoding and validation by simdutf, behind functions that check lengths; the scalar twin where
//! `ONECOPY_KERNEL=scalar` asks for it, and under Miri, which runs no C++.
//!
//! simdutf wants room for exactly the converted length and writes no further; `arch::tests` holds it to that.

use std::mem::MaybeUninit;

use super::{Kernel, kernel, scalar, scan_utf8};
#[cfg(target_arch = "x86_64")]
use super::{avx512, decode};
use crate::{Kind, Shape, Units, naive};

/// Whether simdutf is to be left out.
#[inline(always)]
fn no_simdutf() -> bool {
    cfg!(miri) || kernel() == Kernel::Scalar
}

/// Whether a text of so many units is decoded by our own code for cells.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_cell(len_units: usize) -> bool {
    (1..=decode::CELL_BYTES).contains(&len_units) && !cfg!(miri) && kernel() >= Kernel::Avx2
}

/// Past this many bytes simdutf's kernels for Latin-1 and for pairs are faster than ours.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 256;

/// Whether the kernels on 64-byte vectors run.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_avx512() -> bool {
    !cfg!(miri) && kernel() == Kernel::Avx512
}

/// The bytes as a `str`, where they are well-formed UTF-8.
#[inline]
pub(crate) fn as_str(src: &[u8]) -> Option<&str> {
    if no_simdutf() {
        return std::str::from_utf8(src).ok();
    }
    // SAFETY: simdutf has validated it (RFC 3629, the same rules as core's).
    simdutf::validate_utf8(src).then(|| unsafe { std::str::from_utf8_unchecked(src) })
}

/// The bytes as a `str` and what a Python `str` of it needs, where they are well-formed UTF-8.
#[inline]
pub(crate) fn as_str_of_shape(src: &[u8]) -> Option<(&str, Shape)> {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        let (kind, n_chars) = unsafe { avx512::utf8::measure(src) }?;
        // SAFETY: it was validated (RFC 3629, the same rules as core's).
        let text = unsafe { std::str::from_utf8_unchecked(src) };
        return Some((text, Shape { kind, n_chars }));
    }
    let text = as_str(src)?;
    let scan = scan_utf8(src);
    let shape = Shape {
        kind: Kind::of_utf8(scan.max),
        n_chars: scan.n_chars,
    };
    Some((text, shape))
}

/// Characters of UTF-16 that is valid; units that are no second halves of pairs in other text.
pub(crate) fn count_utf16(src: &[u16]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::utf16::count(src) };
    }
    scalar::count_utf16(src)
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

/// Bytes of the UTF-16 text as UTF-8, where it is well-formed; else some number.
pub(crate) fn utf8_len_from_utf16(src: &[u16]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::encode::len_of_wide(src) };
    }
    if no_simdutf() {
        return scalar::lossy(Units::Utf16(src)).map(utf8_len_of).sum();
    }
    simdutf::utf8_length_from_utf16(src)
}

/// Bytes of the Latin-1 text as UTF-8.
pub(crate) fn utf8_len_from_latin1(src: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::encode::len_of_latin1(src) };
    }
    if no_simdutf() {
        return src.len() + src.iter().filter(|&&b| b >= 0x80).count();
    }
    simdutf::utf8_length_from_latin1(src)
}

/// Bytes of a code point in UTF-8.
#[inline]
pub(crate) fn utf8_len_of(c: u32) -> usize {
    1 + usize::from(c >= 0x80) + usize::from(c >= 0x800) + usize::from(c >= 0x1_0000)
}

/// UTF-16 to UTF-8, validated on the way. `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is shorter than 3 bytes a unit: a bug of the caller.
#[inline]
pub(crate) fn utf16_to_utf8(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    assert!(out.len() / 3 >= src.len());
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there; no unit gives more than 3 bytes, so out takes the text.
        return unsafe { avx512::encode::wide::<true>(src, out.as_mut_ptr().cast(), out.len()) };
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    // SAFETY: src is readable for its length; no unit gives more than 3 bytes, so out takes the text.
    let result = unsafe {
        simdutf::convert_utf16_to_utf8_with_errors(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    };
    (result.error == simdutf::ErrorCode::Success).then_some(result.count)
}

/// As [`utf16_to_utf8`] with as much room as the text needs and no more: it is measured first, a pass more.
///
/// # Panics
/// Where the text is well-formed and `out` too short: a bug of the caller.
pub(crate) fn utf16_to_utf8_exact(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        if out.len() < utf8_len_from_utf16(src) {
            assert!(utf16_error_near(src).is_some(), "the room is too short");
            return None;
        }
        // SAFETY: AVX-512 is there; out takes the text, or what of it is written before the first malformed unit.
        return unsafe { avx512::encode::wide::<true>(src, out.as_mut_ptr().cast(), out.len()) };
    }
    if utf16_error_near(src).is_some() {
        return None;
    }
    assert!(out.len() >= utf8_len_from_utf16(src));
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    // SAFETY: src was validated, and out takes the length that simdutf gave for it.
    Some(unsafe {
        simdutf::convert_valid_utf16_to_utf8(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    })
}

/// Latin-1 to UTF-8.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
#[inline]
pub(crate) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
    assert!(out.len() / 2 >= src.len() || out.len() >= utf8_len_from_latin1(src));
    #[cfg(target_arch = "x86_64")]
    if is_avx512() && src.len() <= LONG_BYTES {
        // SAFETY: AVX-512 is there; out takes the text, checked on the first line.
        return unsafe { avx512::encode::latin1(src, out.as_mut_ptr().cast(), out.len()) };
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Latin1(src), out).expect("Latin-1 has no malformed text");
    }
    // SAFETY: src is readable for its length; out takes the text, checked on the first line.
    unsafe { simdutf::convert_latin1_to_utf8(src.as_ptr(), src.len(), out.as_mut_ptr().cast()) }
}

/// UTF-32 to UTF-8, validated on the way, by our own loop: simdutf's is slower than CPython's on emoji.
/// `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
pub(crate) fn utf32_to_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        assert!(out.len() / 4 >= src.len() || out.len() >= utf8_len_from_utf32(src));
        // SAFETY: AVX-512 is there; out takes the text, checked above.
        return unsafe { avx512::encode::ucs4(src, out.as_mut_ptr().cast(), out.len()) };
    }
    if scalar::scan_u32(src).1 {
        return None;
    }
    assert!(out.len() / 4 >= src.len() || out.len() >= utf8_len_from_utf32(src));
    let dst = out.as_mut_ptr().cast::<u8>();
    let mut n = 0;
    for &c in src {
        // SAFETY: all of src are scalar values, and out takes their lengths in UTF-8 (checked above).
        n += unsafe { scalar::write_utf8(c, dst.add(n)) };
    }
    Some(n)
}

/// UTF-32 to the body of a JSON string, validated on the way. `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
pub(crate) fn utf32_to_json(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    if scalar::scan_u32(src).1 {
        return None;
    }
    assert!(out.len() / 6 >= src.len() || out.len() >= json_len_from_utf32(src));
    let dst = out.as_mut_ptr().cast::<u8>();
    let mut n = 0;
    for &c in src {
        if scalar::is_escape(c) {
            let escape = scalar::escape(c as u8);
            for &b in escape.as_slice() {
                // SAFETY: out takes the escapes of all of src (checked above).
                unsafe { dst.add(n).write(b) };
                n += 1;
            }
        } else {
            // SAFETY: all of src are scalar values, and out takes their lengths in UTF-8 (checked above).
            n += unsafe { scalar::write_utf8(c, dst.add(n)) };
        }
    }
    Some(n)
}

/// Bytes of the UTF-32 text as the body of a JSON string, where it is well-formed; else some number.
pub(crate) fn json_len_from_utf32(src: &[u32]) -> usize {
    src.iter()
        .map(|&c| {
            if scalar::is_escape(c) {
                scalar::escape(c as u8).as_slice().len()
            } else {
                utf8_len_of(c)
            }
        })
        .sum()
}

/// Bytes of the UTF-32 text as UTF-8, where it is well-formed; else some number.
pub(crate) fn utf8_len_from_utf32(src: &[u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there.
        return unsafe { avx512::encode::len_of_ucs4(src) };
    }
    src.iter().map(|&c| utf8_len_of(c)).sum()
}

/// The twin of the conversions above.
fn scalar_to_utf8(units: Units<'_>, out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let mut n = 0;
    for c in naive::code_points(units) {
        let c = char::from_u32(c.ok()?).expect("the naive decoder gives scalar values");
        for b in c.encode_utf8(&mut [0; 4]).bytes() {
            out[n].write(b);
            n += 1;
        }
    }
    Some(n)
}

/// Valid UTF-8 to Latin-1 units.
///
/// # Safety
/// All characters are below U+0100, and `out` is as long as there are characters.
#[inline]
pub(super) unsafe fn str_to_latin1(src: &str, out: &mut [MaybeUninit<u8>]) {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        let n = out.len();
        let good =
            // SAFETY: AVX-512 is there; the rest are the caller's duties.
            unsafe { avx512::utf8::to_latin1::<false>(src.as_bytes(), out.as_mut_ptr().cast(), n) };
        return debug_assert!(good);
    }
    #[cfg(target_arch = "x86_64")]
    if is_cell(src.len()) {
        let n_chars = out.len();
        // SAFETY: AVX2 is there (`kernel`); the rest are the caller's duties.
        return unsafe { decode::utf8_to_latin1(src.as_bytes(), out.as_mut_ptr().cast(), n_chars) };
    }
    if no_simdutf() {
        return scalar::fill(src.chars().map(u32::from), out);
    }
    // SAFETY: a str is valid; the rest are the caller's duties.
    let n = unsafe {
        simdutf::convert_valid_utf8_to_latin1(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    };
    assert_eq!(n, out.len(), "measured text has another length");
}

/// Valid UTF-8 to UTF-16 units.
///
/// # Safety
/// `out` is as long as the text in UTF-16.
#[inline]
pub(super) unsafe fn str_to_utf16(src: &str, out: &mut [MaybeUninit<u16>]) {
    if no_simdutf() {
        return scalar::fill(src.encode_utf16().map(u32::from), out);
    }
    // SAFETY: a str is valid; the rest are the caller's duties.
    let n = unsafe {
        simdutf::convert_valid_utf8_to_utf16(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    };
    assert_eq!(n, out.len(), "measured text has another length");
}

/// Valid UTF-8 to units of kind 2.
///
/// # Safety
/// All characters are below U+10000, and `out` is as long as there are characters.
#[inline]
pub(super) unsafe fn str_to_ucs2(src: &str, out: &mut [MaybeUninit<u16>]) {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        let n = out.len();
        let good =
            // SAFETY: AVX-512 is there; the rest are the caller's duties.
            unsafe { avx512::utf8::to_ucs2::<false>(src.as_bytes(), out.as_mut_ptr().cast(), n) };
        return debug_assert!(good);
    }
    #[cfg(target_arch = "x86_64")]
    if is_cell(src.len()) {
        let n_chars = out.len();
        // SAFETY: AVX2 is there (`kernel`); the rest are the caller's duties.
        return unsafe { decode::utf8_to_ucs2(src.as_bytes(), out.as_mut_ptr().cast(), n_chars) };
    }
    // SAFETY: without pairs, UTF-16 has a unit for each character.
    unsafe { str_to_utf16(src, out) }
}

/// Valid UTF-8 to UTF-32 units.
///
/// # Safety
/// `out` is as long as there are characters.
#[inline]
pub(super) unsafe fn str_to_utf32(src: &str, out: &mut [MaybeUninit<u32>]) {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        let n = out.len();
        let good =
            // SAFETY: AVX-512 is there; the rest are the caller's duties.
            unsafe { avx512::utf8::to_ucs4::<false>(src.as_bytes(), out.as_mut_ptr().cast(), n) };
        return debug_assert!(good);
    }
    #[cfg(target_arch = "x86_64")]
    if is_cell(src.len()) {
        let n_chars = out.len();
        // SAFETY: AVX2 is there (`kernel`); the rest are the caller's duties.
        return unsafe { decode::utf8_to_ucs4(src.as_bytes(), out.as_mut_ptr().cast(), n_chars) };
    }
    if no_simdutf() {
        return scalar::fill(src.chars().map(u32::from), out);
    }
    // SAFETY: a str is valid; the rest are the caller's duties.
    let n = unsafe {
        simdutf::convert_valid_utf8_to_utf32(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    };
    assert_eq!(n, out.len(), "measured text has another length");
}

/// Valid UTF-16 to UTF-32 units.
///
/// # Safety
/// `src` was validated, and `out` is as long as there are characters.
#[inline]
pub(super) unsafe fn valid_utf16_to_utf32(src: &[u16], out: &mut [MaybeUninit<u32>]) {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() && 2 * src.len() <= LONG_BYTES {
        let n = out.len();
        // SAFETY: AVX-512 is there; the rest are the caller's duties.
        let good = unsafe { avx512::utf16::to_ucs4(src, out.as_mut_ptr().cast(), n) };
        return debug_assert!(good);
    }
    #[cfg(target_arch = "x86_64")]
    if is_cell(src.len()) {
        let n_chars = out.len();
        // SAFETY: AVX2 is there (`kernel`); the rest are the caller's duties.
        return unsafe { decode::utf16_to_ucs4(src, out.as_mut_ptr().cast(), n_chars) };
    }
    if no_simdutf() {
        return scalar::fill(scalar::lossy(Units::Utf16(src)), out);
    }
    // SAFETY: the caller's duties are those of simdutf.
    let n = unsafe {
        simdutf::convert_valid_utf16_to_utf32(src.as_ptr(), src.len(), out.as_mut_ptr().cast())
    };
    assert_eq!(n, out.len(), "measured text has another length");
}

/// Initialised units as a part of what need not be.
pub(crate) fn uninit<U>(units: &[U]) -> &[MaybeUninit<U>] {
    // SAFETY: MaybeUninit<U> has the layout of U, and any U is a good value of it.
    unsafe { std::slice::from_raw_parts(units.as_ptr().cast(), units.len()) }
}

/// Whether UTF-8 is validated while it is decoded; where it is not, the two are separate passes.
pub(super) fn checks_while_decoding() -> bool {
    #[cfg(target_arch = "x86_64")]
    let checks = is_avx512();
    #[cfg(not(target_arch = "x86_64"))]
    let checks = false;
    checks
}

/// Decodes and validates at once; `false` where the text is malformed. Only where [`checks_while_decoding`].
///
/// # Safety
/// No byte is above 0xC3, and `out` has a unit for each byte that continues nothing.
pub(super) unsafe fn utf8_to_latin1_checked(src: &[u8], out: &mut [MaybeUninit<u8>]) -> bool {
    assert!(checks_while_decoding());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: AVX-512 is there; the rest are the caller's duties.
    return unsafe { avx512::utf8::to_latin1::<true>(src, out.as_mut_ptr().cast(), out.len()) };
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{src:?} {out:?}")
}

/// As [`utf8_to_latin1_checked`], with no byte above 0xEF.
///
/// # Safety
/// As there.
pub(super) unsafe fn utf8_to_ucs2_checked(src: &[u8], out: &mut [MaybeUninit<u16>]) -> bool {
    assert!(checks_while_decoding());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: AVX-512 is there; the rest are the caller's duties.
    return unsafe { avx512::utf8::to_ucs2::<true>(src, out.as_mut_ptr().cast(), out.len()) };
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{src:?} {out:?}")
}

/// As [`utf8_to_latin1_checked`], with any bytes.
///
/// # Safety
/// As there.
pub(super) unsafe fn utf8_to_ucs4_checked(src: &[u8], out: &mut [MaybeUninit<u32>]) -> bool {
    assert!(checks_while_decoding());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: AVX-512 is there; the rest are the caller's duties.
    return unsafe { avx512::utf8::to_ucs4::<true>(src, out.as_mut_ptr().cast(), out.len()) };
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{src:?} {out:?}")
}

/// Decodes and validates UTF-16 at once; `false` where it is malformed.
///
/// # Safety
/// `out` has a unit for each one of `src` that is no second half of a pair.
pub(super) unsafe fn utf16_to_ucs4_checked(src: &[u16], out: &mut [MaybeUninit<u32>]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_avx512() {
        // SAFETY: AVX-512 is there; the rest are the caller's duties.
        return unsafe { avx512::utf16::to_ucs4(src, out.as_mut_ptr().cast(), out.len()) };
    }
    if utf16_error_near(src).is_some() {
        return false;
    }
    // SAFETY: validated; the rest are the caller's duties.
    unsafe { valid_utf16_to_utf32(src, out) };
    true
}
