//! Text to UTF-8, in bulk: our kernels, simdutf's where those are none, and the scalar twin where `ONECOPY_KERNEL=scalar` asks
//! for it and under Miri. The one place that chooses between them.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::bulk::{is_avx2, is_avx512};
use super::bulk::{is_utf16, no_simdutf};
use super::scalar;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::{Units, naive};

/// Runs our kernel on wide vectors, of a module and name that both families have; `None` where none of them runs.
macro_rules! by_vectors {
    ($module:ident, $name:ident($($arg:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if is_avx512() {
            // SAFETY: AVX-512 is there. A place that is passed is as long as is said, and borrowed mutably: the kernels
            // write no further (so for AVX2).
            Some(unsafe { avx512::$module::$name($($arg),*) })
        } else if is_avx2() {
            // SAFETY: AVX2 is there, and the kernels write no further than the place here too.
            Some(unsafe { avx2::$module::$name($($arg),*) })
        } else {
            None
        }
        #[cfg(not(target_arch = "x86_64"))]
        None
    }};
}

/// Bytes of 16-bit units as UTF-8, each half of a pair 2, and whether there is a surrogate.
fn measure_wide(src: &[u16]) -> (usize, bool) {
    by_vectors!(measure, wide(src)).unwrap_or_else(|| scalar::utf8_len_of_wide(src))
}

/// Bytes of 32-bit units as UTF-8; `None` where one is malformed.
fn measure_ucs4(src: &[u32]) -> Option<usize> {
    by_vectors!(measure, ucs4(src)).unwrap_or_else(|| scalar::utf8_len_of_ucs4(src))
}

/// Bytes of the UTF-16 text as UTF-8, where it is well-formed; else some number.
pub(crate) fn utf8_len_from_utf16(src: &[u16]) -> usize {
    measure_wide(src).0
}

/// Bytes of the Latin-1 text as UTF-8.
pub(crate) fn utf8_len_from_latin1(src: &[u8]) -> usize {
    by_vectors!(measure, latin1(src)).unwrap_or_else(|| scalar::utf8_len_of_latin1(src))
}

/// Bytes of the text as UTF-8; `None` where it is malformed.
#[inline]
pub(crate) fn valid_utf8_len(units: Units<'_>) -> Option<usize> {
    match units {
        Units::Latin1(u) => Some(utf8_len_from_latin1(u)),
        Units::Utf8(u) => crate::is_utf8(u).then_some(u.len()),
        Units::Utf16(u) => match measure_wide(u) {
            (n, found) if !found || is_utf16(u) => Some(n),
            _ => None,
        },
        Units::Ucs2(u) => match measure_wide(u) {
            (n, false) => Some(n),
            _ => None,
        },
        Units::Utf32(u) => measure_ucs4(u),
    }
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
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    if let Some(n) = by_vectors!(encode, wide(src, dst, room)) {
        return n;
    }
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    let result =
        // SAFETY: src is readable for its length; no unit gives more than 3 bytes, so out takes the text.
        unsafe { simdutf::convert_utf16_to_utf8_with_errors(src.as_ptr(), src.len(), dst) };
    (result.error == simdutf::ErrorCode::Success).then_some(result.count)
}

/// As [`utf16_to_utf8`] with as much room as the text needs and no more.
///
/// # Panics
/// Where the text is well-formed and `out` too short: a bug of the caller.
pub(crate) fn utf16_to_utf8_exact(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    let made: Option<Option<usize>> = by_vectors!(encode, wide(src, dst, room));
    if let Some(n) = made {
        assert!(n.is_some() || !is_utf16(src), "the room is too short");
        return n;
    }
    let n = valid_utf8_len(Units::Utf16(src))?;
    assert!(room >= n, "the room is too short");
    if no_simdutf() {
        return scalar_to_utf8(Units::Utf16(src), out);
    }
    // SAFETY: src was validated, and out takes its length.
    Some(unsafe { simdutf::convert_valid_utf16_to_utf8(src.as_ptr(), src.len(), dst) })
}

/// From so many units on a copy of the ASCII in front repays a call of its own: on 32-byte vectors the kernel for any text writes
/// ASCII at a third of the speed (75 and 27 ns for 1,000 units).
#[cfg(target_arch = "x86_64")]
const ASCII_UNITS: usize = 100;

/// UTF-16 to UTF-8, validated on the way, in a place of any size. `None` where it is malformed and where the place is too short, and
/// `out` holds anything then.
#[inline]
pub(crate) fn utf16_to_utf8_within(src: &[u16], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_avx2() && src.len() >= ASCII_UNITS && out.len() >= src.len() {
        // SAFETY: out takes as many bytes as there are units, and is borrowed mutably, apart from src.
        let n = unsafe { super::narrow_up_to::<0x7F>(src, out.as_mut_ptr().cast()) };
        let (rest, place) = (&src[n..], &mut out[n..]);
        let (dst, room) = (place.as_mut_ptr().cast(), place.len());
        // SAFETY: AVX2 is there; the kernel writes no further than the place.
        return unsafe { avx2::encode::wide(rest, dst, room) }.map(|more| n + more);
    }
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    if let Some(n) = by_vectors!(encode, wide(src, dst, room)) {
        return n;
    }
    if room / 3 >= src.len() {
        return utf16_to_utf8(src, out);
    }
    let n = valid_utf8_len(Units::Utf16(src))?;
    if n <= room {
        utf16_to_utf8_exact(src, out)
    } else {
        None
    }
}

/// Latin-1 to UTF-8, in a place of any size. `None` where it is too short, and `out` holds anything then.
#[inline]
pub(crate) fn latin1_to_utf8_within(src: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    if let Some(n) = by_vectors!(encode, latin1(src, dst, room)) {
        return n;
    }
    (room / 2 >= src.len() || room >= utf8_len_from_latin1(src)).then(|| latin1_to_utf8(src, out))
}

/// Latin-1 to UTF-8.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
#[inline]
pub(crate) fn latin1_to_utf8(src: &[u8], out: &mut [MaybeUninit<u8>]) -> usize {
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    let made: Option<Option<usize>> = by_vectors!(encode, latin1(src, dst, room));
    if let Some(n) = made {
        return n.expect("the room is too short");
    }
    assert!(room / 2 >= src.len() || room >= utf8_len_from_latin1(src));
    if no_simdutf() {
        return scalar_to_utf8(Units::Latin1(src), out).expect("Latin-1 has no malformed text");
    }
    // SAFETY: src is readable for its length; out takes the text, checked above.
    unsafe { simdutf::convert_latin1_to_utf8(src.as_ptr(), src.len(), dst) }
}

/// UTF-32 to UTF-8, validated on the way, never by simdutf, which is slower than CPython on emoji.
/// `None` where it is malformed, and `out` holds anything then.
///
/// # Panics
/// Where `out` is too short: a bug of the caller.
pub(crate) fn utf32_to_utf8(src: &[u32], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
    let (dst, room) = (out.as_mut_ptr().cast(), out.len());
    let made: Option<Option<usize>> = by_vectors!(encode, ucs4(src, dst, room));
    if let Some(n) = made {
        assert!(
            n.is_some() || scalar::scan_u32(src).1,
            "the room is too short"
        );
        return n;
    }
    let n = measure_ucs4(src)?;
    assert!(room >= n, "the room is too short");
    // SAFETY: all of src are scalar values, and out takes their lengths in UTF-8 (checked above).
    unsafe { scalar::write_all_utf8(src, dst, n) };
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
    measure_ucs4(src).unwrap_or_else(|| src.iter().map(|&c| utf8_len_of(c)).sum())
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
