//! Bulk transcoding and validation by simdutf, behind functions that check lengths; the scalar twin where
//! `ONECOPY_KERNEL=scalar` asks for it, and under Miri, which runs no C++.
//!
//! simdutf wants room for exactly the converted length and writes no further; `arch::tests` holds it to that.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::decode;
use super::{Kernel, kernel, scalar};
use crate::{Units, naive};

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

/// The bytes as a `str`, where they are well-formed UTF-8.
#[inline]
pub(crate) fn as_str(src: &[u8]) -> Option<&str> {
    if no_simdutf() {
        return std::str::from_utf8(src).ok();
    }
    // SAFETY: simdutf has validated it (RFC 3629, the same rules as core's).
    simdutf::validate_utf8(src).then(|| unsafe { std::str::from_utf8_unchecked(src) })
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
    if no_simdutf() {
        return scalar::lossy(Units::Utf16(src)).map(utf8_len_of).sum();
    }
    simdutf::utf8_length_from_utf16(src)
}

/// Bytes of the Latin-1 text as UTF-8.
pub(crate) fn utf8_len_from_latin1(src: &[u8]) -> usize {
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
